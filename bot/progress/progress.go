// Package progress shows a person how far an evaluation is: bars on a terminal, a line
// now and then elsewhere. In go the calls of eval.Progress; what comes out is for
// eyes and promises no form.
package progress

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"patchbench/bot/eval"
	"patchbench/bot/report/plain"
)

// Between two lines of progress lie every of them at least, and quiet at most.
const (
	every = 10 * time.Second
	quiet = 30 * time.Second
)

// New shows an evaluation's progress on stderr: bars on a terminal, a
// line now and then elsewhere. What takes long says for how long it has been at it.
// The returned function ends the showing.
func New(stderr io.Writer) (eval.Progress, func()) {
	if f, ok := stderr.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		b := &bars{p: mpb.New(mpb.WithOutput(stderr), mpb.WithWidth(40), mpb.WithAutoRefresh())}
		return b, b.end
	}
	l := &lines{w: stderr, over: make(chan struct{}), gone: make(chan struct{})}
	go l.watch()
	return l, l.end
}

// lines prints the start of each stage, how far it is every so often, and what it
// is still at when nothing else was printed for a while.
type lines struct {
	over, gone chan struct{} // the end is wanted; watch has ended

	mu    sync.Mutex
	w     io.Writer
	stage string // "" when nothing is being done
	total int
	n     int
	what  string
	since time.Time // when what began
	last  time.Time // when a line was printed
}

func (l *lines) Stage(name string, total int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stage, l.total, l.n, l.what = name, total, 0, ""
	l.since = time.Now()
	l.last = l.since
	if total > 0 {
		fmt.Fprintf(l.w, "%s: %d to do\n", name, total)
	} else {
		fmt.Fprintf(l.w, "%s\n", name)
	}
}

func (l *lines) Done(n int, what string, left time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.n, l.what, l.since = n, what, now
	if n < l.total && now.Sub(l.last) < every {
		return
	}
	l.print(leftText(left))
	if n >= l.total {
		l.stage = ""
	}
}

// print tells how far the stage is.
func (l *lines) print(more string) {
	l.last = time.Now()
	far := ""
	if l.total > 0 {
		far = fmt.Sprintf(": %d of %d", l.n, l.total)
	}
	fmt.Fprintf(l.w, "%s%s%s%s\n", l.stage, far, prefixed(", ", plain.Clean(l.what)), more)
}

func (l *lines) Note(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.w, "note: %s\n", plain.Clean(text))
}

// watch breaks the silence of what takes long.
func (l *lines) watch() {
	defer close(l.gone)
	t := time.NewTimer(quiet)
	defer t.Stop()
	for {
		select {
		case <-l.over:
			return
		case <-t.C:
			t.Reset(l.still())
		}
	}
}

// still prints what is being done if it is time to, and gives the time until it may
// be again.
func (l *lines) still() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if rest := quiet - time.Since(l.last); rest > 0 {
		return rest
	}
	if l.stage != "" {
		l.print(spentText(time.Since(l.since)))
	}
	return quiet
}

func (l *lines) end() {
	close(l.over)
	<-l.gone
}

// bars draws one bar for each stage.
type bars struct {
	p     *mpb.Progress
	bar   *mpb.Bar
	label *label
	total int
}

// label is what stands behind a bar. The drawing goroutine reads it.
type label struct {
	mu    sync.Mutex
	text  string
	since time.Time // when that began; zero when nothing is being done
}

func (l *label) set(text string, since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text, l.since = text, since
}

func (l *label) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if spent := time.Since(l.since); !l.since.IsZero() && spent >= every {
		return l.text + spentText(spent)
	}
	return l.text
}

func (b *bars) Stage(name string, total int) {
	b.finish()
	b.label, b.total = &label{since: time.Now()}, total
	shown := b.label
	b.bar = b.p.AddBar(int64(max(total, 1)),
		mpb.PrependDecorators(decor.Name(name, decor.WCSyncSpaceR), decor.CountersNoUnit("%d/%d", decor.WCSyncSpace)),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return shown.String() })))
}

func (b *bars) Done(n int, what string, left time.Duration) {
	var since time.Time
	if n < b.total {
		since = time.Now()
	}
	b.label.set(prefixed(" ", plain.Clean(what))+leftText(left), since)
	b.bar.SetCurrent(int64(n))
}

func (b *bars) Note(text string) { fmt.Fprintf(b.p, "note: %s\n", plain.Clean(text)) }

// finish leaves the bar of the stage that ends as it stands; one whose number of
// units was unknown is full.
func (b *bars) finish() {
	if b.bar == nil || b.bar.Completed() {
		return
	}
	b.label.set("", time.Time{})
	if b.total == 0 {
		b.bar.SetCurrent(1)
	} else {
		b.bar.Abort(false)
	}
}

func (b *bars) end() {
	b.finish()
	b.p.Wait()
}

func leftText(left time.Duration) string {
	if left <= 0 {
		return ""
	}
	return fmt.Sprintf(", at most %v left", left.Round(time.Second))
}

func spentText(spent time.Duration) string {
	return fmt.Sprintf(", for %v", spent.Round(time.Second))
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}
