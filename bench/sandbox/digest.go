package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"patchbench/bench/sandbox/seccomp"
)

// Digest is the hex SHA-256 of what makes the sandbox: bubblewrap's program, the
// arguments that it is started with for an empty box, what bounds it and which
// calls are refused in it. Figures of two
// digests were taken in different surroundings. It is "" in unsafe mode.
func (s *Sandbox) Digest() (string, error) {
	if s.bwrap == "" {
		return "", nil
	}
	f, err := os.Open(s.bwrap)
	if err != nil {
		return "", fmt.Errorf("digest of the sandbox: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("digest of the sandbox: %w", err)
	}
	for _, arg := range s.boxArgs(Box{}, withDefaults(Limits{}), 0) {
		fmt.Fprintf(h, "%d:%s\n", len(arg), arg)
	}
	fmt.Fprintf(h, "%s %s\n", s.facts.Bounds, seccomp.Text())
	return hex.EncodeToString(h.Sum(nil)), nil
}
