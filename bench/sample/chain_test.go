package sample

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
	"patchbench/bench/sandbox"
)

// chainBench adds, starts a server, pulls from it and checks.
var chainBench = bench.Benchmark{Name: "vc", Params: map[string]string{"n": "3"}, Chain: []bench.Link{
	{Name: "add", Run: bench.Program{Args: []string{"./kit", "add"}}},
	{Name: "serve", Run: bench.Program{Args: []string{"./kit", "serve"}}, Background: true, Ready: bench.Program{Args: []string{"./kit", "ping"}}},
	{Name: "pull", Run: bench.Program{Args: []string{"./kit", "pull"}}},
	{Name: "check", Run: bench.Program{Args: []string{"./kit", "check"}}},
}}

// step makes programs that work but for VERSION STEP, each counting its own runs.
func step(bad map[string]func(n int) sandbox.Result) func(string, int, sandbox.Command) (sandbox.Result, error) {
	runs := map[string]int{}
	return func(v string, _ int, c sandbox.Command) (sandbox.Result, error) {
		k := v + " " + c.Args[len(c.Args)-1]
		n := runs[k]
		runs[k]++
		if f := bad[k]; f != nil {
			return f(n), nil
		}
		return fine(), nil
	}
}

// rowsOf tells how many samples of wall time each row of each version has that
// count, and why it has none.
func rowsOf(list []bench.Sample) map[string]string {
	count, why := map[string]int{}, map[string]string{}
	for _, s := range list {
		if s.Metric != "wall" || s.Twin || s.Discarded != "" {
			continue
		}
		k := fmt.Sprint(s.Version, " ", s.Benchmark)
		if s.Failed != nil {
			why[k] = s.Failed.String()
			continue
		}
		count[k]++
	}
	for k, n := range count {
		why[k] = strings.Trim(fmt.Sprint(n, " ", why[k]), " ")
	}
	return why
}

func TestChain(t *testing.T) {
	from := func(first int) func(int) sandbox.Result {
		return func(n int) sandbox.Result {
			if n >= first {
				return crash()
			}
			return fine()
		}
	}
	all := func(v, text string, rows ...string) map[string]string {
		m := map[string]string{}
		for _, r := range rows {
			m[v+" vc/"+r] = text
		}
		return m
	}
	join := func(list ...map[string]string) map[string]string {
		m := map[string]string{}
		for _, l := range list {
			for k, v := range l {
				m[k] = v
			}
		}
		return m
	}
	every := []string{"add", "serve", "pull", "check"}
	tests := []struct {
		name     string
		bad      map[string]func(int) sandbox.Result
		failures []string // of warm-up and rounds
		rows     map[string]string
		working  int
	}{
		{name: "all work", rows: join(all("0", "2", every...), all("1", "2", every...)), working: 2},
		{
			name: "a step of a patch", bad: map[string]func(int) sandbox.Result{"1 check": from(0)},
			failures: []string{"1 vc/check{n=3} SIGSEGV (5 of 5 runs)"},
			rows:     join(all("0", "2", every...), all("1", "2", "add", "serve", "pull"), all("1", "SIGSEGV", "check")), working: 2,
		},
		{
			name: "what uses the server", bad: map[string]func(int) sandbox.Result{"1 pull": from(0)},
			failures: []string{"1 vc/pull{n=3} SIGSEGV (5 of 5 runs)"},
			rows: join(all("0", "2", every...), all("1", "2", "add"), all("1", "SIGSEGV", "pull"),
				all("1", "step pull failed", "serve", "check")), working: 2,
		},
		{
			name: "the first step", bad: map[string]func(int) sandbox.Result{"1 add": from(0)},
			failures: []string{"1 vc/add{n=3} SIGSEGV (5 of 5 runs)"},
			rows: join(all("0", "2", every...), all("1", "SIGSEGV", "add"),
				all("1", "step add failed", "serve", "pull", "check")), working: 1,
		},
		{
			name: "a step of the base", bad: map[string]func(int) sandbox.Result{"0 check": from(0)},
			failures: []string{"0 vc/check{n=3} SIGSEGV (2 of 2 runs)"},
			rows: join(all("0", "2", "add", "serve", "pull"), all("1", "2", "add", "serve", "pull"),
				all("0", "SIGSEGV", "check")), working: 2,
		},
		{
			name: "a step of a patch, and the same of the base", bad: map[string]func(int) sandbox.Result{"1 pull": from(0), "0 pull": from(2)},
			failures: []string{"0 vc/pull{n=3} unreliable: base fails in some runs: SIGSEGV (1 of 4 runs)"},
			rows: join(all("0", "2", "add"), all("1", "2", "add"),
				all("0", "unreliable: base fails in some runs: SIGSEGV (1 of 4 runs)", "pull"),
				all("0", "step pull failed", "serve", "check")), working: 2,
		},
		{
			name: "a step of the twin", bad: map[string]func(int) sandbox.Result{"twin check": from(0)},
			failures: []string{"0 vc/check{n=3} unreliable: base's twin, the same build, fails where base did not: SIGSEGV (1 of 2 runs)"},
			rows: join(all("0", "2", "add", "serve", "pull"), all("1", "2", "add", "serve", "pull"),
				all("0", "unreliable: base's twin, the same build, fails where base did not: SIGSEGV (1 of 2 runs)", "check")), working: 2,
		},
		{
			name: "a step in the first round", bad: map[string]func(int) sandbox.Result{"1 check": from(1)},
			failures: []string{"1 vc/check{n=3} SIGSEGV (2 of 3 runs) flaky"},
			rows:     join(all("0", "2", every...), all("1", "2", "add", "serve", "pull"), all("1", "SIGSEGV", "check")), working: 2,
		},
		{
			name: "a step of the base in the first round", bad: map[string]func(int) sandbox.Result{"0 check": from(1)},
			failures: []string{"0 vc/check{n=3} unreliable: base fails in some runs: SIGSEGV (2 of 4 runs)"},
			rows: join(all("0", "2", "add", "serve", "pull"), all("1", "2", "add", "serve", "pull"),
				all("0", "unreliable: base fails in some runs: SIGSEGV (2 of 4 runs)", "check")), working: 2,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, s := newLab(t, 2, chainBench, &fakeLab{program: step(tt.bad)})
			w := warmUp(t, s)
			list, failures := w.Samples, w.Failures
			for round := 1; round <= 2; round++ {
				r, err := s.Round(t.Context(), 0, round)
				if err != nil {
					t.Fatal(err)
				}
				list, failures = append(list, r.Samples...), append(failures, r.Failures...)
				if round == 2 && r.Working != tt.working {
					t.Errorf("%d versions work, want %d", r.Working, tt.working)
				}
			}
			// In how many runs the base works by then hangs on the order of a round.
			rows := rowsOf(list)
			for _, m := range []map[string]string{tt.rows, rows} {
				for k, why := range m {
					if strings.Contains(why, "in some runs") {
						m[k], _, _ = strings.Cut(why, " (")
					}
				}
			}
			if d := cmp.Diff(tt.rows, rows); d != "" {
				t.Errorf("rows (-want +got):\n%s", d)
			}
			var got []string
			for _, f := range failures {
				text := fmt.Sprintf("%d %s %s", f.N, f.Benchmark, f.Reason)
				if f.Flaky {
					text += " flaky"
				}
				got = append(got, text)
			}
			for i := range got {
				if i < len(tt.failures) && strings.Contains(got[i], "in some runs") {
					got[i], _, _ = strings.Cut(got[i], " (")
					tt.failures[i], _, _ = strings.Cut(tt.failures[i], " (")
				}
			}
			if d := cmp.Diff(tt.failures, got); d != "" {
				t.Errorf("failures (-want +got):\n%s", d)
			}
		})
	}
}

// The programs of a chain share a state, between prepare and cleanup.
func TestChainJobs(t *testing.T) {
	b := chainBench
	b.Prepare.Args, b.Cleanup.Args = []string{"prepare"}, []string{"cleanup"}
	b.Env = map[string]string{"A": "1"}
	l, s := newLab(t, 1, b, &fakeLab{program: only(nil)})
	warmUp(t, s)
	command := func(word string) sandbox.Command {
		return sandbox.Command{Args: []string{"./kit", word}, Env: []string{"SRC=/build/src", "OUT=/build/out", "A=1"}, Dir: srcDir, Peaks: true, KeepTmp: true}
	}
	want := []sandbox.Job{
		{Command: command("add")},
		{Command: command("serve"), Background: true, Ready: []string{"./kit", "ping"}},
		{Command: command("pull")},
		{Command: command("check")},
	}
	if d := cmp.Diff(want, l.jobs); d != "" {
		t.Errorf("jobs (-want +got):\n%s", d)
	}
	wantLog := []string{"0 prepare keep=true", "0 run keep=true", "0 run keep=true", "0 run keep=true", "0 run keep=true", "0 cleanup keep=false"}
	if d := cmp.Diff(wantLog, slices.DeleteFunc(l.log, func(line string) bool { return strings.HasPrefix(line, "twin") })); d != "" {
		t.Errorf("order (-want +got):\n%s", d)
	}
}

// A check of the output names the step that prints something else; what servers
// print is not looked at.
func TestChainOutput(t *testing.T) {
	b := chainBench
	b.CheckStdout = true
	_, s := newLab(t, 2, b, &fakeLab{program: func(v string, n int, c sandbox.Command) (sandbox.Result, error) {
		switch word := c.Args[len(c.Args)-1]; {
		case word == "serve":
			return printed(fmt.Sprint("at ", n)), nil
		case word == "check" && v == "1":
			return printed("wrong"), nil
		}
		return printed("right"), nil
	}})
	w := warmUp(t, s)
	if len(w.Failures) != 1 || w.Failures[0].Benchmark != "vc/check{n=3}" || w.Failures[0].Reason != "output differs from base's (5 of 5 runs)" {
		t.Errorf("failures = %+v", w.Failures)
	}
}

// The time of a server is not counted beside that of the step that it serves.
func TestChainStall(t *testing.T) {
	slow := 0
	_, s := newLab(t, 1, chainBench, &fakeLab{program: func(v string, n int, c sandbox.Command) (sandbox.Result, error) {
		r := fine()
		if word := c.Args[len(c.Args)-1]; v == "0" && slow > 0 && (word == "pull" || word == "serve") {
			slow--
			r.Wall = 2 * time.Second
			r.PressureNS = int64(r.Wall)
		}
		return r, nil
	}})
	warmUp(t, s)
	for round := 1; round <= 5; round++ {
		if round == 5 {
			slow = 2
		}
		r, err := s.Round(t.Context(), 0, round)
		if err != nil {
			t.Fatal(err)
		}
		stalls := strings.Join(r.Warnings, "\n")
		if want := "base took 2.2 s, 7.33 times its median"; (round == 5) != strings.Contains(stalls, want) {
			t.Errorf("round %d: warnings %q, want %q in round 5 alone", round, stalls, want)
		}
	}
}
