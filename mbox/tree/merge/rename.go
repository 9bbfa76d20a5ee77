package merge

import (
	"context"
	"path"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

// The scores of git's diffcore-rename, in its own unit.
const (
	maxScore = 60000
	// A pair needs half of the larger file in common; two files that alone have
	// a base name are taken without a look at the others from three quarters on.
	minScore  = maxScore / 2
	nameScore = minScore + (maxScore-minScore)/2
	// perCome is how many partners are kept in mind for each file that came.
	perCome = 4
	// maxSame is how many files with the same contents are looked at.
	maxSame = 100
	// maxPairs is git's merge.renameLimit, 7000, squared.
	maxPairs = 7000 * 7000
)

// file is a file that went away or came.
type file struct {
	path string
	Entry
	taken bool // it has its partner
}

// finder pairs the files that are gone with those that came, both in the order
// of their paths.
type finder struct {
	blobs      Blobs
	gone, come []*file
	pairs      map[string]string
	chunks     map[plumbing.Hash]map[uint32]int // of the gone files
}

var emptyBlob = plumbing.ComputeHash(plumbing.BlobObject, nil)

// renames finds which of the files that came are which of those that are gone,
// as git's merge does: equal contents first, then base names that stand alone on
// both sides, then whatever is most alike. Empty files are like nothing.
func renames(ctx context.Context, blobs Blobs, gone, come []*file) (map[string]string, error) {
	empty := func(f *file) bool { return f.ID == emptyBlob }
	f := &finder{blobs: blobs, gone: slices.DeleteFunc(gone, empty), come: slices.DeleteFunc(come, empty),
		pairs: map[string]string{}, chunks: map[plumbing.Hash]map[uint32]int{}}
	f.equal()
	f.left()
	if len(f.gone) == 0 || len(f.come) == 0 {
		return f.pairs, nil
	}
	if err := f.sameName(); err != nil {
		return nil, err
	}
	f.left()
	return f.pairs, f.mostAlike(ctx)
}

func (f *finder) take(gone, come *file) {
	gone.taken, come.taken = true, true
	f.pairs[gone.path] = come.path
}

// left drops the files that have their partners.
func (f *finder) left() {
	taken := func(f *file) bool { return f.taken }
	f.gone, f.come = slices.DeleteFunc(f.gone, taken), slices.DeleteFunc(f.come, taken)
}

func (f *finder) equal() {
	byID := map[plumbing.Hash][]*file{}
	for _, g := range f.gone {
		byID[g.ID] = append(byID[g.ID], g)
	}
	for _, c := range f.come {
		var best *file
		for i, g := range byID[c.ID] {
			if g.taken || i > maxSame || kind(g.Mode) != kind(c.Mode) {
				continue
			}
			if sameBase(g, c) {
				best = g
				break
			}
			if best == nil {
				best = g
			}
		}
		if best != nil {
			f.take(best, c)
		}
	}
}

func sameBase(a, b *file) bool { return path.Base(a.path) == path.Base(b.path) }

// sameName pairs files whose base name no other file on their side has.
func (f *finder) sameName() error {
	alone := func(list []*file) map[string]*file {
		names := make(map[string]*file, len(list))
		for _, f := range list {
			name := path.Base(f.path)
			if _, seen := names[name]; seen {
				f = nil
			}
			names[name] = f
		}
		return names
	}
	gone, come := alone(f.gone), alone(f.come)
	for _, g := range f.gone {
		name := path.Base(g.path)
		c := come[name]
		if gone[name] == nil || c == nil {
			continue
		}
		score, err := f.score(g, c, nameScore)
		if err != nil {
			return err
		}
		if score >= nameScore {
			f.take(g, c)
		}
	}
	return nil
}

// candidate is a pair with its score.
type candidate struct {
	gone, come *file
	score      int
	sameBase   bool
}

// better orders candidates, the best first; with equal ones, the first found
// stays first.
func better(a, b candidate) int {
	if a.score != b.score {
		return b.score - a.score
	}
	switch {
	case a.sameBase == b.sameBase:
		return 0
	case a.sameBase:
		return -1
	}
	return 1
}

func (f *finder) mostAlike(ctx context.Context) error {
	if len(f.gone)*len(f.come) > maxPairs {
		return nil
	}
	var all []candidate
	for _, c := range f.come {
		if err := ctx.Err(); err != nil {
			return err
		}
		// The worst of the few that are kept gives way; of several, the first. Those
		// that are too bad are kept too, as their places decide between equals.
		var kept []candidate
		for _, g := range f.gone {
			score, err := f.score(g, c, minScore)
			if err != nil {
				return err
			}
			is := candidate{g, c, score, sameBase(g, c)}
			if len(kept) < perCome {
				kept = append(kept, is)
				continue
			}
			worst := 0
			for i := range kept {
				if better(kept[i], kept[worst]) > 0 {
					worst = i
				}
			}
			if better(kept[worst], is) > 0 {
				kept[worst] = is
			}
		}
		all = append(all, kept...)
	}
	slices.SortStableFunc(all, better)
	for _, c := range all {
		if c.score >= minScore && !c.gone.taken && !c.come.taken {
			f.take(c.gone, c.come)
		}
	}
	return nil
}

// score tells how much of the larger of two files stands in both, from 0 to
// maxScore; 0 for what is certain to be below least, and for all but regular
// files.
func (f *finder) score(gone, come *file, least int) (int, error) {
	if !isFile(gone.Mode) || !isFile(come.Mode) {
		return 0, nil
	}
	if gone.ID == come.ID {
		return maxScore, nil
	}
	a, err := f.blobs.Size(gone.ID)
	if err != nil {
		return 0, err
	}
	b, err := f.blobs.Size(come.ID)
	if err != nil {
		return 0, err
	}
	larger := max(a, b)
	if larger*int64(maxScore-least) < (larger-min(a, b))*maxScore {
		return 0, nil
	}
	was, ok := f.chunks[gone.ID]
	if !ok {
		data, err := f.blobs.Blob(gone.ID)
		if err != nil {
			return 0, err
		}
		was = chunks(data)
		f.chunks[gone.ID] = was
	}
	data, err := f.blobs.Blob(come.ID)
	if err != nil {
		return 0, err
	}
	common := int64(0)
	for hash, n := range chunks(data) {
		common += int64(min(n, was[hash]))
	}
	return int(common * maxScore / larger), nil
}

// chunkLen is where a line is cut into pieces.
const chunkLen = 64

// chunks counts the bytes of a file by the hash of the line, or of the piece of
// at most 64 bytes of a line, that they stand in. In text the CR before a LF
// does not count. The hash is git's, which takes some different lines for equal.
func chunks(data []byte) map[uint32]int {
	counts := make(map[uint32]int, len(data)/32+1)
	text := !isBinary(data)
	var a, b uint32
	n := 0
	for i, c := range data {
		if text && c == '\r' && i+1 < len(data) && data[i+1] == '\n' {
			continue
		}
		a, b = a<<7^b>>25, b<<7^a>>25
		a += uint32(c)
		if n++; n < chunkLen && c != '\n' {
			continue
		}
		counts[(a+b*0x61)%107927] += n
		a, b, n = 0, 0, 0
	}
	if n > 0 && countRest {
		counts[(a+b*0x61)%107927] += n
	}
	return counts
}

// countRest says that what stands behind the last line counts too, as it does in
// git from 2.44 on.
const countRest = true
