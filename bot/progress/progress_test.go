package progress

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestProgressLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		p, end := New(&out)
		p.Stage("apply", 0)
		time.Sleep(45 * time.Second)
		p.Stage("build", 2)
		p.Done(0, "base", 0)
		time.Sleep(75 * time.Second)
		p.Done(1, "1/1 kit: faster\x1b[2J", time.Minute)
		time.Sleep(5 * time.Second)
		p.Note("1/1 does not build")
		p.Done(2, "", 0)
		time.Sleep(time.Hour) // nothing is being done
		p.Stage("measure", 10)
		for round := range 10 {
			p.Done(round, "sort", time.Duration(10-round)*4*time.Second)
			time.Sleep(4 * time.Second)
		}
		p.Done(10, "", 0)
		end()
		want := `apply
apply, for 30s
build: 2 to do
build: 0 of 2, base, for 30s
build: 0 of 2, base, for 1m0s
build: 1 of 2, 1/1 kit: faster\x1b[2J, at most 1m0s left
note: 1/1 does not build
build: 2 of 2
measure: 10 to do
measure: 3 of 10, sort, at most 28s left
measure: 6 of 10, sort, at most 16s left
measure: 9 of 10, sort, at most 4s left
measure: 10 of 10
`
		if d := cmp.Diff(want, out.String()); d != "" {
			t.Errorf("lines (-want +got):\n%s", d)
		}
	})
}

func TestProgressLabel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &label{}
		l.set(" base", time.Now())
		time.Sleep(every - time.Second)
		if d := cmp.Diff(" base", l.String()); d != "" {
			t.Errorf("at first (-want +got):\n%s", d)
		}
		time.Sleep(time.Minute)
		if d := cmp.Diff(" base, for 1m9s", l.String()); d != "" {
			t.Errorf("later (-want +got):\n%s", d)
		}
		l.set("", time.Time{})
		if d := cmp.Diff("", l.String()); d != "" {
			t.Errorf("at the end (-want +got):\n%s", d)
		}
	})
}
