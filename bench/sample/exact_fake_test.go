package sample

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
	"patchbench/bench/sandbox"
)

// valgrindLog is what the log of a program says that valgrind has counted.
func valgrindLog(line string) string {
	return "== 0/7.log\n==7== Command: ./kit\n--7-- Reading syms from /build/src/kit\n--7-- Reading syms from /lib/vgpreload_dhat.so\n" + line
}

// What Exact makes of a machine and of programs that are not as they should be.
func TestExactOutcomes(t *testing.T) {
	const counted = "==7== Total: 64 bytes in 2 blocks\n"
	tests := []struct {
		name string
		// valgrind says what becomes of a command of the counter's on a version.
		valgrind func(v string, c sandbox.Command) sandbox.Result
		want     []string
		warnings []string
	}{
		{"counted", func(string, sandbox.Command) sandbox.Result { return printed(valgrindLog(counted)) },
			[]string{"0: 2", "twin: 2", "1: 2"}, nil},
		{"no valgrind", func(_ string, c sandbox.Command) sandbox.Result {
			if c.Args[0] == "valgrind" {
				return sandbox.Result{Status: -1, NotStarted: "valgrind: not found"}
			}
			t.Errorf("%v is run all the same", c.Args)
			return fine()
		}, []string{
			"0: valgrind is not there: install the package valgrind", "twin: valgrind is not there: install the package valgrind",
			"1: valgrind is not there: install the package valgrind",
		}, []string{"hash{n=3}: valgrind is not there: install the package valgrind"}},
		{"a crash under valgrind", func(v string, c sandbox.Command) sandbox.Result {
			if v == "1" && strings.Contains(strings.Join(c.Args, " "), "exec valgrind") {
				return crash()
			}
			return printed(valgrindLog(counted))
		}, []string{"0: 2", "twin: 2", "1: under valgrind: SIGSEGV"}, nil},
		{"too much written", func(v string, _ sandbox.Command) sandbox.Result {
			r := printed(valgrindLog(counted))
			if v == "1" {
				r.Stdout, r.StdoutSHA256 = make([]byte, keepOutput), "of more"
			}
			return r
		}, []string{"0: 2", "twin: 2", "1: valgrind wrote more than 16 MiB: too many processes"}, nil},
		{"nothing written", func(string, sandbox.Command) sandbox.Result { return fine() },
			[]string{"0: valgrind wrote nothing", "twin: valgrind wrote nothing", "1: valgrind wrote nothing"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := plainBench
			b.Metrics = []string{"allocs"}
			_, s := newLab(t, 2, b, &fakeLab{program: func(v string, _ int, c sandbox.Command) (sandbox.Result, error) {
				if text := strings.Join(c.Args, " "); strings.Contains(text, "valgrind") || strings.Contains(text, "$PATCHBENCH_COUNTERS") {
					return tt.valgrind(v, c), nil
				}
				return fine(), nil
			}})
			warmUp(t, s)
			e, err := s.Exact(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, l := range e.Samples {
				v := fmt.Sprint(l.Version)
				if l.Twin {
					v = "twin"
				}
				text := fmt.Sprint(l.Value)
				if l.Failed != nil {
					text = l.Failed.String()
				}
				got = append(got, v+": "+text)
				if l.Round != 1 || l.Metric != "allocs" || l.Unit != bench.Count || l.Benchmark != "hash" || l.Position != nil {
					t.Errorf("sample %+v", l)
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("samples (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.warnings, e.Warnings); d != "" {
				t.Errorf("warnings (-want +got):\n%s", d)
			}
		})
	}
}

// A program whose memory is nobody's malloc gets a word.
func TestExactNotMalloc(t *testing.T) {
	b := plainBench
	b.Metrics = []string{"heap"}
	_, s := newLab(t, 1, b, &fakeLab{program: func(_ string, _ int, c sandbox.Command) (sandbox.Result, error) {
		r := printed(valgrindLog("==7== Total: 2,097,152 bytes in 2 blocks\n==7== At t-gmax: 1,048,576 bytes in 1 blocks\n"))
		r.RSSBytes = 300 << 20
		return r, nil
	}})
	warmUp(t, s)
	e, err := s.Exact(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"hash{n=3}: heap: of 300 MiB resident 1.0 MiB come from malloc; the rest, such as mapped files or an allocator of its own, is not counted"}
	if d := cmp.Diff(want, e.Warnings); d != "" {
		t.Errorf("warnings (-want +got):\n%s", d)
	}
}

func TestExactBeforeWarmUp(t *testing.T) {
	b := plainBench
	_, s := newLab(t, 1, b, &fakeLab{program: only(nil)})
	if e, err := s.Exact(t.Context(), 0); err != nil || e.Samples != nil {
		t.Errorf("a benchmark without counters: %v, %v", e, err)
	}
	b.Metrics = []string{"heap"}
	_, s = newLab(t, 1, b, &fakeLab{program: only(nil)})
	if _, err := s.Exact(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "no warm-up was run before") {
		t.Errorf("error = %v", err)
	}
}
