package comment

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"

	"patchbench/bench"
	"patchbench/bot/report/cases"
	"patchbench/config/service"
	"patchbench/mbox"
	"patchbench/store"
)

const head = "9e3779b97f4a7c15f39cc0605cedc8341082276b"

var about = About{
	Key: "kit/kit#12@" + head, Head: head, URL: "https://bench.example.org/evaluations/20261130-3f9a2c", Pull: "https://github.example.org/kit/kit/pull/12",
	Branch:  "main",
	Started: time.Date(2026, 11, 30, 9, 8, 7, 0, time.UTC), Now: time.Date(2026, 11, 30, 9, 18, 7, 0, time.UTC),
}

// ours is all text that may stand outside of code.
var ours = regexp.MustCompile(`^(Queued|Running|Waits for approval|Stopped|Superseded|Could not be measured:|Better|Worse|Mixed|Unclear|No change|Failed|Does not build|Report` +
	`| waits for a machine\.| is being measured(: )?| is not measured until somebody with write access comments | is no longer the newest commit\.| was not measured\.` +
	`|\. Somebody with write access can try again with |(, )?[0-9]+/[0-9]+ is |, \.\.|Measured: | against |, where it left |\. The report is cut to what fits here: |\. The report is cut to what fits here; the bot's operator has all of it: ` +
	`|The whole report|all of it|Earlier:|: |, |report| |\. |\.?)\.? ?$`)

var ourLinks = regexp.MustCompile(`^https://(bench\.example\.org/evaluations/.*|github\.example\.org/kit/kit/pull/12/commits/[0-9a-f]{40})$`)

var engine = goldmark.New(goldmark.WithExtensions(extension.GFM))

// check reads a comment as GitHub does: text, markup and links that are not ours
// stand nowhere but in code.
func check(t *testing.T, md string) {
	t.Helper()
	source := []byte(md)
	err := ast.Walk(engine.Parser().Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Document, *ast.Paragraph, *ast.Emphasis, *ast.List, *ast.ListItem, *ast.TextBlock:
		case *ast.FencedCodeBlock, *ast.CodeSpan:
			return ast.WalkSkipChildren, nil
		case *ast.Text:
			if before, ok := n.PreviousSibling().(*ast.Text); ok && !before.SoftLineBreak() {
				break // read with that one: the engine takes texts apart as it likes
			}
			s := ""
			for m, ok := n, true; ok; m, ok = m.NextSibling().(*ast.Text) {
				s += string(m.Value(source))
				if m.SoftLineBreak() {
					break
				}
			}
			if !ours.MatchString(s) {
				t.Errorf("text outside of code: %q", s)
			}
		case *ast.Link:
			if !ourLinks.MatchString(string(n.Destination)) {
				t.Errorf("link to %s", n.Destination)
			}
		case *ast.HTMLBlock:
			for i := range n.Lines().Len() {
				line := n.Lines().At(i)
				s := strings.TrimSpace(string(line.Value(source)))
				if s != Marker && s != "</details>" && !regexp.MustCompile(`^<details><summary>[A-Z][a-zA-Z, ]*</summary>$`).MatchString(s) {
					t.Errorf("markup: %q", s)
				}
			}
		default:
			t.Errorf("unexpected %s", n.Kind())
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// Such as turns the direction of text, or hides some of it.
	if i := strings.IndexFunc(md, func(r rune) bool { return r != '\n' && !unicode.IsGraphic(r) }); i >= 0 {
		t.Errorf("unprintable: %q", md[i:min(i+20, len(md))])
	}
	if !strings.HasPrefix(md, Marker+"\n") {
		t.Errorf("does not begin with the marker: %.60q", md)
	}
	if n := utf8.RuneCountInString(md); n > 65536 {
		t.Errorf("%d characters", n)
	}
}

func earlier(n int) (list []Earlier) {
	for i := range n {
		list = append(list, Earlier{Head: fmt.Sprintf("%040x", i), Outcome: "worse", URL: about.URL})
	}
	return list
}

func TestReport(t *testing.T) {
	for name, build := range cases.All {
		t.Run(name, func(t *testing.T) {
			e := build().Commits().Evaluation
			got := Report(e, about, service.Neutral)
			check(t, WithEarlier(got.Comment, earlier(3)))
			check(t, Marker+"\n"+got.Check.Summary)
			if c := got.Check; c.Status != CheckCompleted || c.Conclusion == "" || c.Conclusion == "failure" || c.Title == "" || c.Key != about.Key || c.DetailsURL != about.URL {
				t.Errorf("check run: status %q, conclusion %q, title %q, key %q, details %q", c.Status, c.Conclusion, c.Title, c.Key, c.DetailsURL)
			}
			if utf8.RuneCountInString(got.Check.Summary) > 65535 || len(got.Check.Title) > 4*maxTitle {
				t.Errorf("the check run is too long: %d and %d", len(got.Check.Summary), len(got.Check.Title))
			}
		})
	}
}

func TestGolden(t *testing.T) {
	e := cases.All["regression-of-13"]().Commits().Evaluation
	got := WithEarlier(Report(e, about, service.Strict).Comment, []Earlier{
		{Head: "77c0ff3a2b1d" + strings.Repeat("0", 28), Base: "b1c0a7e25d33" + strings.Repeat("0", 28), Outcome: "better", URL: "https://bench.example.org/evaluations/20261129-77c0ff"},
		{Head: "1b0c2d3e4f50" + strings.Repeat("0", 28), Outcome: "same"},
	})
	check(t, got)
	cases.Golden(t, "regression-of-13.md", got)
}

func TestStanding(t *testing.T) {
	var all strings.Builder
	for _, c := range []struct {
		state      store.State
		detail     string
		status     string
		conclusion string
	}{
		{store.Queued, "", CheckQueued, ""},
		{store.Held, "pushed after what was approved", "", ""},
		{store.Running, "", CheckRunning, ""},
		{store.Running, "measure: 12 of 80", CheckRunning, ""},
		{store.Stopped, "stopped by maintainer", CheckCompleted, "cancelled"},
		{store.Superseded, "", CheckCompleted, "cancelled"},
		{store.Failed, "fetch: no room\non disk", CheckCompleted, "neutral"},
		{store.State("else"), "", CheckCompleted, "neutral"},
	} {
		got := Standing(about, c.state, c.detail)
		if got.Check.Status != c.status || got.Check.Conclusion != c.conclusion {
			t.Errorf("%s: check run %q %q, want %q %q", c.state, got.Check.Status, got.Check.Conclusion, c.status, c.conclusion)
		}
		if c.status != "" && (got.Check.Title == "" || got.Check.Summary == "" || got.Check.Key != about.Key) {
			t.Errorf("%s: check run %+v", c.state, got.Check)
		}
		if !got.Check.Ended.IsZero() != (c.status == CheckCompleted) {
			t.Errorf("%s: ended %v", c.state, got.Check.Ended)
		}
		check(t, got.Comment)
		fmt.Fprintf(&all, "%s\n----\n", got.Comment)
	}
	cases.Golden(t, "standing.md", all.String())
}

func TestConclusion(t *testing.T) {
	unbuilt := []bench.Version{{State: bench.Built}, {N: 1, State: bench.BuildFailed}}
	for _, c := range []struct {
		verdict         bench.Verdict
		versions        []bench.Version
		neutral, strict string
	}{
		{bench.Better, nil, "success", "success"},
		{bench.Same, nil, "success", "success"},
		{bench.Unclear, nil, "neutral", "neutral"},
		{bench.Worse, nil, "neutral", "failure"},
		{bench.Mixed, nil, "neutral", "failure"},
		{bench.FailedSeries, nil, "neutral", "failure"},
		{bench.Better, unbuilt, "neutral", "failure"},
		{bench.Unclear, unbuilt, "neutral", "failure"},
	} {
		e := &store.Evaluation{Verdict: c.verdict, Versions: c.versions}
		if got := conclusion(e, service.Neutral); got != c.neutral {
			t.Errorf("%s, neutral: %s, want %s", c.verdict, got, c.neutral)
		}
		if got := conclusion(e, service.Strict); got != c.strict {
			t.Errorf("%s, strict: %s, want %s", c.verdict, got, c.strict)
		}
	}
}

// A report that does not fit is cut, and says where the rest is.
func TestCut(t *testing.T) {
	e := cases.All["largest"]().Commits().Evaluation
	whole := Report(cases.All["one-improvement"]().Evaluation, about, "")
	if !strings.Contains(whole.Comment, "[The whole report]("+about.URL+")") {
		t.Errorf("no link in:\n%s", whole.Comment)
	}
	got := report(e, about, "", 5000)
	check(t, WithEarlier(got.Comment, earlier(1000)))
	if !strings.Contains(got.Comment, "cut to what fits here: [all of it]("+about.URL+")") {
		t.Errorf("no word of the cut in the end: %q", got.Comment[len(got.Comment)-300:])
	}
	without := about
	without.URL = ""
	got = report(e, without, "", 5000)
	check(t, got.Comment)
	if !strings.Contains(got.Comment, "bot report 2026") {
		t.Errorf("no word of the cut in the end: %q", got.Comment[len(got.Comment)-300:])
	}
}

func TestAddress(t *testing.T) {
	for s, want := range map[string]bool{
		"https://bench.example.org/evaluations/1": true, "http://[::1]:8080/x": false, "": false, "bench.example.org": false,
		"javascript:alert(1)": false, "https://a/b) ![x](http://t/x": true, "https://user:secret@a/": false, "https://a/\n": false, "https://a/ b": true,
	} {
		link, ok := address(s)
		if ok != want || strings.ContainsAny(link, " ()<>\n") {
			t.Errorf("%q: %q, %v", s, link, ok)
		}
	}
}

// FuzzStanding puts any text where somebody else can put it.
func FuzzStanding(f *testing.F) {
	for _, seed := range []string{
		"</pre><script>alert(1)</script> @org/team closes #1 ![x](http://t/x)", "```\n@all\n```", "`` ` ```` @x", "</details>", "-->", "<!-- patchbench",
		"http://example.org www.example.org a@example.org", "~~~\n# h", "\n\n> quoted\n", "`", "\\`", "a\r\rb", "|a|b|\n|-|-|\n", "    indented", "- list", "\x1b[2J\u202e",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a := about
		a.Head, a.Branch = s, s
		for _, state := range []store.State{store.Running, store.Failed, store.Held, store.Stopped} {
			got := Standing(a, state, s)
			check(t, WithEarlier(got.Comment, []Earlier{{Head: s, Base: s, Outcome: s, URL: about.URL}, {Head: head, Outcome: s}}))
			if got.Check.Status != "" {
				check(t, Marker+"\n"+got.Check.Summary)
			}
			if strings.ContainsAny(got.Check.Title, "\n\r\x1b") || utf8.RuneCountInString(got.Check.Title) > 2*maxTitle {
				t.Errorf("title %q", got.Check.Title)
			}
		}
		e := &store.Evaluation{ID: s, Headline: s, Verdict: bench.Worse, Warnings: []string{s}, Versions: []bench.Version{{Name: s}, {N: 1, Name: s, Subject: s}}, Base: mbox.Base{Commit: s}}
		check(t, Report(e, a, s).Comment)
	})
}

// The commits that did something are named, those that only come along are not.
func TestCommits(t *testing.T) {
	id := func(n int) string { return fmt.Sprintf("%012d", n) + strings.Repeat("a", 28) }
	versions := func(n int) (list []bench.Version) {
		for i := range n + 1 {
			list = append(list, bench.Version{N: i, Commit: id(i)})
		}
		return list
	}
	step := func(n int, v bench.Verdict, tested bool) bench.Comparison {
		return bench.Comparison{Tested: tested, Steps: []bench.Step{{N: n, Verdict: v}}}
	}
	const pull = "https://github.example.org/kit/kit/pull/12"
	link := func(n int) string { return "[` " + id(n)[:12] + " `](" + pull + "/commits/" + id(n) + ")" }
	unbuilt := versions(3)
	unbuilt[3].State = bench.BuildFailed
	hostile := versions(1)
	hostile[1].Commit = "000000000001) @all ["
	many := &store.Evaluation{Versions: versions(9)}
	for n := range 9 {
		many.Results = append(many.Results, step(n+1, bench.Better, true))
	}
	for _, c := range []struct {
		name, pull string
		e          *store.Evaluation
		want       string
	}{
		{"nothing", pull, &store.Evaluation{Versions: versions(3), Results: []bench.Comparison{step(1, bench.Same, true), step(2, bench.Worse, false), step(3, bench.Unclear, true)}}, ""},
		{"one", pull, &store.Evaluation{Versions: versions(3), Results: []bench.Comparison{step(2, bench.Worse, true)}}, "2/3 is " + link(2) + "\n"},
		{"two rows of one, and one that fails", pull, &store.Evaluation{
			Versions: versions(3), Failures: []bench.Failure{{N: 1}}, Results: []bench.Comparison{step(2, bench.Worse, true), step(2, bench.Worse, true)},
		}, "1/3 is " + link(1) + ", 2/3 is " + link(2) + "\n"},
		{"not built", pull, &store.Evaluation{Versions: unbuilt}, "3/3 is " + link(3) + "\n"},
		{"base fails", pull, &store.Evaluation{Versions: versions(1), Failures: []bench.Failure{{N: 0}}}, ""},
		{"no page", "", &store.Evaluation{Versions: versions(1), Failures: []bench.Failure{{N: 1}}}, "1/1 is ` " + id(1)[:12] + " `\n"},
		{"no commit", pull, &store.Evaluation{Versions: hostile, Failures: []bench.Failure{{N: 1}}}, "1/1 is ` 000000000001 `\n"},
		{"many", pull, many, fmt.Sprintf("1/9 is %s, 2/9 is %s, 3/9 is %s, 4/9 is %s, 5/9 is %s, ...\n", link(1), link(2), link(3), link(4), link(5))},
	} {
		if got := commits(c.e, c.pull); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
