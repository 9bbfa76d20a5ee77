package reply

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"patchbench/config/service"
	"patchbench/mbox/source/feed"
	"patchbench/store"
	"patchbench/store/storetest"
)

// The child's environment: its store and its server.
const (
	childStore  = "PATCHBENCH_REPLY_STORE"
	childServer = "PATCHBENCH_REPLY_SERVER"
)

// child is a process that sends until it is killed.
func child() {
	ctx := context.Background()
	st, err := store.Open(ctx, "sqlite:"+os.Getenv(childStore))
	if err == nil {
		cfg := serving(service.SMTP{Address: os.Getenv(childServer), TLS: service.NoTLS, PerHour: 10})
		err = New(st, func() *service.Config { return cfg }, Options{}).Run(ctx)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// TestKilled kills a sender at every step of a transfer. Afterwards another one
// brings each recipient exactly one copy, or holds the letter if nobody can tell.
func TestKilled(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []string{"connect", "mail", "rcpt", "data", "text", "text, not taken", "logout"} {
		for _, blind := range []bool{false, true} {
			name := step
			if blind {
				name += ", blind"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				file := newFile(t)
				st := storetest.OpenURL(t, "sqlite:"+file)
				comesBack(t, st)
				id := put(t, st, letter(1, time.Now(), author, list))

				cmd := exec.Command(exe)
				started, dead := make(chan struct{}), make(chan struct{})
				f, at := faults{}, step
				if step == "text, not taken" {
					at, f.cut = "text", "text"
				}
				srv := serve(t, nil, f, faults{})
				var once sync.Once
				srv.on(func(s string) {
					if s != at {
						return
					}
					// The server goes on only when the sender is dead.
					once.Do(func() {
						<-started
						cmd.Process.Kill()
						<-dead
					})
				})
				cmd.Env = append(os.Environ(), childStore+"="+file, childServer+"="+srv.addr)
				cmd.Stderr = os.Stderr
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				close(started)
				ended := cmd.Wait()
				close(dead)
				if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() {
					t.Fatalf("the sender ended by itself: %v", ended)
				}

				later := &clock{t: time.Now()}
				o := Options{Now: later.now}
				if !blind {
					o.Find = []feed.Finder{&mailbox{s: srv, address: list}}
				}
				cfg := plainServer(srv)
				l := drive(t, New(st, func() *service.Config { return cfg }, o), later, id, 6)
				copies := []int{srv.got(author), srv.got(list)}
				switch {
				case !blind && (l.State != store.LetterSent || copies[0] != 1 || copies[1] != 1):
					t.Errorf("state %s, %s, copies %v", l.State, l.Reason, copies)
				case blind && (l.State == store.LetterQueued || copies[0] > 1 || copies[1] > 1):
					t.Errorf("state %s, %s, copies %v", l.State, l.Reason, copies)
				case blind && l.State == store.LetterSent && copies[1] != 1:
					t.Errorf("sent, %s, and copies %v", l.Reason, copies)
				}
			})
		}
	}
}
