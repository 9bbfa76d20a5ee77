package series

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"patchbench/mbox"
)

// ChoiceError says that an index holds no series, or more than one, that fits
// what the user asked for. Its text says what to do.
type ChoiceError struct {
	// Series are those to choose from, or the first of many; empty if there is none.
	Series []mbox.Series
	// More is how many there are beside them.
	More   int
	Reason string
}

// mostNamed is how many series an error names.
const mostNamed = 20

// Error is the reason, and each series on a line of its own if there are several.
func (e *ChoiceError) Error() string {
	if len(e.Series) < 2 {
		return e.Reason
	}
	var out strings.Builder
	out.WriteString(e.Reason)
	for _, s := range e.Series {
		fmt.Fprintf(&out, "\n  %s", s.Subject)
		if s.Version > 1 {
			fmt.Fprintf(&out, " (v%d)", s.Version)
		}
		if s.MessageID != "" {
			fmt.Fprintf(&out, " <%s>", s.MessageID)
		}
	}
	if e.More > 0 {
		fmt.Fprintf(&out, "\n  and %d more", e.More)
	}
	return out.String()
}

// Choice is what a user asks for. The zero value asks for all patches of the
// newest version.
type Choice struct {
	// Version is that of the series, 0 for the newest.
	Version int
	// Patches selects some patches by number (`1-3,5`, `4-`), "" all. The series
	// then stays one of its Total, and is missing what was left out only if that
	// is not there at all.
	Patches string
	// Messages are ids without <>. Of several series in a thread the one that
	// holds such a message, in any of its versions, is meant.
	Messages []string
	// Except are numbers of series that are not meant.
	Except map[int]bool
}

// Choose picks the one series that is asked for, and gives its number and itself.
// It fails with *ChoiceError, or if the Keeper does.
func (x *Index) Choose(c Choice) (int, *mbox.Series, error) {
	candidates, err := x.candidates(c)
	if err != nil {
		return 0, nil, err
	}
	if len(candidates) > 1 {
		e := &ChoiceError{Reason: fmt.Sprintf("%d series in this mail; give a file that holds only one of them:", len(candidates)), More: max(0, len(candidates)-mostNamed)}
		for _, i := range candidates[:len(candidates)-e.More] {
			s, err := x.Series(i)
			if err != nil {
				return 0, nil, err
			}
			e.Series = append(e.Series, s)
		}
		return 0, nil, e
	}
	s, err := x.Series(candidates[0])
	if err == nil && c.Patches != "" {
		err = pickPatches(&s, c.Patches)
	}
	if err != nil {
		return 0, nil, err
	}
	return candidates[0], &s, nil
}

// candidates gives the series that are asked for, at least one.
func (x *Index) candidates(c Choice) ([]int, error) {
	var all []int
	replaced := make(map[uint32]bool)
	for i := range x.Len() {
		if !c.Except[i] {
			all = append(all, i)
			replaced[x.superseded(x.series(i))] = true
		}
	}
	if len(all) == 0 {
		return nil, &ChoiceError{Reason: "no patches found"}
	}
	var list []int
	var versions []string
	known := make(map[uint32]bool)
	for _, i := range all {
		p := x.series(i)
		if h := x.head(p); c.Version == 0 && !(h.hasID && replaced[h.key]) || int(p.version) == c.Version {
			list = append(list, i)
		}
		if !known[p.version] {
			known[p.version] = true
			versions = append(versions, "v"+strconv.Itoa(int(p.version)))
		}
	}
	if len(list) > 1 && c.Version != 0 {
		// Of a version that was posted twice the later counts.
		again := make(map[uint32]bool)
		for _, i := range list {
			again[x.superseded(x.series(i))] = true
		}
		list = slices.DeleteFunc(list, func(i int) bool {
			h := x.head(x.series(i))
			return h.hasID && again[h.key]
		})
	}
	list = x.dropRepeated(list)
	if len(list) > 1 && len(c.Messages) > 0 {
		if meant := x.withMessages(list, all, c.Messages); len(meant) > 0 {
			list = meant
		}
	}
	switch {
	case len(list) == 0 && c.Version != 0:
		return nil, &ChoiceError{Reason: fmt.Sprintf("no version %d of the series in this mail; there is %s", c.Version, strings.Join(versions, ", "))}
	case len(list) == 0:
		return nil, &ChoiceError{Reason: "no patches found"}
	}
	return list, nil
}

// dropRepeated drops series of which a later version is there, where no Message-ID
// can tell, as in files of git format-patch: one with the same title, or with a
// patch of the same title.
func (x *Index) dropRepeated(list []int) []int {
	subjects, titles := make(map[uint64]uint32), make(map[uint64]uint32) // and their newest versions
	for _, i := range list {
		p := x.series(i)
		subjects[x.subject(p)] = max(subjects[x.subject(p)], p.version)
		for _, s := range p.slots {
			title := x.found.At(s.found).title
			titles[title] = max(titles[title], p.version)
		}
	}
	return slices.DeleteFunc(list, func(i int) bool {
		p := x.series(i)
		return !x.head(p).hasID && (subjects[x.subject(p)] > p.version || slices.ContainsFunc(p.slots, func(s slot) bool {
			return titles[x.found.At(s.found).title] > p.version
		}))
	})
}

// subject is a hash of the series' subject.
func (x *Index) subject(p *posting) uint64 {
	if p.cover > 0 {
		return x.title(p.cover)
	}
	return x.found.At(p.slots[0].found).title
}

// withMessages gives those of the list of which one of the messages is a part, or
// of one of all that it replaces.
func (x *Index) withMessages(list, all []int, ids []string) []int {
	wanted := make(map[uint32]bool)
	for _, id := range ids {
		if n := x.names.Find(id); n > 0 {
			wanted[n] = true
		}
	}
	byHead := make(map[uint32]*posting)
	for _, i := range slices.Backward(all) {
		p := x.series(i)
		if h := x.head(p); h.hasID {
			byHead[h.key] = p
		}
	}
	holds := func(r *record) bool { return r.hasID && wanted[r.key] }
	return slices.DeleteFunc(slices.Clone(list), func(i int) bool {
		p := x.series(i)
		for range all {
			if holds(x.head(p)) || slices.ContainsFunc(p.slots, func(s slot) bool { return holds(x.source(s.found)) }) {
				return false
			}
			if p = byHead[x.superseded(p)]; p == nil {
				return true
			}
		}
		return true
	})
}

// pickPatches leaves in a series only some of its patches.
func pickPatches(s *mbox.Series, patches string) error {
	picked, err := parseNumbers(patches, last(*s))
	if err != nil {
		return err
	}
	var kept []mbox.Patch
	for _, p := range s.Patches {
		if picked[p.N] {
			kept = append(kept, p)
		}
	}
	missing := []int{}
	for _, n := range s.Missing {
		if picked[n] {
			missing = append(missing, n)
		}
	}
	if len(kept) == 0 {
		return &ChoiceError{Reason: fmt.Sprintf("patches %s: none of them is in the mail; there are %s", patches, numbers(s.Patches))}
	}
	s.Patches, s.Received = kept, len(kept)
	s.Missing, s.Complete = missing, len(missing) == 0
	return nil
}

// last is the highest number in a series; an extra patch may have one beyond
// Total.
func last(s mbox.Series) int {
	n := s.Total
	for _, p := range s.Patches {
		n = max(n, p.N)
	}
	return n
}

func numbers(patches []mbox.Patch) string {
	var out []string
	for _, p := range patches {
		out = append(out, strconv.Itoa(p.N))
	}
	return strings.Join(out, ", ")
}

// parseNumbers reads 1-3,5 and 4- (up to the last).
func parseNumbers(s string, total int) (map[int]bool, error) {
	picked := make(map[int]bool)
	bad := &ChoiceError{Reason: fmt.Sprintf("patches %q: want numbers from 1 to %d as in 1-3,5", s, total)}
	for _, part := range strings.Split(s, ",") {
		from, to, ranged := strings.Cut(strings.TrimSpace(part), "-")
		lo, ok := atoi(from)
		hi := lo
		if ranged && to == "" {
			hi = total
		} else if ranged {
			var good bool
			hi, good = atoi(to)
			ok = ok && good
		}
		if !ok || lo < 1 || hi < lo || hi > total {
			return nil, bad
		}
		for n := lo; n <= hi; n++ {
			picked[n] = true
		}
	}
	return picked, nil
}

func atoi(s string) (int, bool) {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	return n, err == nil && n >= 0
}
