package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"patchbench/bot/serving"
	"patchbench/bot/watch/traffic"
	"patchbench/store"
)

const (
	dayList = "dev@lists.test"
	dayLong = 24 * time.Hour
)

// day is a service on a day of a list's traffic, and what came of it.
type day struct {
	t      *testing.T
	bot    string // command
	dir    string
	config string
	list   *traffic.List
	rnd    *rand.Rand
	rough  bool // the mail server is not always well

	st    *store.Store
	life  *life
	lives int
	log   logBook

	mu        sync.Mutex
	mails     int // in the mailbox
	transfers int
	armed     int               // steps of the mail server until the bot is killed
	replies   map[string]string // by Message-ID: to whom, in which thread, about what
	copies    map[string]int    // by Message-ID and recipient
}

// life is a bot from its start to its end.
type life struct {
	cmd   *exec.Cmd
	lines atomic.Int64 // of its log
	ended chan struct{}
}

// slowHead is a series that never comes to an end, until its second version
// takes its place.
const slowHead, quickHead = "slow.1", "slow.2"

func newDay(t *testing.T, bot string, list *traffic.List, seed uint64, rough bool) *day {
	t.Helper()
	d := &day{t: t, bot: bot, dir: reachableDir(t), list: list, rnd: rand.New(rand.NewPCG(seed, 2)), rough: rough,
		log: logBook{t: t}, replies: make(map[string]string), copies: make(map[string]int)}
	for _, sub := range []string{"mail/cur", "mail/new", "mail/tmp", "state"} {
		if err := os.MkdirAll(filepath.Join(d.dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	d.makeProject()
	d.config = filepath.Join(d.dir, "bot.toml")
	write(t, d.config, fmt.Sprintf(`
state = "state"
[project]
name = "kit"
repo = "repo"
branch = "main"
budget = "4s"
[maildir]
path = "mail"
[smtp]
address = %q
tls = "none"
from = "Patchbench <bench@bot.test>"
per_hour = 1000
look_for = "2s"
[[list]]
address = %q
id = "dev.lists.test"
project = "kit"
mode = "list"
consent = "its owner, for this test"
ignore_tags = ["RFC"]
wait = "1s"
give_up = "1m"
[policy]
strangers = "hold"
trusted = ["@trusted.test"]
commands = [%q]
authserv_id = "mx.test"
per_author_day = 1000
[worker]
slots = 3
`, d.serve(), dayList, traffic.Boss))
	var err error
	if d.st, err = store.Open(t.Context(), filepath.Join(d.dir, "state/bot.db")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.st.Close() })
	// The same for each day: Message-IDs follow from it.
	if err := d.st.SetValue(t.Context(), serving.SecretName, strings.Repeat("5ec2e7", 10)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if d.life != nil {
			d.life.kill()
		}
		if t.Failed() {
			text := strings.Split(d.log.String(), "\n")
			t.Logf("the end of the bot's log:\n%s", strings.Join(text[max(0, len(text)-200):], "\n"))
		}
	})
	return d
}

// makeProject makes the repository that all patches apply to. Most of its files
// are in no build: such patches are evaluated without rounds. Three folders are.
func (d *day) makeProject() {
	d.t.Helper()
	repo := filepath.Join(d.dir, "repo")
	runGit(d.t, d.dir, "init", "-q", "-b", "main", repo)
	for p := range traffic.Parts {
		if err := os.Mkdir(filepath.Join(repo, fmt.Sprint("part", p)), 0o755); err != nil {
			d.t.Fatal(err)
		}
		for f := range traffic.Files {
			write(d.t, filepath.Join(repo, fmt.Sprintf("part%d/file%d.c", p, f+1)), "old\n")
		}
	}
	write(d.t, filepath.Join(repo, "work.sh"), "if grep -q slow built; then sleep 1000; fi\ncat built\n")
	write(d.t, filepath.Join(repo, ".patchbench.toml"), `
[build]
run = "cat part[0-2]/*.c > built"
keep = ["built"]
[[benchmark]]
name = "read"
run = "sh work.sh"
`)
	runGit(d.t, repo, "add", ".")
	runGit(d.t, repo, "commit", "-q", "-m", "base")
}

// start starts the bot, again.
func (d *day) start() {
	d.t.Helper()
	l := &life{cmd: exec.Command(d.bot, "watch", "--config", d.config), ended: make(chan struct{})}
	r, err := l.cmd.StderrPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := l.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.lives++
	fmt.Fprintf(&d.log, "-- life %d\n", d.lives)
	go func() {
		for lines := bufio.NewScanner(r); lines.Scan(); l.lines.Add(1) {
			fmt.Fprintln(&d.log, lines.Text())
		}
		l.cmd.Wait()
		close(l.ended)
	}()
	d.mu.Lock()
	d.life = l
	d.mu.Unlock()
}

// kill kills the bot outright, if it is not dead already.
func (l *life) kill() {
	l.cmd.Process.Kill()
	<-l.ended
}

// alive fails the test if the bot has ended by itself.
func (d *day) alive() {
	d.t.Helper()
	select {
	case <-d.life.ended:
		if s := d.life.cmd.ProcessState.Sys().(syscall.WaitStatus); !s.Signaled() || s.Signal() != syscall.SIGKILL {
			d.t.Fatalf("the bot has ended by itself: %v", d.life.cmd.ProcessState)
		}
	default:
	}
}

// want gives the state that a version must be in when all mail until end has been
// seen to.
func (d *day) want(v *traffic.Version, end time.Time) store.State {
	ordered := v.Order != "" && !v.Ordered.After(end)
	switch {
	case v.Judged == store.Queued || v.Judged == store.Held && ordered:
		return store.Done
	case v.Judged == store.Held && slices.ContainsFunc(d.list.Versions, func(o traffic.Version) bool { return o.After == v.Head && !o.Whole.After(end) }):
		return store.Superseded
	}
	return v.Judged
}

// open tells what is not seen to of the mail until end, "" if all is.
func (d *day) open(end time.Time) string {
	var list []string
	tasks := d.tasks()
	lacks := func(what string, want store.State) {
		if got := tasks[what]; got != want {
			list = append(list, fmt.Sprintf("%s is %q, not %s", what, got, want))
		}
	}
	for i := range d.list.Versions {
		v := &d.list.Versions[i]
		if !v.Whole.After(end) {
			lacks("mail:"+v.Head+"@"+traffic.Domain, d.want(v, end))
		}
		if v.Order != "" && v.Judged == store.Queued && !v.Ordered.After(end) {
			lacks("run:"+v.Order+"@"+traffic.Domain, store.Done)
		}
	}
	return strings.Join(list, "\n")
}

// unsent tells which letters are on their way.
func (d *day) unsent() string {
	letters, err := d.st.Letters(d.t.Context(), store.LetterQueued, store.LetterSending, store.LetterUnknown)
	if err != nil {
		return err.Error()
	}
	var list []string
	for _, l := range letters {
		list = append(list, fmt.Sprintf("letter %d is %s: %s", l.ID, l.State, l.Reason))
	}
	return strings.Join(list, "\n")
}

// await waits until nothing is told any more, and is patient: a task of which the
// bot has died several times has to wait.
func (d *day) await(what string, open func() string) {
	d.t.Helper()
	deadline := time.After(20 * time.Minute)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		d.alive()
		text := open()
		if text == "" {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			d.t.Fatalf("waited 20 minutes for %s:\n%s", what, text)
		}
	}
}

// disturb kills the bot at a random moment of what it does, and starts it again.
func (d *day) disturb() {
	lines, more := int64(1+d.rnd.IntN(30)), d.rnd.IntN(800)
	if d.rnd.IntN(3) == 0 { // at a step of the mail server
		lines = 1000
		d.mu.Lock()
		d.armed = 1 + d.rnd.IntN(8)
		d.mu.Unlock()
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	// One that has nothing to do is killed as well.
	for quiet, before := 0, int64(0); quiet < 1000; quiet++ {
		select {
		case <-d.life.ended:
			d.alive()
			quiet = 1000
		case <-tick.C:
		}
		now := d.life.lines.Load()
		if now >= lines {
			if more--; more < 0 {
				break
			}
		}
		if now != before {
			quiet, before = 0, now
		}
	}
	d.mu.Lock()
	d.armed = 0
	d.mu.Unlock()
	d.life.kill()
	d.start()
}

// begin starts the bot and has it answer a first patch.
func (d *day) begin() {
	d.t.Helper()
	d.start()
	source := "maildir:" + filepath.Join(d.dir, "mail")
	d.await("the mailbox to be followed", func() string {
		if cursor, err := d.st.Cursor(d.t.Context(), source); err != nil || cursor == "" {
			return fmt.Sprint("no cursor ", err)
		}
		return ""
	})
	// The bot learns that the list gives it its own mail: what it lacks can then be
	// sent again.
	d.post("first", "PATCH", "first of all", "first")
	d.await("the first letter to come back", func() string {
		if at, err := d.st.Value(d.t.Context(), "reply.seen:"+dayList); err != nil || at == "" {
			return fmt.Sprint("not seen ", err)
		}
		return ""
	})
}

// finish waits until all is seen to, and tells the bot to end. last is the head of
// what came in last.
func (d *day) finish(last string) {
	d.t.Helper()
	d.await("the end of the day", func() string {
		tasks, err := d.st.Tasks(d.t.Context(), store.TaskFilter{States: []store.State{store.Queued, store.Running}})
		if err != nil || len(tasks) > 0 {
			return fmt.Sprintf("%d tasks go on, %v", len(tasks), err)
		}
		if task, err := d.st.TaskByKey(d.t.Context(), "mail:"+last+"@"+traffic.Domain); err != nil || task.State != store.Done {
			return fmt.Sprintf("the last one is not done: %v", err)
		}
		d.mu.Lock()
		mails := d.mails
		d.mu.Unlock()
		if n := d.taken(); n != mails {
			return fmt.Sprintf("%d mails in the record, %d in the mailbox", n, mails)
		}
		return d.unsent()
	})
	if err := d.life.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		d.t.Fatal(err)
	}
	<-d.life.ended
	if status := d.life.cmd.ProcessState.ExitCode(); status != 0 {
		d.t.Errorf("told to end, the bot gave status %d", status)
	}
}

// run has the day's mail come in, and kills the bot so often meanwhile.
func (d *day) run(kills int) {
	d.t.Helper()
	d.begin()
	d.post(slowHead, "PATCH", "slow: begin", "slow")
	// Within a wave no series gets a second version, or an order: what comes of
	// each does not depend on how quick the bot is.
	mails, wave, waves := d.list.Mails, d.list.Gap()/3, 0
	for len(mails) > 0 {
		waves++
		end := mails[0].At.Truncate(wave).Add(wave)
		n, _ := slices.BinarySearchFunc(mails, end, func(m traffic.Mail, end time.Time) int { return m.At.Compare(end) })
		now := mails[:n]
		mails = mails[n:]
		// As many of the kills as there are mails in this wave.
		mine := kills * n / (n + len(mails))
		kills -= mine
		end = end.Add(-time.Nanosecond)
		for k := range mine + 1 {
			part := len(now) / (mine + 1 - k)
			for _, m := range now[:part] {
				d.deliver(m.Raw)
			}
			now = now[part:]
			if k < mine {
				d.disturb()
			}
		}
		d.await("all to be seen to", func() string { return d.open(end) })
	}
	d.post(quickHead, "PATCH v2", "slow: begin", "quick")
	d.finish(quickHead)
	if text := d.open(d.list.Mails[len(d.list.Mails)-1].At); text != "" {
		d.t.Error(text)
	}
	d.t.Logf("%d mails in %d waves, %d lives, %d transfers, %d replies", d.mails, waves, d.lives, d.transfers, len(d.replies))
}

// tasks gives the states of all tasks: by "mail:" and the head of the series, or
// "run:" and the id of the order. That of the slow one may be that the bot died of it
// too often.
func (d *day) tasks() map[string]store.State {
	d.t.Helper()
	all, err := d.st.Tasks(d.t.Context(), store.TaskFilter{Limit: 10_000})
	if err != nil {
		d.t.Fatal(err)
	}
	states := make(map[string]store.State)
	for _, task := range all {
		what := task.Key
		if strings.HasPrefix(what, "mail:") {
			// The key may be of another part, which came when the first was missing.
			what = "mail:" + task.Ref
		}
		if states[what] != "" {
			d.t.Errorf("%s has two tasks", what)
		}
		states[what] = task.State
	}
	if key := "mail:" + slowHead + "@" + traffic.Domain; states[key] == store.Failed {
		states[key] = store.Superseded
	}
	return states
}

// check holds what came of the day against itself.
func (d *day) check() {
	d.t.Helper()
	ctx := d.t.Context()
	for what, n := range d.copies {
		if n != 1 {
			d.t.Errorf("%s was sent %d times", what, n)
		}
	}
	answered := make(map[string]bool)
	for _, r := range d.replies {
		_, id, _ := strings.Cut(r, "In-Reply-To: <")
		id, _, _ = strings.Cut(id, ">")
		if answered[id] {
			d.t.Errorf("%s was answered twice", id)
		}
		answered[id] = true
	}
	evaluations := 0
	for key, state := range d.tasks() {
		_, id, _ := strings.Cut(key, ":")
		if answered[id] != (state == store.Done) {
			d.t.Errorf("%s is %s, answered: %v", key, state, answered[id])
		}
		if state == store.Done {
			evaluations++
		}
	}
	if len(answered) != evaluations {
		d.t.Errorf("%d mails were answered, %d tasks are done", len(answered), evaluations)
	}
	list, err := d.st.List(ctx)
	if err != nil {
		d.t.Fatal(err)
	}
	list = slices.DeleteFunc(list, func(e store.Summary) bool { return e.Stopped == store.StoppedInterrupted }) // the slow one's
	if len(list) != evaluations {
		d.t.Errorf("%d evaluations in the record, want %d", len(list), evaluations)
	}
	letters, err := d.st.Letters(ctx)
	if err != nil || len(letters) != evaluations || slices.ContainsFunc(letters, func(l store.Letter) bool { return l.State != store.LetterSent }) {
		d.t.Errorf("%d letters (%v), want %d, all sent", len(letters), err, evaluations)
	}
	var verdict string
	if err := d.openFile().QueryRowContext(ctx, "PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		d.t.Errorf("the record: %s, %v", verdict, err)
	}
	if left := processesWith(d.t, d.dir); len(left) > 0 {
		d.t.Errorf("processes are left: %q", left)
	}
	if left, err := filepath.Glob(filepath.Join(d.dir, "state/work/*/patchbench-work-*")); err != nil || len(left) > 0 {
		d.t.Errorf("work folders are left: %q, %v", left, err)
	}
}

// openFile opens the record's file itself.
func (d *day) openFile() *sql.DB {
	d.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(d.dir, "state/bot.db"))
	if err != nil {
		d.t.Fatal(err)
	}
	db.SetMaxIdleConns(0) // none stays open
	d.t.Cleanup(func() { db.Close() })
	return db
}

// taken counts the mails in the record.
func (d *day) taken() (n int) {
	d.t.Helper()
	for last := int64(0); ; {
		mails, err := d.st.Mails(context.Background(), last, 1000)
		if err != nil {
			d.t.Fatal(err)
		}
		if len(mails) == 0 {
			return n
		}
		n, last = n+len(mails), mails[len(mails)-1].ID
	}
}

// A day of a list's traffic gives the same replies, each once, however often the bot
// is killed and the mail server fails.
func TestManyKills(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes; the bot that it builds has no race detector")
	}
	for _, tool := range []string{"git", "sh", "bwrap"} {
		needTool(t, tool)
	}
	kills, o := 10, traffic.Options{Seed: 48, Mails: 100, Length: dayLong, Gap: dayLong / 3}
	if os.Getenv("PATCHBENCH_LONG") != "" {
		kills, o.Mails, o.Gap = 100, 250, dayLong/6
	}
	o.Orders = o.Gap / 3
	o.Start = time.Now().UTC().Add(-dayLong).Truncate(o.Gap)
	list := traffic.New(o)
	bot := buildBot(t)
	var calm, killed *day
	t.Run("days", func(t *testing.T) {
		t.Run("undisturbed", func(t *testing.T) {
			t.Parallel()
			calm = newDay(t, bot, list, 1, false)
			calm.run(0)
			calm.check()
		})
		t.Run("killed", func(t *testing.T) {
			t.Parallel()
			killed = newDay(t, bot, list, 1, true)
			killed.run(kills)
			killed.check()
			if killed.lives != kills+1 {
				t.Errorf("%d lives, want %d", killed.lives, kills+1)
			}
		})
	})
	if t.Failed() {
		return
	}
	if d := gocmp.Diff(calm.replies, killed.replies); d != "" {
		t.Errorf("replies (-undisturbed +killed):\n%s", d)
	}
	if d := gocmp.Diff(calm.copies, killed.copies); d != "" {
		t.Errorf("recipients (-undisturbed +killed):\n%s", d)
	}
}

// A record that was restored from an older copy lacks mails, tasks and letters: the
// mails are taken in again, and what was sent is not sent again.
func TestRestoredBackup(t *testing.T) {
	if testing.Short() {
		t.Skip("the bot that it builds has no race detector")
	}
	for _, tool := range []string{"git", "sh", "bwrap"} {
		needTool(t, tool)
	}
	d := newDay(t, buildBot(t), nil, 1, false)
	d.begin()
	d.finish("first")
	backup := filepath.Join(d.dir, "backup.db")
	if _, err := d.openFile().ExecContext(t.Context(), "VACUUM INTO '"+backup+"'"); err != nil {
		t.Fatal(err)
	}
	d.start()
	d.post("second", "PATCH", "second of all", "second")
	d.finish("second")
	if err := d.st.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(d.dir, "state/bot.db")
	for _, more := range []string{"-wal", "-shm"} {
		if err := os.Remove(file + more); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	if err := os.Rename(backup, file); err != nil {
		t.Fatal(err)
	}
	var err error
	if d.st, err = store.Open(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	// What has its answer waits for approval, and is not answered again with it.
	d.start()
	d.await("the second one to be held", func() string {
		task, err := d.st.TaskByKey(t.Context(), "mail:second@"+traffic.Domain)
		if err != nil || task.State != store.Held {
			return fmt.Sprintf("it is not: %v", err)
		}
		if err := d.st.Release(t.Context(), task.ID, "approved by hand"); err != nil {
			return err.Error()
		}
		return ""
	})
	d.finish("second")
	d.start()
	d.post("third", "PATCH", "third of all", "third")
	d.finish("third")
	d.check()
	if len(d.replies) != 3 || d.transfers != 3 {
		t.Errorf("%d replies in %d transfers, want 3", len(d.replies), d.transfers)
	}
}
