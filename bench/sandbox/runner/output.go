package runner

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// output takes what a program prints.
type output struct {
	write []uintptr // the program's ends: standard output and error
	read  []*os.File

	left    atomic.Int64 // bytes that may still be printed
	keep    int64
	over    func()
	log     Tail      // of both
	sum     hash.Hash // of standard output
	kept    bytes.Buffer
	readers sync.WaitGroup
}

func newOutput(limit, keep int64, over func()) (*output, error) {
	o := &output{keep: keep, over: over, sum: sha256.New()}
	o.left.Store(limit)
	for i := range 2 {
		var p [2]int
		if err := syscall.Pipe2(p[:], syscall.O_CLOEXEC); err != nil {
			o.close()
			return nil, fmt.Errorf("make a pipe: %w", err)
		}
		o.write = append(o.write, uintptr(p[1]))
		// A program that prints a lot waits for the reader less often. The
		// kernel may refuse; the pipe is then as large as it was.
		_, _ = unix.FcntlInt(uintptr(p[1]), unix.F_SETPIPE_SZ, 1<<20)
		// Only our end: the program's must block.
		if err := syscall.SetNonblock(p[0], true); err != nil {
			syscall.Close(p[0])
			o.close()
			return nil, fmt.Errorf("make a pipe: %w", err)
		}
		f := os.NewFile(uintptr(p[0]), "output")
		o.read = append(o.read, f)
		o.readers.Go(func() { o.drain(f, i == 0) })
	}
	return o, nil
}

func (o *output) drain(f *os.File, stdout bool) {
	defer f.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := f.Read(buf)
		if n > 0 {
			left := o.left.Add(int64(-n))
			if stdout {
				o.sum.Write(buf[:n])
				if room := o.keep - int64(o.kept.Len()); room > 0 {
					o.kept.Write(buf[:min(int64(n), room)])
				}
			}
			o.log.add(buf[:n], !stdout)
			// The rest is read too, so that nothing blocks while it is killed.
			if left < 0 && left+int64(n) >= 0 {
				o.over()
			}
		}
		if err != nil {
			return
		}
	}
}

// started closes the program's ends on our side.
func (o *output) started() {
	for _, fd := range o.write {
		syscall.Close(int(fd))
	}
	o.write = nil
}

func (o *output) close() {
	o.started()
	for _, f := range o.read {
		f.Close()
	}
	o.readers.Wait()
}

// wait reads to the end. In unsafe mode a process that got away could hold the
// pipe open, hence the deadline.
func (o *output) wait() {
	for _, f := range o.read {
		_ = f.SetReadDeadline(time.Now().Add(5 * time.Second)) // closed already: read to its end
	}
	o.readers.Wait()
}

func (o *output) tooMuch() bool { return o.left.Load() < 0 }

const tailBytes = 8 << 10

// Tail keeps the last 8 KiB of two streams, in the order in which they were read.
// Half of it is kept for complaints: a program that prints a lot must not push
// out the one line that says why it ended. It may be written to by several
// goroutines.
type Tail struct {
	mu    sync.Mutex
	parts []part
	bytes [2]int // held of output, and of complaints
}

type part struct {
	complaint bool
	text      []byte
}

func index(complaint bool) int {
	if complaint {
		return 1
	}
	return 0
}

// Write adds complaints.
func (t *Tail) Write(p []byte) (int, error) {
	t.add(p, true)
	return len(p), nil
}

func (t *Tail) add(p []byte, complaint bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p = p[max(0, len(p)-tailBytes):]
	if n := len(t.parts); n == 0 || t.parts[n-1].complaint != complaint {
		t.parts = append(t.parts, part{complaint: complaint})
	}
	last := &t.parts[len(t.parts)-1]
	last.text = append(last.text, p...)
	t.bytes[index(complaint)] += len(p)
	for over := t.bytes[0] + t.bytes[1] - tailBytes; over > 0; over = t.bytes[0] + t.bytes[1] - tailBytes {
		// The stream that holds more than its half gives way.
		t.drop(t.bytes[1] > tailBytes/2 && t.bytes[0] <= tailBytes/2 || t.bytes[0] == 0, over)
	}
}

// drop takes up to n bytes from the oldest part of a stream.
func (t *Tail) drop(complaint bool, n int) {
	for i := range t.parts {
		p := &t.parts[i]
		if p.complaint != complaint {
			continue
		}
		n = min(n, len(p.text))
		t.bytes[index(complaint)] -= n
		if n == len(p.text) {
			t.parts = append(t.parts[:i], t.parts[i+1:]...)
		} else {
			p.text = append(p.text[:0], p.text[n:]...)
		}
		return
	}
}

// String gives the text as valid UTF-8.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var s strings.Builder
	for _, p := range t.parts {
		s.Write(p.text)
	}
	return strings.ToValidUTF8(s.String(), "\uFFFD")
}
