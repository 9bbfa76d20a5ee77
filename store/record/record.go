// Package record keeps evaluations: all that the report of one is rendered from,
// every sample behind it, and what it measured of its base, which makes up the
// history of a benchmark.
//
// In go evaluations and samples as bot/eval makes them; out come the same
// values, so that a report can be rendered again years later. This is the part of
// package store that knows no service.
package record

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"patchbench/bench"
	"patchbench/store/db"
)

// Record is the evaluations of a store. It may be used by several goroutines.
type Record struct{ db *db.DB }

// New gives the record in an open database.
func New(d *db.DB) *Record { return &Record{d} }

// ErrTaken says that another evaluation has the id already: make a new one.
var ErrTaken = errors.New("id is taken by another evaluation")

// Summary is an evaluation in one line of a list.
type Summary struct {
	ID       string        `json:"id"`
	Created  time.Time     `json:"created"` // UTC
	Subject  string        `json:"subject"` // of the series; "" for a range of commits
	Suite    string        `json:"suite"`
	Host     string        `json:"host"`
	Rounds   int           `json:"rounds"`
	Stopped  string        `json:"stopped"`
	Verdict  bench.Verdict `json:"verdict"`
	Headline string        `json:"headline"`
}

// Save keeps an evaluation, or replaces the record of the one with its ID, whose
// samples stay. It is done as a whole or not at all. An id that belongs to an
// evaluation created at another time gives ErrTaken. The diffs and notes of the
// series' patches are not kept.
func (r *Record) Save(ctx context.Context, e *Evaluation) error {
	return r.db.Do(ctx, "save evaluation "+e.ID, func(tx *sql.Tx) error {
		if e.ID == "" {
			return errors.New("it has no id")
		}
		record, err := Encode(e)
		if err != nil {
			return err
		}
		created := db.Time(e.Created)
		var before string
		err = tx.QueryRowContext(ctx, `SELECT created FROM evaluations WHERE id = $1`, e.ID).Scan(&before)
		if err == nil && before != created {
			return fmt.Errorf("%w, created %s", ErrTaken, before)
		} else if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		subject := ""
		if e.Series != nil {
			subject = e.Series.Subject
		}
		_, err = tx.ExecContext(ctx, `
			INSERT INTO evaluations (id, created, subject, suite, host, rounds, stopped, verdict, headline,
				build_ns, measure_ns, record)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
			ON CONFLICT (id) DO UPDATE SET subject = excluded.subject, suite = excluded.suite, host = excluded.host,
				rounds = excluded.rounds, stopped = excluded.stopped, verdict = excluded.verdict,
				headline = excluded.headline, build_ns = excluded.build_ns, measure_ns = excluded.measure_ns,
				record = excluded.record`,
			e.ID, created, db.Text(subject), db.Text(e.Suite.Name), db.Text(e.Host.Name), e.Rounds, e.Stopped, string(e.Verdict), db.Text(e.Headline),
			nanoseconds(e.BuildSeconds), nanoseconds(e.MeasureSeconds), string(record))
		if err != nil {
			return err
		}
		return savePoints(ctx, tx, e)
	})
}

// nanoseconds are what the columns hold; the record keeps the seconds as given.
func nanoseconds(seconds float64) int64 { return int64(math.Round(seconds * 1e9)) }

// Evaluation gives the evaluation with this id, or the only one whose id begins
// with it. An unknown or ambiguous id is an *IDError.
func (r *Record) Evaluation(ctx context.Context, id string) (*Evaluation, error) {
	id, err := r.FullID(ctx, id)
	if err != nil {
		return nil, err
	}
	var record string
	err = r.db.QueryRowContext(ctx, `SELECT record FROM evaluations WHERE id = $1`, id).Scan(&record)
	if err != nil {
		return nil, r.db.Fail("read evaluation "+id, err)
	}
	e, err := Decode([]byte(record))
	if err != nil {
		return nil, r.db.Fail("read evaluation "+id, err)
	}
	return e, nil
}

// List gives all evaluations, the newest first.
func (r *Record) List(ctx context.Context) ([]Summary, error) {
	rows, err := r.db.QueryContext(ctx, `
		SELECT id, created, subject, suite, host, rounds, stopped, verdict, headline
		FROM evaluations ORDER BY created DESC, id DESC`)
	if err != nil {
		return nil, r.db.Fail("list evaluations", err)
	}
	defer rows.Close()
	all := []Summary{}
	for rows.Next() {
		var m Summary
		var created string
		if err := rows.Scan(&m.ID, &created, &m.Subject, &m.Suite, &m.Host, &m.Rounds, &m.Stopped, &m.Verdict, &m.Headline); err != nil {
			return nil, r.db.Fail("list evaluations", err)
		}
		if m.Created, err = db.ParseTime(created); err != nil {
			return nil, r.db.Fail("list evaluations: "+m.ID, err)
		}
		all = append(all, m)
	}
	if err := rows.Err(); err != nil {
		return nil, r.db.Fail("list evaluations", err)
	}
	return all, nil
}

// AddSamples appends samples to the evaluation with exactly this id, which must
// have been saved, in the order given: all of them or none. A value that is not
// finite is an error.
func (r *Record) AddSamples(ctx context.Context, id string, samples []bench.Sample) error {
	if len(samples) == 0 {
		return nil
	}
	return r.db.Do(ctx, "add samples to evaluation "+id, func(tx *sql.Tx) error {
		var there, last int64
		err := tx.QueryRowContext(ctx, `
			SELECT (SELECT count(*) FROM evaluations WHERE id = $1),
				(SELECT coalesce(max(seq), 0) FROM samples WHERE evaluation = $1)`, id).Scan(&there, &last)
		if err != nil {
			return err
		}
		if there == 0 {
			return errors.New("it is not in the store: save it first")
		}
		insert, err := tx.PrepareContext(ctx, `
			INSERT INTO samples (evaluation, seq, round, version, twin, benchmark, params, metric, unit, value,
				failed, failed_signal, failed_status, failed_reason, discarded, position, covariates)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)`)
		if err != nil {
			return err
		}
		defer insert.Close()
		for i, m := range samples {
			if math.IsNaN(m.Value) || math.IsInf(m.Value, 0) {
				return fmt.Errorf("round %d, version %d, %s %s: value %v is not finite",
					m.Round, m.Version, bench.RowName(m.Benchmark, m.Params), m.Metric, m.Value)
			}
			params, err := object(m.Params)
			if err != nil {
				return err
			}
			covariates, err := object(m.Covariates)
			if err != nil {
				return err
			}
			var position sql.NullInt64
			if m.Position != nil {
				position = sql.NullInt64{Int64: int64(*m.Position), Valid: true}
			}
			var failed bench.Failed
			if m.Failed != nil {
				failed = *m.Failed
			}
			_, err = insert.ExecContext(ctx, id, last+int64(i)+1, m.Round, m.Version, m.Twin, db.Text(m.Benchmark), params, db.Text(m.Metric),
				db.Text(m.Unit), m.Value, m.Failed != nil, db.Text(failed.Signal), failed.Status, db.Text(failed.Reason), db.Text(m.Discarded), position, covariates)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// object is a map as JSON, NULL for nil.
func object[V any](m map[string]V) (sql.NullString, error) {
	if m == nil {
		return sql.NullString{}, nil
	}
	b, err := json.Marshal(m)
	return sql.NullString{String: string(b), Valid: true}, err
}

// page is how many samples are read at a time.
const page = 4096

// Samples yields the samples of an evaluation in the order in which they were
// added; id is as for Evaluation. They are read page by page: memory stays
// small, and the store may be used while the loop runs. The first error ends
// the sequence.
func (r *Record) Samples(ctx context.Context, id string) iter.Seq2[bench.Sample, error] {
	return func(yield func(bench.Sample, error) bool) {
		id, err := r.FullID(ctx, id)
		if err != nil {
			yield(bench.Sample{}, err)
			return
		}
		for last := int64(0); ; {
			samples, next, err := r.samples(ctx, id, last)
			if err != nil {
				yield(bench.Sample{}, r.db.Fail("read samples of evaluation "+id, err))
				return
			}
			for _, m := range samples {
				if !yield(m, nil) {
					return
				}
			}
			if len(samples) < page {
				return
			}
			last = next
		}
	}
}

// samples reads the page behind seq last.
func (r *Record) samples(ctx context.Context, id string, last int64) (samples []bench.Sample, next int64, err error) {
	rows, err := r.db.QueryContext(ctx, `
		SELECT seq, round, version, twin, benchmark, params, metric, unit, value,
			failed, failed_signal, failed_status, failed_reason, discarded, position, covariates
		FROM samples WHERE evaluation = $1 AND seq > $2 ORDER BY seq LIMIT $3`, id, last, page)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var m bench.Sample
		var failed bool
		var f bench.Failed
		var position sql.NullInt64
		var params, covariates sql.NullString
		err := rows.Scan(&next, &m.Round, &m.Version, &m.Twin, &m.Benchmark, &params, &m.Metric, &m.Unit, &m.Value,
			&failed, &f.Signal, &f.Status, &f.Reason, &m.Discarded, &position, &covariates)
		if err != nil {
			return nil, 0, err
		}
		if failed {
			m.Failed = &f
		}
		if position.Valid {
			p := int(position.Int64)
			m.Position = &p
		}
		if params.Valid {
			if err := json.Unmarshal([]byte(params.String), &m.Params); err != nil {
				return nil, 0, fmt.Errorf("sample %d: params: %w", next, err)
			}
		}
		if covariates.Valid {
			if err := json.Unmarshal([]byte(covariates.String), &m.Covariates); err != nil {
				return nil, 0, fmt.Errorf("sample %d: covariates: %w", next, err)
			}
		}
		samples = append(samples, m)
	}
	return samples, next, rows.Err()
}
