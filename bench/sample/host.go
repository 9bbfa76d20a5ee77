package sample

import (
	"context"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"patchbench/bench"
	"patchbench/bench/sandbox"
)

// governorFile says how the first CPU's frequency is chosen; absent in most
// virtual machines.
const governorFile = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"

// autogroupFile says whether the kernel makes a scheduling group of each session.
const autogroupFile = "/proc/sys/kernel/sched_autogroup_enabled"

// HostFacts tells what this machine is, with its load and pressure now, as those
// before the evaluation. sandbox names the sandbox in use, digest is its digest.
// What cannot be found out is empty or 0, pressure is negative then. The
// compilers, which takes running programs, are told by Sampler.Compiler.
func HostFacts(sandbox, digest string) bench.Host {
	h := bench.Host{
		Sandbox: sandbox, SandboxDigest: digest, Cores: runtime.NumCPU(),
		Governor: firstLine(readFile(governorFile)), Autogroup: firstLine(readFile(autogroupFile)) == "1",
	}
	h.Name, _ = os.Hostname()
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		h.Kernel = unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:]) + " " + unix.ByteSliceToString(u.Machine[:])
	}
	readProc(procfs.DefaultMountPoint, &h)
	h.LoadBefore, h.PressureBefore = pressure(procfs.DefaultMountPoint)
	h.LoadAfter, h.PressureAfter = h.LoadBefore, -1
	return h
}

// Pressure is the load average over 1 minute, and the share of the last minute,
// 0 to 1, in which something waited for a CPU (PSI some avg60); negative if the
// kernel does not say. It is for Host's figures after the evaluation.
func Pressure() (load, share float64) { return pressure(procfs.DefaultMountPoint) }

func pressure(proc string) (load, share float64) {
	share = -1
	f, err := procfs.NewFS(proc)
	if err != nil {
		return 0, share
	}
	if l, err := f.LoadAvg(); err == nil {
		load = l.Load1
	}
	if p, err := f.PSIStatsForResource("cpu"); err == nil && p.Some != nil {
		share = p.Some.Avg60 / 100
	}
	return load, share
}

func readProc(proc string, h *bench.Host) {
	f, err := procfs.NewFS(proc)
	if err != nil {
		return
	}
	if cpus, err := f.CPUInfo(); err == nil && len(cpus) > 0 {
		h.CPU, h.Cores = strings.TrimSpace(cpus[0].ModelName), len(cpus)
	}
	if m, err := f.Meminfo(); err == nil && m.MemTotalBytes != nil {
		h.Memory = int64(*m.MemTotalBytes)
	}
}

// compilers are the programs whose versions are told, with how each is asked.
var compilers = [][]string{
	{"cc", "--version"}, {"clang", "--version"}, {"go", "version"}, {"rustc", "--version"}, {"javac", "--version"}, {"python3", "--version"},
}

// Compiler tells the versions of the compilers and interpreters in the base's box:
// the first line that each prints of itself, "" where there is none.
func (s *Sampler) Compiler(ctx context.Context) (string, error) {
	var found []string
	for _, args := range compilers {
		all, err := s.slots[0].do(ctx, sandbox.Job{Command: sandbox.Command{Args: args, Dir: srcDir, Timeout: 10 * time.Second, KeepStdout: 4096}})
		if err != nil {
			return "", first(ctx.Err(), err)
		}
		res := all[0]
		if line := firstLine(string(res.Stdout)); res.OK() && line != "" && !slices.Contains(found, line) {
			found = append(found, line)
		}
	}
	return strings.Join(found, "; "), nil
}

func readFile(name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	return string(b)
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return strings.TrimSpace(s)
}
