package db

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// Far is further ahead than anything is put off to: a time behind it was kept by a
// clock that has been set back since, and must not be waited for.
const Far = 24 * time.Hour

// Query reads rows and hands each to scan.
func Query(ctx context.Context, q interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}, scan func(Row) error, text string, args ...any) error {
	rows, err := q.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Row is a sql.Row or the current one of sql.Rows.
type Row interface{ Scan(...any) error }

// Found says whether a row was there.
func Found(err error) (bool, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}
