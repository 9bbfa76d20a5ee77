package main

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
)

// newProgress shows an evaluation's progress on stderr: bars on a terminal, a
// line now and then elsewhere. The returned function ends the showing.
func newProgress(stderr io.Writer) (eval.Progress, func()) {
	if f, ok := stderr.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		b := &bars{p: mpb.New(mpb.WithOutput(stderr), mpb.WithWidth(40), mpb.WithAutoRefresh())}
		return b, b.end
	}
	return &lines{w: stderr, every: 10 * time.Second, now: time.Now}, func() {}
}

// lines prints the start of each stage, and how far it is every so often.
type lines struct {
	w     io.Writer
	every time.Duration
	now   func() time.Time

	stage string
	total int
	last  time.Time
}

func (l *lines) Stage(name string, total int) {
	l.stage, l.total, l.last = name, total, l.now()
	if total > 0 {
		fmt.Fprintf(l.w, "%s: %d to do\n", name, total)
	} else {
		fmt.Fprintf(l.w, "%s\n", name)
	}
}

func (l *lines) Done(n int, what string, left time.Duration) {
	if n < l.total && l.now().Sub(l.last) < l.every {
		return
	}
	l.last = l.now()
	fmt.Fprintf(l.w, "%s: %d of %d%s%s\n", l.stage, n, l.total, prefixed(", ", printable(what)), leftText(left))
}

func (l *lines) Note(text string) { fmt.Fprintf(l.w, "note: %s\n", printable(text)) }

// bars draws one bar for each stage.
type bars struct {
	p     *mpb.Progress
	bar   *mpb.Bar
	label *label
	total int
}

// label is what stands behind a bar. The drawing goroutine reads it.
type label struct {
	mu   sync.Mutex
	text string
}

func (l *label) set(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = text
}

func (l *label) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text
}

func (b *bars) Stage(name string, total int) {
	b.finish()
	b.label, b.total = &label{}, total
	shown := b.label
	b.bar = b.p.AddBar(int64(max(total, 1)),
		mpb.PrependDecorators(decor.Name(name, decor.WCSyncSpaceR), decor.CountersNoUnit("%d/%d", decor.WCSyncSpace)),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return shown.String() })))
}

func (b *bars) Done(n int, what string, left time.Duration) {
	b.label.set(prefixed(" ", printable(what)) + leftText(left))
	b.bar.SetCurrent(int64(n))
}

func (b *bars) Note(text string) { fmt.Fprintf(b.p, "note: %s\n", printable(text)) }

// finish leaves the bar of the stage that ends as it stands; one whose number of
// units was unknown is full.
func (b *bars) finish() {
	if b.bar == nil || b.bar.Completed() {
		return
	}
	b.label.set("")
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

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}
