package feed

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// Bounds of the wait between two attempts of Retry, and how long an attempt must
// have lasted for the wait to begin anew.
const (
	minWait = time.Second
	maxWait = 5 * time.Minute
	lasting = time.Minute
)

// Retry calls attempt until ctx ends and returns ctx's error. attempt returns
// when it cannot go on, and says whether it came further than the one before; it
// calls well whenever it has given all that was there.
// Between two attempts it waits 1 s, then twice as long each time up to 5 min,
// give or take a quarter, and 1 s again after an attempt that came further or
// lasted a minute. Each failure is told to notify, which may be nil, as "NAME:
// lost, trying again in 2s" and the first well behind it as "NAME: works again".
func Retry(ctx context.Context, name string, notify func(Event), attempt func(ctx context.Context, well func()) (further bool, err error)) error {
	wait := minWait
	down := false
	well := func() {
		if down {
			down = false
			Tell(notify, Event{Text: name + ": works again", Change: Up})
		}
	}
	for {
		began := time.Now()
		further, err := attempt(ctx, well)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if further || time.Since(began) >= lasting {
			wait = minWait
		}
		pause := wait*3/4 + rand.N(wait/2)
		wait = min(2*wait, maxWait)
		down = true
		Tell(notify, Event{Text: fmt.Sprintf("%s: lost, trying again in %v", name, pause.Round(100*time.Millisecond)), Err: err, Change: Down})
		if err := Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// Sleep waits for d or until ctx ends, and then returns ctx's error.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Tell calls notify unless it is nil.
func Tell(notify func(Event), e Event) {
	if notify != nil {
		notify(e)
	}
}
