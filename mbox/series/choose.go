package series

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"patchbench/mbox"
	"patchbench/mbox/series/assembly"
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
	made := x.made
	var all []int
	replaced := make(map[uint32]bool)
	for i := range x.Len() {
		if !c.Except[i] {
			all = append(all, i)
			replaced[made.Supersedes(i)] = true
		}
	}
	if len(all) == 0 {
		return nil, &ChoiceError{Reason: "no patches found"}
	}
	replaced[0] = false // for those without a Message-ID
	var list []int
	var versions []string
	known := make(map[int]bool)
	for _, i := range all {
		v := made.Version(i)
		if c.Version == 0 && !replaced[made.ID(made.Head(i))] || v == c.Version {
			list = append(list, i)
		}
		if !known[v] {
			known[v] = true
			versions = append(versions, "v"+strconv.Itoa(v))
		}
	}
	if len(list) > 1 && c.Version != 0 {
		// Of a version that was posted twice the later counts.
		again := make(map[uint32]bool)
		for _, i := range list {
			again[made.Supersedes(i)] = true
		}
		again[0] = false
		list = slices.DeleteFunc(list, func(i int) bool { return again[made.ID(made.Head(i))] })
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
	subjects, titles := make(map[uint64]int), make(map[uint64]int) // and their newest versions
	for _, i := range list {
		subject, patches := x.made.Titles(i)
		subjects[subject] = max(subjects[subject], x.made.Version(i))
		for _, title := range patches {
			titles[title] = max(titles[title], x.made.Version(i))
		}
	}
	return slices.DeleteFunc(list, func(i int) bool {
		subject, patches := x.made.Titles(i)
		v := x.made.Version(i)
		return x.made.ID(x.made.Head(i)) == 0 && (subjects[subject] > v || slices.ContainsFunc(patches, func(t uint64) bool { return titles[t] > v }))
	})
}

// withMessages gives those of the list of which one of the messages is a part, or
// of one of all that it replaces.
func (x *Index) withMessages(list, all []int, ids []string) []int {
	wanted := make(map[uint32]bool)
	for _, id := range ids {
		wanted[x.made.Name(id)] = true
	}
	wanted[0] = false
	byHead := make(map[uint32]int)
	for _, i := range slices.Backward(all) {
		byHead[x.made.ID(x.made.Head(i))] = i
	}
	delete(byHead, 0)
	return slices.DeleteFunc(slices.Clone(list), func(i int) bool {
		for range all {
			if wanted[x.made.ID(x.made.Head(i))] || slices.ContainsFunc(x.made.Patches(i), func(p assembly.Place) bool { return wanted[x.made.ID(p.Message)] }) {
				return false
			}
			before, ok := byHead[x.made.Supersedes(i)]
			if !ok {
				return true
			}
			i = before
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
