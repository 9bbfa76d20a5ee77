package sample

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
)

func TestReadProc(t *testing.T) {
	var h bench.Host
	readProc("testdata/proc", &h)
	h.LoadBefore, h.PressureBefore = pressure("testdata/proc")
	want := bench.Host{CPU: "Example CPU @ 2.00GHz", Cores: 3, Memory: 16384000 << 10, LoadBefore: 0.52, PressureBefore: 0.125}
	if d := cmp.Diff(want, h); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// A machine that tells nothing of itself gives unknowns, not zeros that look
// like figures.
func TestReadProcNothing(t *testing.T) {
	for _, dir := range []string{t.TempDir(), "testdata/absent"} {
		h := bench.Host{Cores: 5}
		readProc(dir, &h)
		load, share := pressure(dir)
		if load != 0 || share != -1 || h.Cores != 5 || h.CPU != "" || h.Memory != 0 {
			t.Errorf("%s: load %v, pressure %v, %+v", dir, load, share, h)
		}
	}
}

func TestHostFacts(t *testing.T) {
	h := HostFacts("none")
	if h.Sandbox != "none" || h.Cores < 1 || !strings.HasPrefix(h.Kernel, "Linux ") || h.Memory < 1<<20 || h.PressureBefore > 1 || h.LoadBefore < 0 {
		t.Errorf("facts = %+v", h)
	}
	if name, err := os.Hostname(); err == nil && h.Name != name {
		t.Errorf("name = %q, want %q", h.Name, name)
	}
}
