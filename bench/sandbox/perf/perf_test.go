package perf

import (
	"encoding/binary"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Pages that a thread touches for the first time are counted, each once, and none
// that it touched before the counter was there.
func TestOpen(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const pages = 1000
	touch := func() {
		mem, err := unix.Mmap(-1, 0, pages*os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Munmap(mem)
		if err := unix.Madvise(mem, unix.MADV_NOHUGEPAGE); err != nil && err != unix.EINVAL { // a kernel without huge pages
			t.Fatal(err)
		}
		for i := 0; i < len(mem); i += os.Getpagesize() {
			mem[i] = 1
		}
	}
	touch()
	c, err := Open(0, PageFaults)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	defer c.Close()
	// The runtime may touch some of its own.
	const own = 200
	for i, want := range []int64{0, pages, 2 * pages} {
		if i > 0 {
			touch()
		}
		if got, err := c.Read(); err != nil || got < want || got > want+own {
			t.Errorf("%d page faults after %d, %v", got, want, err)
		}
	}
}

func TestDecode(t *testing.T) {
	said := func(words ...uint64) []byte {
		var b []byte
		for _, w := range words {
			b = binary.NativeEndian.AppendUint64(b, w)
		}
		return b
	}
	for _, tt := range []struct {
		name string
		said []byte
		want int64
		err  error
	}{
		{"always there", said(12345, 5e6, 5e6), 12345, nil},
		{"away for a ten-thousandth", said(12345, 1e6, 999900), 12345, nil},
		{"away for a hundredth", said(12345, 1e6, 990000), 0, errShared},
		{"never there", said(0, 1e6, 0), 0, errShared},
		{"given up", nil, 0, errShared},
		{"a program that never ran", said(0, 0, 0), 0, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := decode(tt.said); got != tt.want || err != tt.err {
				t.Errorf("%d, %v; want %d, %v", got, err, tt.want, tt.err)
			}
		})
	}
}

func TestExplain(t *testing.T) {
	for err, want := range map[error]string{
		unix.ENOENT: "no hardware counter", unix.EOPNOTSUPP: "no hardware counter", unix.EBUSY: "in use by another program",
		unix.EACCES: "does not allow perf_event_open", unix.EPERM: "does not allow perf_event_open", unix.ENOSYS: "function not implemented",
	} {
		if got := explain(err).Error(); !strings.Contains(got, want) {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}
