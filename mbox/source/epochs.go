package source

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"

	"patchbench/mbox"
	"patchbench/mbox/tree/odb"
)

// epoch is one git repository of a public-inbox: each commit holds one mail in
// the file m, or in the file d one that was taken back.
type epoch struct {
	dir   string
	store *odb.Store
	tip   plumbing.Hash
}

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
	epochs  []*epoch
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
			e.store.Close()
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
		out.closer = append(out.closer, e.store)
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
	for _, path := range epochDirs(dir) {
		e := &epoch{dir: path}
		git := dotgit.New(osfs.New(path))
		ref, err := git.Ref(plumbing.HEAD)
		for hops := 0; err == nil && ref.Type() == plumbing.SymbolicReference && hops < 5; hops++ {
			ref, err = git.Ref(ref.Target())
		}
		if errors.Is(err, plumbing.ErrReferenceNotFound) {
			continue // an epoch that was just begun is empty
		}
		if err != nil {
			return &InputError{Path: path, Reason: "broken git repository: " + err.Error(), Err: err}
		}
		e.tip = ref.Hash()
		if e.store, err = odb.Open(filepath.Join(path, "objects")); err != nil {
			return &InputError{Path: path, Reason: "broken git repository: " + err.Error(), Err: err}
		}
		s.epochs = append(s.epochs, e)
	}
	if len(s.epochs) == 0 {
		return &InputError{Path: dir, Reason: "not an archive: no git epochs in it (looked for 0.git and git/0.git)"}
	}
	return nil
}

// epochDirs lists the repositories of an archive, the newest first.
func epochDirs(dir string) []string {
	for _, sub := range []string{"git", "."} {
		entries, err := os.ReadDir(filepath.Join(dir, sub))
		if err != nil {
			continue
		}
		var numbers []int
		for _, e := range entries {
			name, ok := strings.CutSuffix(e.Name(), ".git")
			if n, err := strconv.Atoi(name); ok && err == nil && n >= 0 {
				numbers = append(numbers, n)
			}
		}
		slices.SortFunc(numbers, func(a, b int) int { return cmp.Compare(b, a) })
		var dirs []string
		for _, n := range numbers {
			dirs = append(dirs, filepath.Join(dir, sub, strconv.Itoa(n)+".git"))
		}
		if len(dirs) > 0 {
			return dirs
		}
	}
	// One epoch by itself, as it is cloned.
	for _, path := range []string{dir, filepath.Join(dir, ".git")} {
		if fi, err := os.Stat(filepath.Join(path, "objects")); err == nil && fi.IsDir() {
			return []string{path}
		}
	}
	return nil
}

func (s *search) hash(id string) uint64 { return max(1, maphash.String(s.seed, id)) }

// walk looks at one epoch's mails from the newest on; done says that the whole
// thread is there.
func (s *search) walk(ctx context.Context, n int) (done bool, err error) {
	e := s.epochs[n]
	for at := e.tip; !at.IsZero(); {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		c, err := e.commit(at)
		if err != nil {
			return false, &InputError{Path: e.dir, Reason: fmt.Sprintf("broken archive: commit %s: %v", at.String()[:12], err), Err: err}
		}
		at = c.parent
		if !c.removed.IsZero() {
			s.taken[c.removed] = true
		}
		if !c.mail.IsZero() {
			if err := s.keep(n, c); err != nil {
				return false, &InputError{Path: e.dir, Reason: fmt.Sprintf("broken archive: mail %s: %v", c.mail.String()[:12], err), Err: err}
			}
		}
		if s.found && s.complete(c.when) {
			return true, nil
		}
	}
	return false, nil
}

// keep takes in the mail of a commit.
func (s *search) keep(n int, c commit) error {
	_, raw, err := s.epochs[n].store.Read(c.mail)
	if err != nil {
		return err
	}
	m, err := mbox.ParseHeader(raw)
	if err != nil || m.ID == "" {
		return nil // no thread can hold it
	}
	k := kept{id: s.hash(m.ID), mail: c.mail, epoch: uint16(n), when: c.when.Unix()}
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

// commit is what an archive's commit says.
type commit struct {
	parent        plumbing.Hash
	when          time.Time
	mail, removed plumbing.Hash // zero if the commit has none
}

func (e *epoch) commit(id plumbing.Hash) (commit, error) {
	var c commit
	typ, raw, err := e.store.Read(id)
	if err != nil {
		return c, err
	}
	if typ != plumbing.CommitObject {
		return c, fmt.Errorf("it is a %s", typ)
	}
	var tree plumbing.Hash
	for line := range bytes.Lines(raw) {
		key, v, _ := bytes.Cut(bytes.TrimRight(line, "\n"), []byte(" "))
		if len(key) == 0 {
			break
		}
		switch string(key) {
		case "tree":
			tree = plumbing.NewHash(string(v))
		case "parent":
			if c.parent.IsZero() {
				c.parent = plumbing.NewHash(string(v))
			}
		case "committer":
			f := bytes.Fields(v[bytes.LastIndexByte(v, '>')+1:])
			if len(f) > 0 {
				if sec, err := strconv.ParseInt(string(f[0]), 10, 64); err == nil {
					c.when = time.Unix(sec, 0).UTC()
				}
			}
		}
	}
	typ, raw, err = e.store.Read(tree)
	if err != nil {
		return c, err
	}
	if typ != plumbing.TreeObject {
		return c, fmt.Errorf("its tree %s is a %s", tree, typ)
	}
	for len(raw) > 0 {
		mode, rest, ok := bytes.Cut(raw, []byte{0})
		if !ok || len(rest) < 20 {
			return c, fmt.Errorf("its tree %s is cut off", tree)
		}
		_, name, _ := bytes.Cut(mode, []byte(" "))
		switch string(name) {
		case "m":
			copy(c.mail[:], rest)
		case "d":
			copy(c.removed[:], rest)
		}
		raw = rest[20:]
	}
	return c, nil
}

// stored is a mail of an epoch.
type stored struct {
	epoch *epoch
	mail  plumbing.Hash
}

// read gives the mail, or the problem with it.
func (s stored) read() (*mbox.Message, *mbox.Problem, error) {
	position := s.epoch.dir + ": mail " + s.mail.String()[:12]
	_, raw, err := s.epoch.store.Read(s.mail)
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
