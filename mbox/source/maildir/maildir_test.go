package maildir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/mbox"
	"patchbench/mbox/source/feed"
)

// folder is a Maildir that a test delivers into.
type folder struct {
	t    testing.TB
	path string
}

func newFolder(t testing.TB) folder {
	t.Helper()
	f := folder{t, t.TempDir()}
	for _, sub := range []string{"tmp", "new", "cur"} {
		if err := os.Mkdir(filepath.Join(f.path, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func text(id string) string {
	return fmt.Sprintf("From: a@example.com\nMessage-ID: <%s@example.org>\nSubject: %s\n\ntext\n", id, id)
}

// put writes a mail through tmp/, as a delivery agent does.
func (f folder) put(at, content string, when time.Time) {
	f.t.Helper()
	tmp := filepath.Join(f.path, "tmp", filepath.Base(at))
	if err := os.WriteFile(tmp, []byte(content), 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Chtimes(tmp, when, when); err != nil {
		f.t.Fatal(err)
	}
	f.move("tmp/"+filepath.Base(at), at)
}

// deliver puts a mail of that name and subject.
func (f folder) deliver(at string, when time.Time) {
	name, _, _ := strings.Cut(filepath.Base(at), ":")
	f.put(at, text(name), when)
}

func (f folder) move(from, to string) {
	f.t.Helper()
	if err := os.Rename(filepath.Join(f.path, from), filepath.Join(f.path, to)); err != nil {
		f.t.Fatal(err)
	}
}

// taker keeps the names of the mails that it was given.
type taker struct {
	mu      sync.Mutex
	cursor  string
	given   []string
	batches []int
	events  []string
	raw     [][]byte
	times   []time.Time
	fail    int
}

func (k *taker) take(_ context.Context, b feed.Batch) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fail > 0 {
		k.fail--
		return errors.New("disk full")
	}
	for _, m := range b.Mails {
		h, err := mbox.ParseHeader(m.Raw)
		if err != nil {
			return err
		}
		k.given = append(k.given, strings.TrimSuffix(h.ID, "@example.org"))
		k.raw = append(k.raw, m.Raw)
		if m.Cut != (len(m.Raw) == feed.CutAt) {
			return fmt.Errorf("mail of %d bytes: cut %v", len(m.Raw), m.Cut)
		}
		k.times = append(k.times, m.Received)
	}
	k.batches = append(k.batches, len(b.Mails))
	k.cursor = b.Cursor
	return nil
}

func (k *taker) notify(e feed.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.events = append(k.events, fmt.Sprintf("%s: %v", e.Text, e.Err))
}

// follow follows the folder in a bubble until the end of the test or stop.
func (k *taker) follow(t *testing.T, f folder) (stop func()) {
	t.Helper()
	s, err := New(f.path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Follow(ctx, k.cursor, k.take, k.notify) }()
	wait()
	return func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Follow: %v", err)
		}
	}
}

// wait lets the source look at its folder several times. The bubble's clock runs
// on its own.
func wait() {
	time.Sleep(5 * time.Second)
	synctest.Wait()
}

func (k *taker) check(t *testing.T, want ...string) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if diff := cmp.Diff(want, k.given); diff != "" {
		t.Errorf("mails given (-want +got):\n%s\nevents %q", diff, k.events)
	}
}

var day0 = time.Date(2024, 5, 6, 10, 0, 0, 0, time.UTC)

func TestFollow(t *testing.T) {
	f := newFolder(t)
	synctest.Test(t, func(t *testing.T) {
		k := &taker{}
		f.deliver("new/1", day0)
		f.deliver("cur/2:2,S", day0)
		stop := k.follow(t, f)
		k.check(t)
		// A flag, a move, a name without time, a file of long ago: only names count.
		f.move("new/1", "cur/1:2,")
		f.deliver("new/9", day0.Add(2*time.Minute))
		f.deliver("cur/0:2,F", day0.Add(time.Minute))
		wait()
		k.check(t, "0", "9")
		f.move("cur/1:2,", "cur/1:2,RS")
		f.move("cur/2:2,S", "new/2")
		f.move("new/9", "cur/9:2,T")
		f.deliver("new/5", day0.AddDate(-20, 0, 0))
		wait()
		k.check(t, "0", "9", "5")
		stop()
		// While nobody looks.
		f.move("cur/9:2,T", "cur/9:2,")
		f.deliver("new/7", day0)
		if err := os.Remove(filepath.Join(f.path, "cur", "0:2,F")); err != nil {
			t.Fatal(err)
		}
		stop = k.follow(t, f)
		k.check(t, "0", "9", "5", "7")
		stop()
		stop = k.follow(t, f)
		defer stop()
		k.check(t, "0", "9", "5", "7")
		if !k.times[0].Equal(day0.Add(time.Minute)) {
			t.Errorf("received %v, want the file's time", k.times[0])
		}
		if len(k.events) > 0 {
			t.Errorf("events %q", k.events)
		}
	})
}

// A mail whose file is not seen for a moment is not taken for a new one.
func TestFollowMissedForAMoment(t *testing.T) {
	f := newFolder(t)
	f.deliver("cur/1:2,S", day0)
	synctest.Test(t, func(t *testing.T) {
		k := &taker{}
		defer k.follow(t, f)()
		f.move("cur/1:2,S", "tmp/1")
		wait()
		f.move("tmp/1", "cur/1:2,S")
		wait()
		k.check(t)
		// After a while the name is free for another mail.
		if err := os.Remove(filepath.Join(f.path, "cur/1:2,S")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		f.deliver("new/1", day0)
		wait()
		k.check(t, "1")
	})
}

func TestFollowBatches(t *testing.T) {
	f := newFolder(t)
	synctest.Test(t, func(t *testing.T) {
		k := &taker{}
		stop := k.follow(t, f)
		stop()
		var want []string
		for n := range 250 {
			name := fmt.Sprintf("%03d", n)
			want = append(want, name)
			f.deliver("new/"+name, day0)
		}
		for n := range 3 {
			name := fmt.Sprintf("large%d", n)
			want = append(want, name)
			f.put("new/"+name, text(name)+strings.Repeat("x", 3<<20), day0)
		}
		k.fail = 1
		k.batches = nil
		defer k.follow(t, f)()
		k.check(t, want...)
		if diff := cmp.Diff([]int{100, 100, 52, 1}, k.batches); diff != "" {
			t.Errorf("batches (-want +got):\n%s", diff)
		}
		if !slices.ContainsFunc(k.events, func(e string) bool { return strings.Contains(e, "disk full") }) {
			t.Errorf("events %q say nothing of the failure", k.events)
		}
	})
}

func TestFollowOddFiles(t *testing.T) {
	f := newFolder(t)
	synctest.Test(t, func(t *testing.T) {
		k := &taker{}
		defer k.follow(t, f)()
		f.put("new/huge", text("huge")+strings.Repeat("x", mbox.MaxMail), day0)
		f.put("new/empty", "", day0)
		f.put("new/.hidden", text("hidden"), day0)
		f.put("new/nul", "Message-ID: <nul@example.org>\n\n\x00\xff", day0)
		if err := os.Mkdir(filepath.Join(f.path, "new", "dir"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/etc/passwd", filepath.Join(f.path, "new", "link")); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(filepath.Join(f.path, "new", "fifo"), 0o600); err != nil {
			t.Fatal(err)
		}
		wait()
		k.check(t, "huge", "nul")
		if len(k.raw[0]) != feed.CutAt || !bytes.HasPrefix(k.raw[0], []byte(text("huge"))) {
			t.Errorf("%d bytes of a huge mail, want %d", len(k.raw[0]), feed.CutAt)
		}
		if len(k.events) != 1 || !strings.Contains(k.events[0], "mail huge has 8388") {
			t.Errorf("events %q", k.events)
		}
		// What was empty is written after all.
		if err := os.WriteFile(filepath.Join(f.path, "new", "empty"), []byte(text("empty")), 0o600); err != nil {
			t.Fatal(err)
		}
		wait()
		k.check(t, "huge", "nul", "empty")
	})
}

func TestFollowFolderComesLater(t *testing.T) {
	parent := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f := folder{t, filepath.Join(parent, "box")}
		k := &taker{}
		defer k.follow(t, f)()
		k.mu.Lock()
		if k.cursor != "" || len(k.events) == 0 {
			t.Errorf("cursor %q, events %q without a folder", k.cursor, k.events)
		}
		k.mu.Unlock()
		for _, sub := range []string{"", "tmp", "new", "cur"} {
			if err := os.Mkdir(filepath.Join(f.path, sub), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		f.deliver("new/1", day0)
		wait()
		k.check(t, "1")
	})
}

func TestFind(t *testing.T) {
	f := newFolder(t)
	f.deliver("new/1", day0)
	f.deliver("cur/2:2,S", day0)
	f.put("new/3", "Subject: no id\n\nMessage-ID: <body@example.org>\n", day0)
	f.put("new/4", "Message-ID:\n <folded@example.org>\n\n"+strings.Repeat("x", 1<<20), day0)
	s, err := New(f.path)
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]bool{
		"1@example.org": true, "<2@example.org>": true, "folded@example.org": true,
		"3@example.org": false, "body@example.org": false, "1@example": false,
	} {
		if got, err := s.Find(t.Context(), id); err != nil || got != want {
			t.Errorf("Find(%q) = %v, %v; want %v", id, got, err, want)
		}
	}
	if _, err := s.Find(t.Context(), "<>"); err == nil {
		t.Error("Find of nothing gives no error")
	}
	gone, err := New(filepath.Join(f.path, "gone"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gone.Find(t.Context(), "1@example.org"); err == nil {
		t.Error("Find in a folder that is not there knows the answer")
	}
}

func TestCursor(t *testing.T) {
	known := map[key]bool{}
	for n := range 10000 {
		known[keyOf(fmt.Sprint(n))] = true
	}
	s := format(known)
	if len(s) > 72_000 {
		t.Errorf("a cursor of 10,000 mails has %d bytes", len(s))
	}
	got, err := parseCursor(s)
	if diff := cmp.Diff(known, got); err != nil || diff != "" {
		t.Errorf("read back: %v (-want +got):\n%s", err, diff)
	}
	for _, bad := range []string{"x", `{"uidvalidity":1}`, "maildir:!", "maildir:/w", "maildir:" + strings.Repeat("/", 16)} {
		if _, err := parseCursor(bad); err == nil {
			t.Errorf("parseCursor(%q) gives no error", bad)
		}
	}
}

func FuzzCursor(f *testing.F) {
	f.Add("maildir:AQID")
	f.Add("maildir://///////w8")
	f.Fuzz(func(t *testing.T, s string) {
		known, err := parseCursor(s)
		if err != nil {
			return
		}
		again, err := parseCursor(format(known))
		if err != nil || cmp.Diff(known, again) != "" {
			t.Errorf("%q does not survive: %v", s, err)
		}
	})
}
