package markdown

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"

	"patchbench/bench"
	"patchbench/bot/report/cases"
	"patchbench/mbox"
	"patchbench/store"
)

func render(t *testing.T, e *store.Evaluation) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, e); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWrite(t *testing.T) {
	for name, build := range cases.All {
		t.Run(name, func(t *testing.T) {
			e := build().Evaluation
			got := render(t, e)
			cases.Golden(t, name+".md", got)
			if again := render(t, e); again != got {
				t.Error("a second rendering differs")
			}
			check(t, got)
		})
	}
}

var engine = goldmark.New(goldmark.WithExtensions(extension.GFM))

// ours is all text and markup that may stand outside code.
var ours = map[string]bool{
	"Better": true, "Worse": true, "Mixed": true, "Unclear": true, "No change": true, "Does not build": true, "Failed": true, "Report": true, ".": true, " ": true,
	"<details><summary>Machine, rounds, and how to reproduce</summary>\n": true,
	"</details>\n": true,
}

// ourFold is the block of what is less than the figures.
var ourFold = regexp.MustCompile(`^<details><summary>(Builds|Unclear|Not measured|Warnings)(, (Unclear|Not measured|Warnings))*</summary>\n$`)

// check reads a report with a Markdown engine: nothing but code may hold text
// that is not ours.
func check(t *testing.T, md string) {
	t.Helper()
	source := []byte(md)
	blocks := 0
	err := ast.Walk(engine.Parser().Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Document, *ast.Paragraph, *ast.Emphasis:
		case *ast.FencedCodeBlock, *ast.CodeSpan:
			blocks++
			return ast.WalkSkipChildren, nil
		case *ast.Text:
			for _, part := range strings.SplitAfter(strings.TrimSuffix(string(n.Value(source)), "."), ".") {
				if part != "" && !ours[part] {
					t.Errorf("text outside code: %q", part)
				}
			}
		case *ast.HTMLBlock:
			for i := range n.Lines().Len() {
				line := n.Lines().At(i)
				if !ours[string(line.Value(source))] && !ourFold.Match(line.Value(source)) {
					t.Errorf("markup: %q", line.Value(source))
				}
			}
		case *ast.Link, *ast.Image, *ast.AutoLink, *ast.RawHTML, *extast.Table:
			t.Errorf("%s is rendered", n.Kind())
		default:
			t.Errorf("unexpected %s", n.Kind())
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if blocks < 2 {
		t.Errorf("only %d blocks of code in:\n%s", blocks, md)
	}
}

// FuzzWrite puts any text where a stranger can put it.
func FuzzWrite(f *testing.F) {
	for _, seed := range []string{
		"@torvalds fixes #1", "```\n@all\n```", "`` ` ```` @x", "![x](http://example.org/x.png)", "</details><script>alert(1)</script>",
		"http://example.org www.example.org a@example.org", "~~~\n# h", "\n\n> quoted\n", "`", "\\`", "a\r\rb", "<!--", "|a|b|\n|-|-|\n", "    indented",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		change := 0.1
		e := &store.Evaluation{ID: s, Headline: s, Verdict: bench.Verdict(s), Command: s, Warnings: []string{s},
			Series:   &mbox.Series{Subject: s, Author: mbox.Address{Name: s, Email: s}, Complete: true, Total: 2},
			Versions: []bench.Version{{Name: "base", State: bench.Built, Commit: s}, {N: 1, Name: "1/2", Subject: s, State: bench.BuildFailed, LogTail: s}, {N: 2, Name: s, Subject: s, State: bench.Built}},
			Results: []bench.Comparison{{Benchmark: s, Metric: s, Unit: s, Tested: true, Warnings: []string{s},
				Total: bench.Step{N: 2, Change: &change, Verdict: bench.Worse}, Steps: []bench.Step{{N: 2, Change: &change, Verdict: bench.Worse}}}},
			Failures: []bench.Failure{{N: 2, Benchmark: s, Reason: s, LogTail: s}},
			Claims:   []bench.Claim{{Text: s, Benchmark: s, Metric: s, Verdict: bench.ClaimVerdict(s)}, {Text: s, Verdict: bench.ClaimUnmeasured}},
			Conflict: &mbox.Conflict{N: 2, Files: []mbox.ConflictFile{{Path: s, Reason: s}}},
		}
		e.Suite.Name, e.Host.Name, e.Base.Reason = s, s, s
		check(t, render(t, e))
	})
}

func BenchmarkLargest(b *testing.B) {
	e := cases.All["largest"]().Evaluation
	for b.Loop() {
		if err := Write(&bytes.Buffer{}, e); err != nil {
			b.Fatal(err)
		}
	}
}

func TestWithin(t *testing.T) {
	for name, build := range cases.All {
		t.Run(name, func(t *testing.T) {
			e := build().Evaluation
			whole := render(t, e)
			if got, cut := Within(e, len(whole)); got != whole || cut {
				t.Errorf("a limit that is just kept cuts it (cut = %v)", cut)
			}
			for _, limit := range []int{len(whole) - 1, 30000, 8000, 4000} {
				got, cut := Within(e, limit)
				if len(got) > limit {
					t.Errorf("limit %d: %d bytes", limit, len(got))
				}
				if want := limit < len(whole); cut != want {
					t.Errorf("limit %d of %d: cut = %v", limit, len(whole), cut)
				}
				if first, _, _ := strings.Cut(whole, "\n"); !strings.HasPrefix(got, first+"\n") {
					t.Errorf("limit %d: does not begin with the verdict: %.80q", limit, got)
				}
				check(t, got)
			}
		})
	}
}
