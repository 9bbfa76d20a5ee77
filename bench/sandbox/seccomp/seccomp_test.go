package seccomp

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// judge runs a filter on one call as the kernel would.
func judge(t *testing.T, prog []unix.SockFilter, arch, nr uint32, args ...uint64) uint32 {
	t.Helper()
	words := map[uint32]uint32{offsetNR: nr, offsetArch: arch}
	for i, a := range args {
		words[offsetArgs+8*uint32(i)], words[offsetArgs+8*uint32(i)+4] = uint32(a), uint32(a>>32)
	}
	var acc uint32
	for pc := 0; pc < len(prog); pc++ {
		in := prog[pc]
		jump := func(yes bool) {
			if yes {
				pc += int(in.Jt)
			} else {
				pc += int(in.Jf)
			}
		}
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			acc = words[in.K]
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jump(acc == in.K)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			jump(acc&in.K != 0)
		case unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K:
			jump(acc > in.K)
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			jump(acc >= in.K)
		case unix.BPF_JMP | unix.BPF_JA:
			pc += int(in.K)
		case unix.BPF_RET | unix.BPF_K:
			return in.K
		default:
			t.Fatalf("instruction %d has code %#x", pc, in.Code)
		}
	}
	t.Fatal("the filter has no end")
	return 0
}

// lastOne is the runner's last thread.
const lastOne = 5

// TestFilter compares every decision of the compiled filter with the rules read
// plainly.
func TestFilter(t *testing.T) {
	const arch = unix.AUDIT_ARCH_X86_64
	all := rules(lastOne)
	prog := filter(all, arch)
	holds := func(c condition, args []uint64) bool {
		half := uint32(args[c.half/2] >> (c.half % 2 * 32))
		return slices.ContainsFunc(c.values, func(v uint32) bool {
			switch c.test {
			case equal:
				return half == v
			case bits:
				return half&v != 0
			case above:
				return half > v
			}
			t.Fatalf("no relation: %d", c.test)
			return false
		}) != c.except
	}
	want := func(nr uint32, args []uint64) uint32 {
		for _, r := range all {
			if r.nr == nr && !slices.ContainsFunc(r.when, func(c condition) bool { return !holds(c, args) }) {
				return unix.SECCOMP_RET_ERRNO | uint32(r.errno)
			}
		}
		return unix.SECCOMP_RET_ALLOW
	}
	refused := 0
	for nr := range uint32(600) {
		for _, a := range []uint64{0, 1, 2, lastOne, lastOne + 1, 1<<32 - 1, unix.AF_NETLINK, unix.AF_PACKET, unix.AF_VSOCK} {
			for _, b := range []uint64{0, 1, 2, lastOne, lastOne + 1, unix.F_SETSIG, uint64(unix.SIGSEGV), unix.TIOCSTI} {
				for _, c := range []uint64{0, uint64(unix.SIGSEGV), uint64(unix.SIGTERM), 1 << 32} {
					args := []uint64{a, b, c}
					got := judge(t, prog, arch, nr, args...)
					if w := want(nr, args); got != w {
						t.Fatalf("call %d(%v): %#x, want %#x", nr, args, got, w)
					}
					if got != unix.SECCOMP_RET_ALLOW {
						refused++
					}
				}
			}
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
	const enosys = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	if got := judge(t, prog, unix.AUDIT_ARCH_I386, unix.SYS_READ); got != enosys {
		t.Errorf("another instruction set: %#x", got)
	}
	if got := judge(t, prog, arch, 0x40000000|unix.SYS_READ); got != enosys {
		t.Errorf("x32: %#x", got)
	}
}

// TestCalls names calls that must be refused or must not.
func TestCalls(t *testing.T) {
	const arch = unix.AUDIT_ARCH_X86_64
	prog := filter(rules(lastOne), arch)
	const address = 0x7f0100000000 // its lower half is zero
	tests := []struct {
		name    string
		nr      uint32
		args    []uint64
		refused bool
	}{
		{"a limit of its own", unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_NOFILE, address}, false},
		{"a limit of another's", unix.SYS_PRLIMIT64, []uint64{7, unix.RLIMIT_NOFILE, address}, true},
		{"a limit of another's, low address", unix.SYS_PRLIMIT64, []uint64{7, unix.RLIMIT_NOFILE, 0x1000}, true},
		{"to read a limit of another's", unix.SYS_PRLIMIT64, []uint64{7, unix.RLIMIT_NOFILE, 0}, false},
		{"a queued signal", unix.SYS_RT_SIGQUEUEINFO, []uint64{7, uint64(unix.SIGUSR1)}, false},
		{"a queued fault", unix.SYS_RT_SIGQUEUEINFO, []uint64{7, uint64(unix.SIGSEGV)}, true},
		{"a thread's queued fault", unix.SYS_RT_TGSIGQUEUEINFO, []uint64{1, 7, uint64(unix.SIGBUS)}, true},
		{"a fault by descriptor", unix.SYS_PIDFD_SEND_SIGNAL, []uint64{3, uint64(unix.SIGTRAP)}, true},
		{"a plain fault", unix.SYS_KILL, []uint64{7, uint64(unix.SIGSEGV)}, false},
		{"a signal of input", unix.SYS_FCNTL, []uint64{3, unix.F_SETSIG, uint64(unix.SIGUSR1)}, false},
		{"a fault of input", unix.SYS_FCNTL, []uint64{3, unix.F_SETSIG, uint64(unix.SIGSEGV)}, true},
		{"a process", unix.SYS_CLONE, []uint64{uint64(unix.SIGCHLD)}, false},
		{"a thread", unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_THREAD | unix.CLONE_SIGHAND | unix.CLONE_SETTLS}, false},
		{"a process out of sight", unix.SYS_CLONE, []uint64{unix.CLONE_UNTRACED | uint64(unix.SIGCHLD)}, true},
		{"a process, who knows how", unix.SYS_CLONE3, []uint64{address, 88}, true},
		{"CPUs of its own", unix.SYS_SCHED_SETAFFINITY, []uint64{0, 8, address}, false},
		{"CPUs of another program's", unix.SYS_SCHED_SETAFFINITY, []uint64{lastOne + 1, 8, address}, false},
		{"CPUs of the runner's", unix.SYS_SCHED_SETAFFINITY, []uint64{1, 8, address}, true},
		{"CPUs of the runner's last thread", unix.SYS_SCHED_SETAFFINITY, []uint64{lastOne, 8, address}, true},
		{"a policy of a runner's thread", unix.SYS_SCHED_SETSCHEDULER, []uint64{2, 3, address}, true},
		{"parameters of a runner's thread", unix.SYS_SCHED_SETPARAM, []uint64{2, address}, true},
		{"attributes of a runner's thread", unix.SYS_SCHED_SETATTR, []uint64{2, address}, true},
		{"a priority of a runner's thread", unix.SYS_SETPRIORITY, []uint64{unix.PRIO_PROCESS, 2, 19}, true},
		{"a priority of another program's", unix.SYS_SETPRIORITY, []uint64{unix.PRIO_PROCESS, lastOne + 1, 19}, false},
		{"a disk's priority of a runner's thread", unix.SYS_IOPRIO_SET, []uint64{1, 2, 0}, true},
		{"a disk's priority of another program's", unix.SYS_IOPRIO_SET, []uint64{1, lastOne + 1, 0}, false},
		{"a flag of that number", unix.SYS_FCNTL, []uint64{3, unix.F_SETFD, uint64(unix.SIGSEGV)}, false},
	}
	for _, tt := range tests {
		if got := judge(t, prog, arch, tt.nr, tt.args...) != unix.SECCOMP_RET_ALLOW; got != tt.refused {
			t.Errorf("%s: refused %v, want %v", tt.name, got, tt.refused)
		}
	}
}
