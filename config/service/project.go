package service

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"patchbench/bench/late"
	"patchbench/bench/suite"
	"patchbench/config"
)

const (
	day = 24 * time.Hour

	minBudget, maxBudget   = time.Second, day
	minMargin, maxMargin   = 0.01, 50 // percent
	minSlots, maxSlots     = 1, 64
	minTimeout, maxTimeout = time.Minute, 7 * day
	minUID, maxUID         = 1, 1<<31 - 1

	minMemory, minBytes, maxBytes = 256 << 20, 1 << 20, 64 << 40
	minProcesses, maxProcesses    = 16, 1 << 20
)

func (c *checker) worker(w fileWorker, state string) Worker {
	out := Worker{
		Class:      c.class(place("worker", "class"), "worker.class", w.Class, "default"),
		Slots:      between(c, place("worker", "slots"), "worker.slots", w.Slots, 1, minSlots, maxSlots, number),
		SandboxUID: between(c, place("worker", "sandbox_uid"), "worker.sandbox_uid", w.SandboxUID, 0, minUID, maxUID, number),
		Timeout:    between(c, place("worker", "timeout"), "worker.timeout", w.Timeout, 6*time.Hour, minTimeout, maxTimeout, period),
		WorkDir:    filepath.Join(state, "work"),
		Limits: Limits{
			Memory:    between(c, place("worker", "limits", "memory"), "worker.limits.memory", int64(w.Limits.Memory), 0, minMemory, maxBytes, number),
			Disk:      between(c, place("worker", "limits", "disk"), "worker.limits.disk", int64(w.Limits.Disk), 0, minBytes, maxBytes, number),
			Output:    between(c, place("worker", "limits", "output"), "worker.limits.output", int64(w.Limits.Output), 0, minBytes, maxBytes, number),
			Processes: between(c, place("worker", "limits", "processes"), "worker.limits.processes", w.Limits.Processes, 0, minProcesses, maxProcesses, number),
			Timeout:   between(c, place("worker", "limits", "timeout"), "worker.limits.timeout", w.Limits.Timeout, 0, minTimeout, maxTimeout, period),
		},
	}
	if at := place("worker", "work_dir"); c.doc.Has(at...) {
		dir := c.path(at, "worker.work_dir", w.WorkDir)
		switch {
		case dir == "":
		case within(resolve(state), resolve(dir)):
			c.fault(at, "worker.work_dir = %q holds the state folder %s: give a folder of its own", w.WorkDir, state)
		default:
			out.WorkDir = dir
		}
	}
	return out
}

// store gives the store's URL with the password in it. No message shows what is
// in the URL: people write passwords there.
func (c *checker) store(s fileStore, state string) Store {
	at := place("store", "url")
	password := credential{table: "store", key: "password", file: s.PasswordFile, literal: s.Password}
	secret := c.secret(password)
	if !c.doc.Has(at...) {
		s.URL = sqlite + "bot.db"
	}
	if path, ok := strings.CutPrefix(s.URL, sqlite); ok {
		switch {
		case path == "" || strings.HasPrefix(path, "//") || strings.ContainsFunc(path, bad) || strings.ContainsAny(path, "?#%"):
			c.fault(at, `store.url: want sqlite: and the name of a file, such as "sqlite:bot.db" below the state folder`)
		case c.doc.Has("store", "password_file"):
			c.fault(place("store", "password_file"), "store.password_file has no meaning for SQLite: remove it, or give a postgres:// URL")
		case !filepath.IsAbs(path):
			path = filepath.Join(state, path)
			fallthrough
		default:
			path = filepath.Clean(path)
			c.apart(at, "store.url", s.URL, path)
		}
		return Store{URL: Secret(sqlite + path)}
	}
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		c.fault(at, `store.url: want "sqlite:FILE" or "postgres://USER@HOST/DATABASE"`)
		return Store{}
	}
	_, inUserinfo := u.User.Password()
	if query := u.Query(); inUserinfo || query.Has("password") || query.Has("sslpassword") {
		c.inFile(at, password)
		return Store{}
	}
	if secret != "" {
		u.User = url.UserPassword(u.User.Username(), string(secret))
	}
	if mode := u.Query().Get("sslmode"); slices.Contains([]string{"", "disable", "allow", "prefer"}, mode) {
		// Hosts are a list, and may stand in the query as well; a socket's folder begins with /.
		for host := range strings.SplitSeq(u.Host+","+u.Query().Get("host")+","+u.Query().Get("hostaddr"), ",") {
			if h, _, err := net.SplitHostPort(host); err == nil {
				host = h
			}
			if host = strings.Trim(host, "[]"); host != "" && !strings.HasPrefix(host, "/") && !loopback(host) {
				c.fault(at, "store.url: the connection to %s may be plain text: add ?sslmode=verify-full (or require)", host)
				break
			}
		}
	}
	return Store{URL: Secret(u.String())}
}

func (c *checker) projects(ps []project, cfg *Config) []Project {
	var out []Project
	for i, p := range ps {
		at := c.table("project", i)
		if !c.empty(below(at, "name"), p.Name, `a project has no name: add name = "..."`) {
			c.name(below(at, "name"), "project.name", p.Name)
		}
		whose := fmt.Sprintf("project %q: ", p.Name)
		if slices.ContainsFunc(ps[:i], func(o project) bool { return o.Name == p.Name }) && p.Name != "" {
			c.fault(below(at, "name"), "%sit is there twice: rename one", whose)
		}
		q := Project{
			Name:   p.Name,
			Branch: p.Branch,
			Remote: p.Remote,
			Budget: between(c, below(at, "budget"), whose+"budget", p.Budget, 10*time.Minute, minBudget, maxBudget, period),
			Margin: between(c, below(at, "margin"), whose+"margin", p.Margin, 1, minMargin, maxMargin, number) / 100,
			Class:  c.class(below(at, "class"), whose+"class", p.Class, cfg.Worker.Class),
		}
		if q.Budget > cfg.Worker.Timeout {
			c.fault(below(at, "budget"), "%sbudget = %s is longer than worker.timeout = %s: no evaluation would end", whose, period(q.Budget), period(cfg.Worker.Timeout))
		}
		if !c.empty(below(at, "repo"), p.Repo, `%srepo names no git repository: add repo = "..."`, whose) {
			q.Repo = c.folder(below(at, "repo"), whose+"repo", p.Repo)
		}
		if at := below(at, "branch"); c.doc.Has(at...) {
			c.branch(at, whose+"branch", p.Branch)
		}
		if at := below(at, "remote"); c.doc.Has(at...) {
			c.remote(at, whose+"remote", p.Remote)
		}
		if strings.HasPrefix(string(cfg.Store.URL), sqlite) && q.Class != cfg.Worker.Class {
			c.fault(below(at, "class"), "%sclass = %q: the store is a file of this machine, whose worker.class is %q: nobody would evaluate the project", whose, q.Class, cfg.Worker.Class)
		}
		if at := below(at, "suite"); c.doc.Has(at...) {
			q.Suite, q.SuiteText = c.suite(at, whose+"suite", p.Suite)
		}
		out = append(out, q)
	}
	return out
}

// suite reads a suite and checks it, so that a new service file is taken whole
// or not at all.
func (c *checker) suite(at []any, what, s string) (string, []byte) {
	path := c.path(at, what, s)
	if path == "" {
		return "", nil
	}
	text, _, err := read(path, config.MaxBytes)
	if err != nil {
		c.fault(at, "%s: %v", what, err)
		return "", nil
	}
	c.apart(at, what, s, path)
	if _, err := suite.Parse(path, text); err != nil {
		var faults config.Errors
		if !errors.As(err, &faults) {
			c.fault(at, "%s: %v", what, err)
		}
		for _, f := range faults {
			c.fault(at, "%s: %v", what, f)
		}
	}
	return path, text
}

// What git check-ref-format refuses in a name.
var noBranch = late.Regexp(`^[-/.]|[/.]$|\.\.|//|/\.|@\{|\.lock(/|$)|[\x00-\x20\x7f~^:?*\[\\]|^@$`)

func (c *checker) branch(at []any, what, s string) {
	if s == "" || noBranch().MatchString(s) || strings.ContainsFunc(s, bad) || len(s) > maxText {
		c.fault(at, "%s = %q is no name of a branch: give one such as \"master\" or \"topic/fast\"", what, s)
	}
}

// remote checks an address to fetch from. No message shows it: people write
// passwords there.
func (c *checker) remote(at []any, what, s string) {
	u, err := url.Parse(s)
	place, _, _ := strings.Cut(s, "/")
	switch {
	// Without a scheme it is an absolute path, or HOST:PATH as ssh has it.
	case place != "" && !strings.Contains(place, ":") || strings.TrimSpace(s) == "" || strings.HasPrefix(s, "-") || strings.ContainsFunc(s, bad) || strings.Contains(s, "::"):
		c.fault(at, "%s is no address to fetch from: give a URL such as \"https://git.example.org/git.git\"", what)
	case err == nil && hasPassword(u):
		c.fault(at, "%s has a password in it: give an address without, and let the mirror be fetched by somebody who has it", what)
	case err == nil && (u.Scheme == "http" || u.Scheme == "git") && !loopback(u.Hostname()):
		c.fault(at, "%s is fetched as plain text, so that anybody on the way could change it: give an https:// or ssh:// URL", what)
	}
}

func hasPassword(u *url.URL) bool {
	_, ok := u.User.Password()
	return ok
}

const (
	minPoll, maxPoll = time.Second, day
	// Shorter ones are soon guessed.
	minWebhookSecret = 16
)

func (c *checker) web(w *fileWeb, gh *GitHub) *Web {
	hook := gh != nil && gh.WebhookSecret != ""
	if w == nil {
		if hook {
			c.missing(place("github"), `github has a webhook secret, and nothing listens: add [web] with webhook_listen = "127.0.0.1:8081"`)
		}
		return nil
	}
	out := &Web{
		Listen:        c.listen(place("web", "listen"), "web.listen", w.Listen),
		URL:           strings.TrimRight(w.URL, "/"),
		WebhookListen: c.listen(place("web", "webhook_listen"), "web.webhook_listen", w.WebhookListen),
	}
	if at := place("web", "url"); c.doc.Has(at...) {
		c.url(at, "web.url", w.URL, "https://bench.example.org")
	}
	switch {
	case out.WebhookListen != "" && !hook:
		c.missing(place("web", "webhook_listen"), "web.webhook_listen: only signed messages are taken: add github.webhook_secret_file")
	case out.WebhookListen == "" && hook:
		c.missing(place("web"), `github has a webhook secret, and nothing listens: add webhook_listen = "127.0.0.1:8081"`)
	case out.WebhookListen != "" && out.WebhookListen == out.Listen:
		c.fault(place("web", "webhook_listen"), "web.webhook_listen is the same as web.listen: give another port, so that the pages need not be where GitHub reaches")
	}
	return out
}

// url checks the address of a page or server.
func (c *checker) url(at []any, what, s, example string) *url.URL {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.ContainsFunc(s, bad) {
		c.fault(at, "%s is no address such as %q, without user, query and fragment", what, example)
		return nil
	}
	return u
}
