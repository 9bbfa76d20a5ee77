// Package outbox keeps what is to go out: letters, and what should stand at pull
// requests. It is the part of package store between the workers, who write, and
// bot/reply, which delivers.
//
// In go letters and notices under unique keys; they come out one by one when they are
// due, lent to one sender at a time, who then says what became of them. What is sent
// and what is not known to be is never given again by itself. Nothing is written or
// sent here, and tasks and mails are not known.
//
//	added, err := o.Put(ctx, letter)        // unless one with its key is there
//	letter, err := o.NextLetter(ctx, now)   // to be sent, then
//	err = o.Settle(ctx, letter)
//	err = o.PutNotice(ctx, notice)          // in the place of an older one
//	notice, err := o.NextNotice(ctx, now)   // to be delivered, then
//	err = o.SettleNotice(ctx, notice)
package outbox

import (
	"time"

	"patchbench/store/db"
)

// Outbox is the outbox of a store. It may be used by several goroutines.
type Outbox struct {
	db  *db.DB
	now func() time.Time
}

// New gives the outbox in an open database.
func New(d *db.DB) *Outbox { return &Outbox{d, time.Now} }

// SetClock has the outbox take the time from now, before it is used.
func (o *Outbox) SetClock(now func() time.Time) { o.now = now }
