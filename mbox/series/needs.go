package series

import (
	"slices"
	"strings"

	"patchbench/mbox/tree/diff"
)

// Needs gives, for each series that names prerequisites, the numbers of the others
// that hold one: a patch with that patch id, or a mail with that Message-ID. It
// reads series back one at a time, and fails only if the Keeper does.
func (x *Index) Needs() (map[int][]int, error) {
	byID, byPatch := make(map[uint32][]int), make(map[string][]int) // who names it
	for i := range x.Len() {
		if !x.hasNeeds(x.series(i)) {
			continue
		}
		s, err := x.Series(i)
		if err != nil {
			return nil, err
		}
		for _, p := range s.Prerequisites {
			if id := x.names.Find(p.MessageID); id > 0 {
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
		p := x.series(i)
		if p.cover > 0 {
			held(byID[x.record(p.cover).key], i)
		}
		for _, s := range p.slots {
			held(byID[x.source(s.found).key], i)
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
func (x *Index) hasNeeds(p *posting) bool {
	if len(x.needs) == 0 {
		return false
	}
	return p.cover > 0 && x.needs[p.cover] || slices.ContainsFunc(p.slots, func(s slot) bool { return x.needs[x.source(s.found).seq] })
}
