package sample

import (
	"os/exec"
	"strconv"
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

// What is said of the machine is what its own tools say.
func TestHostFacts(t *testing.T) {
	h := HostFacts("bubblewrap 0.8.0", "d1")
	if h.Sandbox != "bubblewrap 0.8.0" || h.SandboxDigest != "d1" {
		t.Errorf("the sandbox is %q, digest %q", h.Sandbox, h.SandboxDigest)
	}
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Error(err)
		}
		return n
	}
	got := map[string]string{
		"kernel": h.Kernel, "name": h.Name, "cores": strconv.Itoa(h.Cores), "memory": strconv.FormatInt(h.Memory, 10),
		"autogroup": strconv.FormatBool(h.Autogroup), "governor": h.Governor,
	}
	want := map[string]string{
		"kernel":    said(t, "uname", "-s") + " " + said(t, "uname", "-r") + " " + said(t, "uname", "-m"),
		"name":      said(t, "uname", "-n"),
		"cores":     said(t, "getconf", "_NPROCESSORS_ONLN"),
		"memory":    strconv.FormatInt(number(said(t, "getconf", "_PHYS_PAGES"))*number(said(t, "getconf", "PAGESIZE")), 10),
		"autogroup": strconv.FormatBool(said(t, "sh", "-c", "cat /proc/sys/kernel/sched_autogroup_enabled 2>/dev/null || echo 0") == "1"),
		"governor":  said(t, "sh", "-c", "cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor 2>/dev/null || :"),
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if _, err := exec.LookPath("lscpu"); err == nil {
		if out := said(t, "lscpu"); !strings.Contains(out, h.CPU) || h.CPU == "" {
			t.Errorf("the processor is %q, and lscpu says\n%s", h.CPU, out)
		}
	}
	if h.LoadBefore < 0 || h.PressureBefore > 1 || h.PressureAfter != -1 {
		t.Errorf("load %v, pressure %v before and %v after", h.LoadBefore, h.PressureBefore, h.PressureAfter)
	}
}

// said is what a program prints.
func said(t *testing.T, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(args[0]); err != nil {
		lacking(t, args[0]+" is not installed")
	}
	out, err := exec.Command(args[0], args[1:]...).Output()
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

// The compilers are those of the box, each by the first line that it prints.
func TestCompiler(t *testing.T) {
	sb := openSandbox(t, false)
	s, err := Open(t.Context(), sb, &bench.Suite{}, []Version{shellVersion(t, sb, Version{}, "")}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, err := s.Compiler(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range compilers {
		// One that lies elsewhere than in /usr/bin the box may not have.
		if path, err := exec.LookPath(args[0]); err != nil || path != "/usr/bin/"+args[0] {
			continue
		}
		if line := firstLine(said(t, args...)); !strings.Contains("; "+got+";", "; "+line+";") {
			t.Errorf("%q lacks %q", got, line)
		}
	}
	if strings.Contains(got, "\n") || strings.HasPrefix(got, ";") || strings.HasSuffix(got, "; ") {
		t.Errorf("compilers %q", got)
	}
}
