// Package report renders a stored evaluation for its readers: as text for a
// terminal or a mail, and as JSON for scripts.
//
// In goes a store.Evaluation and nothing else; out come bytes, the same each
// time, so that a report can be rendered again from the record. It is the
// last stage before bot/reply, which only delivers what was rendered here.
// Nothing is judged: verdicts and intervals stand in the evaluation.
//
// The text is for someone who gives it ten seconds. It says first what matters:
//
//	Patch 2 makes hash slower: cpu +5.1 % (4.6 .. 5.5)
//
//	Series    kit: cleaner hash, faster table (v2, 5 patches)
//	Author    Some Author <one@example.org>
//	Base      3f9a2c1d0b7e (branch): tip of main
//
//	Base against the whole series
//	               base           patched          change
//	  hash
//	    cpu        412.3 +-2.1    433.1 +-1.9 ms   +5.1 % (4.6 .. 5.5)  worse
//
// Foreign text (subjects, names, logs) is shown with control characters,
// escape sequences and bidirectional controls spelled out.
package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"patchbench/bench"
	"patchbench/bot/report/plain"
	"patchbench/store"
)

// Options choose how Text lays out a report. The zero value is a mail's.
type Options struct {
	// Width is the largest number of columns of a line; tables and prose keep
	// six columns less. 0 means 78, and fewer than 60 are taken as 60.
	Width int
	// Lines is the largest number of lines that the tables leave room for. 0
	// means 200, and fewer than 100 are taken as 100.
	Lines int
	// Color marks verdicts with the colours of a terminal (ANSI SGR).
	Color bool
}

// JSON writes the evaluation as report.json has it, indented by two spaces: the
// encoding of store.Encode. Characters that could steer a terminal are written
// as \u escapes, which leaves the value the same.
func JSON(w io.Writer, e *store.Evaluation) error {
	record, err := store.Encode(e)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, record, "", "  "); err != nil {
		return fmt.Errorf("encode evaluation %s: %w", e.ID, err)
	}
	_, err = w.Write(quiet(b.Bytes()))
	return err
}

// quiet spells out what encoding/json leaves as it is: DEL, C1 controls and
// invisible formatting. They can stand in strings only.
func quiet(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case r == 0x7f || r >= 0x80 && r < 0xa0 || r < 0x10000 && unicode.Is(unicode.Cf, r):
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			out = append(out, b[:n]...)
		}
		b = b[n:]
	}
	return out
}

// Escape spells out what a terminal or mail reader would obey in foreign text:
// control characters, escape sequences, bidirectional controls, invalid UTF-8.
func Escape(s string) string { return plain.Clean(s) }

// Lead says what became of an evaluation in our own one to three words ("Worse",
// "Does not build"), and takes them off the headline, which may begin with them
// and is cleaned.
func Lead(e *store.Evaluation) (word, headline string) {
	headline = plain.Clean(e.Headline)
	unbuilt := slices.ContainsFunc(e.Versions, func(v bench.Version) bool { return v.State == bench.BuildFailed })
	switch e.Verdict {
	case bench.Better:
		word = "Better"
	case bench.Worse:
		word = "Worse"
	case bench.Mixed:
		word = "Mixed"
	case bench.FailedSeries:
		word = "Failed"
	case bench.Unclear:
		word = "Unclear"
	case bench.Same:
		word = "No change"
	default:
		word = "Report"
	}
	if unbuilt && (e.Verdict == bench.Same || e.Verdict == bench.Unclear) {
		word = "Does not build"
	}
	if n := len(word) + 1; len(headline) > n && strings.EqualFold(headline[:n], word+":") {
		headline = strings.TrimSpace(headline[n:])
	}
	return word, headline
}
