// Package watch decides what is done about mail.
//
// In go the mails that feeds have put into the store; out come tasks there: an
// evaluation that is queued, or held until somebody approves it, or the reason why
// nothing is done.
//
//  1. TakeIn puts what a feed gives into the store, mails and cursor together.
//  2. A Watcher takes the stored mails in order of arrival: own mail, delivery
//     reports, unreadable mail and second contents for a Message-ID go no further.
//  3. The others go through a series.Collector. What that says is ready is
//     judged: facts gathers who sent it and through which list, judge says what the
//     service file wants.
//  4. store.Decide keeps the task, and ends those of older versions.
//  5. Then commands in replies are obeyed, from those who may give them. If one of
//     these cannot be, its sender is told, by one letter in the outbox.
//
// The Watcher keeps nothing that the store does not have: it begins anew from the
// stored mails of the last 60 days, and decides nothing twice, as a task has a key
// that stays the same. Of a mail it has some 300 bytes at hand; the rest is in a
// temporary file.
//
// Who is trusted: a series is evaluated without asking if each of its mails comes from
// a trusted address, and is known to (bot/watch/sender). Where a list puts its own
// address into From, the author's word is not to be had: such a series is a
// stranger's, unless the list's address itself is trusted. A new version ends the
// work on older ones, but one of which only From says who sent it never ends that of
// which more is known.
//
// Nothing is done, and the task says why, about mail of programs, mail without a
// Message-ID or with more than one address in From, what is older than the policy's
// age by its arrival, authors who opted out (also by a field X-Patchbench: no in any
// mail of the series), and threads that somebody wants left alone or that have had
// their answers. What a task is when it is made does not change when the service
// file does; the next version, or bench: run, is judged anew.
//
// Nothing here evaluates, or answers a series.
package watch

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"patchbench/bot/letter"
	"patchbench/bot/watch/sender"
	"patchbench/config/service"
	"patchbench/mbox/series"
	"patchbench/mbox/series/keep"
	"patchbench/mbox/series/spill"
	"patchbench/store"
)

const (
	retention = 60 * 24 * time.Hour // of mail
	renewal   = 24 * time.Hour      // old mail is forgotten this often
	poll      = time.Second         // between looks into the store
	page      = 50                  // mails read at a time
)

// Options of a Watcher. The zero value works.
type Options struct {
	Now func() time.Time // nil means time.Now
	Log *slog.Logger     // nil is silent
	// Secret is what own letters are marked with; without it they are known by
	// their sender alone.
	Secret []byte
	// Dir is a folder for a temporary file; "" is the system's.
	Dir string
	// LookupTXT asks the DNS for the keys of signatures; nil is the system's way.
	LookupTXT func(ctx context.Context, domain string) ([]string, error)
}

// Watcher makes tasks of stored mail. One at a time may run on a store.
type Watcher struct {
	st  *store.Store
	cfg func() *service.Config
	o   Options

	collector *series.Collector
	spilled   *spill.File
	loaded    time.Time
	last      int64               // mail taken
	keys      map[uint64]struct{} // hashes of the keys of mails taken
	later     map[string]time.Time
	orders    orders

	mu     sync.Mutex
	counts Counts
}

// Counts says what became of new mails since the Watcher was made.
type Counts struct {
	Mails      int64 // taken, those below among them
	Own        int64 // the bot's
	Twins      int64 // those of them that another bot under the same address wrote
	Bounces    int64 // of the bot's letters
	Collisions int64 // with another mail's Message-ID
	Unreadable int64
	Refused    int64 // commands of those who may not
	Decisions  int64 // new or changed tasks
}

// Outcomes names the numbers, but for Mails, for monitoring.
func (c Counts) Outcomes() map[string]int64 {
	return map[string]int64{
		"own": c.Own, "another bot's": c.Twins, "bounce": c.Bounces, "collision": c.Collisions, "unreadable": c.Unreadable, "refused command": c.Refused, "decision": c.Decisions,
	}
}

// orders says how far commands have been read. It is kept in the store, so that
// none is obeyed twice.
type orders struct {
	Seen    int64   // up to this mail
	Pending []order // in mails before that
}

// order is a mail with commands that are not obeyed yet, as their series is not
// decided.
type order struct {
	Mail int64
	Line int // the first command that is not obeyed, from 0
	// Approve is the task that this command was about to approve when it was noted;
	// by then it may have been, and evaluated since.
	Approve int64 `json:",omitempty"`
	// Faults are the commands up to Line that could not be obeyed, and why: whoever
	// gave them is told in the end.
	Faults []letter.Fault `json:",omitempty"`
}

const ordersName = "watch:orders"

// New makes a Watcher. cfg gives the service file as it is now.
func New(st *store.Store, cfg func() *service.Config, o Options) *Watcher {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Dir == "" {
		o.Dir = os.TempDir()
	}
	if o.LookupTXT == nil {
		o.LookupTXT = net.DefaultResolver.LookupTXT
	}
	return &Watcher{st: st, cfg: cfg, o: o}
}

// Counts tells what became of mails so far.
func (w *Watcher) Counts() Counts {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.counts
}

// count adds one to a counter, which f picks.
func (w *Watcher) count(f func(*Counts) *int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*f(&w.counts)++
}

// Run makes tasks of what comes in, until ctx ends; it then gives ctx's error. Any
// other error is the store's or the disk's. It may be run again, and begins anew
// then.
func (w *Watcher) Run(ctx context.Context) error {
	defer w.close()
	if err := w.load(ctx); err != nil {
		return err
	}
	for {
		if err := w.step(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(poll):
		}
	}
}

// close gives back what load took.
func (w *Watcher) close() {
	if w.spilled != nil {
		w.spilled.Close() // it has no name and nobody needs it any more
	}
	w.collector, w.spilled, w.keys, w.later = nil, nil, nil, nil
}

// load begins anew, with the mails of the retention.
func (w *Watcher) load(ctx context.Context) error {
	w.close()
	w.loaded = w.o.Now()
	n, err := w.st.PruneMails(ctx, w.loaded.Add(-retention))
	if err != nil {
		return err
	}
	if n > 0 {
		w.o.Log.Info("old mail was forgotten", "mails", n)
	}
	text, err := w.st.Value(ctx, ordersName)
	if err != nil {
		return err
	}
	w.orders = orders{}
	if text != "" {
		if err := json.Unmarshal([]byte(text), &w.orders); err != nil {
			return fmt.Errorf("read how far commands were obeyed (%s in the store): %w", ordersName, err)
		}
	}
	o := series.Options{MaxPatches: maxPatches, ByArrival: true}
	for _, l := range w.cfg().Lists { // lists that wait longer do so in decide
		if l.Wait > 0 && (o.Wait == 0 || l.Wait < o.Wait) {
			o.Wait = l.Wait
		}
		if l.GiveUp > 0 && (o.GiveUp == 0 || l.GiveUp < o.GiveUp) {
			o.GiveUp = l.GiveUp
		}
	}
	w.spilled = spill.New(w.o.Dir)
	o.Keeper = keep.Medium(w.spilled)
	w.collector = series.NewCollector(o)
	w.keys, w.later, w.last = make(map[uint64]struct{}), make(map[string]time.Time), 0
	return nil
}

// step takes the mails that have come, decides what is ready, and obeys commands.
func (w *Watcher) step(ctx context.Context) error {
	now := w.o.Now()
	if now.Sub(w.loaded) >= renewal || now.Before(w.loaded) {
		if err := w.load(ctx); err != nil {
			return err
		}
	}
	seen, heard := w.orders.Seen, w.orders.Pending
	for {
		mails, err := w.st.Mails(ctx, w.last, page)
		if err != nil {
			return err
		}
		for i := range mails {
			replies, err := w.take(ctx, &mails[i])
			if err != nil {
				return err
			}
			w.last = mails[i].ID
			if w.last > seen {
				seen = w.last
				if replies {
					heard = append(heard, order{Mail: w.last})
				}
			}
		}
		if len(mails) == 0 {
			break
		}
	}
	for _, i := range w.collector.Due(now) {
		told, err := w.decide(ctx, i, now)
		if err != nil {
			return err
		}
		if told {
			w.collector.Told(i)
		}
	}
	if seen > w.orders.Seen {
		w.orders = orders{seen, heard}
		if err := w.keep(ctx); err != nil {
			return err
		}
	}
	return w.obey(ctx, now)
}

// authentication is how senders are checked.
func (w *Watcher) authentication(cfg *service.Config) sender.Options {
	o := sender.Options{AuthservID: cfg.Policy.AuthservID}
	if cfg.Policy.VerifyDKIM {
		o.LookupTXT = w.o.LookupTXT
	}
	return o
}
