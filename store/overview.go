package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"patchbench/bench"
	"patchbench/store/db"
)

// Overview is how things stand, in numbers.
type Overview struct {
	Evaluations            map[bench.Verdict]int // "" for those that are being measured
	BuildTime, MeasureTime time.Duration         // of all evaluations together
	Tasks                  map[State]int
	Letters                map[LetterState]int
	Notices                int   // pull requests whose notice is not yet delivered
	Mails                  int64 // ever taken in
	Sources                []SourceState
	// Lapsed are running tasks whose lease has passed, without their payloads, up to 20.
	Lapsed []Task
	// Queued is since when the oldest queued task waits, Due since when the oldest
	// letter could have been sent, Sending when the letter that is being sent was
	// taken; zero if there is none.
	Queued, Due, Sending time.Time
}

// SourceState is what is kept of a source's mail.
type SourceState struct {
	Name  string
	Mails int       // kept
	Last  time.Time // when the last one was received; zero if none is kept
	// Cursor is where the source goes on, in its own words; "" before it began.
	Cursor string
}

// Listed is an evaluation in a list, with the task that it was made for.
type Listed struct {
	Summary
	Project string // "" if it was made by hand
	Ref     string // of a pull request; "" for mail
	Version int    // of the series; 0 if it was made by hand
}

// EvaluationFilter chooses evaluations; zero fields choose all.
type EvaluationFilter struct {
	Project string
	Verdict bench.Verdict
	Before  string // the id of an evaluation: only what comes behind it
	Limit   int    // 100 if it is 0
}

// Stamp gives the full id of an evaluation and a text that changes whenever its
// record or its samples do. An unknown or ambiguous id is an *IDError.
func (s *Store) Stamp(ctx context.Context, id string) (full, stamp string, err error) {
	full, err = s.FullID(ctx, id)
	if err != nil {
		return "", "", err
	}
	var record string
	var last int64
	err = s.db.QueryRowContext(ctx, `
		SELECT record, (SELECT coalesce(max(seq), 0) FROM samples WHERE evaluation = $1)
		FROM evaluations WHERE id = $1`, full).Scan(&record, &last)
	if err != nil {
		return "", "", s.fail("read evaluation "+full, err)
	}
	sum := sha256.Sum256([]byte(record))
	return full, fmt.Sprintf("%s-%d", hex.EncodeToString(sum[:16]), last), nil
}

// Evaluations gives a page of the list of evaluations, the newest first.
func (s *Store) Evaluations(ctx context.Context, f EvaluationFilter) ([]Listed, error) {
	const what = "list evaluations"
	if f.Limit == 0 {
		f.Limit = 100
	}
	var all []Listed
	err := s.each(ctx, `
		SELECT e.id, e.created, e.subject, e.suite, e.host, e.rounds, e.stopped, e.verdict, e.headline,
			coalesce(t.project, ''), CASE t.kind WHEN 'pull' THEN t.ref ELSE '' END, coalesce(t.version, 0)
		FROM evaluations AS e
		LEFT JOIN tasks AS t ON t.id = (SELECT max(id) FROM tasks WHERE evaluation = e.id AND evaluation <> '')
		WHERE ($1 = '' OR t.project = $1) AND ($2 = '' OR e.verdict = $2)
			AND ($3 = '' OR (e.created, e.id) < (SELECT b.created, b.id FROM evaluations AS b WHERE b.id = $3))
		ORDER BY e.created DESC, e.id DESC LIMIT $4`, []any{f.Project, string(f.Verdict), f.Before, f.Limit},
		func(scan func(...any) error) error {
			var m Listed
			var created string
			err := scan(&m.ID, &created, &m.Subject, &m.Suite, &m.Host, &m.Rounds, &m.Stopped, &m.Verdict, &m.Headline, &m.Project, &m.Ref, &m.Version)
			m.Created, err = instant(created, err)
			all = append(all, m)
			return err
		})
	if err != nil {
		return nil, s.fail(what, err)
	}
	return all, nil
}

// Overview counts what there is at a time.
func (s *Store) Overview(ctx context.Context, now time.Time) (*Overview, error) {
	const what = "look over the store"
	o := &Overview{Evaluations: map[bench.Verdict]int{}, Tasks: map[State]int{}, Letters: map[LetterState]int{}}
	moment := db.Time(now)
	queries := []struct {
		text string
		args []any
		row  func(scan func(...any) error) error
	}{
		{`SELECT verdict, count(*), CAST(sum(build_ns) AS BIGINT), CAST(sum(measure_ns) AS BIGINT) FROM evaluations GROUP BY verdict`, nil,
			func(scan func(...any) error) error {
				var verdict bench.Verdict
				var n int
				var build, measure time.Duration
				err := scan(&verdict, &n, &build, &measure)
				o.Evaluations[verdict] = n
				o.BuildTime += build
				o.MeasureTime += measure
				return err
			}},
		{`SELECT state, count(*), min(CASE WHEN due > created THEN due ELSE created END) FROM tasks GROUP BY state`, nil,
			func(scan func(...any) error) error {
				var state State
				var n int
				var first string
				err := scan(&state, &n, &first)
				o.Tasks[state] = n
				if state == Queued {
					o.Queued, err = instant(first, err)
				}
				return err
			}},
		{`SELECT state, count(*), min(CASE WHEN next > created THEN next ELSE created END), min(started) FROM letters GROUP BY state`, nil,
			func(scan func(...any) error) error {
				var state LetterState
				var n int
				var first, started string
				err := scan(&state, &n, &first, &started)
				o.Letters[state] = n
				switch state {
				case LetterQueued:
					o.Due, err = instant(first, err)
				case LetterSending:
					o.Sending, err = instant(started, err)
				}
				return err
			}},
		{`SELECT count(*) FROM notices WHERE sent < seq`, nil, func(scan func(...any) error) error { return scan(&o.Notices) }},
		{`SELECT coalesce(max(id), 0) FROM mails`, nil, func(scan func(...any) error) error { return scan(&o.Mails) }},
		{`SELECT s.source, count(m.id), coalesce(max(m.received), ''), coalesce(max(c.place), '') FROM
				(SELECT source FROM cursors UNION SELECT DISTINCT source FROM mails) AS s
				LEFT JOIN mails AS m ON m.source = s.source
				LEFT JOIN cursors AS c ON c.source = s.source
			GROUP BY s.source ORDER BY s.source`, nil,
			func(scan func(...any) error) error {
				var one SourceState
				var last string
				err := scan(&one.Name, &one.Mails, &last, &one.Cursor)
				one.Last, err = instant(last, err)
				o.Sources = append(o.Sources, one)
				return err
			}},
		{`SELECT id, task_key, project, title, worker, lease FROM tasks WHERE state = 'running' AND lease < $1 ORDER BY lease LIMIT 20`, []any{moment},
			func(scan func(...any) error) error {
				t := Task{State: Running}
				var lease string
				err := scan(&t.ID, &t.Key, &t.Project, &t.Title, &t.Worker, &lease)
				t.Lease, err = instant(lease, err)
				o.Lapsed = append(o.Lapsed, t)
				return err
			}},
	}
	for _, q := range queries {
		if err := s.each(ctx, q.text, q.args, q.row); err != nil {
			return nil, s.fail(what, err)
		}
	}
	return o, nil
}

// each calls row for every row of a query.
func (s *Store) each(ctx context.Context, text string, args []any, row func(scan func(...any) error) error) error {
	rows, err := s.db.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// instant reads a time as the tables have it, "" as none, unless there was an
// error before.
func instant(text string, err error) (time.Time, error) {
	if err != nil || text == "" {
		return time.Time{}, err
	}
	return db.ParseTime(text)
}
