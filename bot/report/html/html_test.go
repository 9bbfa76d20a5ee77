package html

import (
	"bytes"
	"flag"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"patchbench/bench"
	"patchbench/bot/report/cases"
	"patchbench/bot/report/rows"
	"patchbench/mbox"
	"patchbench/store"
)

var out = flag.String("out", "", "also write every page into this folder, to be looked at and validated")

func render(t *testing.T, e *store.Evaluation, samples []bench.Sample) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, e, samples); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWrite(t *testing.T) {
	for name, build := range cases.All {
		t.Run(name, func(t *testing.T) {
			e := build().Evaluation
			samples := cases.Samples(e)
			if len(samples) > 4_000 {
				samples = samples[:4_000] // a parser needs long for megabytes of them
			}
			got := render(t, e, samples)
			check(t, got)
			if again := render(t, build().Evaluation, samples); again != got {
				t.Error("a second rendering differs")
			}
			if *out != "" {
				if err := os.WriteFile(filepath.Join(*out, name+".html"), []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Contains([]string{"one-improvement", "crash", "hostile"}, name) {
				return // the others differ in their numbers
			}
			// Without its style sheet, which has one place.
			got = strings.Replace(got, style, "", 1)
			cases.Golden(t, name+".html", got)
		})
	}
}

// elements are all that the template and the plots write; in every other one a
// stranger's markup would have come through.
var elements = strings.Fields(`html head meta title style body header main footer nav section h1 h2 h3 p a span dl dt dd ul li
	div table caption thead tbody tr th td figure figcaption svg desc path circle text details summary pre code q`)

var attributes = strings.Fields(`lang charset content http-equiv name class id href role aria-label aria-labelledby aria-hidden tabindex scope open
	viewbox d x y cx cy r text-anchor`)

// check holds for every page: nothing but our elements and attributes, each id
// once and each reference answered, and no address of anything outside.
func check(t *testing.T, page string) {
	t.Helper()
	valid(t, page)
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	ids, refs := map[string]bool{}, []string{}
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			if n.Type == html.CommentNode {
				t.Errorf("comment %q", n.Data)
			}
			continue
		}
		if !slices.Contains(elements, n.Data) {
			t.Errorf("element %s", n.Data)
		}
		for _, a := range n.Attr {
			key := strings.ToLower(a.Key)
			if !slices.Contains(attributes, key) {
				t.Errorf("attribute %s of %s", a.Key, n.Data)
			}
			switch key {
			case "id":
				if ids[a.Val] {
					t.Errorf("id %s stands twice", a.Val)
				}
				ids[a.Val] = true
			case "href":
				if !strings.HasPrefix(a.Val, "#") {
					t.Errorf("href %q", a.Val)
				}
				refs = append(refs, strings.TrimPrefix(a.Val, "#"))
			case "aria-labelledby":
				refs = append(refs, strings.Fields(a.Val)...)
			case "d", "cx", "cy", "x", "y":
				if strings.ContainsAny(a.Val, "NI") { // NaN, Inf
					t.Errorf("%s of %s is %s", a.Key, n.Data, a.Val)
				}
			}
		}
	}
	for _, ref := range refs {
		if !ids[ref] {
			t.Errorf("nothing has the id %s", ref)
		}
	}
	if strings.Contains(style, "url(") || strings.Contains(style, "@import") {
		t.Error("the style sheet asks for something outside")
	}
}

// Which elements stand for themselves, which hold words alone, and what others
// may hold: the part of the standard's content models that our pages use.
var (
	void     = strings.Fields("meta link br img path circle")
	phrasing = strings.Fields("a span q code svg")
	wordy    = strings.Fields("title style h1 h2 h3 p a span q code dt caption th td summary figcaption pre desc text")
	children = map[string]string{
		"html": "head body", "head": "meta title style", "ul": "li", "dl": "dt dd", "table": "caption thead tbody", "thead": "tr", "tbody": "tr",
		"tr": "th td", "svg": "title desc path circle text", "figure": "svg ul figcaption", "body": "a header main footer",
		"header": "h1 p dl nav", "nav": "ul", "footer": "p",
	}
)

// attribute is one with its value, in which a quotation mark is written otherwise.
var attribute = regexp.MustCompile(`="[^"]*"`)

// valid holds the text of a page against the standard: every element is closed
// where it must be, stands where it may, has an attribute once, and headings go
// down by single steps.
func valid(t *testing.T, page string) {
	t.Helper()
	z := html.NewTokenizer(strings.NewReader(page))
	var open []string
	heading, faults := 0, 0
	fault := func(format string, args ...any) {
		if faults++; faults <= 20 {
			t.Errorf(strings.Join(open, " ")+": "+format, args...)
		}
	}
	for {
		kind := z.Next()
		raw := string(z.Raw())
		token := z.Token()
		name := token.Data
		switch kind {
		case html.ErrorToken:
			if len(open) > 0 {
				fault("not closed")
			}
			return
		case html.TextToken:
			if n := len(open); strings.TrimSpace(name) != "" && (n == 0 || children[open[n-1]] != "") {
				fault("text %.40q", name)
			}
		case html.EndTagToken:
			if n := len(open); n == 0 || open[n-1] != name {
				fault("%s is closed", name)
				return
			} else {
				open = open[:n-1]
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			parent := ""
			if n := len(open); n > 0 {
				parent = open[n-1]
			}
			switch allowed := children[parent]; {
			case allowed != "" && !slices.Contains(strings.Fields(allowed), name):
				fault("%s has no place here", name)
			case slices.Contains(wordy, parent) && !slices.Contains(phrasing, name):
				fault("%s stands among words", name)
			case parent == "a" && slices.Contains(open[:len(open)-1], "a"):
				fault("a link in a link")
			}
			if len(attribute.FindAllString(raw, -1)) > len(token.Attr) { // of which the reader keeps each once
				fault("%s has an attribute twice", name)
			}
			if level := strings.Index("h1h2h3", name)/2 + 1; len(name) == 2 && name[0] == 'h' && level > 0 {
				if level > heading+1 {
					fault("h%d behind h%d", level, heading)
				}
				heading = level
			}
			if kind == html.StartTagToken && !slices.Contains(void, name) {
				open = append(open, name)
			}
		}
	}
}

// TestValid knows a fault of each kind.
func TestValid(t *testing.T) {
	const good = "<html><head><title>x</title></head><body><a href=\"#m\">m</a><main id=\"m\"><h1>a</h1><ul><li>b</li></ul></main></body></html>"
	valid(t, good)
	for old, now := range map[string]string{
		"</li>": "", "<li>b</li>": "<p>b</p>", "<h1>a</h1>": "<h1>a<p></p></h1>", "h1": "h2", "<main id=\"m\">": "<main id=\"m\" id=\"n\">",
		"</html>": "", "<ul>": "<ul>text",
	} {
		silent := &testing.T{}
		valid(silent, strings.ReplaceAll(good, old, now))
		if !silent.Failed() {
			t.Errorf("%q in the place of %q passes", now, old)
		}
	}
}

// TestShows looks for what a reader must find in a page.
func TestShows(t *testing.T) {
	e := cases.All["claims"]().Evaluation
	samples := cases.Samples(e)
	page := render(t, e, samples)
	for _, want := range []string{
		"2/5 hash: mix in the length", "commit <code>", "hash gets 1.25x faster", "names no row", "Cumulative course of the changed rows",
		"hash cpu by version", "Samples of hash cpu", e.Command,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not hold %q", want)
		}
	}
	if n := strings.Count(page, `<details class="raw">`); n != 14 {
		t.Errorf("samples of %d rows, want those of 14", n)
	}
	// Rounds are lines: 20 below a head, in every block of samples.
	block := page[strings.Index(page, "<pre>"):]
	for rest := block; ; {
		_, after, found := strings.Cut(rest, "round   ")
		if !found {
			break
		}
		text, more, _ := strings.Cut(after, "</pre>")
		if lines := strings.Count(text, "\n"); lines != 20 {
			t.Fatalf("%d rounds", lines)
		}
		rest = more
	}
	if without := render(t, e, nil); strings.Contains(without, `class="raw"`) || !strings.Contains(without, "hash cpu by version") {
		t.Error("without samples the page must have its plots, and no samples")
	}
}

// TestEffects holds the figures before and after each patch against the change
// that stands beside them.
func TestEffects(t *testing.T) {
	unbuilt := func() cases.Builder {
		b := cases.New("", "", "one", "two", "three", "four")
		b.Process("hash", 0.4, 64<<20, map[int]float64{1: 0.5, 4: -0.25}, map[int]float64{1: 1, 2: -0.5})
		b.Unbuilt(3, "error")
		return b.Judged()
	}
	group := func() cases.Builder {
		b := cases.New("", "", "one", "two", "three", "four")
		c := b.Row("hash", "cpu", "s", 0.4, 0.004, map[int]float64{2: 0.2, 3: 0.1, 4: -0.5})
		for n := 2; n <= 3; n++ {
			c.Steps[n-1].Group, *c.Steps[n-1].Change = []int{2, 3}, 0.32
		}
		return b.Judged()
	}
	for name, build := range map[string]func() cases.Builder{
		"operations": cases.All["operations"], "regression-of-13": cases.All["regression-of-13"], "planted": cases.All["planted"],
		"unbuilt between": unbuilt, "group": group,
	} {
		t.Run(name, func(t *testing.T) {
			r := &renderer{e: build().Evaluation, logs: map[string]string{}, written: map[*bench.Comparison]written{}}
			view := rows.Of(r.e)
			seen := 0
			for _, p := range r.patches(view, r.rows(view.Changed)) {
				for _, l := range p.Effects {
					number := func(s string) float64 {
						v, err := strconv.ParseFloat(strings.Fields(s)[0], 64)
						if err != nil {
							t.Fatalf("%s: %s %s: %v", p.Name, l.Benchmark, l.Metric, err)
						}
						return v
					}
					got, want := 100*(number(l.Patched)/number(l.Base)-1), number(l.Change)
					if math.Abs(got-want) > 0.3 {
						t.Errorf("%s: %s %s: from %s to %s is %+.1f %%, and it says %s", p.Name, l.Benchmark, l.Metric, l.Base, l.Patched, got, l.Change)
					}
					seen++
				}
			}
			if seen == 0 {
				t.Error("no effects")
			}
		})
	}
}

// An arrow points to where the figure goes, also where that is no share of
// anything.
func TestArrow(t *testing.T) {
	for name, c := range map[string]struct {
		before, after float64
		up            bool
	}{"from nothing": {0, 12, true}, "to more": {10, 12, true}, "to less": {12, 10, false}, "to nothing": {12, 0, false}} {
		b := cases.New("", "", "one")
		row := b.Row("parse", "allocs", "1", 0, 0, nil)
		*row.Values[0].Median, *row.Values[1].Median = c.before, c.after
		row.Steps[0] = bench.Step{N: 1, Verdict: bench.Worse, Reason: "base is 0"}
		if c.before > 0 {
			change := c.after/c.before - 1
			row.Steps[0].Change = &change
		}
		r := &renderer{e: b.Evaluation}
		if _, ups := r.stepsOf(row); ups[1] != c.up {
			t.Errorf("%s: up %v, want %v", name, ups[1], c.up)
		}
	}
}

// TestWithout looks for what became of patches that have no version.
func TestWithout(t *testing.T) {
	for name, want := range map[string]string{
		"conflict":          "5/7 </h3>\n<p class=\"dim\">not tried, since 4/7 does not apply</p>",
		"conflict-at-first": "1/3 hash: say what the seed is for</h3>\n<p class=\"v worse\">does not apply</p>",
		"warnings":          "7/8 </h3>\n<p class=\"dim\">not tried, since patches before it are missing</p>",
	} {
		if page := render(t, cases.All[name]().Evaluation, nil); !strings.Contains(page, want) {
			t.Errorf("%s: the page does not hold %q", name, want)
		}
	}
}

// TestSparse renders evaluations that hold next to nothing or nonsense.
func TestSparse(t *testing.T) {
	huge := 1e308
	for name, e := range map[string]*store.Evaluation{
		"zero":        {},
		"no versions": {Verdict: bench.FailedSeries, Series: &mbox.Series{Total: 3}, Results: []bench.Comparison{{Tested: true}}},
		"versions out of range": {ID: "x", Versions: []bench.Version{{N: -5}, {N: 1 << 40}}, Results: []bench.Comparison{{Tested: true, Metric: "cpu",
			Values: []bench.Value{{N: -5, Median: &huge}, {N: 1 << 40, Median: &huge}}, Total: bench.Step{N: 1 << 40, Verdict: bench.Worse, Change: &huge}}}},
		"conflict only": {Conflict: &mbox.Conflict{N: 1, Files: []mbox.ConflictFile{{Path: "a", Reason: "gone"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, render(t, e, []bench.Sample{{Round: 1 << 40, Version: 1 << 40, Metric: "cpu", Value: huge}, {Round: -1, Version: -1, Metric: "cpu"}}))
		})
	}
}

// FuzzWrite puts any text and number where a stranger can put it.
func FuzzWrite(f *testing.F) {
	f.Add("</title><script>alert(1)</script>", 1.0, 0.1)
	f.Add("'\"><img src=x onerror=alert(1)>", 1e-300, 1e300)
	f.Add("</style></pre></svg><!--", -1.0, -1.0)
	f.Add("\u202e{{.}}\x00\xff", 0.0, 0.0)
	f.Fuzz(func(t *testing.T, s string, level, change float64) {
		b := cases.New(s, bench.Verdict(s), s, s)
		b.Row(s, s, s, level, 0.01, map[int]float64{1: change})
		b.Row(s, "cpu", "s", level, change, map[int]float64{2: change})
		b.ID, b.Command, b.Warnings, b.Host.Name, b.Suite.Name = s, s, []string{s}, s, s
		b.Versions[1].Name, b.Versions[1].Commit = s, s
		b.Versions[2].State, b.Versions[2].LogTail = bench.BuildFailed, s
		b.Failures = []bench.Failure{{N: 1, Benchmark: s, Reason: s, LogTail: s}}
		b.Claims = []bench.Claim{{Text: s, Benchmark: s, Metric: s, Change: change, Verdict: bench.ClaimVerdict(s)}}
		b.Conflict = &mbox.Conflict{N: 3, Subject: s, Files: []mbox.ConflictFile{{Path: s, Reason: s}}}
		check(t, render(t, b.Evaluation, cases.Samples(b.Evaluation)))
	})
}

func BenchmarkLargest(b *testing.B) {
	e := cases.All["largest"]().Evaluation
	samples := cases.Samples(e)
	b.ReportMetric(float64(len(samples)), "samples")
	n := 0
	for b.Loop() {
		var page bytes.Buffer
		if err := Write(&page, e, samples); err != nil {
			b.Fatal(err)
		}
		n = page.Len()
	}
	b.Log(strconv.Itoa(n) + " bytes")
}

// A comparison of values names them where patches would stand.
func TestValues(t *testing.T) {
	got := render(t, cases.All["values"]().Evaluation, nil)
	for _, want := range []string{`<h2 id="patches">Value by value</h2>`, "alloc=pool against the last version", "alloc=none"} {
		if !strings.Contains(got, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if strings.Contains(got, "Patch by patch") {
		t.Error("the page tells of patches")
	}
}
