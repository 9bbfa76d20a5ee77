package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
	"patchbench/bench/sandbox"
)

func line(s string) bench.Program { return bench.Program{Line: s} }

// draw shows a plan in a few lines, as the package comment does.
func draw(p Plan) string {
	var s strings.Builder
	for _, t := range p.Takes {
		var parts []string
		for _, x := range t.Prepare {
			parts = append(parts, "("+x.String()+")")
		}
		for _, j := range t.Jobs {
			text := strings.Join(append(j.Env, j.String()), " ")
			if j.Timeout > 0 {
				text += " in " + j.Timeout.String()
			}
			if j.Stdin != "" {
				text += " <" + j.Stdin
			}
			if j.Background {
				text += " & until " + j.Ready.String()
			}
			if j.Together {
				text = "| " + text
			}
			parts = append(parts, fmt.Sprintf("%s =%s%s", text, map[Use]string{Counted: "", Alone: "alone ", Subtracted: "less ", Unused: "unused "}[j.Use], p.Rows[j.Row].Name))
		}
		for _, x := range t.Cleanup {
			parts = append(parts, "("+x.String()+")")
		}
		fmt.Fprintf(&s, "%s: %s\n", t.Name, strings.Join(parts, "; "))
	}
	return s.String()
}

func TestOf(t *testing.T) {
	server := bench.Link{Name: "serve", Run: line("serve"), Background: true, Ready: line("ping")}
	pull := func(name string) bench.Benchmark {
		return bench.Benchmark{
			Name: name, Prepare: line("clone"), Cleanup: line("rm"),
			Chain: []bench.Link{server, {Name: "pull", Run: line("pull " + name)}},
		}
	}
	other := pull("b")
	other.Chain[0].Run = line("serve b")
	many := bench.Benchmark{Name: "many", Run: line("x"), Parallel: 2}
	tests := []struct {
		name string
		b    bench.Benchmark
		rows string
		want string
	}{
		{
			"one program",
			bench.Benchmark{
				Name: "a", Run: line("run"), Prepare: line("before"), Cleanup: line("after"), Stdin: "in", Timeout: time.Second,
				Env: map[string]string{"Z": "1", "B": "2"},
			},
			"", ": (before); B=2 Z=1 run in 1s <in =; (after)\n",
		},
		{
			"copies", bench.Benchmark{Name: "a", Run: line("run"), Parallel: 3, Env: map[string]string{"A": "0"}, Stdin: "in"},
			"", ": A=0 COPY=1 run <in =; | A=0 COPY=2 run <in =; | A=0 COPY=3 run <in =\n",
		},
		{
			"chain", bench.Benchmark{Name: "a", Prepare: line("before"), Chain: []bench.Link{
				{Name: "add", Run: line("add")}, server, {Name: "pull", Run: line("pull"), Parallel: 2}, {Name: "check", Run: line("check")},
			}},
			"add serve& pull check",
			": (before); add =add; serve & until ping =serve; COPY=1 pull =pull; | COPY=2 pull =pull; check =check\n",
		},
		{
			"baseline", bench.Benchmark{Name: "a", Run: line("run"), Baseline: &bench.Benchmark{Name: "start", Run: line("start"), Prepare: line("before")}},
			"", "baseline start: (before); start =less \n: run =\n",
		},
		{
			"together", bench.Benchmark{Name: "a", Together: []bench.Benchmark{{Name: "x", Run: line("x")}, {Name: "y", Run: line("y"), Prepare: line("z")}}},
			"x y", "x alone: x =alone x\ny alone: (z); y =alone y\n: (z); x =x; | y =y\n",
		},
		{
			"together with one server", bench.Benchmark{Name: "a", Together: []bench.Benchmark{pull("a"), pull("b")}},
			"serve& a b",
			"a alone: (clone); serve & until ping =unused a; pull a =alone a; (rm)\n" +
				"b alone: (clone); serve & until ping =unused b; pull b =alone b; (rm)\n" +
				": (clone); serve & until ping =serve; pull a =a; | pull b =b; (rm)\n",
		},
		{
			"together with two servers of one name", bench.Benchmark{Name: "a", Together: []bench.Benchmark{pull("a"), other}},
			"serve& b/serve& a b",
			"a alone: (clone); serve & until ping =unused a; pull a =alone a; (rm)\n" +
				"b alone: (clone); serve b & until ping =unused b; pull b =alone b; (rm)\n" +
				": (clone); serve & until ping =serve; serve b & until ping =b/serve; pull a =a; | pull b =b; (rm)\n",
		},
		{
			"copies together", bench.Benchmark{Name: "a", Together: []bench.Benchmark{{Name: "y", Run: line("y")}, many}},
			"y many",
			"y alone: y =alone y\n" +
				"many alone: COPY=1 x =alone many; | COPY=2 x =alone many\n" +
				": y =y; | COPY=1 x =many; | COPY=2 x =many\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := Of(tt.b)
			if d := cmp.Diff(tt.want, draw(p)); d != "" {
				t.Errorf("plan (-want +got):\n%s", d)
			}
			var rows []string
			for i, r := range p.Rows {
				name := r.Name
				if r.Background {
					name += "&"
				}
				rows = append(rows, name)
				if got, want := p.Name(tt.b, i), strings.TrimSuffix("a/"+r.Name, "/"); got != want {
					t.Errorf("row %d is called %q, want %q", i, got, want)
				}
			}
			if d := cmp.Diff(tt.rows, strings.Join(rows, " ")); d != "" {
				t.Errorf("rows (-want +got):\n%s", d)
			}
		})
	}
}

// When a row fails, what can still be measured is what goes before it in a chain
// and does not serve it.
func TestBefore(t *testing.T) {
	p := Of(bench.Benchmark{Chain: []bench.Link{
		{Name: "add", Run: line("add")}, {Name: "s1", Run: line("s1"), Background: true}, {Name: "s2", Run: line("s2"), Background: true},
		{Name: "pull", Run: line("pull")}, {Name: "check", Run: line("check")},
	}})
	for row, want := range []int{0, 1, 1, 1, 4} {
		if got := p.Before(row); got != want {
			t.Errorf("before row %d: %d, want %d", row, got, want)
		}
	}
	if d := cmp.Diff(": add =add\n", draw(p.Upto(1))); d != "" {
		t.Errorf("the first row alone (-want +got):\n%s", d)
	}
	if got := Of(bench.Benchmark{Together: []bench.Benchmark{{Name: "x", Run: line("x")}, {Name: "y", Run: line("y")}}}).Before(1); got != 0 {
		t.Errorf("%d rows of a group can be measured without another, want none", got)
	}
}

func TestFigures(t *testing.T) {
	// result has n in every figure.
	result := func(n int64) sandbox.Result {
		d := time.Duration(n) * time.Second
		return sandbox.Result{
			Wall: d, User: d, Sys: d, RSSBytes: n, SizeBytes: n, RSSSumBytes: n, Faults: n, Voluntary: n, Involuntary: n,
			ReadBytes: n, WrittenBytes: n, PressureNS: n,
		}
	}
	untraced := func(n int64) sandbox.Result {
		r := result(n)
		r.RSSBytes, r.SizeBytes, r.RSSSumBytes, r.ReadBytes, r.WrittenBytes = 0, 0, 0, -1, -1
		return r
	}
	single := bench.Benchmark{Name: "a", Run: line("a")}
	parallel := bench.Benchmark{Name: "a", Run: line("a"), Parallel: 3}
	less := bench.Benchmark{Name: "a", Run: line("a"), Baseline: &single}
	group := bench.Benchmark{Name: "g", Together: []bench.Benchmark{{Name: "x", Run: line("x")}, {Name: "y", Run: line("y")}}}
	tests := []struct {
		name    string
		b       bench.Benchmark
		results [][]sandbox.Result
		want    []string // of each row
	}{
		{"one program", single, [][]sandbox.Result{{result(2)}}, []string{"wall 2 cpu 4 user 2 sys 2 rss 2 size 2 rss_tree 2 faults 2 switches 4 reads 2 writes 2"}},
		{"no peaks", single, [][]sandbox.Result{{untraced(2)}}, []string{"wall 2 cpu 4 user 2 sys 2 faults 2 switches 4"}},
		{
			"copies: the slowest and the sum", parallel, [][]sandbox.Result{{result(2), result(7), result(3)}},
			[]string{"wall 7 cpu 24 user 12 sys 12 rss 12 size 12 rss_tree 12 faults 12 switches 24 reads 12 writes 12"},
		},
		{
			"copies, one without peaks", parallel, [][]sandbox.Result{{result(2), untraced(7), result(3)}},
			[]string{"wall 7 cpu 24 user 12 sys 12 faults 12 switches 24"},
		},
		{
			"less the baseline, also below nothing", less, [][]sandbox.Result{{result(5)}, {result(3)}},
			[]string{"wall -2 cpu -4 user -2 sys -2 rss -2 size -2 rss_tree -2 faults -2 switches -4 reads -2 writes -2 baseline-wall 5 baseline-cpu 10 baseline-rss 5"},
		},
		{
			"less a baseline without peaks", less, [][]sandbox.Result{{untraced(5)}, {result(8)}},
			[]string{"wall 3 cpu 6 user 3 sys 3 faults 3 switches 6 baseline-wall 5 baseline-cpu 10"},
		},
		{
			"together", group, [][]sandbox.Result{{result(2)}, {result(4)}, {result(3), result(5)}},
			[]string{
				"wall 3 cpu 6 user 3 sys 3 rss 3 size 3 rss_tree 3 faults 3 switches 6 reads 3 writes 3 slowdown 1.5",
				"wall 5 cpu 10 user 5 sys 5 rss 5 size 5 rss_tree 5 faults 5 switches 10 reads 5 writes 5 slowdown 1.25",
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, f := range Of(tt.b).Figures(tt.results) {
				var words []string
				for _, x := range f.List() {
					words = append(words, fmt.Sprintf("%s %g", x.Metric, x.Value))
					if m := bench.MetricFor(x.Metric, x.Unit); m.Tested != (x.Metric == "wall" || x.Metric == "cpu" || x.Metric == "rss") {
						t.Errorf("%s: tested = %v", x.Metric, m.Tested)
					}
				}
				got = append(got, strings.Join(words, " "))
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("figures (-want +got):\n%s", d)
			}
		})
	}
	t.Run("peaks of another run", func(t *testing.T) {
		p := Of(less)
		f := p.Figures([][]sandbox.Result{{untraced(5)}, {untraced(8)}})[0]
		f.TakePeaks(p.Figures([][]sandbox.Result{{result(50)}, {result(80)}})[0])
		if f.RSS != 30 || f.Less.RSS != 50 || f.Wall != 3*time.Second {
			t.Errorf("figures %+v", f)
		}
	})
}
