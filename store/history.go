package store

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"patchbench/bench"
	"patchbench/mbox"
)

// Point is what one evaluation measured of its base in one row: an entry of a
// benchmark's history.
type Point struct {
	Evaluation string            `json:"evaluation"` // its id
	Created    time.Time         `json:"created"`    // UTC
	Base       mbox.Base         `json:"base"`
	Host       bench.Host        `json:"host"`
	Benchmark  string            `json:"benchmark"`
	Params     map[string]string `json:"params"`
	Metric     string            `json:"metric"`
	Unit       string            `json:"unit"`
	Better     string            `json:"better"`
	Exact      bool              `json:"exact"`
	Tested     bool              `json:"tested"`
	Rounds     int               `json:"rounds"`
	// Value is the figure of base; its Median is never nil.
	Value bench.Value `json:"value"`
}

// History gives what was measured of the base of every evaluation since a time,
// the oldest first, in the rows that keep says yes to. Evaluations without a
// figure for their base are passed over. Memory stays small: one record is read
// at a time, and of that no more than a history needs.
func (s *Store) History(ctx context.Context, since time.Time, keep func(*bench.Comparison) bool) ([]Point, error) {
	const what = "read history"
	rows, err := s.db.QueryContext(ctx, `
		SELECT id, record FROM evaluations WHERE created >= $1 ORDER BY created, id`, since.UTC().Format(timeFormat))
	if err != nil {
		return nil, s.fail(what, err)
	}
	defer rows.Close()
	all := []Point{}
	for rows.Next() {
		var id, record string
		if err := rows.Scan(&id, &record); err != nil {
			return nil, s.fail(what, err)
		}
		var e struct {
			Created time.Time          `json:"created"`
			Base    mbox.Base          `json:"base"`
			Host    bench.Host         `json:"host"`
			Results []bench.Comparison `json:"results"`
		}
		if err := json.Unmarshal([]byte(record), &e); err != nil {
			return nil, s.fail(what+": evaluation "+id, err)
		}
		for i := range e.Results {
			c := &e.Results[i]
			v := slices.IndexFunc(c.Values, func(v bench.Value) bool { return v.N == 0 && v.Median != nil })
			if v < 0 || !keep(c) {
				continue
			}
			all = append(all, Point{
				Evaluation: id, Created: e.Created.UTC(), Base: e.Base, Host: e.Host, Benchmark: c.Benchmark, Params: c.Params,
				Metric: c.Metric, Unit: c.Unit, Better: c.Better, Exact: c.Exact, Tested: c.Tested, Rounds: c.Rounds, Value: c.Values[v],
			})
		}
	}
	if err := rows.Err(); err != nil {
		return nil, s.fail(what, err)
	}
	return all, nil
}
