// Package out writes an evaluation to a folder: its report in every form, and its
// samples. In go the evaluation and the store that has its samples; out come files,
// each of them whole or not there. What a report says is known in bot/report.
package out

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"patchbench/bench"
	"patchbench/bench/sample/jsonl"
	"patchbench/bot/report"
	"patchbench/bot/report/html"
	"patchbench/bot/report/markdown"
	"patchbench/store"
)

// Check makes the folder for the report's files and a file in it, before anything is
// measured in vain.
func Check(dir string) error {
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		var f *os.File
		if f, err = os.CreateTemp(dir, ".bot-*"); err == nil {
			err = errors.Join(f.Close(), os.Remove(f.Name()))
		}
	}
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err // not the name of the try
	}
	if err != nil {
		return fmt.Errorf("no file can be made there: %w", err)
	}
	return nil
}

// Write writes the report's files and the samples. What can be written is, also if
// another cannot.
func Write(ctx context.Context, dir string, e *store.Evaluation, st *store.Store) error {
	return errors.Join(
		File(dir, "report.txt", func(w io.Writer) error { return report.Text(w, e, report.Options{}) }),
		File(dir, "report.json", func(w io.Writer) error { return report.JSON(w, e) }),
		File(dir, "report.md", func(w io.Writer) error { return markdown.Write(w, e) }),
		File(dir, "report.html", func(w io.Writer) error { return HTML(ctx, w, e, st) }),
		File(dir, "samples.jsonl", func(w io.Writer) error { return writeSamples(ctx, w, e.ID, st) }))
}

func writeSamples(ctx context.Context, w io.Writer, id string, st *store.Store) error {
	var batch []bench.Sample
	for s, err := range st.Samples(ctx, id) {
		if err != nil {
			return err
		}
		if batch = append(batch, s); len(batch) == 4096 {
			if err := jsonl.Write(w, batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return jsonl.Write(w, batch)
}

// HTML writes the page of an evaluation with the samples that are kept of it.
func HTML(ctx context.Context, w io.Writer, e *store.Evaluation, s *store.Store) error {
	samples, err := Samples(ctx, e, s)
	if err != nil {
		return err
	}
	return html.Write(w, e, samples)
}

// Samples reads what is kept of an evaluation.
func Samples(ctx context.Context, e *store.Evaluation, s *store.Store) ([]bench.Sample, error) {
	var all []bench.Sample
	for sample, err := range s.Samples(ctx, e.ID) {
		if err != nil {
			return nil, err
		}
		all = append(all, sample)
	}
	return all, nil
}

// File writes a file whole or not at all.
func File(dir, name string, write func(io.Writer) error) (err error) {
	path := filepath.Join(dir, name)
	f, err := os.CreateTemp(dir, "."+name+"-*")
	if err != nil {
		var p *fs.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	err = write(f)
	if err2 := f.Close(); err == nil {
		err = err2
	}
	if err == nil {
		err = os.Chmod(f.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		// The user knows the name it was to have.
		var p *fs.PathError
		var l *os.LinkError
		if errors.As(err, &p) && p.Path == f.Name() {
			err = p.Err
		} else if errors.As(err, &l) {
			err = l.Err
		}
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
