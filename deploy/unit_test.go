package deploy

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// TestUnit checks the unit as systemd reads it, and that nothing is closed that
// bubblewrap needs: each of these was seen to leave the service without a sandbox,
// or takes a call from it that it makes.
func TestUnit(t *testing.T) {
	unit, err := os.ReadFile("patchbench.service")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"RestrictNamespaces", "PrivateUsers", "ProtectKernelTunables", "ProtectKernelLogs", "ProtectProc", "ProcSubset", "ProtectControlGroups", "ProtectHostname"} {
		if regexp.MustCompile(`(?m)^` + name + `=`).Match(unit) {
			t.Errorf("%s is set, with which bubblewrap does not start", name)
		}
	}
	for _, line := range []string{"Delegate=memory pids", "OOMPolicy=continue", "NoNewPrivileges=yes", "CapabilityBoundingSet=", "KillMode=mixed", "RestartPreventExitStatus=2 4"} {
		if !regexp.MustCompile(`(?m)^` + line + `$`).Match(unit) {
			t.Errorf("the unit has no line %s", line)
		}
	}
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("systemd-analyze is missing")
		}
		t.Skip("needs systemd-analyze")
	}
	// Without the command, which is not installed here.
	dir := t.TempDir()
	file := filepath.Join(dir, "patchbench.service")
	if err := os.WriteFile(file, bytes.Replace(unit, []byte("/usr/local/bin/bot watch"), []byte("/bin/true watch"), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("systemd-analyze", "verify", "--man=no", file).CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	// 9.6 is a service with no line of this; the threshold counts tenths.
	if out, err := exec.Command("systemd-analyze", "security", "--offline=yes", "--threshold=40", file).CombinedOutput(); err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
}
