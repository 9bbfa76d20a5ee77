package html

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"patchbench/bench"
	"patchbench/bot/report/history"
	"patchbench/mbox"
	"patchbench/store"
)

func TestHistory(t *testing.T) {
	var points []store.Point
	for i := range 30 {
		v := 0.4 + 0.0004*float64(i*7%5)
		if i >= 12 {
			v *= 1.05
		}
		lo, hi := v*0.996, v*1.004
		points = append(points, store.Point{
			Evaluation: fmt.Sprintf("e%d", i), Created: time.Date(2026, 1, 1+9*i, 0, 0, 0, 0, time.UTC), Base: mbox.Base{Commit: strings.Repeat("ab", 20)},
			Host: bench.Host{Name: "bench1", Kernel: fmt.Sprint("6.", i/20)}, Benchmark: "</script>hash", Metric: "cpu", Unit: "s", Better: bench.Lower,
			Value: bench.Value{Median: &v, Lo: &lo, Hi: &hi},
		})
	}
	one := points[0]
	one.Metric = "wall"
	var b bytes.Buffer
	if err := History(&b, "</title><b>", history.Tracks(append(points, one), 0)); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	check(t, page)
	for _, want := range []string{"30 evaluations", "1 evaluation", `<path class="worse"`, "2026-04-19", "&#43;5.0 %", "other kernel"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not hold %q", want)
		}
	}
	if n := strings.Count(page, `class="dot"`); n != 30 {
		t.Errorf("%d dots, want 29 beside the mark of the change, and one", n)
	}
	if strings.Contains(page, "No change seen") {
		t.Error("a page with a change, and with a track of one point, says that none was seen")
	}
	var steady bytes.Buffer
	if err := History(&steady, "hash", history.Tracks(points[:6], 0)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(steady.String(), "No change seen.") {
		t.Error("a page without a change does not say so")
	}
	if *out != "" {
		if err := os.WriteFile(filepath.Join(*out, "history.html"), b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
