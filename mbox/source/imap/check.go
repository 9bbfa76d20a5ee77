package imap

import (
	"context"
	"errors"
	"fmt"
	"time"

	goimap "github.com/emersion/go-imap/v2"
)

// State is what Check found.
type State struct {
	Mails int   // in the folder
	Idle  bool  // the server tells of new mail by itself
	Found []int // mails that each group of fields was found in
}

// Field is text that a header field of a mail has somewhere.
type Field struct{ Name, Text string }

// Check logs in and opens the folder as Follow does, and counts, for each group
// of fields, the mails since a day that have one of them. Nothing is read.
func (s *Source) Check(ctx context.Context, since time.Time, groups ...[]Field) (State, error) {
	st, err := s.check(ctx, since, groups)
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return State{}, fmt.Errorf("%s: %w", s.name, clip(err))
	}
	return st, nil
}

func (s *Source) check(ctx context.Context, since time.Time, groups [][]Field) (State, error) {
	c, err := s.connect(ctx, nil)
	if err != nil {
		return State{}, err
	}
	defer c.close()
	folder, err := c.examine()
	if err != nil {
		return State{}, err
	}
	st := State{Mails: int(folder.NumMessages), Idle: c.caps.Has(goimap.CapIdle) || c.caps.Has(goimap.CapIMAP4rev2)}
	for _, fields := range groups {
		found := goimap.UIDSet{}
		for _, f := range fields {
			set, err := c.search(&goimap.SearchCriteria{Since: since, Header: []goimap.SearchCriteriaHeaderField{{Key: f.Name, Value: f.Text}}})
			if err != nil {
				return State{}, err
			}
			found.AddSet(set)
		}
		n := 0
		for _, r := range found {
			n += int(r.Stop-r.Start) + 1
		}
		st.Found = append(st.Found, n)
	}
	return st, nil
}

// Refused says that the server answered and would not do what was asked, as for a
// wrong password or an unknown folder.
func Refused(err error) bool {
	var said *goimap.Error
	return errors.As(err, &said) && !errors.Is(err, errLost)
}
