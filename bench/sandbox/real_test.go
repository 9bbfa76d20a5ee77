package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGoBuild follows a real and busy program: a compiler run with many threads,
// processes and signals, which writes to a cache and leaves a program that runs.
func TestGoBuild(t *testing.T) {
	s := openBoxed(t)
	dir := workDir(t)
	for name, text := range map[string]string{
		"go.mod":  "module hello\n\ngo 1.24\n",
		"main.go": "package main\n\nfunc main() { println(\"hello\") }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Own(dir); err != nil {
		t.Fatal(err)
	}
	r := start(t, s, Box{Mounts: []Mount{{Host: dir, Inside: "/build/src", Write: true}}})
	if res := do(t, r, Command{Args: []string{"go", "version"}}); res.NotStarted != "" {
		lacking(t, "no Go in a box: "+res.NotStarted+"; hidden: "+strings.Join(s.Facts().Hidden, "; "))
	}
	env := []string{"GOCACHE=/build/src/cache", "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false"}
	res := do(t, r, Command{Args: []string{"go", "build", "-o", "hello", "."}, Dir: "/build/src", Env: env, Peaks: true})
	if !res.OK() || res.Processes < 10 || res.Left > 0 {
		t.Fatalf("%+v", res)
	}
	// The compiler of the runtime alone holds more, and go build starts it.
	if res.RSSBytes < 20<<20 || res.RSSSumBytes < res.RSSBytes || res.SizeBytes < res.RSSBytes {
		t.Errorf("peaks %d of %d, sum %d", res.RSSBytes, res.SizeBytes, res.RSSSumBytes)
	}
	if res := do(t, r, Command{Args: []string{"./hello"}, Dir: "/build/src", Peaks: true}); !res.OK() || res.LogTail != "hello\n" {
		t.Errorf("%+v", res)
	}
}
