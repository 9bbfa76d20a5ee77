package maildir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"patchbench/mbox"
	"patchbench/mbox/source/feed"
)

// Find looks through the mails for one with this Message-ID. Files are read from
// the newest name back, and of each the header alone.
func (s *Source) Find(ctx context.Context, messageID string) (bool, error) {
	id := strings.Trim(strings.TrimSpace(messageID), "<>")
	if id == "" {
		return false, fmt.Errorf("%s: look for a mail: %q is no Message-ID", s.Name(), messageID)
	}
	// A mail that is renamed while it is looked for may be missed once.
	for missed := true; missed; {
		files, err := s.list()
		if err != nil {
			return false, fmt.Errorf("%s: look for <%s>: %w", s.Name(), id, err)
		}
		slices.SortFunc(files, func(a, b file) int { return strings.Compare(b.name, a.name) })
		missed = false
		for _, m := range files {
			if err := ctx.Err(); err != nil {
				return false, err
			}
			head, err := header(m.path)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				missed = true
			case err != nil:
				return false, fmt.Errorf("%s: look for <%s>: %w", s.Name(), id, err)
			default:
				if h, err := mbox.ParseHeader(head); err == nil && h.ID == id {
					return true, nil
				}
			}
		}
	}
	return false, nil
}

func header(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, feed.CutAt))
}
