package sandbox

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// tempDir makes a folder in the temporary one.
func tempDir(pattern string) (string, error) {
	dir, err := os.MkdirTemp("", pattern)
	for _, fault := range []error{unix.ENOENT, unix.ENOTDIR, unix.EACCES, unix.EPERM, unix.EROFS} {
		if errors.Is(err, fault) {
			return "", fmt.Errorf("%w: %s: %w; set TMPDIR to a folder that this user can write to", ErrTemp, os.TempDir(), fault)
		}
	}
	return dir, err
}
