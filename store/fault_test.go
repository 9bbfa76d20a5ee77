package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	neturl "net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/store"
	"patchbench/store/db"
	"patchbench/store/storetest"
)

// steps is the life of a mail in the store, each step one call. Each may be done
// again after it was cut short anywhere.
var steps = []struct {
	name string
	do   func(ctx context.Context, s *store.Store) error
}{
	{"take in", func(ctx context.Context, s *store.Store) error {
		_, err := s.TakeIn(ctx, "imap", "2", []store.Mail{{Key: "a", Raw: []byte("a")}, {Key: "b", Raw: []byte("b")}})
		return err
	}},
	{"decide on v1", func(ctx context.Context, s *store.Store) error {
		_, _, err := s.Decide(ctx, store.Decision{Task: store.Task{Key: "v1", State: store.Queued}})
		return err
	}},
	{"decide on v2", func(ctx context.Context, s *store.Store) error {
		_, _, err := s.Decide(ctx, store.Decision{Task: store.Task{Key: "v2", State: store.Queued, Payload: []byte("p")}, Supersede: []string{"v1"}})
		return err
	}},
	{"claim", func(ctx context.Context, s *store.Store) error {
		t, err := s.TaskByKey(ctx, "v2")
		if err != nil {
			return err
		}
		_, err = s.Claim(ctx, t.ID, "w", time.Hour)
		return unless(err, store.ErrNotQueued)
	}},
	{"beat", func(ctx context.Context, s *store.Store) error {
		t, err := s.TaskByKey(ctx, "v2")
		if err != nil {
			return err
		}
		_, err = s.Beat(ctx, t.ID, t.Fence, time.Hour, "1/2")
		return err
	}},
	{"finish", func(ctx context.Context, s *store.Store) error {
		t, err := s.TaskByKey(ctx, "v2")
		if err != nil {
			return err
		}
		letters := []store.Letter{note("author"), note("list")}
		return unless(s.Finish(ctx, t.ID, t.Fence, store.Done, "", "e", letters, &store.Notice{Repo: "o/r", Number: 1, Comment: "c"}), store.ErrFence)
	}},
	{"take a letter", func(ctx context.Context, s *store.Store) error {
		_, err := s.NextLetter(ctx, noon)
		return err
	}},
	{"settle it", func(ctx context.Context, s *store.Store) error {
		all, err := s.Letters(ctx, store.LetterSending)
		if err != nil || len(all) == 0 {
			return err
		}
		all[0].State = store.LetterSent
		return s.Settle(ctx, &all[0])
	}},
	{"take a notice and settle it", func(ctx context.Context, s *store.Store) error {
		n, err := s.NextNotice(ctx, noon)
		if err != nil || n == nil {
			return err
		}
		n.Sent, n.CommentID = n.Seq, 7
		return s.SettleNotice(ctx, n)
	}},
}

// unless passes over an error that says that the thing has been done.
func unless(err, done error) error {
	if errors.Is(err, done) {
		return nil
	}
	return err
}

// contents is all that a store holds but what has to differ: numbers that were
// given twice, and times.
func contents(t *testing.T, s *store.Store) string {
	t.Helper()
	var b strings.Builder
	for _, q := range []string{
		`SELECT source || ' ' || place FROM cursors ORDER BY 1`,
		`SELECT 'mail ' || mail_key FROM mails ORDER BY id`,
		`SELECT 'task ' || t.task_key || ' ' || t.state || ' ' || t.reason || ' ' || t.progress || ' ' || CAST(t.fence AS TEXT) || ' ' ||
			CAST(t.attempts AS TEXT) || ' ' || t.evaluation || ' ' || coalesce(CAST(j.state AS TEXT), 'no job')
			FROM tasks AS t LEFT JOIN river_job AS j ON j.id = t.job ORDER BY t.task_key`,
		`SELECT 'letter ' || letter_key || ' ' || state || ' ' || CAST(attempts AS TEXT) || ' ' || CAST(task AS TEXT) FROM letters ORDER BY letter_key`,
		`SELECT 'notice ' || repo || ' ' || comment || ' ' || CAST(seq AS TEXT) || ' ' || CAST(sent AS TEXT) || ' ' || CAST(comment_id AS TEXT) FROM notices`,
		`SELECT 'jobs ' || CAST(count(*) AS TEXT) FROM river_job`,
	} {
		func() {
			rows, err := s.DB().QueryContext(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			for rows.Next() {
				var line string
				if err := rows.Scan(&line); err != nil {
					t.Fatal(err)
				}
				b.WriteString(line + "\n")
			}
			if err := rows.Err(); err != nil {
				t.Fatal(err)
			}
		}()
	}
	return b.String()
}

// wipe empties a store, so that its schema need not be made again.
func wipe(t *testing.T, s *store.Store) {
	t.Helper()
	for _, table := range []string{"cursors", "mails", "tasks", "letters", "notices", "river_job"} {
		if _, err := s.DB().ExecContext(t.Context(), `DELETE FROM `+table); err != nil {
			t.Fatal(err)
		}
	}
}

// Each step is cut short before and after each of its statements: then the store
// holds what it held before or after the step and nothing in between, and the
// step done again gives what it gives undisturbed.
func TestCutShort(t *testing.T) { storetest.EachURL(t, testCutShort) }

func testCutShort(t *testing.T, url string) {
	var fault storetest.Fault
	s := storetest.OpenWrapped(t, url, fault.Wrap)
	at(s)
	for i, step := range steps {
		prepare := func() (before string) {
			wipe(t, s)
			for _, earlier := range steps[:i] {
				if err := earlier.do(t.Context(), s); err != nil {
					t.Fatalf("%s: %v", earlier.name, err)
				}
			}
			return contents(t, s)
		}
		before := prepare()
		points := 0
		fault.Set(func(string) { points++ })
		if err := step.do(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		fault.Set(nil)
		after := contents(t, s)
		if before == after && step.name != "settle it" {
			t.Fatalf("%s: nothing happened", step.name)
		}
		cut, stride := 0, 1
		if testing.Short() {
			stride = 3
		}
		for point := 0; point < points; point += stride {
			if got := prepare(); stripIDs(got) != stripIDs(before) {
				t.Fatalf("%s: prepared again (-before +now):\n%s", step.name, cmp.Diff(before, got))
			}
			ctx, cancel := context.WithCancel(t.Context())
			n, where := 0, ""
			fault.Set(func(when string) {
				if n == point {
					where = when
					cancel()
				}
				n++
			})
			err := step.do(ctx, s)
			fault.Set(nil)
			cancel()
			got := contents(t, s)
			if err != nil {
				cut++
			}
			// A step of two calls may be cut between them.
			whole := stripIDs(got) == stripIDs(after) || stripIDs(got) == stripIDs(before) || step.name == "take a notice and settle it"
			if !whole || err == nil && stripIDs(got) != stripIDs(after) {
				t.Errorf("%s cut %s: %v (-after +now):\n%s", step.name, where, err, cmp.Diff(after, got))
			}
			if step.name == "take a letter" || step.name == "take a notice and settle it" {
				continue // not done again by the same call: by the recovery of the sender
			}
			if err := step.do(t.Context(), s); err != nil {
				t.Errorf("%s done again after a cut %s: %v", step.name, where, err)
			}
			if got := contents(t, s); stripIDs(got) != stripIDs(after) {
				t.Errorf("%s done again after a cut %s (-want +got):\n%s", step.name, where, cmp.Diff(after, got))
			}
		}
		if cut == 0 {
			t.Errorf("%s was never cut short at its %d points", step.name, points)
		}
	}
}

// stripIDs takes the ids of tasks off the lines of letters: they go on when a store
// is emptied.
func stripIDs(contents string) string {
	var lines []string
	for line := range strings.Lines(contents) {
		if strings.HasPrefix(line, "letter ") {
			line = line[:strings.LastIndexByte(strings.TrimSpace(line), ' ')] + "\n"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "")
}

// dieAt tells a process of this test where to kill itself: a number of points
// and the URL of its store.
const dieAt = "PATCHBENCH_TEST_DIE_AT"

func TestMain(m *testing.M) {
	if place := os.Getenv(dieAt); place != "" {
		number, url, _ := strings.Cut(place, " ")
		point, err := strconv.Atoi(number)
		if err != nil {
			panic(err)
		}
		os.Exit(live(point, url))
	}
	os.Exit(m.Run())
}

// live takes all steps and is killed at a point; it gives a status else.
func live(point int, url string) int {
	var fault storetest.Fault
	ctx := context.Background()
	d, err := db.Open(ctx, url, db.Options{Wrap: fault.Wrap})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s, err := store.New(d)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	n := 0
	fault.Set(func(string) {
		if n == point {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		n++
	})
	for _, step := range steps {
		if err := step.do(ctx, s); err != nil {
			fmt.Fprintln(os.Stderr, step.name, err)
			return 1
		}
	}
	return 0
}

// A process that takes all steps is killed at points of them; the next one goes
// on with what the last has left, until one comes through. In the end the
// store holds what it holds undisturbed.
func TestKilled(t *testing.T) { storetest.EachURL(t, testKilled) }

func testKilled(t *testing.T, url string) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := func(point int) (killed bool) {
		t.Helper()
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", dieAt, point, url))
		out, err := cmd.CombinedOutput()
		if err == nil {
			return false
		}
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("killed at point %d: %v\n%s", point, err, out)
		}
		return true
	}
	deaths := 0
	for point := 1; ; point += 3 { // dies further on each time
		if !run(point) {
			break
		}
		deaths++
	}
	if deaths < 10 {
		t.Errorf("it died %d times only", deaths)
	}
	// What was in doubt when a sender died is settled, and the rest is sent.
	s := storetest.OpenURL(t, url)
	rest := func() string {
		t.Helper()
		for range 3 {
			for _, step := range steps {
				if err := step.do(t.Context(), s); err != nil {
					t.Errorf("%s: %v", step.name, err)
				}
			}
		}
		n, err := s.NextNotice(t.Context(), noon.Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		if n != nil {
			n.Sent, n.CommentID = n.Seq, 7
			if err := s.SettleNotice(t.Context(), n); err != nil {
				t.Error(err)
			}
		}
		return stripIDs(contents(t, s))
	}
	got := rest()
	wipe(t, s)
	if d := cmp.Diff(rest(), got); d != "" {
		t.Errorf("after %d deaths (-undisturbed +now):\n%s", deaths, d)
	}
	if want := "letter author sent 1\nletter list sent 1\n"; !strings.Contains(got, want) {
		t.Errorf("no %q in:\n%s", want, got)
	}
}

// A full disk loses nothing: what was there stays, what was refused can be done
// again when there is space.
func TestDiskFull(t *testing.T) {
	s := storetest.Open(t)
	at(s)
	ctx := t.Context()
	if err := steps[0].do(ctx, s); err != nil {
		t.Fatal(err)
	}
	task := decide(t, s, store.Task{Key: "k", State: store.Queued})
	if _, err := s.Claim(ctx, task.ID, "w", time.Hour); err != nil {
		t.Fatal(err)
	}
	limit := func(pages string) {
		t.Helper()
		if _, err := s.DB().ExecContext(ctx, `PRAGMA max_page_count = `+pages); err != nil {
			t.Fatal(err)
		}
	}
	large := make([]byte, 1<<20) // of the kind that does not pack
	rand.NewChaCha8([32]byte{}).Read(large)
	letter := note("large")
	letter.Body = large
	before := contents(t, s)
	operations := map[string]func() error{
		"take in": func() error {
			_, err := s.TakeIn(ctx, "imap", "3", []store.Mail{{Key: "small", Raw: []byte("s")}, {Key: "large", Raw: large}})
			return err
		},
		"decide": func() error {
			_, _, err := s.Decide(ctx, store.Decision{Task: store.Task{Key: "large", State: store.Queued, Payload: large}, Supersede: []string{"k"}})
			return err
		},
		"finish": func() error { return s.Finish(ctx, task.ID, 1, store.Done, "", "e", []store.Letter{letter}, nil) },
		"put":    func() error { _, err := s.Put(ctx, letter); return err },
	}
	limit("1") // no more than there are
	for name, do := range operations {
		if err := do(); err == nil || !strings.Contains(err.Error(), "no space left: free some on its file system") {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(before, contents(t, s)); d != "" {
			t.Errorf("%s on a full disk (-before +after):\n%s", name, d)
		}
	}
	limit("1073741823")
	for _, name := range []string{"take in", "finish", "put", "decide"} {
		if err := operations[name](); err != nil {
			t.Errorf("%s with space again: %v", name, err)
		}
	}
	if mails, err := s.MailsByKey(ctx, "large"); err != nil || len(mails) != 1 {
		t.Errorf("%d mails, %v", len(mails), err)
	}
}

// A clock that was ahead and was set back puts nothing off for as long as it was
// ahead.
func TestClockSetBack(t *testing.T) { storetest.Each(t, testClockSetBack) }

func testClockSetBack(t *testing.T, s *store.Store) {
	ctx := t.Context()
	c := at(s)
	c.Time = noon.AddDate(1, 0, 0)
	waiting := decide(t, s, store.Task{Key: "waiting", State: store.Queued}).ID
	lost := decide(t, s, store.Task{Key: "lost", State: store.Queued}).ID
	for _, id := range []int64{waiting, lost} {
		if _, err := s.Claim(ctx, id, "w", time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.HandBack(ctx, waiting, 1, time.Minute, "mirror is away"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(ctx, note("l")); err != nil {
		t.Fatal(err)
	}
	l, err := s.NextLetter(ctx, c.Time)
	if err != nil || l == nil {
		t.Fatal(l, err)
	}
	l.State, l.Next = store.LetterQueued, c.Time.Add(time.Hour)
	if err := s.Settle(ctx, l); err != nil {
		t.Fatal(err)
	}
	c.Time = noon
	ids, err := s.Requeue(ctx, noon)
	if err != nil || !slices.Contains(ids, waiting) {
		t.Errorf("queued again: %v, %v; want %d", ids, err, waiting)
	}
	for _, id := range []int64{waiting, lost} {
		if _, err := s.Claim(ctx, id, "w", time.Minute); err != nil {
			t.Errorf("task %d: %v", id, err)
		}
	}
	if l, err := s.NextLetter(ctx, noon); err != nil || l == nil {
		t.Errorf("letter %v, %v", l, err)
	}
}

// A database that another process holds for a while is waited for, or until the
// caller has enough of it.
func TestLocked(t *testing.T) { storetest.EachURL(t, testLocked) }

func testLocked(t *testing.T, url string) {
	var fault storetest.Fault
	s, other := storetest.OpenWrapped(t, url, fault.Wrap), storetest.OpenURL(t, url)
	id := decide(t, s, store.Task{Key: "k", State: store.Queued}).ID
	hold := func() *sql.Tx {
		t.Helper()
		tx, err := other.DB().BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(t.Context(), `UPDATE tasks SET progress = 'mine' WHERE id = $1`, id); err != nil {
			t.Fatal(err)
		}
		return tx
	}
	tx := hold()
	begun, claimed := make(chan struct{}, 1), make(chan error)
	fault.Set(func(string) {
		select {
		case begun <- struct{}{}:
		default:
		}
	})
	go func() {
		_, err := s.Claim(t.Context(), id, "w", time.Minute)
		claimed <- err
	}()
	<-begun
	select {
	case err := <-claimed:
		t.Fatalf("claimed what another process held: %v", err)
	default:
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-claimed; err != nil {
		t.Errorf("after it was let go: %v", err)
	}
	tx = hold()
	defer tx.Rollback()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.End(ctx, id, store.Stopped, ""); err == nil {
		t.Error("ended what another process held")
	}
}

// Of PostgreSQL's transactions several run at once: a mail whose number was given
// first is also seen first, though its transaction ends last.
func TestNumbersAreSeenInOrder(t *testing.T) {
	url := storetest.Postgres(t)
	var fault storetest.Fault
	first, second, reader := storetest.OpenWrapped(t, url, fault.Wrap), storetest.OpenURL(t, url), storetest.OpenURL(t, url)
	reached, goOn := make(chan struct{}), make(chan struct{})
	fault.Set(func(when string) {
		if when == "before COMMIT" {
			close(reached)
			<-goOn
		}
	})
	take := func(s *store.Store, name string) chan error {
		done := make(chan error, 1)
		go func() {
			_, err := s.TakeIn(t.Context(), name, "1", []store.Mail{{Key: name, Raw: []byte(name)}})
			done <- err
		}()
		return done
	}
	firstDone := take(first, "first")
	<-reached
	secondDone := take(second, "second")
	for waiting := 0; waiting == 0 && len(secondDone) == 0; {
		err := reader.DB().QueryRowContext(t.Context(), `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`).Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
	}
	early, err := reader.Mails(t.Context(), 0, 10)
	if err != nil || len(early) != 0 {
		t.Errorf("mails are seen before those with lower numbers: %v, %v", early, err)
	}
	close(goOn)
	if err := errors.Join(<-firstDone, <-secondDone); err != nil {
		t.Fatal(err)
	}
	mails, err := reader.Mails(t.Context(), 0, 10)
	if err != nil || len(mails) != 2 || mails[0].Key != "first" {
		t.Errorf("mails %v, %v", mails, err)
	}
}

// A letter or notice that another is taking is passed over, not waited for.
func TestTakenIsPassedOver(t *testing.T) {
	url := storetest.Postgres(t)
	s, other := storetest.OpenURL(t, url), storetest.OpenURL(t, url)
	put(t, s, note("first"))
	put(t, s, note("second"))
	for number := range 2 {
		if err := s.PutNotice(t.Context(), store.Notice{Repo: "o/r", Number: number + 1}); err != nil {
			t.Fatal(err)
		}
	}
	tx, err := other.DB().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	for _, q := range []string{`UPDATE letters SET reason = 'x' WHERE letter_key = 'first'`, `UPDATE notices SET reason = 'x' WHERE number = 1`} {
		if _, err := tx.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // else it waits for ever
	defer cancel()
	if l, err := s.NextLetter(ctx, noon); err != nil || l == nil || l.Key != "second" {
		t.Errorf("letter %+v, %v", l, err)
	}
	if n, err := s.NextNotice(ctx, noon); err != nil || n == nil || n.Number != 2 {
		t.Errorf("notice %+v, %v", n, err)
	}
}

// A server that ends all connections, as one that is started again does, costs each
// connection of the pool one call; then the store works on.
func TestConnectionsLost(t *testing.T) {
	url := storetest.Postgres(t)
	name := fmt.Sprint("lost ", os.Getpid()) // others may work on the same server
	s, admin := storetest.OpenURL(t, url+"&application_name="+neturl.QueryEscape(name)), storetest.OpenURL(t, url)
	for i := range 3 {
		if err := s.SetValue(t.Context(), "n", strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
		if _, err := admin.DB().ExecContext(t.Context(), `
			SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE application_name = $1`, name); err != nil {
			t.Fatal(err)
		}
		var got string
		var err error
		for range 8 { // the pool's size
			if got, err = s.Value(t.Context(), "n"); err == nil {
				break
			}
			if !strings.Contains(err.Error(), "try again") && !strings.Contains(err.Error(), "cannot be reached") {
				t.Errorf("error %v", err)
			}
		}
		if err != nil || got != strconv.Itoa(i) {
			t.Errorf("value %q, %v, want %d", got, err, i)
		}
	}
}
