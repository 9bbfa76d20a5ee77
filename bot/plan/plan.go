// Package plan shows what an evaluation would do and take, for bot eval --dry-run. In
// goes an eval.Planned; out comes a text for people. Nothing is estimated here.
package plan

import (
	"fmt"
	"io"
	"strings"
	"time"

	"patchbench/bench"
	"patchbench/bot/eval"
	"patchbench/bot/report/plain"
)

// Text says what an evaluation would do.
func Text(w io.Writer, p *eval.Planned) error {
	var b strings.Builder
	fmt.Fprintf(&b, "base %s (%s: %s)\n", p.Base.Commit, p.Base.How, plain.Clean(p.Base.Reason))
	for _, v := range p.Versions[1:] {
		fmt.Fprintf(&b, "%s %s\n", v.Name, plain.Clean(v.Subject))
	}
	if c := p.Conflict; c != nil {
		fmt.Fprintf(&b, "%d does not apply: %s\n", c.N, plain.Clean(c.Subject))
	}
	for _, text := range p.Warnings {
		fmt.Fprintf(&b, "%s\n", plain.Clean(text))
	}
	fmt.Fprintf(&b, "suite %s: %s\n", plain.Clean(p.Suite.Name), plain.Clean(strings.Join(p.Benchmarks, ", ")))
	switch p.Versions[0].State {
	case bench.BuildFailed:
		fmt.Fprintf(&b, "base does not build:\n%s\n", indent(p.Versions[0].LogTail))
		_, err := io.WriteString(w, b.String())
		return err
	case bench.Built:
		least, most := p.Measure()
		fmt.Fprintf(&b, "builds: %d, about %v (base took %v)\n", len(p.Versions), round(p.Builds), round(p.BaseBuild))
		fmt.Fprintf(&b, "measuring: %d to %d rounds of about %v: %v to %v\n", p.MinRounds, p.MaxRounds,
			p.Round.Round(time.Millisecond), round(least), round(most))
		if len(p.Counted) > 0 {
			bound := ""
			if p.Budget > 0 {
				bound = fmt.Sprintf(" and %v more", p.Budget)
			}
			fmt.Fprintf(&b, "counting: %s, besides; again, in at most %d rounds%s, what does not repeat on base\n",
				plain.Clean(strings.Join(p.Counted, ", ")), p.Recountings, bound)
		}
	}
	for _, f := range p.Failures {
		failed := bench.Failed{Signal: f.Signal, Status: f.Status, Reason: f.Reason}
		fmt.Fprintf(&b, "%s fails on base: %s\n%s\n", plain.Clean(f.Benchmark), plain.Clean(failed.String()), indent(f.LogTail))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func round(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}

// indent sets a foreign text off, line by line.
func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("    " + plain.Clean(strings.TrimSuffix(line, "\n")) + "\n")
	}
	return b.String()
}
