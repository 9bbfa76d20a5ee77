package series

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"patchbench/mbox"
)

// ChoiceError says that a listing holds no series, or more than one, that fits
// what the user asked for. Its text says what to do.
type ChoiceError struct {
	// Series are those to choose from; empty if there is none.
	Series []mbox.Series
	Reason string
}

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
}

// Choose picks the one series of a listing that is asked for. It fails with
// *ChoiceError.
func Choose(l mbox.Listing, c Choice) (*mbox.Series, error) {
	version, patches := c.Version, c.Patches
	if len(l.Series) == 0 {
		return nil, &ChoiceError{Reason: "no patches found"}
	}
	replaced := make(map[string]bool)
	for _, s := range l.Series {
		if s.Supersedes != nil {
			replaced[*s.Supersedes] = true
		}
	}
	var candidates []mbox.Series
	var versions []string
	for _, s := range l.Series {
		if version == 0 && (!replaced[s.MessageID] || s.MessageID == "") || s.Version == version {
			candidates = append(candidates, s)
		}
		if v := "v" + strconv.Itoa(s.Version); !slices.Contains(versions, v) {
			versions = append(versions, v)
		}
	}
	if len(candidates) > 1 && version != 0 {
		// Of a version that was posted twice the later counts.
		candidates = slices.DeleteFunc(candidates, func(s mbox.Series) bool {
			return slices.ContainsFunc(candidates, func(o mbox.Series) bool {
				return o.Supersedes != nil && *o.Supersedes == s.MessageID && s.MessageID != ""
			})
		})
	}
	candidates = slices.DeleteFunc(candidates, func(s mbox.Series) bool {
		return slices.ContainsFunc(candidates, func(o mbox.Series) bool { return repeats(o, s) })
	})
	if len(candidates) > 1 && len(c.Messages) > 0 {
		if meant := slices.DeleteFunc(slices.Clone(candidates), func(s mbox.Series) bool { return !hasMessage(l, s, c.Messages) }); len(meant) > 0 {
			candidates = meant
		}
	}
	switch {
	case len(candidates) == 0 && version != 0:
		return nil, &ChoiceError{Reason: fmt.Sprintf("no version %d of the series in this mail; there is %s", version, strings.Join(versions, ", "))}
	case len(candidates) == 0:
		return nil, &ChoiceError{Reason: "no patches found"}
	case len(candidates) > 1:
		return nil, &ChoiceError{Series: candidates, Reason: fmt.Sprintf("%d series in this mail; give a file that holds only one of them:", len(candidates))}
	}
	s := candidates[0]
	if patches == "" {
		return &s, nil
	}
	picked, err := parseNumbers(patches, last(s))
	if err != nil {
		return nil, err
	}
	var kept []mbox.Patch
	for _, p := range s.Patches {
		if picked[p.N] {
			kept = append(kept, p)
		}
	}
	var missing []int
	for _, n := range s.Missing {
		if picked[n] {
			missing = append(missing, n)
		}
	}
	if len(kept) == 0 {
		return nil, &ChoiceError{Reason: fmt.Sprintf("patches %s: none of them is in the mail; there are %s", patches, numbers(s.Patches))}
	}
	s.Patches, s.Received = kept, len(kept)
	s.Missing, s.Complete = append([]int{}, missing...), len(missing) == 0
	return &s, nil
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

// hasMessage says that one of the messages is in the series, or in a version
// that it replaces.
func hasMessage(l mbox.Listing, s mbox.Series, ids []string) bool {
	for range len(l.Series) {
		if slices.Contains(ids, s.MessageID) || slices.ContainsFunc(s.Patches, func(p mbox.Patch) bool { return slices.Contains(ids, p.MessageID) }) {
			return true
		}
		i := slices.IndexFunc(l.Series, func(o mbox.Series) bool { return s.Supersedes != nil && o.MessageID == *s.Supersedes })
		if i < 0 {
			return false
		}
		s = l.Series[i]
	}
	return false
}

// repeats says that o is a later version of s where no Message-ID can tell, as in
// files of git format-patch.
func repeats(o, s mbox.Series) bool {
	if s.MessageID != "" || o.Version <= s.Version {
		return false
	}
	if fold(o.Subject) == fold(s.Subject) {
		return true
	}
	return slices.ContainsFunc(o.Patches, func(p mbox.Patch) bool {
		return slices.ContainsFunc(s.Patches, func(q mbox.Patch) bool { return fold(p.Subject) == fold(q.Subject) })
	})
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
