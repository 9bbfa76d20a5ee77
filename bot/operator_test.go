package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"patchbench/config/service"
)

// TestOperator follows the operator's guide as far as that can be done without
// its servers: its service files are read, its commands understood.
func TestOperator(t *testing.T) {
	guide, err := os.ReadFile("../deploy/OPERATOR.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("service files", func(t *testing.T) {
		dir := t.TempDir()
		for _, name := range []string{"imap.password", "smtp.password"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("sesame\n"), 0o640); err != nil {
				t.Fatal(err)
			}
		}
		load := func(text string) *service.Config {
			file := filepath.Join(dir, "bot.toml")
			if err := os.WriteFile(file, []byte(text), 0o640); err != nil {
				t.Fatal(err)
			}
			cfg, err := service.Load(file, func(string) string { return "" })
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			return cfg
		}
		var blocks []string
		for _, m := range regexp.MustCompile("(?s) *```toml\n(.*?)```").FindAllStringSubmatch(string(guide), -1) {
			blocks = append(blocks, m[1])
		}
		if len(blocks) < 4 {
			t.Fatalf("the guide has %d blocks of TOML", len(blocks))
		}
		if first := load(blocks[0]); first.Lists[0].Mode != service.DryRun || first.SMTP != nil {
			t.Errorf("the first file sends mail: %v", first)
		}
		// What is added later, the list in place of the first.
		first := regexp.MustCompile(`(?s)\n *\[list\].*?\n\n`).ReplaceAllString(blocks[0], "\n\n")
		last := load(first + strings.Join(blocks[1:], ""))
		if l := last.Lists[0]; l.Mode != service.ToList || l.Consent == "" || len(last.Policy.Trusted) == 0 || last.SMTP == nil {
			t.Errorf("in the end the service is %v", last)
		}
	})
	t.Run("commands", func(t *testing.T) {
		commands := regexp.MustCompile("(?m)(?:^ +|`|-- )((?:bot|pb) (?:check|init|jobs|outbox|watch|worker)\\b[^`|\n]*)").FindAllStringSubmatch(string(guide), -1)
		if len(commands) < 10 {
			t.Fatalf("the guide has %d commands", len(commands))
		}
		for _, m := range commands {
			args := strings.Fields(m[1])[1:]
			for i, a := range args {
				if a == "N" {
					args[i] = "1"
				}
			}
			// What is said of several commands names no job, or no file.
			line := strings.Join(args, " ")
			switch {
			case regexp.MustCompile(`^(jobs|outbox) \w+$`).MatchString(line) && args[1] != "list":
				args = append(args, "1")
			case line == "check --repo" || line == "init --repo":
				args = append(args, ".")
			case line == "watch --no-worker" || line == "worker" || strings.HasPrefix(m[1], "pb "):
				args = append(args, "--config", "bot.toml")
			}
			var c command
			parser, err := kong.New(&c, kong.Exit(func(int) { t.Errorf("%s ends at once", m[1]) }))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := parser.Parse(args); err != nil {
				t.Errorf("%s: %v", m[1], err)
			}
		}
	})
}
