package inbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/mbox"
	"patchbench/mbox/source/feed"
)

func git(t testing.TB, stdin []byte, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("git is missing: %v", err)
		}
		t.Skipf("git is missing: %v", err)
	}
	cmd := exec.Command("git", args...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "LC_ALL=C")
	cmd.Stdin = bytes.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

const hour = 3600

// letter is a commit of a mirror: a mail, or one taken back, or nothing.
type letter struct {
	id   string
	at   int // seconds since day0
	gone bool
	size int // bytes more than a short mail's
}

func (l letter) text() string {
	return fmt.Sprintf("From: a@example.com\nMessage-ID: <%s@x>\nSubject: %s\n\ntext\n%s", l.id, l.id, strings.Repeat("x", l.size))
}

var day0 = time.Date(2024, 5, 6, 10, 0, 0, 0, time.UTC)

// write makes an epoch that holds these letters and nothing else: a new one, or
// one that is written on or rewritten, for commits are the same if the letters are.
func write(t testing.TB, dir string, letters ...letter) {
	t.Helper()
	if _, err := os.Stat(dir); err != nil {
		git(t, nil, "init", "-q", "--bare", "-b", "master", dir)
	}
	var b bytes.Buffer
	b.WriteString("reset refs/heads/master\n")
	for _, l := range letters {
		fmt.Fprintf(&b, "commit refs/heads/master\ncommitter i <i@example.org> %d +0000\ndata 1\nx\ndeleteall\n", day0.Unix()+int64(l.at))
		if l.id != "" {
			name := "m"
			if l.gone {
				name = "d"
			}
			fmt.Fprintf(&b, "M 100644 inline %s\ndata %d\n%s\n", name, len(l.text()), l.text())
		}
	}
	git(t, b.Bytes(), "-C", dir, "fast-import", "--quiet", "--force")
}

// taker keeps what it was given.
type taker struct {
	t      testing.TB
	mu     sync.Mutex
	cursor string
	given  []string
	sizes  []int
	times  []time.Time
	events []string
	fail   int
	looked int   // batches
	huge   int64 // that of the source if not 0
	signal chan struct{}
}

func newTaker(t testing.TB) *taker { return &taker{t: t, signal: make(chan struct{}, 1)} }

func (k *taker) wake() {
	select {
	case k.signal <- struct{}{}:
	default:
	}
}

func (k *taker) take(_ context.Context, b feed.Batch) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.wake()
	if k.fail > 0 {
		k.fail--
		return errors.New("disk full")
	}
	for _, m := range b.Mails {
		h, err := mbox.ParseHeader(m.Raw)
		if err != nil {
			return err
		}
		k.given = append(k.given, strings.TrimSuffix(h.ID, "@x"))
		k.sizes = append(k.sizes, len(m.Raw))
		if m.Cut != (len(m.Raw) == feed.CutAt) {
			return fmt.Errorf("mail of %d bytes: cut %v", len(m.Raw), m.Cut)
		}
		k.times = append(k.times, m.Received)
	}
	if len(b.Mails) > feed.MaxMails {
		k.t.Errorf("a batch of %d mails", len(b.Mails))
	}
	k.cursor = b.Cursor
	k.looked++
	return nil
}

func (k *taker) notify(e feed.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.wake()
	k.events = append(k.events, fmt.Sprintf("%s: %v", e.Text, e.Err))
}

func (k *taker) until(what string, ok func() bool) {
	k.t.Helper()
	timeout := time.NewTimer(2 * time.Minute)
	defer timeout.Stop()
	for {
		k.mu.Lock()
		done := ok()
		k.mu.Unlock()
		if done {
			return
		}
		select {
		case <-k.signal:
		case <-timeout.C:
			k.t.Fatalf("waiting for %s: given %v, events %q", what, k.given, k.events)
		}
	}
}

func (k *taker) has(id string) func() bool {
	return func() bool { return slices.Contains(k.given, id) }
}

func (k *taker) told(part string) func() bool {
	return func() bool {
		return slices.ContainsFunc(k.events, func(e string) bool { return strings.Contains(e, part) })
	}
}

func (k *taker) follow(dir string) (stop func()) {
	k.t.Helper()
	s, err := New(dir, time.Millisecond)
	if err != nil {
		k.t.Fatal(err)
	}
	if k.huge > 0 {
		s.huge = k.huge
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	cursor := k.cursor
	go func() { ended <- s.Follow(ctx, cursor, k.take, k.notify) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				k.t.Errorf("Follow: %v", err)
			}
		})
	}
	k.t.Cleanup(stop)
	return stop
}

func (k *taker) begin(dir string) (stop func()) {
	stop = k.follow(dir)
	k.until("the beginning", func() bool { return k.cursor != "" })
	return stop
}

func (k *taker) check(want ...string) {
	k.t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if diff := cmp.Diff(want, k.given); diff != "" {
		k.t.Errorf("mails given (-want +got):\n%s\nevents %q", diff, k.events)
	}
}

func list(from, to int) []letter {
	var l []letter
	for n := from; n < to; n++ {
		l = append(l, letter{id: fmt.Sprint(n), at: n * 60})
	}
	return l
}

func ids(from, to int) []string {
	var l []string
	for n := from; n < to; n++ {
		l = append(l, fmt.Sprint(n))
	}
	return l
}

func TestFollow(t *testing.T) {
	for _, layout := range []string{"1.git", "git/1.git"} {
		t.Run(layout, func(t *testing.T) {
			dir := t.TempDir()
			older, newer := filepath.Join(dir, filepath.Dir(layout), "0.git"), filepath.Join(dir, layout)
			write(t, older, list(0, 10)...)
			k := newTaker(t)
			stop := k.begin(dir)
			write(t, older, list(0, 12)...)
			k.until("mails while it looks", k.has("11"))
			if want := day0.Add(10 * time.Minute); !k.times[0].Equal(want) {
				t.Errorf("received %v, want %v", k.times[0], want)
			}
			stop()
			// The epoch is full and another begins, while nobody looks.
			write(t, older, append(list(0, 14), letter{id: "12", at: 14 * 60, gone: true}, letter{})...)
			write(t, newer, list(20, 270)...)
			stop = k.follow(dir)
			k.until("mails of both epochs", k.has("269"))
			stop()
			write(t, newer, list(20, 271)...)
			k.follow(dir)
			k.until("one more", k.has("270"))
			k.check(slices.Concat(ids(10, 14), ids(20, 271))...)
			if len(k.events) > 0 {
				t.Errorf("events %q", k.events)
			}
		})
	}
}

func TestFollowNewEpochIsEmptyAtFirst(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "0.git"), list(0, 3)...)
	git(t, nil, "init", "-q", "--bare", "-b", "master", filepath.Join(dir, "1.git"))
	k := newTaker(t)
	k.begin(dir)
	write(t, filepath.Join(dir, "0.git"), list(0, 4)...)
	k.until("the old epoch's last", k.has("3"))
	write(t, filepath.Join(dir, "1.git"), list(4, 5)...)
	k.until("the new epoch's first", k.has("4"))
	k.check("3", "4")
}

func TestRewritten(t *testing.T) {
	dir := t.TempDir()
	e := filepath.Join(dir, "0.git")
	write(t, e, list(0, 40)...)
	k := newTaker(t)
	stop := k.begin(dir)
	write(t, e, list(0, 45)...)
	k.until("mails", k.has("44"))
	stop()
	// Mail 5 is purged, before what was read; then one that was read.
	purged := slices.Delete(list(0, 47), 5, 6)
	write(t, e, purged...)
	stop = k.follow(dir)
	k.until("the rest", k.has("46"))
	stop()
	if !k.told("going on behind mail")() {
		t.Errorf("events %q say nothing of it", k.events)
	}
	write(t, e, append(slices.Delete(slices.Clone(purged), 44, 46), letter{id: "47", at: 47 * 60})...)
	stop = k.follow(dir)
	k.until("what follows", k.has("47"))
	stop()
	k.check(ids(40, 48)...)
	// Nothing is new behind a purge: the place is noted all the same.
	told := len(k.events)
	write(t, e, slices.Concat(slices.Delete(slices.Clone(purged), 43, 46), []letter{{id: "47", at: 47 * 60}})...)
	batches := k.looked
	stop = k.follow(dir)
	k.until("a new place", func() bool { return k.looked > batches })
	stop()
	if len(k.events) != told+1 {
		t.Errorf("events %q", k.events[told:])
	}
	k.check(ids(40, 48)...)
}

func TestRewrittenWholly(t *testing.T) {
	dir := t.TempDir()
	e := filepath.Join(dir, "0.git")
	mails := func(from, to, size int) (l []letter) {
		for n := from; n < to; n++ {
			l = append(l, letter{id: fmt.Sprint(n), at: n * hour, size: size})
		}
		return l
	}
	write(t, e, mails(0, 10, 0)...)
	k := newTaker(t)
	stop := k.begin(dir)
	write(t, e, mails(0, 60, 0)...)
	k.until("mails", k.has("59"))
	stop()
	// No blob is as it was: all since a day before the newest, 59, is read again.
	write(t, e, mails(0, 62, 1)...)
	stop = k.follow(dir)
	k.until("the rest", k.has("61"))
	stop()
	if !k.told("is read again")() {
		t.Errorf("events %q say nothing of it", k.events)
	}
	k.check(slices.Concat(ids(10, 60), ids(35, 62))...)

	// Never what was there at the first start.
	k = newTaker(t)
	stop = k.begin(dir)
	stop()
	write(t, e, mails(0, 64, 2)...)
	k.follow(dir)
	k.until("what is new", k.has("63"))
	k.check("62", "63")
}

func TestTakingFails(t *testing.T) {
	dir := t.TempDir()
	e := filepath.Join(dir, "0.git")
	write(t, e, list(0, 1)...)
	k := newTaker(t)
	stop := k.begin(dir)
	stop()
	write(t, e, list(0, 150)...)
	k.fail = 1
	k.follow(dir)
	k.until("mails", k.has("149"))
	k.check(ids(1, 150)...)
	if !k.told("disk full")() {
		t.Errorf("events %q say nothing of it", k.events)
	}
}

func TestLargeMail(t *testing.T) {
	dir := t.TempDir()
	e := filepath.Join(dir, "0.git")
	write(t, e, list(0, 1)...)
	k := newTaker(t)
	k.huge = 9 << 20
	stop := k.begin(dir)
	stop()
	write(t, e, append(list(0, 1), letter{id: "large", size: mbox.MaxMail}, letter{id: "huge", size: 9 << 20}, letter{id: "after"})...)
	k.follow(dir)
	k.until("mails", k.has("after"))
	k.check("large", "after")
	if k.sizes[0] != feed.CutAt {
		t.Errorf("%d bytes of a large mail, want %d", k.sizes[0], feed.CutAt)
	}
	if !k.told("its first 65536 are read")() || !k.told("is left out")() {
		t.Errorf("events %q", k.events)
	}
}

func TestNoMirror(t *testing.T) {
	for name, make := range map[string]func(dir string){
		"looked for 0.git": func(string) {},
		"format v2":        func(dir string) { write(t, filepath.Join(dir, "0.git"), letter{}, letter{}) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			make(dir)
			k := newTaker(t)
			stop := k.follow(dir)
			k.until("an event", k.told(name))
			stop()
			if k.cursor != "" {
				t.Errorf("a cursor %q all the same", k.cursor)
			}
			// It comes after all.
			write(t, filepath.Join(dir, "0.git"), list(0, 2)...)
			k.begin(dir)
			k.check()
		})
	}
}

// A mirror that is cloned again is empty for a while, or is not there.
func TestMirrorGoesAndComes(t *testing.T) {
	dir := t.TempDir()
	e := filepath.Join(dir, "0.git")
	write(t, e, list(0, 3)...)
	k := newTaker(t)
	k.begin(dir)
	if err := os.Rename(e, filepath.Join(dir, "old")); err != nil {
		t.Fatal(err)
	}
	k.until("an event", k.told("no mirror"))
	git(t, nil, "init", "-q", "--bare", "-b", "master", e)
	k.until("an event", k.told("it is empty, but"))
	write(t, e, list(0, 5)...)
	k.until("what is new", k.has("4"))
	k.check("3", "4")
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "0.git"), list(0, 5)...)
	write(t, filepath.Join(dir, "1.git"), append(list(5, 8), letter{id: "6", at: 7 * 60, gone: true}, letter{})...)
	s, err := New(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]bool{"2@x": true, "<7@x>": true, "6@x": true, "8@x": false, "2@": false} {
		if got, err := s.Find(t.Context(), id); err != nil || got != want {
			t.Errorf("Find(%q) = %v, %v; want %v", id, got, err, want)
		}
	}
	nowhere, err := New(filepath.Join(dir, "nowhere"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nowhere.Find(t.Context(), "2@x"); err == nil {
		t.Error("Find in no mirror knows the answer")
	}
	if _, err := s.Find(t.Context(), " "); err == nil {
		t.Error("Find of nothing gives no error")
	}
}

func TestCursor(t *testing.T) {
	s, err := New(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"x", `{"epoch":-1}`, `{"epoch":0,"commit":"HEAD"}`, `{"uidvalidity":1,"next":2}`, `{"epoch":0,"commit":""}x`} {
		if err := s.Follow(t.Context(), bad, nil, nil); err == nil || !strings.Contains(err.Error(), "none of a mirror") {
			t.Errorf("Follow from %s: %v", bad, err)
		}
	}
}
