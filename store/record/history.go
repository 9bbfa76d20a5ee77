package record

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"time"

	"patchbench/bench"
	"patchbench/mbox"
	"patchbench/store/db"
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

// origin is the part of a point that all rows of an evaluation share.
type origin struct {
	Base mbox.Base  `json:"base"`
	Host bench.Host `json:"host"`
}

// measured is the part of a point that has no column of its own.
type measured struct {
	Params map[string]string `json:"params"`
	Unit   string            `json:"unit"`
	Better string            `json:"better"`
	Exact  bool              `json:"exact"`
	Tested bool              `json:"tested"`
	Rounds int               `json:"rounds"`
	Value  bench.Value       `json:"value"`
}

// savePoints keeps what an evaluation measured of its base in the place of what
// was kept of it before.
func savePoints(ctx context.Context, tx *sql.Tx, e *Evaluation) error {
	text, err := json.Marshal(origin{e.Base, e.Host})
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `UPDATE evaluations SET origin = $2 WHERE id = $1`, e.ID, string(text)); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM points WHERE evaluation = $1`, e.ID); err != nil {
		return err
	}
	for i, c := range e.Results {
		v := slices.IndexFunc(c.Values, func(v bench.Value) bool { return v.N == 0 && v.Median != nil })
		if v < 0 {
			continue
		}
		text, err := json.Marshal(measured{c.Params, c.Unit, c.Better, c.Exact, c.Tested, c.Rounds, c.Values[v]})
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO points (evaluation, n, benchmark, row_name, metric, point) VALUES ($1, $2, $3, $4, $5, $6)`,
			e.ID, i, db.Text(c.Benchmark), db.Text(bench.RowName(c.Benchmark, c.Params)), db.Text(c.Metric), string(text)); err != nil {
			return err
		}
	}
	return nil
}

// History gives what was measured of the base of every evaluation since a time,
// the oldest first, in the rows of a benchmark with all its parameters or, for a
// row's full name, in that row; of one metric, or of all if it is "".
// Evaluations without a figure for their base are passed over.
func (r *Record) History(ctx context.Context, benchmark, metric string, since time.Time) ([]Point, error) {
	const what = "read history"
	// Rows are chosen by their own names before evaluations are looked at.
	rows, err := r.db.QueryContext(ctx, `
		SELECT e.id, e.created, e.origin, p.benchmark, p.metric, p.point
		FROM points AS p JOIN evaluations AS e ON e.id = p.evaluation
		WHERE (p.benchmark = $1 OR p.row_name = $1) AND ($2 = '' OR p.metric = $2) AND e.created >= $3
		ORDER BY e.created, e.id, p.n`, db.Text(benchmark), db.Text(metric), db.Time(since))
	if err != nil {
		return nil, r.db.Fail(what, err)
	}
	defer rows.Close()
	all := []Point{}
	var before string // the evaluation of the point before
	var from origin
	for rows.Next() {
		var p Point
		var created, about, point string
		var m measured
		if err := rows.Scan(&p.Evaluation, &created, &about, &p.Benchmark, &p.Metric, &point); err != nil {
			return nil, r.db.Fail(what, err)
		}
		if p.Evaluation != before {
			from = origin{}
			if err := json.Unmarshal([]byte(about), &from); err != nil {
				return nil, r.db.Fail(what+": evaluation "+p.Evaluation, err)
			}
			before = p.Evaluation
		}
		if err := json.Unmarshal([]byte(point), &m); err != nil {
			return nil, r.db.Fail(what+": evaluation "+p.Evaluation, err)
		}
		if p.Created, err = db.ParseTime(created); err != nil {
			return nil, r.db.Fail(what+": evaluation "+p.Evaluation, err)
		}
		p.Base, p.Host = from.Base, from.Host
		p.Params, p.Unit, p.Better, p.Exact, p.Tested, p.Rounds, p.Value = m.Params, m.Unit, m.Better, m.Exact, m.Tested, m.Rounds, m.Value
		all = append(all, p)
	}
	if err := rows.Err(); err != nil {
		return nil, r.db.Fail(what, err)
	}
	return all, nil
}

// Benchmarks gives the names of all benchmarks of which a figure is kept, in order.
func (r *Record) Benchmarks(ctx context.Context) ([]string, error) {
	const what = "list benchmarks"
	rows, err := r.db.QueryContext(ctx, `SELECT DISTINCT benchmark FROM points`)
	if err != nil {
		return nil, r.db.Fail(what, err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, r.db.Fail(what, err)
		}
		all = append(all, name)
	}
	if err := rows.Err(); err != nil {
		return nil, r.db.Fail(what, err)
	}
	slices.Sort(all) // here, as databases order names by their language
	return all, nil
}
