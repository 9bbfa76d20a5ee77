package series

import (
	"slices"
	"strings"

	"patchbench/mbox/series/assembly"
	"patchbench/mbox/tree/diff"
)

// Needs gives, for each series that names prerequisites, the numbers of the others
// that hold one: a patch with that patch id, or a mail with that Message-ID. It
// reads series back one at a time, and fails only if the Keeper does.
func (x *Index) Needs() (map[int][]int, error) {
	byID, byPatch := make(map[uint32][]int), make(map[string][]int) // who names it
	for i := range x.Len() {
		if !x.hasNeeds(i) {
			continue
		}
		s, err := x.Series(i)
		if err != nil {
			return nil, err
		}
		for _, p := range s.Prerequisites {
			if id := x.made.Name(p.MessageID); id > 0 {
				byID[id] = append(byID[id], i)
			}
			if id := strings.ToLower(p.PatchID); id != "" {
				byPatch[id] = append(byPatch[id], i)
			}
		}
	}
	out := make(map[int][]int)
	held := func(by []int, holder int) {
		for _, i := range by {
			if i != holder && !slices.Contains(out[i], holder) {
				out[i] = append(out[i], holder)
			}
		}
	}
	for i := range x.Len() {
		held(byID[x.made.ID(x.made.Head(i))], i)
		for _, p := range x.made.Patches(i) {
			held(byID[x.made.ID(p.Message)], i)
		}
		if len(byPatch) == 0 {
			continue
		}
		s, err := x.Series(i)
		if err != nil {
			return nil, err
		}
		for _, one := range s.Patches {
			held(byPatch[diff.PatchID(one.Diff)], i)
		}
	}
	return out, nil
}

// hasNeeds says that a mail of the series names prerequisites.
func (x *Index) hasNeeds(i int) bool {
	if len(x.needs) == 0 {
		return false
	}
	return x.needs[x.made.Head(i)] || slices.ContainsFunc(x.made.Patches(i), func(p assembly.Place) bool { return x.needs[p.Message] })
}
