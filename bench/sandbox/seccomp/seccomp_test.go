package seccomp

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// judge runs a filter on one call as the kernel would.
func judge(t *testing.T, prog []unix.SockFilter, arch, nr uint32, args ...uint32) uint32 {
	t.Helper()
	words := map[uint32]uint32{offsetNR: nr, offsetArch: arch}
	for i, a := range args {
		words[offsetArgs+8*uint32(i)] = a
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

// TestFilter compares every decision of the compiled filter with the rules read
// plainly.
func TestFilter(t *testing.T) {
	const arch = unix.AUDIT_ARCH_X86_64
	prog := filter(rules, arch)
	want := func(nr uint32, args ...uint32) uint32 {
		for _, r := range rules {
			if r.nr == nr && (r.arg < 0 || slices.Contains(r.values, args[r.arg]) != r.except) {
				return unix.SECCOMP_RET_ERRNO | uint32(r.errno)
			}
		}
		return unix.SECCOMP_RET_ALLOW
	}
	refused := 0
	for nr := range uint32(600) {
		for a := range uint32(50) {
			for b := range uint32(3) {
				got := judge(t, prog, arch, nr, a, b)
				if w := want(nr, a, b); got != w {
					t.Fatalf("call %d(%d, %d): %#x, want %#x", nr, a, b, got, w)
				}
				if got != unix.SECCOMP_RET_ALLOW {
					refused++
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
