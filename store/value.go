package store

import (
	"context"
	"database/sql"
	"time"

	"patchbench/store/db"
)

// remembered is how long a webhook's delivery id is known.
const remembered = 30 * 24 * time.Hour

// Delivery remembers a webhook's delivery id for 30 days and says whether it is
// new. It is asked before the delivery is acted upon: whatever comes of a
// delivery must also be safe to do twice, and must be found by polling if it
// never comes.
func (s *Store) Delivery(ctx context.Context, id string) (fresh bool, err error) {
	err = s.do(ctx, "remember delivery "+id, func(tx *sql.Tx) error {
		now := s.now()
		if _, err := tx.ExecContext(ctx, `DELETE FROM deliveries WHERE seen < $1`, db.Time(now.Add(-remembered))); err != nil {
			return err
		}
		result, err := tx.ExecContext(ctx, `INSERT INTO deliveries (id, seen) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING`, db.Text(id), db.Time(now))
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		fresh = n > 0
		return err
	})
	return fresh, err
}

// Value gives a small thing kept under a name, "" if there is none.
func (s *Store) Value(ctx context.Context, name string) (string, error) {
	var value string
	err := s.db.QueryRowContext(ctx, `SELECT value FROM settings WHERE name = $1`, db.Text(name)).Scan(&value)
	if _, err := db.Found(err); err != nil {
		return "", s.fail("read "+name, err)
	}
	return value, nil
}

// SetValue keeps a small thing under a name, in the place of what was there.
func (s *Store) SetValue(ctx context.Context, name, value string) error {
	_, err := s.db.ExecContext(ctx, `
		INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
		db.Text(name), db.Text(value))
	if err != nil {
		return s.fail("keep "+name, err)
	}
	return nil
}

// InitValue keeps a value under a name unless one is there, and gives that which
// is there then: whoever starts first makes the secret that all use.
func (s *Store) InitValue(ctx context.Context, name, value string) (string, error) {
	_, err := s.db.ExecContext(ctx, `INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`, db.Text(name), db.Text(value))
	if err != nil {
		return "", s.fail("keep "+name, err)
	}
	return s.Value(ctx, name)
}

// Answered gives the Message-ID of the letter, not of this outbox, that is known to
// answer the mail with this id; "" for none. Both stand without <>.
func (s *Store) Answered(ctx context.Context, id string) (string, error) {
	return s.Value(ctx, "letter:answered:"+id)
}

// SetAnswered keeps that a letter which is not of this outbox answers a mail.
func (s *Store) SetAnswered(ctx context.Context, id, by string) error {
	return s.SetValue(ctx, "letter:answered:"+id, by)
}
