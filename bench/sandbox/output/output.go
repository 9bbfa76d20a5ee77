// Package output takes what a program prints: all of it is read and digested, the
// beginning of standard output and the end of everything are kept. Pipes go in, text
// comes out; what it means is not known here.
package output

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
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

// Output is what one program prints, from before its start to after its end.
type Output struct {
	write   []uintptr // the program's ends: standard output and error
	streams [2]stream

	left atomic.Int64 // bytes that may still be printed
	keep int64
	over func()
	log  Tail // of both

	mu      sync.Mutex // over what follows and the streams
	buf     []byte     // of BufferBytes, not used any more when both streams are done
	sum     hash.Hash  // of standard output
	kept    bytes.Buffer
	readers sync.WaitGroup
}

// stream is our end of a pipe.
type stream struct {
	file *os.File
	fd   int
	done bool // read to its end; the descriptor is not to be used any more
}

// BufferBytes is the size of the buffer that New is given.
const BufferBytes = 64 << 10

// New makes the pipes. It calls over, once, when more than limit bytes were
// printed, and keeps the first keep bytes of standard output.
func New(buf []byte, limit, keep int64, over func()) (*Output, error) {
	o := &Output{buf: buf, keep: keep, over: over, sum: sha256.New()}
	o.left.Store(limit)
	for i := range o.streams {
		var p [2]int
		if err := syscall.Pipe2(p[:], syscall.O_CLOEXEC); err != nil {
			o.Close()
			return nil, fmt.Errorf("make a pipe: %w", err)
		}
		o.write = append(o.write, uintptr(p[1]))
		// A program that prints a lot waits for the reader less often. The
		// kernel may refuse; the pipe is then as large as it was.
		_, _ = unix.FcntlInt(uintptr(p[1]), unix.F_SETPIPE_SZ, 1<<20)
		// Only our end: the program's must block.
		if err := syscall.SetNonblock(p[0], true); err != nil {
			syscall.Close(p[0])
			o.Close()
			return nil, fmt.Errorf("make a pipe: %w", err)
		}
		s := &o.streams[i]
		s.fd, s.file = p[0], os.NewFile(uintptr(p[0]), "output")
		raw, err := s.file.SyscallConn()
		if err != nil {
			o.Close()
			return nil, fmt.Errorf("make a pipe: %w", err)
		}
		o.readers.Go(func() {
			defer s.file.Close()
			// It fails when the file is closed or its deadline is over.
			_ = raw.Read(func(uintptr) bool {
				o.mu.Lock()
				defer o.mu.Unlock()
				return o.drain(i)
			})
		})
	}
	return o, nil
}

// drain reads what there is in a stream without waiting, and says whether that
// was its end.
func (o *Output) drain(i int) bool {
	s := &o.streams[i]
	for !s.done {
		n, err := syscall.Read(s.fd, o.buf)
		switch {
		case err == syscall.EAGAIN:
			return false
		case err == syscall.EINTR:
		case err != nil || n == 0:
			s.done = true
		default:
			o.add(o.buf[:n], i == 0)
		}
	}
	return true
}

func (o *Output) add(p []byte, stdout bool) {
	left := o.left.Add(int64(-len(p)))
	if stdout {
		o.sum.Write(p)
		if room := o.keep - int64(o.kept.Len()); room > 0 {
			o.kept.Write(p[:min(int64(len(p)), room)])
		}
	}
	o.log.add(p, !stdout)
	// The rest is read too, so that nothing blocks while it is killed.
	if left < 0 && left+int64(len(p)) >= 0 {
		o.over()
	}
}

// Ends are the program's ends of the pipes, of standard output and error.
func (o *Output) Ends() (stdout, stderr uintptr) { return o.write[0], o.write[1] }

// Started closes the program's ends on our side, once the program has them.
func (o *Output) Started() {
	for _, fd := range o.write {
		syscall.Close(int(fd))
	}
	o.write = nil
}

// Close ends the reading; it is for a program that did not start, or whose output
// nobody wants.
func (o *Output) Close() {
	o.Started()
	for i := range o.streams {
		if f := o.streams[i].file; f != nil {
			f.Close()
		}
	}
	o.readers.Wait()
}

// Wait reads to the end, itself: the readers would have to be woken first. In
// unsafe mode a process that got away could hold the pipe open; then they have
// some more time.
func (o *Output) Wait() {
	o.mu.Lock()
	done := o.drain(0)
	done = o.drain(1) && done
	o.mu.Unlock()
	if done {
		return
	}
	for _, s := range o.streams {
		_ = s.file.SetReadDeadline(time.Now().Add(5 * time.Second)) // closed already: read to its end
	}
	o.readers.Wait()
}

// TooMuch says that the program printed more than it may.
func (o *Output) TooMuch() bool { return o.left.Load() < 0 }

// Stdout is the beginning of standard output, as far as it is kept. This and the
// following are to be asked after Wait.
func (o *Output) Stdout() []byte { return o.kept.Bytes() }

// SHA256 is the hex digest of all of standard output.
func (o *Output) SHA256() string { return hex.EncodeToString(o.sum.Sum(nil)) }

// Log is the end of standard output and error together.
func (o *Output) Log() string { return o.log.String() }

// Buffer is the buffer that New was given, which is free again.
func (o *Output) Buffer() []byte { return o.buf }

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
