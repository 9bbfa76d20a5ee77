package runner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// inbox is where orders come in. The thread that carries them out reads them
// itself, since to be handed one by another thread takes as long as a small
// program runs. While it is busy, watch reads on.
type inbox struct {
	file  *os.File
	fd    int
	raw   syscall.RawConn
	ended func() // called when the orders end while a batch runs

	mu      sync.Mutex
	running *batch
	text    []byte // that was read, without the orders taken from it
	queue   []Order
	err     error // io.EOF after the last order
}

func newInbox(fd int) (*inbox, error) {
	// Only our end of the pipe does not block.
	if err := syscall.SetNonblock(fd, true); err != nil {
		return nil, fmt.Errorf("runner: orders: %w", err)
	}
	in := &inbox{file: os.NewFile(uintptr(fd), "orders"), fd: fd}
	var err error
	if in.raw, err = in.file.SyscallConn(); err != nil {
		return nil, fmt.Errorf("runner: orders: %w", err)
	}
	return in, nil
}

// fill reads what there is without waiting.
func (in *inbox) fill() {
	var buf [4096]byte
	for in.err == nil {
		n, err := syscall.Read(in.fd, buf[:])
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			return
		case err != nil:
			in.err = err
		case n == 0:
			in.err = io.EOF
		default:
			in.text = append(in.text, buf[:n]...)
		}
		for {
			line, rest, ok := bytes.Cut(in.text, []byte("\n"))
			if !ok {
				break
			}
			in.text = rest
			var o Order
			if err := json.Unmarshal(line, &o); err != nil {
				in.err = err
				break
			}
			in.queue = append(in.queue, o)
		}
	}
}

// next waits for an order.
func (in *inbox) next() (Order, error) {
	for {
		in.mu.Lock()
		in.fill()
		if len(in.queue) > 0 {
			o := in.queue[0]
			in.queue = in.queue[1:]
			in.mu.Unlock()
			return o, nil
		}
		err := in.err
		in.mu.Unlock()
		if err != nil {
			return Order{}, err
		}
		// What goes wrong here goes wrong with the read too.
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(in.fd), Events: unix.POLLIN}}, -1)
	}
}

// busy tells which batch runs from now on, nil for none.
func (in *inbox) busy(b *batch) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.running = b
	in.look()
}

// look carries out what is said to a batch that runs.
func (in *inbox) look() {
	if in.running == nil {
		return
	}
	in.fill()
	for len(in.queue) > 0 && in.queue[0].Cancel {
		in.queue = in.queue[1:]
		in.running.cancel()
	}
	if in.err != nil {
		in.ended()
	}
}

// watch looks whenever something has come in.
func (in *inbox) watch() {
	// It never says that it is done, so this ends with the process.
	_ = in.raw.Read(func(uintptr) bool {
		in.mu.Lock()
		defer in.mu.Unlock()
		in.look()
		return false
	})
}
