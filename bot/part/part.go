// Package part keeps the parts of a running service going: in go functions that
// run until they are told to end, out comes a Group that starts each again when it
// fails, ends and replaces those whose settings changed, and says how each is.
// What the parts do is not known here.
package part

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// Part is a function that runs as long as the service does.
type Part struct {
	Name string // unique in its group
	// Settings are what Run was made from: when Set gives others, the part is
	// ended and begun anew. They are compared by reflect.DeepEqual.
	Settings any
	// Run works until ctx ends. trouble may be told of an error that Run mends by
	// itself, and nil when it has; it is shown by Status.
	Run func(ctx context.Context, trouble func(error)) error
}

// Status is how a part is.
type Status struct {
	Name  string
	Since time.Time // when it was started last
	Err   error     // why it does not work, nil if it does
}

// Group is a set of running parts. The zero value works.
type Group struct {
	Log *slog.Logger     // nil is silent
	Now func() time.Time // nil means time.Now

	mu      sync.Mutex
	running []*running
}

// running is a part and the goroutine that it runs in.
type running struct {
	Part
	cancel context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex
	since time.Time
	err   error
}

// A part that fails is started again after firstPause, twice that and so on up to
// lastPause; one that worked for steady begins with the first pause again.
const (
	firstPause = time.Second
	lastPause  = 2 * time.Minute
	steady     = 5 * time.Minute
)

// Set makes the group's parts these: what is not among them, or has other settings,
// is ended, and waited for; then swap is called, unless it is nil; then the rest is
// started. Parts end with ctx.
func (g *Group) Set(ctx context.Context, parts []Part, swap func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var keep, end []*running
	for _, r := range g.running {
		same := slices.ContainsFunc(parts, func(p Part) bool {
			return p.Name == r.Name && reflect.DeepEqual(p.Settings, r.Settings)
		})
		if same {
			keep = append(keep, r)
		} else {
			r.cancel()
			end = append(end, r)
		}
	}
	for _, r := range end {
		<-r.done
	}
	if swap != nil {
		swap()
	}
	// In the order of parts, for Status.
	g.running = nil
	for _, p := range parts {
		i := slices.IndexFunc(keep, func(r *running) bool { return r.Name == p.Name })
		if i >= 0 {
			g.running = append(g.running, keep[i])
		} else {
			g.running = append(g.running, g.start(ctx, p))
		}
	}
}

// Stop ends all parts and waits for them until ctx ends; the error then names
// those that go on.
func (g *Group) Stop(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.running {
		r.cancel()
	}
	var late []error
	for _, r := range g.running {
		select {
		case <-r.done:
			continue
		default:
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			late = append(late, fmt.Errorf("%s does not end", r.Name))
		}
	}
	g.running = nil
	return errors.Join(late...)
}

// Status tells how each part is.
func (g *Group) Status() []Status {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []Status
	for _, r := range g.running {
		r.mu.Lock()
		all = append(all, Status{r.Name, r.since, r.err})
		r.mu.Unlock()
	}
	return all
}

func (g *Group) now() time.Time {
	if g.Now == nil {
		return time.Now()
	}
	return g.Now()
}

func (g *Group) log() *slog.Logger {
	if g.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return g.Log
}

func (g *Group) start(ctx context.Context, p Part) *running {
	ctx, cancel := context.WithCancel(ctx)
	r := &running{Part: p, cancel: cancel, done: make(chan struct{})}
	r.set(g.now(), nil)
	go func() {
		defer close(r.done)
		g.loop(ctx, r)
	}()
	return r
}

// loop runs a part again and again until ctx ends.
func (g *Group) loop(ctx context.Context, r *running) {
	log := g.log().With("part", r.Name)
	for pause := firstPause; ; {
		began := g.now()
		r.set(began, nil)
		log.Info("started")
		err := g.once(ctx, r)
		if ctx.Err() != nil {
			if err != nil && !errors.Is(err, context.Canceled) {
				log.Error("ended", "err", err)
			} else {
				log.Info("ended")
			}
			return
		}
		if err == nil {
			err = errors.New("it ended by itself")
		}
		r.trouble(err)
		if g.now().Sub(began) >= steady {
			pause = firstPause
		}
		log.Error("failed; started again", "err", err, "pause", pause)
		again := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			again.Stop()
			log.Info("ended")
			return
		case <-again.C:
		}
		pause = min(2*pause, lastPause)
	}
}

// once runs a part, a panic in it being an error.
func (g *Group) once(ctx context.Context, r *running) (err error) {
	defer func() {
		if p := recover(); p != nil {
			g.log().Error("panic", "part", r.Name, "what", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return r.Run(ctx, r.trouble)
}

func (r *running) set(since time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.since, r.err = since, err
}

func (r *running) trouble(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}
