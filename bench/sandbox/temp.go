package sandbox

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"patchbench/bench/sandbox/claim"
	"patchbench/bench/sandbox/sweep"
)

// tempPrefix begins the names of the temporary folders made here.
const tempPrefix = "patchbench-box-"

// tempDir makes a folder in the temporary one. It is this process's until the file
// is closed; then, or when the process is killed, sweepTemp removes it.
func tempDir() (*os.File, error) {
	dir, err := claim.New(os.TempDir(), tempPrefix)
	for _, fault := range []error{unix.ENOENT, unix.ENOTDIR, unix.EACCES, unix.EPERM, unix.EROFS} {
		if errors.Is(err, fault) {
			return nil, fmt.Errorf("%w: %s: %w; set TMPDIR to a folder that this user can write to", ErrTemp, os.TempDir(), fault)
		}
	}
	return dir, err
}

// sweepTemp removes the folders that killed bots have left.
func sweepTemp() { claim.Sweep(os.TempDir(), tempPrefix, removeTemp) }

// removeTemp removes a folder with all in it; that it is not there is no error.
func removeTemp(dir string) error {
	err := sweep.Empty(dir, 0o700)
	if err == nil {
		err = os.Remove(dir)
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
