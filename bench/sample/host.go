package sample

import (
	"context"
	"os"
	"runtime"
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

// HostFacts tells what this machine is, with its load and pressure now, as those
// before the evaluation. sandbox names the sandbox in use. What cannot be found
// out is empty or 0, pressure is negative then. The compiler, which takes
// running a program, is told by Sampler.Compiler.
func HostFacts(sandbox string) bench.Host {
	h := bench.Host{Sandbox: sandbox, Cores: runtime.NumCPU(), Governor: firstLine(readFile(governorFile))}
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

// Compiler is the first line that `cc --version` prints in the base's box, ""
// where there is no cc.
func (s *Sampler) Compiler(ctx context.Context) (string, error) {
	all, err := s.slots[0].do(ctx, job{Command: sandbox.Command{
		Args: []string{"cc", "--version"}, Dir: srcDir, Timeout: 10 * time.Second, KeepStdout: 4096,
	}})
	if err != nil {
		return "", first(ctx.Err(), err)
	}
	res := all[0]
	if !res.OK() {
		return "", nil
	}
	return firstLine(string(res.Stdout)), nil
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
