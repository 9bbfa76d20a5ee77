package service

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// all takes the # off every setting of a starter.
func all(text string) string {
	return regexp.MustCompile(`(?m)^#([a-z_]+ = |\[)`).ReplaceAllString(text, "$1")
}

func TestStarter(t *testing.T) {
	dir := folder(t)
	for _, name := range []string{"imap.password", "smtp.password", "store.password", "github.token", "webhook.secret"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(Placeholder+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text := Starter("state")
	cfg, err := parse(filepath.Join(dir, "bot.toml"), []byte(text), 0o644, none)
	if err != nil {
		t.Fatalf("the starter is refused:\n%v", err)
	}
	if len(cfg.Lists) != 1 || cfg.Lists[0].Mode != DryRun || cfg.SMTP != nil || cfg.GitHub != nil || cfg.Policy.Strangers != Hold {
		t.Errorf("the starter may say something to somebody: %v", cfg)
	}

	// Everything at once, but for what stands against each other.
	full := all(text)
	for from, to := range map[string]string{"#password_file = \"store": "", "\npassword_file = \"store.password\"": "", "\"/var/mail/bench\"": "\"mail\"", "/srv/inbox/project": "inbox"} {
		full = strings.ReplaceAll(full, from, to)
	}
	max, err := parse(filepath.Join(dir, "bot.toml"), []byte(full), 0o644, none)
	if err != nil {
		t.Fatalf("with every setting it is refused:\n%v", err)
	}
	t.Run("defaults", func(t *testing.T) {
		type defaults struct {
			TLS, Folder   string
			Plain         bool
			Budget        time.Duration
			Margin        float64
			Class         string
			Wait, GiveUp  time.Duration
			Quiet         bool
			PerAuthorDay  int
			StrangersDay  int
			MaxAge        time.Duration
			ThreadCap     int
			AutoSubmitted bool
			DKIM          bool
			Worker        Worker
		}
		of := func(c *Config) defaults {
			p, l := c.Projects[0], c.Lists[0]
			return defaults{
				c.IMAP.TLS, c.IMAP.Folder, c.IMAP.AllowPlaintext, p.Budget, p.Margin, p.Class, l.Wait, l.GiveUp, l.Quiet,
				c.Policy.PerAuthorDay, c.Policy.StrangersDay, c.Policy.MaxAge, c.Policy.ThreadCap, c.Policy.AutoSubmitted, c.Policy.VerifyDKIM, c.Worker,
			}
		}
		want := of(cfg)
		want.Worker.SandboxUID = 64000 // is bench/sandbox's own
		if diff := cmp.Diff(want, of(max)); diff != "" {
			t.Errorf("what is explained as defaults (-real +explained):\n%s", diff)
		}
		if max.SMTP.TLS != StartTLS || max.SMTP.PerHour != 30 || max.SMTP.LookFor != 20*time.Minute || max.Inboxes[0].Poll != time.Minute || max.GitHub.Poll != time.Minute || max.GitHub.MaxFetch != defaultFetch {
			t.Errorf("defaults of SMTP, inbox and GitHub are %+v, %+v, %+v", max.SMTP, max.Inboxes, max.GitHub)
		}
	})
	t.Run("every key", func(t *testing.T) {
		for _, key := range keys(reflect.TypeFor[file](), nil) {
			if !regexp.MustCompile(`(?m)^(# ?)?\[?` + key + `( = |\])|[{,] ` + key + ` = `).MatchString(text) {
				t.Errorf("the starter does not explain %s", key)
			}
		}
	})
	for i, line := range strings.Split(text, "\n") {
		if len(line) > 112 {
			t.Errorf("line %d has %d characters", i+1, len(line))
		}
	}
}

// keys lists the names of all keys of a type that a file may give.
func keys(t reflect.Type, names []string) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return names
	}
	for i := range t.NumField() {
		if f := t.Field(i); f.Type != reflect.TypeFor[literal]() {
			names = keys(f.Type, append(names, f.Tag.Get("toml")))
		}
	}
	return names
}
