// Package source brings mail in: from an mbox, a single mail, a file of git
// format-patch or hg export, a folder of such files, a Maildir, any of them
// packed with gzip, or standard input; and the thread of a message from a
// public-inbox, over HTTP or from its git repositories on disk.
//
//	s, err := source.Open("series.mbox", os.Stdin)
//	s, err := source.OpenArchive(ctx, "https://lists.example.org/dev", "1@example.org", source.ArchiveOptions{})
//	for {
//		m, problem, err := s.Next() // source.ErrEnd at the end
//	}
//
// It stands at the head of the path of a series: out come messages, in the order
// in which they lie in the input. What they mean is decided in mbox/series.
package source

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"patchbench/mbox"
)

// InputError says that the input named by the user cannot be used as mail: it is
// missing, unreadable, empty, or something else. It is the user's to mend.
type InputError struct {
	Path   string
	Reason string // what is wrong and what to do
	Err    error  // the system's error, nil if there is none
}

// Error is PATH: REASON.
func (e *InputError) Error() string { return e.Path + ": " + e.Reason }

// Unwrap gives the system's error.
func (e *InputError) Unwrap() error { return e.Err }

// ErrEnd is given behind the last message. It is io.EOF.
var ErrEnd = io.EOF

// Source yields the messages of one input. Close it after use.
type Source struct {
	name        string
	files       []string // still to open
	passed      []string // folders that hold mails and are not read, still to tell
	mails       []stored // still to read
	reader      *mbox.Reader
	maxUnpacked int64 // of what is packed, in bytes; 0 is no bound
	closer      []io.Closer
}

// Open opens a file, folder or Maildir; "-" reads stdin, which is not closed. It
// fails with *InputError when path is missing or holds no mail.
func Open(path string, stdin io.Reader) (*Source, error) {
	s := &Source{name: path}
	if path == "-" {
		s.name = "stdin"
		if err := s.read("stdin", stdin); err != nil {
			return nil, err
		}
		return s, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, inputError(path, err)
	}
	if !info.IsDir() {
		if err := s.openFile(path); err != nil {
			return nil, err
		}
		return s, nil
	}
	if s.files, err = mails(path); err != nil {
		return nil, inputError(path, err)
	}
	s.passed = foldersOfMail(path)
	if len(s.files) == 0 {
		reason := "no mails in it (looked for *.patch, *.eml, *.mbox and Maildir cur/ and new/)"
		if len(s.passed) > 0 {
			reason += "; its folder " + filepath.Base(s.passed[0]) + " has some: name that one"
		}
		return nil, &InputError{Path: path, Reason: reason}
	}
	return s, nil
}

func inputError(path string, err error) *InputError {
	reason := err.Error()
	var pe *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		reason = "no such file or directory"
	case errors.Is(err, fs.ErrPermission):
		reason = "permission denied"
	case errors.As(err, &pe):
		reason = pe.Op + ": " + pe.Err.Error()
	}
	return &InputError{Path: path, Reason: reason, Err: err}
}

// foldersOfMail lists the folders in dir that hold mails of their own, as those of
// a Maildir++ (.list) do.
func foldersOfMail(dir string) []string {
	// Whoever cannot list dir has heard so from mails.
	entries, _ := os.ReadDir(dir)
	var list []string
	for _, e := range entries {
		name := e.Name()
		if !e.IsDir() || name == "cur" || name == "new" || name == "tmp" {
			continue
		}
		if files, err := mails(filepath.Join(dir, name)); err == nil && len(files) > 0 {
			list = append(list, filepath.Join(dir, name))
		}
	}
	return list
}

// mails lists the mails of a folder by name: those of cur/ and new/ if it is a
// Maildir, in order of delivery, else the files with a mail's suffix.
func mails(dir string) ([]string, error) {
	var files []string
	maildir := false
	for _, sub := range []string{"cur", "new"} {
		entries, err := os.ReadDir(filepath.Join(dir, sub))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		maildir = true
		for _, e := range entries {
			if !e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
				files = append(files, filepath.Join(dir, sub, e.Name()))
			}
		}
	}
	if maildir {
		slices.SortFunc(files, func(a, b string) int { return strings.Compare(filepath.Base(a), filepath.Base(b)) })
		return files, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := strings.TrimSuffix(strings.ToLower(e.Name()), ".gz")
		switch filepath.Ext(name) {
		case ".patch", ".eml", ".mbox":
			if !e.IsDir() && !strings.HasPrefix(name, ".") {
				files = append(files, filepath.Join(dir, e.Name()))
			}
		}
	}
	return files, nil
}

func (s *Source) openFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return inputError(path, err)
	}
	s.closer = append(s.closer, f)
	if err := s.read(path, f); err != nil {
		s.Close()
		return err
	}
	return nil
}

// sniffed is how much of an input decides whether it is mail.
const sniffed = 64 << 10

// read puts an mbox reader over the input, unpacked if it is packed.
func (s *Source) read(name string, r io.Reader) error {
	br := bufio.NewReaderSize(r, sniffed)
	if magic, _ := br.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(br)
		if theirs := typed(err); theirs != nil {
			return theirs
		} else if err != nil {
			return &InputError{Path: name, Reason: "broken gzip file: " + err.Error(), Err: err}
		}
		s.closer = append(s.closer, z)
		var unpacked io.Reader = z
		if s.maxUnpacked > 0 {
			unpacked = &bounded{r: z, left: s.maxUnpacked, max: s.maxUnpacked, name: name}
		}
		br = bufio.NewReaderSize(unpacked, sniffed)
	}
	head, err := br.Peek(sniffed)
	if err != nil && err != io.EOF && len(head) == 0 {
		if theirs := typed(err); theirs != nil {
			return theirs
		}
		return inputError(name, err)
	}
	if reason := notMail(head); reason != "" {
		return &InputError{Path: name, Reason: reason}
	}
	s.reader = mbox.NewReader(br, name)
	return nil
}

// notMail says why the first bytes of an input are no mail, "" if they may be one.
func notMail(head []byte) string {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	if len(head) == 0 || bytes.HasPrefix(head, []byte("# HG changeset patch")) {
		return ""
	}
	if bytes.HasPrefix(head, []byte("diff ")) || bytes.HasPrefix(head, []byte("--- ")) || bytes.HasPrefix(head, []byte("Index: ")) {
		return "not an mbox or mail file: a diff without author and message (make it with git format-patch)"
	}
	known := false
	for i := 0; len(head) > 0; i++ {
		line := head
		if j := bytes.IndexByte(head, '\n'); j >= 0 {
			line, head = head[:j], head[j+1:]
		} else {
			head = nil
		}
		line = bytes.TrimRight(line, "\r")
		if len(line) == 0 {
			break
		}
		if i == 0 && bytes.HasPrefix(line, []byte("From ")) {
			known = true
			continue
		}
		name, _, found := bytes.Cut(line, []byte(":"))
		if !found || len(name) == 0 || bytes.ContainsFunc(name, func(r rune) bool { return r <= 32 || r > 126 }) {
			if i == 0 {
				break
			}
			continue
		}
		switch strings.ToLower(string(name)) {
		case "from", "subject", "date", "message-id", "received", "return-path", "to", "mime-version", "content-type", "delivered-to":
			known = true
		}
	}
	if !known {
		return "not an mbox or mail file"
	}
	return ""
}

// Next gives the next message, or a Problem for one that could not be read, or
// an error, ErrEnd at the end. In a folder a file that is no mail is a Problem,
// and so is a folder in it that has mails.
// An empty input ends at once.
func (s *Source) Next() (*mbox.Message, *mbox.Problem, error) {
	for {
		if len(s.mails) > 0 {
			one := s.mails[0]
			s.mails = s.mails[1:]
			return one.read()
		}
		if s.reader == nil {
			if len(s.files) == 0 && len(s.passed) > 0 {
				path := s.passed[0]
				s.passed = s.passed[1:]
				return nil, &mbox.Problem{Position: path, Error: "a folder in a folder is not read: name it as well if its mails are wanted"}, nil
			}
			if len(s.files) == 0 {
				return nil, nil, ErrEnd
			}
			path := s.files[0]
			s.files = s.files[1:]
			if err := s.openFile(path); err != nil {
				var ie *InputError
				if !errors.As(err, &ie) {
					return nil, nil, err
				}
				return nil, &mbox.Problem{Position: path, Error: ie.Reason}, nil
			}
		}
		m, p, err := s.reader.Next()
		if err == nil {
			return m, p, nil
		}
		s.reader = nil
		if cerr := s.Close(); cerr != nil && err == io.EOF {
			err = cerr
		}
		if err == io.EOF {
			continue
		}
		if theirs := typed(err); theirs != nil {
			return nil, nil, theirs
		}
		for _, broken := range []error{gzip.ErrChecksum, gzip.ErrHeader, io.ErrUnexpectedEOF} {
			if errors.Is(err, broken) {
				return nil, &mbox.Problem{Position: s.name, Error: "broken gzip file: " + broken.Error()}, nil
			}
		}
		var corrupt flate.CorruptInputError
		if errors.As(err, &corrupt) {
			return nil, &mbox.Problem{Position: s.name, Error: "broken gzip file: " + corrupt.Error()}, nil
		}
		return nil, nil, err
	}
}

// typed gives the error of ours in err that says all by itself, nil if there is none.
func typed(err error) error {
	var input *InputError
	var fetch *fetchError
	switch {
	case errors.As(err, &input):
		return input
	case errors.As(err, &fetch):
		return fetch
	}
	return nil
}

// Close closes what is open.
func (s *Source) Close() error {
	var first error
	for i := len(s.closer) - 1; i >= 0; i-- {
		if err := s.closer[i].Close(); err != nil && first == nil {
			first = err
		}
	}
	s.closer = nil
	return first
}
