package store

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"

	"patchbench/store/db"
)

// Mail is a message as it was taken in.
type Mail struct {
	// ID is the place in the order of taking in, ascending: a mail that is seen
	// has all lower ids seen before it.
	ID int64
	// Key is the Message-ID without <>, or "sha256:HEX" for a mail without a usable one.
	Key string
	// SHA256 is that of Raw, in hexadecimal digits; TakeIn works it out.
	SHA256   string
	Source   string    // name of the feed
	Received time.Time // UTC
	Raw      []byte    // the bytes as received
	Problem  string    // why the mail cannot be read, "" if it can
}

// Cursor is where a source's next batch begins, "" before the first.
func (s *Store) Cursor(ctx context.Context, source string) (string, error) {
	var place string
	err := s.db.QueryRowContext(ctx, `SELECT place FROM cursors WHERE source = $1`, db.Text(source)).Scan(&place)
	if _, err := db.Found(err); err != nil {
		return "", s.fail("read the cursor of "+source, err)
	}
	return place, nil
}

// TakeIn keeps mails and moves the source's cursor in one transaction. A mail
// whose bytes are there already is passed over. It gives how many were new.
// A mail's ID and SHA256 are not looked at; a Key of "" becomes "sha256:HEX".
func (s *Store) TakeIn(ctx context.Context, source, cursor string, mails []Mail) (int, error) {
	type packed struct {
		sum, key string
		raw      []byte
	}
	all := make([]packed, len(mails))
	var zip *gzip.Writer
	for i, m := range mails {
		sum := sha256.Sum256(m.Raw)
		p := &all[i]
		p.sum, p.key = hex.EncodeToString(sum[:]), db.Text(m.Key)
		if p.key == "" {
			p.key = "sha256:" + p.sum
		}
		var b bytes.Buffer
		if zip == nil {
			zip, _ = gzip.NewWriterLevel(&b, gzip.BestSpeed) // the level is a valid one
		} else {
			zip.Reset(&b)
		}
		zip.Write(m.Raw) // memory takes all
		zip.Close()
		p.raw = b.Bytes()
	}
	taken := 0
	err := s.do(ctx, fmt.Sprintf("take in %d mails of %s", len(mails), source), func(tx *sql.Tx) error {
		taken = 0
		if err := s.db.Serialise(ctx, tx, "mails"); err != nil {
			return err
		}
		now := db.Time(s.now())
		insert, err := tx.PrepareContext(ctx, `
			INSERT INTO mails (sha256, mail_key, source, received, taken, problem, raw)
			VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (sha256) DO NOTHING`)
		if err != nil {
			return err
		}
		defer insert.Close()
		for i, m := range mails {
			result, err := insert.ExecContext(ctx, all[i].sum, all[i].key, db.Text(source), db.Time(m.Received), now, db.Text(m.Problem), all[i].raw)
			if err != nil {
				return err
			}
			n, err := result.RowsAffected()
			if err != nil {
				return err
			}
			taken += int(n)
		}
		_, err = tx.ExecContext(ctx, `
			INSERT INTO cursors (source, place, moved) VALUES ($1, $2, $3)
			ON CONFLICT (source) DO UPDATE SET place = excluded.place, moved = excluded.moved`, db.Text(source), db.Text(cursor), now)
		return err
	})
	if err != nil {
		return 0, err
	}
	return taken, nil
}

// maxMails bounds the bytes that Mails gives at a time.
const maxMails = 16 << 20

const mailColumns = `id, mail_key, sha256, source, received, problem, raw`

// Mails gives mails behind id after, by ID: limit of them at most, and no more
// behind the one with which they pass 16 MiB. None are given only if none are there.
func (s *Store) Mails(ctx context.Context, after int64, limit int) ([]Mail, error) {
	var all []Mail
	size := 0
	rows, err := s.db.QueryContext(ctx, `SELECT `+mailColumns+` FROM mails WHERE id > $1 ORDER BY id LIMIT $2`, after, limit)
	if err != nil {
		return nil, s.fail("read mails", err)
	}
	defer rows.Close()
	for size < maxMails && rows.Next() {
		m, err := scanMail(rows)
		if err != nil {
			return nil, s.fail("read mails", err)
		}
		size += len(m.Raw)
		all = append(all, m)
	}
	if err := rows.Err(); err != nil {
		return nil, s.fail("read mails", err)
	}
	return all, nil
}

// MailsByKey gives all mails with these keys, by ID. Of each key there may be
// several, as lists change what they pass on.
func (s *Store) MailsByKey(ctx context.Context, keys ...string) ([]Mail, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	args := make([]any, len(keys))
	marks := make([]string, len(keys))
	for i, k := range keys {
		args[i], marks[i] = db.Text(k), fmt.Sprint("$", i+1)
	}
	var all []Mail
	err := db.Query(ctx, s.db, func(r db.Row) error {
		m, err := scanMail(r)
		all = append(all, m)
		return err
	}, `SELECT `+mailColumns+` FROM mails WHERE mail_key IN (`+strings.Join(marks, ", ")+`) ORDER BY id`, args...)
	if err != nil {
		return nil, s.fail("read mails", err)
	}
	return all, nil
}

func scanMail(r db.Row) (Mail, error) {
	var m Mail
	var received string
	var packed []byte
	err := r.Scan(&m.ID, &m.Key, &m.SHA256, &m.Source, &received, &m.Problem, &packed)
	if err != nil {
		return m, err
	}
	if m.Received, err = db.ParseTime(received); err != nil {
		return m, fmt.Errorf("mail %d: %w", m.ID, err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err == nil {
		m.Raw, err = io.ReadAll(z)
	}
	if err != nil {
		return m, fmt.Errorf("mail %d: %w", m.ID, err)
	}
	return m, nil
}

// PruneMails removes the mails that were both received and taken in before a
// time and gives how many that were. The cursors stay.
func (s *Store) PruneMails(ctx context.Context, before time.Time) (int, error) {
	result, err := s.db.ExecContext(ctx, `DELETE FROM mails WHERE taken < $1 AND received < $1`, db.Time(before))
	if err != nil {
		return 0, s.fail("remove old mails", err)
	}
	n, err := result.RowsAffected()
	if err != nil {
		return 0, s.fail("remove old mails", err)
	}
	return int(n), nil
}
