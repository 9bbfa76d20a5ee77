// Package seccomp refuses system calls to programs in a box.
//
//	Restrict()  on the runner's thread that starts programs, and so in all of them
//
// What each call gives that is refused is listed in rules.
package seccomp

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rule refuses a system call with an error when all its conditions hold; always
// when it has none.
type rule struct {
	nr    uint32
	errno syscall.Errno
	when  []condition
}

// condition holds when half an argument stands in the relation test to one of
// values, or with except when it does so to none of them. The lower half is what
// the kernel reads of those that are int.
type condition struct {
	half   int // lower(n) or upper(n)
	test   relation
	values []uint32
	except bool
}

// relation is a jump of the filter's machine.
type relation uint16

const (
	equal relation = unix.BPF_JEQ
	bits  relation = unix.BPF_JSET // has a bit of it
	above relation = unix.BPF_JGT
)

// The halves of argument n, from 0, as indexes of 32-bit words.
func lower(n int) int { return 2 * n }
func upper(n int) int { return 2*n + 1 }

func is(half int, values ...uint32) condition    { return condition{half, equal, values, false} }
func isNot(half int, values ...uint32) condition { return condition{half, equal, values, true} }
func has(half int, bit uint32) condition         { return condition{half, bits, []uint32{bit}, false} }
func upTo(half int, most uint32) condition       { return condition{half, above, []uint32{most}, true} }

// rules are the calls that reach further than a program in a box should: devices
// of the virtual machine's host through AF_VSOCK, keys that outlive a run, large
// and young parts of the kernel, and the runner's own bounds, which the next
// program would inherit. Those that need privileges, which programs do not have,
// are a second wall.
//
// The runner's threads have numbers of their own, by which their bounds, CPUs and
// priorities can be set as well, and the thread that starts programs hands its own on
// to all of them. These numbers are the first of the box, up to last, and the kernel
// gives them to nobody else. (A thread that the Go runtime starts later has a number
// like a program's. It reads output and starts nothing.) Bounds may be set of no
// other process at all.
//
// Some signals stand for a fault of the one that they reach, unless their sender says
// that he is a user: it is what kill does and these calls need not. The Go runtime
// would end the runner.
//
// A process started with CLONE_UNTRACED would not be followed: its memory would be
// missing from the peak of all. No filter sees the arguments of clone3, so that is
// not there at all, and the C library does with clone, as on older kernels.
//
// The kernel keeps a list of the calls that a filter always allows, so that
// the usual ones cost nothing.
func rules(last uint32) []rule {
	ofRunner := func(half int) []condition { return []condition{isNot(half, 0), upTo(half, last)} }
	return slices.Concat(
		always(unix.ENOSYS, // as on a kernel built without them
			unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
			unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
			unix.SYS_CLONE3,
		),
		always(unix.EPERM,
			unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_FANOTIFY_INIT,
			unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_SYSLOG, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
			unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE,
			unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
			unix.SYS_SETNS, unix.SYS_UNSHARE,
			unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_REBOOT,
			unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_CLOCK_SETTIME, unix.SYS_SETTIMEOFDAY, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
		),
		[]rule{
			{unix.SYS_SOCKET, unix.EAFNOSUPPORT, []condition{isNot(lower(0), unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK)}},
			{unix.SYS_CLONE, unix.EPERM, []condition{has(lower(0), unix.CLONE_UNTRACED)}},
			{unix.SYS_IOCTL, unix.EPERM, []condition{is(lower(1), unix.TIOCSTI, unix.TIOCLINUX)}},
			{unix.SYS_PRLIMIT64, unix.EPERM, ofRunner(lower(0))},
			// A new limit is given: its address is not zero.
			{unix.SYS_PRLIMIT64, unix.EPERM, []condition{isNot(lower(0), 0), isNot(lower(2), 0)}},
			{unix.SYS_PRLIMIT64, unix.EPERM, []condition{isNot(lower(0), 0), isNot(upper(2), 0)}},
			{unix.SYS_SCHED_SETAFFINITY, unix.EPERM, ofRunner(lower(0))},
			{unix.SYS_SCHED_SETSCHEDULER, unix.EPERM, ofRunner(lower(0))},
			{unix.SYS_SCHED_SETPARAM, unix.EPERM, ofRunner(lower(0))},
			{unix.SYS_SCHED_SETATTR, unix.EPERM, ofRunner(lower(0))},
			{unix.SYS_SETPRIORITY, unix.EPERM, []condition{isNot(lower(0), unix.PRIO_PROCESS)}},
			{unix.SYS_SETPRIORITY, unix.EPERM, ofRunner(lower(1))},
			{unix.SYS_IOPRIO_SET, unix.EPERM, []condition{isNot(lower(0), 1)}}, // 1: of a process
			{unix.SYS_IOPRIO_SET, unix.EPERM, ofRunner(lower(1))},
			{unix.SYS_RT_SIGQUEUEINFO, unix.EPERM, []condition{is(lower(1), faults...)}},
			{unix.SYS_RT_TGSIGQUEUEINFO, unix.EPERM, []condition{is(lower(2), faults...)}},
			{unix.SYS_PIDFD_SEND_SIGNAL, unix.EPERM, []condition{is(lower(1), faults...)}},
			{unix.SYS_FCNTL, unix.EPERM, []condition{is(lower(1), unix.F_SETSIG), is(lower(2), faults...)}},
		},
	)
}

// faults are the signals that stand for one.
var faults = []uint32{
	uint32(unix.SIGILL), uint32(unix.SIGTRAP), uint32(unix.SIGBUS), uint32(unix.SIGFPE),
	uint32(unix.SIGSEGV), uint32(unix.SIGSTKFLT), uint32(unix.SIGSYS),
}

// always refuses calls whatever their arguments.
func always(errno syscall.Errno, nrs ...uint32) []rule {
	var rules []rule
	for _, nr := range nrs {
		rules = append(rules, rule{nr, errno, nil})
	}
	return rules
}

// Offsets in struct seccomp_data, on little-endian machines.
const (
	offsetNR   = 0
	offsetArch = 4
	offsetArgs = 16
)

// filter compiles rules for the kernel. Calls of another instruction set have
// other numbers, so they are refused as a whole.
func filter(rules []rule, arch uint32) []unix.SockFilter {
	const (
		load = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		same = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		jump = unix.BPF_JMP | unix.BPF_JA
		from = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		give = unix.BPF_RET | unix.BPF_K
	)
	refuse := func(e syscall.Errno) unix.SockFilter {
		return unix.SockFilter{Code: give, K: unix.SECCOMP_RET_ERRNO | uint32(e)}
	}
	prog := []unix.SockFilter{
		{Code: load, K: offsetArch},
		{Code: same, K: arch, Jt: 1},
		refuse(unix.ENOSYS),
		{Code: load, K: offsetNR},
		{Code: from, K: 0x40000000, Jf: 1}, // amd64's x32 calls
		refuse(unix.ENOSYS),
	}
	for _, r := range rules {
		tail := []unix.SockFilter{refuse(r.errno)}
		if len(r.when) > 0 {
			// Whose condition does not hold gets here, for the next rule.
			tail = append(tail, unix.SockFilter{Code: load, K: offsetNR})
		}
		for _, c := range slices.Backward(r.when) {
			found, none := 0, len(tail)-1 // where to go on in the tail
			if c.except {
				found, none = none, found
			}
			test := []unix.SockFilter{{Code: load, K: offsetArgs + 4*uint32(c.half)}}
			for i, v := range c.values {
				test = append(test, unix.SockFilter{Code: unix.BPF_JMP | uint16(c.test) | unix.BPF_K, K: v, Jt: uint8(len(c.values) - i + found)})
			}
			tail = slices.Concat(test, []unix.SockFilter{{Code: jump, K: uint32(none)}}, tail)
		}
		prog = append(prog, unix.SockFilter{Code: same, K: r.nr, Jf: uint8(len(tail))})
		prog = append(prog, tail...)
	}
	return append(prog, unix.SockFilter{Code: give, K: unix.SECCOMP_RET_ALLOW})
}

// Known says that the rules fit this machine's instruction set. The box holds on
// others too, with fewer walls.
func Known() bool {
	_, ok := instructionSet()
	return ok
}

// Text tells one set of rules from another.
func Text() string { return fmt.Sprint(rules(1)) }

// instructionSet is the kernel's name for this machine's; ok says that the rules
// are known to fit it.
func instructionSet() (arch uint32, ok bool) {
	switch runtime.GOARCH {
	case "amd64":
		return unix.AUDIT_ARCH_X86_64, true
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64, true
	}
	return 0, false
}

// Restrict puts the rules on the calling thread and all that it forks. The
// runner's other threads, which start no program, keep their freedom; those that
// programs must not slow have been started before, and no program has.
func Restrict() error {
	arch, ok := instructionSet()
	if !ok {
		return nil
	}
	last, err := lastThread()
	if err != nil {
		return fmt.Errorf("runner: refuse system calls: %w", err)
	}
	prog := filter(rules(last), arch)
	f := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&f)), 0, 0)
	runtime.KeepAlive(prog)
	if err == unix.EINVAL || err == unix.ENOSYS {
		return fmt.Errorf("runner: refuse system calls: this kernel is built without seccomp filters: %w", err)
	}
	if err != nil {
		return fmt.Errorf("runner: refuse system calls: %w", err)
	}
	return nil
}

// lastThread is the highest number of this process's threads.
func lastThread() (uint32, error) {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return 0, err
	}
	last := uint64(0)
	for _, t := range threads {
		n, err := strconv.ParseUint(t.Name(), 10, 31)
		if err != nil {
			return 0, err
		}
		last = max(last, n)
	}
	return uint32(last), nil
}
