package runner

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ending reads a wait status. A shell that ends with 128 + n tells of a signal
// that killed what it ran, if n is one that kills programs.
func ending(args []string, ws syscall.WaitStatus) (status int, signal string) {
	if ws.Signaled() {
		return -1, signalName(ws.Signal())
	}
	status = ws.ExitStatus()
	if n := syscall.Signal(status - 128); status > 128 && isShell(args) && slices.Contains(fatal, n) {
		signal = signalName(n)
	}
	return status, signal
}

var fatal = []syscall.Signal{
	syscall.SIGILL, syscall.SIGTRAP, syscall.SIGABRT, syscall.SIGBUS, syscall.SIGFPE,
	syscall.SIGKILL, syscall.SIGSEGV, syscall.SIGPIPE, syscall.SIGTERM, syscall.SIGSYS,
}

func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", int(s))
}

// isShell recognises `sh -c LINE` with any options before it.
func isShell(args []string) bool {
	switch filepath.Base(args[0]) {
	case "sh", "dash", "bash", "ash", "ksh", "mksh", "zsh":
	default:
		return false
	}
	for _, a := range args[1:] {
		if !strings.HasPrefix(a, "-") {
			return false
		}
		if !strings.HasPrefix(a, "--") && strings.Contains(a, "c") {
			return true
		}
	}
	return false
}
