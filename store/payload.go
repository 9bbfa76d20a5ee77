package store

import (
	"bytes"
	"compress/gzip"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"time"

	"patchbench/mbox"
)

// MailPayload is what a worker needs to evaluate a series from mail and to
// answer it.
type MailPayload struct {
	Series mbox.Series
	// AtHand are other series that this one may build upon.
	AtHand []mbox.Series
	Thread Thread
	// Base and Branch are what the policy or a command wants, "" for the series' own.
	Base, Branch string
	// Benchmarks are what a command asked for, nil for the whole suite.
	Benchmarks []string
	Mode       string // list, author-only or dry-run
	Quiet      bool   // nothing is said of a neutral result
	Previous   string // task key of the version before, "" for none
}

// Thread is where an answer goes.
type Thread struct {
	MessageID  string   // of the mail to be answered: cover, else patch 1, or a command's
	Subject    string   // as sent
	References []string // of that mail, ids without <>
	Author     mbox.Address
	List       string // address
	Date       time.Time
	Body       string
}

// PullPayload is what a worker needs to evaluate a pull request.
type PullPayload struct {
	Repo         string // owner/name
	Number       int
	Head, Base   string // commits
	BaseRef      string // branch
	Title        string
	Author       string // login
	URL          string
	Benchmarks   []string // what a command asked for, nil for the whole suite
	Installation int64    // of the GitHub App, 0 with a token
	Supersedes   string   // key of an older task
}

// maxPayload bounds what DecodePayload unpacks.
const maxPayload = 256 << 20

// EncodePayload packs a MailPayload or PullPayload for a Task. It panics on what
// gob cannot encode.
func EncodePayload(v any) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := gob.NewEncoder(z).Encode(v); err != nil {
		panic(fmt.Sprintf("encode payload %T: %v", v, err))
	}
	z.Close() // writing to memory does not fail
	return b.Bytes()
}

// DecodePayload unpacks what EncodePayload packed into the variable that v
// points to.
func DecodePayload(b []byte, v any) error {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return fmt.Errorf("decode payload: %w", err)
	}
	limited := &io.LimitedReader{R: z, N: maxPayload}
	if err := gob.NewDecoder(limited).Decode(v); err != nil {
		if limited.N == 0 {
			err = errors.New("it unpacks to more than 256 MiB")
		}
		return fmt.Errorf("decode payload %T: %w", v, err)
	}
	return nil
}
