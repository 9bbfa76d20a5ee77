package record

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// NewID makes an evaluation's id from its time and a random source:
// "20261130-3f9a2c". Ids of different days (UTC) sort by time.
func NewID(t time.Time, random interface{ Uint64() uint64 }) string {
	return fmt.Sprintf("%s-%06x", t.UTC().Format("20060102"), random.Uint64()>>40)
}

// IDError says that an id names no evaluation, or more than one.
type IDError struct {
	ID   string
	Path string // of the store
	// Matches are the ids that begin with ID, at least two, or nil.
	Matches []string
	// Near are up to three ids that look like ID, the nearest first.
	Near []string
	// Newest are up to three of the newest ids.
	Newest []string
}

// Error says which ids there are instead.
func (e *IDError) Error() string {
	switch {
	case len(e.Matches) > 0:
		n := min(len(e.Matches), 5)
		more := ""
		if n < len(e.Matches) {
			more = fmt.Sprintf(" and %d more", len(e.Matches)-n)
		}
		return fmt.Sprintf("evaluation %q is ambiguous in store %s: it may be %s%s: give more of the id",
			e.ID, e.Path, strings.Join(e.Matches[:n], ", "), more)
	case len(e.Newest) == 0:
		return fmt.Sprintf("no evaluation %q: store %s is empty: run an evaluation first or name another store", e.ID, e.Path)
	case len(e.Near) > 0:
		return fmt.Sprintf("no evaluation %q in store %s: did you mean %s?", e.ID, e.Path, strings.Join(e.Near, " or "))
	}
	return fmt.Sprintf("no evaluation %q in store %s: the newest are %s", e.ID, e.Path, strings.Join(e.Newest, ", "))
}

// FullID finds the evaluation that an id or the beginning of one names. An unknown
// or ambiguous id is an *IDError.
func (r *Record) FullID(ctx context.Context, id string) (string, error) {
	rows, err := r.db.QueryContext(ctx, `SELECT id FROM evaluations ORDER BY created DESC, id DESC`)
	if err != nil {
		return "", r.db.Fail("find evaluation "+id, err)
	}
	defer rows.Close()
	var ids, matches []string
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			return "", r.db.Fail("find evaluation "+id, err)
		}
		if one == id {
			return id, nil
		}
		if id != "" && strings.HasPrefix(one, id) {
			matches = append(matches, one)
		}
		ids = append(ids, one)
	}
	if err := rows.Err(); err != nil {
		return "", r.db.Fail("find evaluation "+id, err)
	}
	if len(matches) == 1 {
		return matches[0], nil
	}
	e := &IDError{ID: id, Path: r.db.Name(), Matches: matches, Newest: ids[:min(3, len(ids))]}
	if id != "" {
		e.Near = near(id, ids)
	}
	return "", e
}

// near gives the ids that a slip of the fingers may have meant.
func near(id string, ids []string) []string {
	type candidate struct {
		id       string
		distance int
	}
	var all []candidate
	for _, one := range ids {
		// A part of an id, most likely its random end, is as good as a slip.
		d := 0
		if len(id) < 4 || !strings.Contains(one, id) {
			d = distance(id, one)
		}
		if d <= 3 {
			all = append(all, candidate{one, d})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	var out []string
	for _, c := range all[:min(3, len(all))] {
		out = append(out, c.id)
	}
	return out
}

// distance is Levenshtein's, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
