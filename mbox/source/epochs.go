package source

import (
	"context"
	"fmt"
	"hash/maphash"
	"math"
	"os"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"patchbench/mbox"
	"patchbench/mbox/source/epoch"
)

// kept is what the search keeps of one mail.
type kept struct {
	id    uint64
	refs  [5]uint64 // In-Reply-To, and the first and last of References; 0 is none
	mail  plumbing.Hash
	epoch uint16
	when  int64 // when it was committed, in Unix seconds
}

// Mails come out of order: what belongs to a thread is looked for this much
// before its oldest known mail. A mail that the thread refers to and that the
// archive does not have is given up that long before it.
const (
	straggle = 24 * time.Hour
	giveUp   = 90 * 24 * time.Hour
)

// search walks an archive from its newest mail back.
type search struct {
	epochs  []*epoch.Epoch
	seed    maphash.Seed
	kept    []kept
	taken   map[plumbing.Hash]bool // mails that were taken back
	want    uint64                 // the message asked for
	found   bool
	oldest  time.Time // when the oldest mail of the thread was committed, as last worked out
	checked int       // how many mails there were when the thread was last worked out
	thread  map[uint64]bool
	open    bool // the thread refers to mails that were not met yet
}

// openEpochs finds the thread of a message in the git epochs below a folder.
func openEpochs(ctx context.Context, dir, id string) (*Source, error) {
	s := &search{seed: maphash.MakeSeed(), taken: make(map[plumbing.Hash]bool)}
	s.want = s.hash(id)
	defer func() {
		for _, e := range s.epochs {
			e.Close()
		}
	}()
	if err := s.openAll(dir); err != nil {
		return nil, err
	}
	for n := range s.epochs {
		if done, err := s.walk(ctx, n); err != nil {
			return nil, err
		} else if done {
			break
		}
	}
	if !s.found {
		return nil, &InputError{Path: dir, Reason: fmt.Sprintf("no message <%s> in this archive (%d messages looked at)", id, len(s.kept))}
	}
	s.follow()
	out := &Source{name: dir}
	for i := len(s.kept) - 1; i >= 0; i-- {
		k := s.kept[i]
		if s.thread[k.id] && !s.taken[k.mail] {
			out.mails = append(out.mails, stored{s.epochs[k.epoch], k.mail})
		}
	}
	for _, e := range s.epochs {
		out.closer = append(out.closer, e)
	}
	s.epochs = nil
	return out, nil
}

// openAll opens the epochs, newest first.
func (s *search) openAll(dir string) error {
	if fi, err := os.Stat(dir); err != nil {
		return inputError(dir, err)
	} else if !fi.IsDir() {
		return &InputError{Path: dir, Reason: "not an archive: want a folder with a public-inbox's git epochs (0.git, 1.git, ...), or an address"}
	}
	for _, path := range epoch.Dirs(dir) {
		e, err := epoch.Open(path)
		if err != nil {
			return &InputError{Path: path, Reason: "broken git repository: " + err.Error(), Err: err}
		}
		if e.Tip.IsZero() {
			e.Close() // an epoch that was just begun is empty
			continue
		}
		s.epochs = append(s.epochs, e)
	}
	if len(s.epochs) == 0 {
		return &InputError{Path: dir, Reason: "not an archive: no git epochs in it (looked for 0.git and git/0.git)"}
	}
	return nil
}

func (s *search) hash(id string) uint64 { return max(1, maphash.String(s.seed, id)) }

// walk looks at one epoch's mails from the newest on; done says that the whole
// thread is there.
func (s *search) walk(ctx context.Context, n int) (done bool, err error) {
	e := s.epochs[n]
	for at := e.Tip; !at.IsZero(); {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		c, err := e.Commit(at)
		if err != nil {
			return false, &InputError{Path: e.Dir, Reason: fmt.Sprintf("broken archive: commit %s: %v", at.String()[:12], err), Err: err}
		}
		at = c.Parent
		if !c.Removed.IsZero() {
			s.taken[c.Removed] = true
		}
		if !c.Mail.IsZero() {
			if err := s.keep(n, c); err != nil {
				return false, &InputError{Path: e.Dir, Reason: fmt.Sprintf("broken archive: mail %s: %v", c.Mail.String()[:12], err), Err: err}
			}
		}
		if s.found && s.complete(c.When) {
			return true, nil
		}
	}
	return false, nil
}

// keep takes in the mail of a commit.
func (s *search) keep(n int, c epoch.Commit) error {
	_, raw, err := s.epochs[n].Read(c.Mail)
	if err != nil {
		return err
	}
	m, err := mbox.ParseHeader(raw)
	if err != nil || m.ID == "" {
		return nil // no thread can hold it
	}
	k := kept{id: s.hash(m.ID), mail: c.Mail, epoch: uint16(n), when: c.When.Unix()}
	i := 0
	add := func(ids []string) {
		for _, id := range ids {
			if h := s.hash(id); i < len(k.refs) && !slices.Contains(k.refs[:i], h) {
				k.refs[i] = h
				i++
			}
		}
	}
	add(m.InReplyTo[:min(1, len(m.InReplyTo))])
	add(m.References[:min(1, len(m.References))])
	add(m.References[max(0, len(m.References)-3):])
	s.kept = append(s.kept, k)
	if k.id == s.want {
		s.found = true
	}
	return nil
}

// complete says that mails older than now cannot belong to the thread.
func (s *search) complete(now time.Time) bool {
	// To work the thread out costs a pass over all that is kept.
	if s.thread == nil || len(s.kept) > s.checked+s.checked/4+1000 {
		s.follow()
	}
	wait := straggle
	if s.open {
		wait = giveUp
	}
	if !now.Before(s.oldest.Add(-wait)) {
		return false
	}
	if s.checked != len(s.kept) {
		s.follow()
		return s.complete(now)
	}
	return true
}

// follow works out the thread: all mails that refer to one of it or are referred
// to by one of it.
func (s *search) follow() {
	s.checked = len(s.kept)
	s.thread = map[uint64]bool{s.want: true}
	join := func(k *kept) bool {
		in := s.thread[k.id]
		for _, r := range k.refs {
			in = in || r != 0 && s.thread[r]
		}
		if !in {
			return false
		}
		before := len(s.thread)
		s.thread[k.id] = true
		for _, r := range k.refs {
			if r != 0 {
				s.thread[r] = true
			}
		}
		return len(s.thread) > before
	}
	for grown := true; grown; {
		grown = false
		for i := range s.kept {
			grown = join(&s.kept[i]) || grown
		}
		for i := len(s.kept) - 1; i >= 0; i-- {
			grown = join(&s.kept[i]) || grown
		}
	}
	met := make(map[uint64]bool, len(s.thread))
	first := int64(math.MaxInt64)
	for i := range s.kept {
		if k := &s.kept[i]; s.thread[k.id] {
			met[k.id] = true
			first = min(first, k.when)
		}
	}
	s.open = len(met) < len(s.thread)
	s.oldest = time.Unix(first, 0)
}

// stored is a mail of an epoch.
type stored struct {
	epoch *epoch.Epoch
	mail  plumbing.Hash
}

// read gives the mail, or the problem with it.
func (s stored) read() (*mbox.Message, *mbox.Problem, error) {
	position := s.epoch.Dir + ": mail " + s.mail.String()[:12]
	_, raw, err := s.epoch.Read(s.mail)
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", position, err)
	}
	m, err := mbox.ParseMessage(raw, position)
	if err != nil {
		p := &mbox.Problem{Position: position, Error: err.Error()}
		if h, err := mbox.ParseHeader(raw); err == nil {
			p.MessageID = h.ID
		}
		return nil, p, nil
	}
	return m, nil, nil
}
