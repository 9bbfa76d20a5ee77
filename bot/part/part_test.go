package part

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// journal keeps what happens in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) take() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	l := j.lines
	j.lines = nil
	return l
}

// steadyPart notes its start and its end.
func steadyPart(j *journal, name string, settings any) Part {
	return Part{Name: name, Settings: settings, Run: func(ctx context.Context, _ func(error)) error {
		j.add("%s %v begins", name, settings)
		<-ctx.Done()
		j.add("%s %v ends", name, settings)
		return ctx.Err()
	}}
}

// A part that fails, panics or ends by itself is started again after growing pauses.
func TestStartedAgain(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error": func() error { return errors.New("no line") },
		"panic": func() error { panic("no line") },
		"end":   func() error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var g Group
				begin := time.Now()
				var at []time.Duration
				g.Set(t.Context(), []Part{{Name: "x", Run: func(context.Context, func(error)) error {
					at = append(at, time.Since(begin))
					return fail()
				}}}, nil)
				time.Sleep(20 * time.Second)
				synctest.Wait()
				if d := cmp.Diff([]time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second, 15 * time.Second}, at); d != "" {
					t.Errorf("started (-want +got):\n%s", d)
				}
				s := g.Status()
				want := "no line"
				if name == "end" {
					want = "it ended by itself"
				}
				if len(s) != 1 || s[0].Err == nil || !strings.Contains(s[0].Err.Error(), want) {
					t.Errorf("status %+v, want the reason %q", s, want)
				}
				if err := g.Stop(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// The pauses begin anew after a long time of work, and stay below their bound.
func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group
		var pauses []time.Duration
		var ended time.Time
		n := 0
		g.Set(t.Context(), []Part{{Name: "x", Run: func(context.Context, func(error)) error {
			if n > 0 {
				pauses = append(pauses, time.Since(ended))
			}
			if n++; n == 10 {
				time.Sleep(steady)
			}
			ended = time.Now()
			return errors.New("no line")
		}}}, nil)
		time.Sleep(25 * time.Minute)
		synctest.Wait()
		g.Stop(t.Context())
		if len(pauses) < 11 {
			t.Fatalf("pauses %v, want more", pauses)
		}
		if pauses[8] != lastPause || pauses[9] != firstPause || pauses[10] != 2*firstPause {
			t.Errorf("pauses %v, want %v, then %v after long work", pauses, lastPause, firstPause)
		}
	})
}

// Set replaces what changed and nothing else, the old ending before the new begins.
func TestSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group
		var j journal
		set := func(parts ...Part) []string {
			g.Set(t.Context(), parts, func() { j.add("swap") })
			synctest.Wait()
			return j.take()
		}
		sorted := func(l []string) []string { slices.Sort(l); return l }
		if d := cmp.Diff([]string{"a 1 begins", "b [x] begins", "swap"}, sorted(set(steadyPart(&j, "a", 1), steadyPart(&j, "b", []string{"x"})))); d != "" {
			t.Error(d)
		}
		if got := set(steadyPart(&j, "a", 1), steadyPart(&j, "b", []string{"x"})); len(got) != 1 {
			t.Errorf("nothing changed, and %q happened", got)
		}
		if d := cmp.Diff([]string{"b [x] ends", "swap", "b [y] begins"}, set(steadyPart(&j, "a", 1), steadyPart(&j, "b", []string{"y"}))); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff([]string{"a 1 ends", "swap", "c <nil> begins"}, set(steadyPart(&j, "b", []string{"y"}), steadyPart(&j, "c", nil))); d != "" {
			t.Error(d)
		}
		var names []string
		for _, s := range g.Status() {
			names = append(names, s.Name)
		}
		if d := cmp.Diff([]string{"b", "c"}, names); d != "" {
			t.Error(d)
		}
		if err := g.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if d := cmp.Diff([]string{"b [y] ends", "c <nil> ends"}, sorted(j.take())); d != "" {
			t.Error(d)
		}
	})
}

// Trouble that a part tells of is shown until it is over.
func TestTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group
		g.Set(t.Context(), []Part{{Name: "x", Run: func(ctx context.Context, trouble func(error)) error {
			trouble(errors.New("connection lost"))
			time.Sleep(time.Minute)
			trouble(nil)
			<-ctx.Done()
			return ctx.Err()
		}}}, nil)
		synctest.Wait()
		if err := g.Status()[0].Err; err == nil || err.Error() != "connection lost" {
			t.Errorf("status %v, want the trouble", err)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if err := g.Status()[0].Err; err != nil {
			t.Errorf("status %v, want none", err)
		}
		g.Stop(t.Context())
	})
}

// Stop names what does not end, and waits no longer than it may.
func TestStopLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group
		var j journal
		release := make(chan struct{})
		g.Set(t.Context(), []Part{steadyPart(&j, "quick", nil), {Name: "stuck", Run: func(context.Context, func(error)) error {
			<-release
			return nil
		}}}, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		err := g.Stop(ctx)
		if err == nil || err.Error() != "stuck does not end" {
			t.Errorf("error %v, want it to name the part that does not end", err)
		}
		close(release)
	})
}
