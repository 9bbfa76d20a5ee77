package service

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"patchbench/config"
	"patchbench/mbox"
)

// sample gives a case of testdata/faults.txtar, to be read in dir.
func sample(t testing.TB, dir, name string) []byte {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/faults.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		if f.Name == name {
			return []byte(strings.ReplaceAll(complete(string(f.Data)), "DIR/", dir+"/"))
		}
	}
	t.Fatalf("there is no case %q", name)
	return nil
}

func none(string) string { return "" }

// passwords is an environment in which each secret is the prefix and its name;
// there is no key, which could not be any text.
func passwords(prefix string) func(string) string {
	return func(name string) string {
		if strings.HasSuffix(name, "_KEY") {
			return ""
		}
		return prefix + name
	}
}

// open lets cmp look at secrets.
var open = cmp.Transformer("open", func(s Secret) []byte { return []byte(s) })

func TestLoad(t *testing.T) {
	dir := folder(t)
	load := func(t *testing.T, name string, env func(string) string) *Config {
		t.Helper()
		file := filepath.Join(dir, "bot.toml")
		if err := os.WriteFile(file, sample(t, dir, name), 0o640); err != nil {
			t.Fatal(err)
		}
		cfg, err := Load(file, env)
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	contents := func(name string) []byte {
		text, err := os.ReadFile(in(name))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	defaults := Policy{Strangers: Hold, PerAuthorDay: 5, StrangersDay: 20, MaxAge: 7 * 24 * time.Hour, ThreadCap: 10, AutoSubmitted: true}

	t.Run("defaults", func(t *testing.T) {
		want := &Config{
			File: in("bot.toml"), State: "/var/lib/patchbench",
			Store:    Store{URL: "sqlite:/var/lib/patchbench/bot.db"},
			Projects: []Project{{Name: "git", Repo: in("git.git"), Budget: 10 * time.Minute, Margin: .01, Class: "default"}},
			Maildir:  &Maildir{Path: in("mail")},
			Lists: []List{{
				Address: "git@vger.example.org", Project: "git", Mode: DryRun, Tags: map[string]string{},
				Wait: 30 * time.Minute, GiveUp: 24 * time.Hour,
			}},
			Policy: defaults,
			Worker: Worker{Class: "default", Slots: 1, WorkDir: "/var/lib/patchbench/work", Timeout: 6 * time.Hour},
		}
		if diff := cmp.Diff(want, load(t, "the least", none), open); diff != "" {
			t.Errorf("the least (-want +got):\n%s", diff)
		}
	})
	t.Run("everything", func(t *testing.T) {
		want := &Config{
			File: in("bot.toml"), State: in("state"),
			Store: Store{URL: Secret("sqlite:" + in("state/bot.db"))},
			Projects: []Project{{
				Name: "git", Repo: in("git.git"), Branch: "master", Suite: in("suite.toml"), SuiteText: contents("suite.toml"),
				Budget: 20 * time.Minute, Margin: .025, Class: "default", Remote: "https://git.example.org/git.git",
			}},
			IMAP: &IMAP{
				Address: "imap.example.org:993", TLS: TLS, User: "bench", Password: "hunter2-imap-secret",
				Folder: "Lists/git", CAFile: in("ca.pem"),
			},
			Maildir: &Maildir{Path: in("mail")},
			Inboxes: []Inbox{{Path: in("inbox"), Poll: 30 * time.Second}},
			SMTP: &SMTP{
				Address: "mail.example.org:587", TLS: StartTLS, User: "bench", Password: "hunter2-imap-secret",
				From: mbox.Address{Name: "Patchbench", Email: "bench@example.org"}, PerHour: 10, LookFor: time.Hour,
			},
			Lists: []List{{
				Address: "git@vger.example.org", ID: "git.vger.example.org", Project: "git", Mode: ToList,
				Consent: "the maintainer, 2030-01-02, https://lists.example.org/m/1",
				Tags:    map[string]string{"next": "next", "patch-stable": "maint/2.1"}, RequireTags: []string{"perf"},
				IgnoreTags: []string{"rfc"}, Paths: []string{"*.c", "lib/**"}, Quiet: true, Wait: 10 * time.Minute, GiveUp: 12 * time.Hour,
			}},
			Policy: Policy{
				Trusted: []string{"dev@example.org", "@example.com"}, Commands: []string{"maint@example.org"}, OptOut: []string{"no@example.org"},
				AuthservID: "mx.example.org", Strangers: Ignore, PerAuthorDay: 3, StrangersDay: 7, MaxAge: 48 * time.Hour, ThreadCap: 4, VerifyDKIM: true,
			},
			GitHub: &GitHub{
				AppID: 17, Key: Secret(strings.TrimSpace(string(contents("key.pem")))), WebhookSecret: "0123456789abcdef0123456789abcdef",
				BaseURL: "https://github.example.org", Poll: 5 * time.Minute, MaxFetch: 2 << 30,
				Repositories: map[string]Repository{"git/git": {Project: "git", Label: "measure", Trusted: []string{"dev"}, Policy: Strict}},
			},
			Worker: Worker{Class: "default", Slots: 2, SandboxUID: 64000, WorkDir: in("state/work"), Timeout: 2 * time.Hour,
				Limits: Limits{Memory: 8 << 30, Disk: 4 << 30, Output: 64 << 20, Processes: 4000, Timeout: 30 * time.Minute}},
			Web: &Web{Listen: "127.0.0.1:8080", URL: "https://bench.example.org", WebhookListen: "127.0.0.1:8081"},
		}
		if diff := cmp.Diff(want, load(t, "one of everything", none), open); diff != "" {
			t.Errorf("everything (-want +got):\n%s", diff)
		}
	})
	t.Run("the environment wins", func(t *testing.T) {
		cfg := load(t, "one of everything", passwords("from "))
		got := []string{string(cfg.IMAP.Password), string(cfg.SMTP.Password), string(cfg.GitHub.WebhookSecret)}
		want := []string{"from PATCHBENCH_IMAP_PASSWORD", "from PATCHBENCH_SMTP_PASSWORD", "from PATCHBENCH_GITHUB_WEBHOOK_SECRET"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("secrets (-want +got):\n%s", diff)
		}
	})
	t.Run("a database's password", func(t *testing.T) {
		cfg := load(t, "a worker alone", func(name string) string {
			if name == "PATCHBENCH_STORE_PASSWORD" {
				return "p@ss/word"
			}
			return ""
		})
		if got, want := string(cfg.Store.URL), "postgres://bench:p%40ss%2Fword@db.example.org/bench?sslmode=verify-full"; got != want {
			t.Errorf("the URL is %s, want %s", got, want)
		}
		if got, want := cfg.Store.String(), "postgres://bench@db.example.org/bench"; got != want {
			t.Errorf("it is shown as %s, want %s", got, want)
		}
	})
	t.Run("a token", func(t *testing.T) {
		cfg := load(t, "github alone", func(name string) string {
			if name == "PATCHBENCH_GITHUB_TOKEN" {
				return "0123456789abcdef"
			}
			return ""
		})
		if cfg.GitHub.Token != "0123456789abcdef" || cfg.GitHub.Poll != time.Minute {
			t.Errorf("github is %+v", cfg.GitHub)
		}
	})
}

func TestLoadUnreadable(t *testing.T) {
	dir := folder(t)
	if err := os.WriteFile(filepath.Join(dir, "large.toml"), bytes.Repeat([]byte("#"), config.MaxBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"none":       "service file: open DIR/none: no such file or directory",
		"git.git":    "service file: read DIR/git.git: is no regular file",
		"pipe":       "service file: read DIR/pipe: is no regular file",
		"large.toml": "service file: read DIR/large.toml: has more than 262144 bytes",
	} {
		_, err := Load(filepath.Join(dir, name), none)
		var path *fs.PathError
		if !errors.As(err, &path) || strings.ReplaceAll(err.Error(), dir, "DIR") != want {
			t.Errorf("%s gives %v, want %s", name, err, want)
		}
	}
}

// A secret is in no form of printing, wherever it stands.
func TestKept(t *testing.T) {
	said := errors.New("no bench/hunter2, AGJlbmNoAGh1bnRlcjI= or aHVudGVyMg==")
	err := Secret("hunter2").Kept(said, "bench")
	if err == nil || err.Error() != "no bench/(secret), (secret) or (secret)" || !errors.Is(err, said) {
		t.Errorf("got %v", err)
	}
	for _, s := range []Secret{"", "other"} {
		if err := s.Kept(said, "bench"); err != said {
			t.Errorf("%q changes %v", string(s), err)
		}
	}
	if err := Secret("hunter2").Kept(nil, "bench"); err != nil {
		t.Error(err)
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	dir := folder(t)
	cfg, err := parse(filepath.Join(dir, "bot.toml"), sample(t, dir, "one of everything"), 0o600, passwords("hunter2-"))
	if err != nil {
		t.Fatal(err)
	}
	cfg.GitHub.Token, cfg.GitHub.Key = "hunter2", "hunter2"
	cfg.Store.URL = "postgres://bench:hunter2@db.example.org/bench?sslpassword=hunter2"
	bad := Store{URL: "postgres://bench:hunter2@%zz"}
	all := []any{cfg, *cfg, cfg.IMAP, *cfg.IMAP, cfg.SMTP, *cfg.SMTP, cfg.GitHub, *cfg.GitHub, cfg.Store, &cfg.Store, cfg.Store.URL, &cfg.Store.URL, []Secret{"hunter2"}, bad}
	var shown strings.Builder
	text, js := slog.New(slog.NewTextHandler(&shown, nil)), slog.New(slog.NewJSONHandler(&shown, nil))
	for _, v := range all {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%20v", "%t"} {
			fmt.Fprintf(&shown, verb+"\n", v)
		}
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		shown.Write(data)
		text.Info("configuration", "value", v)
		js.Info("configuration", "value", v)
		fmt.Fprintln(&shown, fmt.Errorf("with %v", v))
	}
	for _, form := range []string{"hunter2", fmt.Sprintf("%x", "hunter2"), fmt.Sprintf("%X", "hunter2"), fmt.Sprint([]byte("hunter2"))[1:10]} {
		if i := strings.Index(shown.String(), form); i >= 0 {
			t.Errorf("a secret is shown as %q: ...%s", form, shown.String()[max(0, i-100):i+len(form)])
		}
	}
	if !strings.Contains(shown.String(), `"Password":"(secret)"`) {
		t.Error("nothing says that there is a secret")
	}
	if s := cfg.String(); !strings.Contains(s, "list git@vger.example.org (list)") || !strings.Contains(s, "store postgres://bench@db.example.org/bench,") {
		t.Errorf("the service is shown as %s", s)
	}
}

func TestOf(t *testing.T) {
	cfg := &Config{
		Projects: []Project{{Name: "git"}, {Name: "linux"}},
		Lists: []List{
			{Address: "git@vger.example.org", ID: "git.vger.example.org"},
			{Address: "lkml@vger.example.org", ID: "lkml.vger.example.org"},
			{Address: "plain@example.org"},
		},
	}
	if p := cfg.ProjectOf("linux"); p != &cfg.Projects[1] {
		t.Errorf("the project linux is %v", p)
	}
	if p := cfg.ProjectOf("none"); p != nil {
		t.Errorf("the project none is %v", p)
	}
	tests := []struct {
		name           string
		ids, addresses []string
		want           string
	}{
		{"by id", []string{"<LKML.vger.example.org>"}, nil, "lkml@vger.example.org"},
		{"by address", nil, []string{"dev@example.org", "Plain@Example.org"}, "plain@example.org"},
		{"an id says more", []string{"lkml.vger.example.org"}, []string{"git@vger.example.org"}, "lkml@vger.example.org"},
		{"an unknown id", []string{"other.example.org"}, []string{"git@vger.example.org"}, "git@vger.example.org"},
		{"a list without an id", []string{""}, nil, ""},
		{"nothing", nil, nil, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := ""
			if l := cfg.ListOf(test.ids, test.addresses); l != nil {
				got = l.Address
			}
			if got != test.want {
				t.Errorf("the list is %q, want %q", got, test.want)
			}
		})
	}
}

// FuzzParse checks that any text is refused with faults, or makes a service that
// keeps what Load promises; and that no fault shows a secret.
func FuzzParse(f *testing.F) {
	archive, err := txtar.ParseFile("testdata/faults.txtar")
	if err != nil {
		f.Fatal(err)
	}
	dir := folder(f)
	file := filepath.Join(dir, "bot.toml")
	for _, a := range archive.Files {
		f.Add(complete(string(a.Data)))
	}
	// The fuzzer reads what it names: outside the folder only by chance.
	outside := regexp.MustCompile(`= *"(/|[^"]*\.\.)`)
	f.Fuzz(func(t *testing.T, text string) {
		if outside.MatchString(text) {
			t.Skip("names files elsewhere")
		}
		cfg, err := parse(file, []byte(text), 0o600, passwords("sesame-"))
		if err != nil {
			var faults config.Errors
			if !errors.As(err, &faults) || cfg != nil {
				t.Fatalf("the error is a %T beside the Config %v", err, cfg)
			}
			if strings.Contains(err.Error(), "sesame") && !strings.Contains(text, "sesame") {
				t.Errorf("a secret is shown: %v", err)
			}
			return
		}
		if shown := fmt.Sprintf("%+v %v", *cfg, cfg); strings.Contains(shown, "sesame") && !strings.Contains(text, "sesame") {
			t.Errorf("a secret is shown: %s", shown)
		}
		paths := []string{cfg.File, cfg.State, cfg.Worker.WorkDir}
		for _, p := range cfg.Projects {
			paths = append(paths, p.Repo)
			if !(p.Margin > 0 && p.Margin < 1) || p.Budget <= 0 || p.Budget > cfg.Worker.Timeout || p.Class == "" {
				t.Errorf("the project is %+v", p)
			}
			if within(resolve(p.Repo), resolve(cfg.Worker.WorkDir)) {
				t.Errorf("the repository %s lies in the work folder %s", p.Repo, cfg.Worker.WorkDir)
			}
		}
		for _, l := range cfg.Lists {
			if cfg.ProjectOf(l.Project) == nil || cfg.ListOf(nil, []string{l.Address}) == nil {
				t.Errorf("the list is %+v", l)
			}
			if l.Mode != DryRun && cfg.SMTP == nil || l.Mode == ToList && l.Consent == "" || l.GiveUp < l.Wait || l.Wait <= 0 {
				t.Errorf("the list is %+v", l)
			}
			if cfg.SMTP != nil && strings.EqualFold(cfg.SMTP.From.Email, l.Address) {
				t.Errorf("the bot's address is that of the list %s", l.Address)
			}
		}
		for _, p := range paths {
			if !filepath.IsAbs(p) || filepath.Clean(p) != p {
				t.Errorf("the path %q is not absolute, or not clean", p)
			}
		}
		if cfg.Store.URL == "" || cfg.Worker.Slots < 1 || cfg.Policy.PerAuthorDay < 1 || cfg.Policy.ThreadCap < 1 || cfg.Policy.MaxAge <= 0 {
			t.Errorf("the service is %+v", cfg)
		}
	})
}
