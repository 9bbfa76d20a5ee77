package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Reap kills the sandboxes for the builds below a folder that a killed bot left
// half made: bwrap --die-with-parent only dies with its parent once it is set up, and
// waits for a parent that died before for ever. The caller knows that nobody else
// uses the folder.
func Reap(folder string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		args, err := os.ReadFile(f)
		if err != nil {
			continue // it has ended
		}
		name, _, _ := bytes.Cut(args, []byte{0})
		if filepath.Base(string(name)) != "bwrap" || !bytes.Contains(args, []byte("\x00"+folder+"/")) {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(f, "/")[2]); err == nil {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
