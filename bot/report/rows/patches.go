package rows

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"patchbench/bench"
	"patchbench/bot/report/plain"
)

// Version is version n of the code, nil if it was never made.
func (v *View) Version(n int) *bench.Version {
	all := v.Evaluation.Versions
	if i := at(len(all), n, func(i int) int { return all[i].N }); i >= 0 {
		return &all[i]
	}
	return nil
}

// NothingBuilt says that no version was built, not even base: there is nothing to
// tell of machine and rows.
func (v *View) NothingBuilt() bool {
	all := v.Evaluation.Versions
	return len(all) > 0 && !slices.ContainsFunc(all, func(b bench.Version) bool { return b.State != bench.NotBuilt })
}

// Patches is how many patches the series or range has, also those that have no
// version.
func (v *View) Patches() int {
	n := 0
	for _, version := range v.Evaluation.Versions {
		n = max(n, version.N)
	}
	if s := v.Evaluation.Series; s != nil {
		n = max(n, s.Total)
	}
	return n
}

// Patch is the name of patch n: "2/5", "base" for 0.
func (v *View) Patch(n int) string {
	if n == 0 && v.Values() == "" {
		return "base"
	}
	if version := v.Version(n); version != nil && version.Name != "" {
		return plain.Clean(version.Name)
	}
	return strconv.Itoa(n) + "/" + strconv.Itoa(v.Patches())
}

// Values is the build parameter whose values are compared, "" for patches.
func (v *View) Values() string { return plain.Clean(v.Evaluation.CompareParam) }

// Between names the patches lo..hi: "2-4/7".
func (v *View) Between(lo, hi int) string {
	if lo == hi {
		return v.Patch(lo)
	}
	return strconv.Itoa(lo) + "-" + v.Patch(hi)
}

// Subject is the subject of patch n, cleaned.
func (v *View) Subject(n int) string {
	if version := v.Version(n); version != nil && version.Subject != "" {
		return plain.Clean(version.Subject)
	}
	if v.Evaluation.Series != nil {
		for _, p := range v.Evaluation.Series.Patches {
			if p.N == n {
				return plain.Clean(p.Subject)
			}
		}
	}
	return ""
}

// Size is how many lines patch n adds and deletes, "" if that is not known.
func (v *View) Size(n int) string {
	version := v.Version(n)
	if version == nil || version.Added == 0 && version.Deleted == 0 {
		return ""
	}
	return "+" + strconv.Itoa(version.Added) + " -" + strconv.Itoa(version.Deleted)
}

// Names lists patches in few words: "1/5, 3/5", "1-4/5, 6/8".
func (v *View) Names(list []int) string {
	list = slices.Compact(slices.Sorted(slices.Values(list)))
	var parts []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		if j-i >= 2 {
			parts = append(parts, v.Between(list[i], list[j]))
		} else {
			for k := i; k <= j; k++ {
				parts = append(parts, v.Patch(list[k]))
			}
		}
		i = j + 1
	}
	return strings.Join(parts, ", ")
}

// An Effect is a change that is laid to patch Lo, or to somewhere in Lo..Hi, or (Lo
// is 0) to no patch in particular.
type Effect struct {
	Lo, Hi int
	Row    Row
	Step   bench.Step
}

// Effects are those of the rows that are told, sorted by patch and, within one, as the rows are.
func (v *View) Effects() []Effect {
	var all []Effect
	for _, w := range v.Told {
		steps := w.Changes
		if len(steps) == 0 {
			steps = []bench.Step{w.Total}
		}
		for i, s := range steps {
			f := Effect{s.N, s.N, w, s}
			if len(s.Group) == 2 {
				f.Lo, f.Hi = s.Group[0], s.Group[1]
			} else if len(w.Changes) == 0 {
				f.Lo, f.Hi = 0, 0
			}
			if i > 0 && f.Lo < f.Hi && f.Lo == all[len(all)-1].Lo && f.Hi == all[len(all)-1].Hi {
				continue // each patch of a group carries the group's change
			}
			all = append(all, f)
		}
	}
	slices.SortStableFunc(all, func(a, b Effect) int {
		if (a.Lo == 0) != (b.Lo == 0) {
			return cmp.Compare(b.Lo, a.Lo)
		}
		return cmp.Or(cmp.Compare(a.Lo, b.Lo), cmp.Compare(a.Hi, b.Hi))
	})
	return all
}
