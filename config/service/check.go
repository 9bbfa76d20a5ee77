package service

import (
	"cmp"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"patchbench/bench/late"
	"patchbench/config"
)

// checker turns a file into a Config and finds what is wrong with it beyond the
// types of its values.
type checker struct {
	doc *config.Document
	// partial says that some keys were not understood, so that what is missing
	// may be there under a wrong name.
	partial bool
	dir     string      // of the file: relative paths begin here
	mode    fs.FileMode // permissions of the file
	env     func(string) string
	errs    config.Errors

	work string // the folder in which foreign code lives
	open bool   // that others can read the file has been said
}

func (c *checker) fault(at []any, format string, args ...any) {
	c.errs = append(c.errs, c.doc.Errorf(at, format, args...))
}

// missing says that a needed key is not there.
func (c *checker) missing(at []any, format string, args ...any) {
	if !c.partial {
		c.fault(at, format, args...)
	}
}

// empty says that a needed text is not there, or is blank.
func (c *checker) empty(at []any, s, format string, args ...any) bool {
	if strings.TrimSpace(s) != "" {
		return false
	}
	if c.doc.Has(at...) {
		c.fault(at, format, args...)
	} else {
		c.missing(at, format, args...)
	}
	return true
}

func place(parts ...any) []any { return parts }

func below(at []any, parts ...any) []any { return append(slices.Clip(at), parts...) }

// table is the place of table i of an array that may also be a single table.
func (c *checker) table(name string, i int) []any {
	if at := place(name, i); c.doc.Has(at...) {
		return at
	}
	return place(name)
}

func (c *checker) config(f file) *Config {
	cfg := &Config{State: "/var/lib/patchbench"}
	if c.doc.Has("state") {
		cfg.State = c.path(place("state"), "state", f.State)
	}
	if cfg.State == "/" {
		c.fault(place("state"), `state = "/" would spread files over the whole machine: give a folder of its own`)
	}
	cfg.Worker = c.worker(f.Worker, cfg.State)
	c.work = cfg.Worker.WorkDir
	cfg.Store = c.store(f.Store, cfg.State)
	cfg.Projects = c.projects(f.Project, cfg)
	cfg.IMAP, cfg.Maildir, cfg.Inboxes = c.imap(f.IMAP), c.maildir(f.Maildir), c.inboxes(f.Inbox)
	cfg.SMTP = c.smtp(f.SMTP)
	cfg.Lists = c.lists(f.List, cfg)
	cfg.Policy = c.policy(f.Policy)
	cfg.GitHub = c.github(f.GitHub, cfg)
	cfg.Web = c.web(f.Web, cfg.GitHub)
	c.across(cfg)
	return cfg
}

// across finds parts that need others.
func (c *checker) across(cfg *Config) {
	source := cfg.IMAP != nil || cfg.Maildir != nil || len(cfg.Inboxes) > 0
	switch {
	case source && len(cfg.Lists) == 0:
		c.missing(nil, `mail comes in, and no list is served: add [[list]] with address, project and mode = "dry-run"`)
	case len(cfg.Lists) > 0 && !source:
		c.missing(place("list"), "a list is served, and nothing brings its mail in: add [imap], [maildir] or [[inbox]]")
	}
	if len(cfg.Projects) == 0 {
		c.missing(nil, `there is no project: add [project] with name = "..." and repo = "..."`)
	}
}

// bad says that a character must not stand in a line of text: it steers a
// terminal, ends a header, or is not seen.
func bad(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar || r == '\u2028' || r == '\u2029'
}

// maxText bounds a line of text, in bytes.
const maxText = 1000

// text checks a line for people.
func (c *checker) text(at []any, what, s string) string {
	switch {
	case strings.ContainsFunc(s, bad):
		c.fault(at, "%s = %q has control or invisible characters: use printable ones, in one line", what, s)
	case len(s) > maxText:
		c.fault(at, "%s has %d bytes: give at most %d", what, len(s), maxText)
	}
	return strings.TrimSpace(s)
}

var word = late.Regexp(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// name checks a word that names something, also in addresses of pages.
func (c *checker) name(at []any, what, s string) {
	if !word().MatchString(s) {
		c.fault(at, "%s = %q is no name: use up to 64 letters, digits, ., _ and -, a letter or digit first", what, s)
	}
}

// The queue takes no other names.
var class = late.Regexp(`^[a-z0-9]+([_-][a-z0-9]+)*$`)

// class checks the name of a class of machines.
func (c *checker) class(at []any, what, s, without string) string {
	if !c.doc.Has(at...) {
		return without
	}
	if !class().MatchString(s) || len(s) > 64 {
		c.fault(at, "%s = %q is no class of machines: use lower case letters and digits, with single - or _ between them, 64 at most", what, s)
	}
	return s
}

// choice gives one of the valid words, the first if the file gives none of them.
func (c *checker) choice(at []any, what, s string, valid ...string) string {
	if !c.doc.Has(at...) {
		return valid[0]
	}
	if !slices.Contains(valid, s) {
		c.fault(at, "%s = %q is unknown (%s)", what, s, config.Hint(s, valid))
		return valid[0]
	}
	return s
}

// between gives a value that the file gives, or the one without it, or without
// one that can be used.
func between[T cmp.Ordered](c *checker, at []any, what string, v, without, least, most T, show func(T) string) T {
	if !c.doc.Has(at...) {
		return without
	}
	// The negation refuses what is no number too.
	if !(v >= least && v <= most) {
		c.fault(at, "%s = %s is out of range: give %s to %s, or leave it out", what, show(v), show(least), show(most))
		return without
	}
	return v
}

func number[T int | int64 | float64](n T) string { return fmt.Sprint(n) }

// period shows a duration as a file may give it.
func period(d time.Duration) string {
	switch {
	case d != 0 && d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d != 0 && d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.String()
}

// path makes a path absolute.
func (c *checker) path(at []any, what, s string) string {
	if c.empty(at, s, "%s names no file or folder: give its path", what) {
		return ""
	}
	if strings.ContainsFunc(s, bad) || s != strings.TrimSpace(s) {
		c.fault(at, "%s = %q has control characters, or blanks at an end: give a path without", what, s)
		return ""
	}
	if filepath.IsAbs(s) {
		return filepath.Clean(s)
	}
	return filepath.Join(c.dir, s)
}

// folder makes the path of a folder absolute, in which foreign code must not be
// able to write.
func (c *checker) folder(at []any, what, s string) string {
	dir := c.path(at, what, s)
	if dir == "" {
		return ""
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil: // another machine may have it
	case info.Mode()&fs.ModeSymlink != 0:
		c.fault(at, "%s = %q is a symbolic link, which could be turned while the bot runs: give the folder that it leads to (%s)", what, s, resolve(dir))
	case !info.IsDir():
		c.fault(at, "%s = %q is no folder", what, s)
	}
	c.apart(at, what, s, dir)
	return dir
}

// apart refuses a path in the work folder, or one that holds it.
func (c *checker) apart(at []any, what, s, path string) {
	if c.work == "" {
		return
	}
	real, work := resolve(path), resolve(c.work)
	switch {
	case within(real, work):
		c.fault(at, "%s = %q lies below the work folder %s, where foreign code is built: move it, or set worker.work_dir", what, s, c.work)
	case within(work, real):
		c.fault(at, "%s = %q holds the work folder %s, where foreign code is built: set worker.work_dir to a folder outside it", what, s, c.work)
	}
}

// within says that path is dir or lies below it. Both are absolute and clean.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// resolve follows the symbolic links of as much of an absolute path as there is.
func resolve(path string) string {
	rest := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// address checks HOST:PORT.
func (c *checker) address(at []any, what, s, example string) (host string) {
	if c.empty(at, s, "%s names no server: give HOST:PORT, such as %q", what, example) {
		return ""
	}
	host, port, err := net.SplitHostPort(s)
	n, portErr := strconv.ParseUint(port, 10, 16)
	if err != nil || host == "" || portErr != nil || n == 0 || strings.ContainsFunc(s, func(r rune) bool { return bad(r) || r == ' ' || r == '/' || r == '@' }) {
		c.fault(at, "%s = %q is no HOST:PORT, such as %q", what, s, example)
		return ""
	}
	return host
}

// listen checks [HOST]:PORT, to listen at.
func (c *checker) listen(at []any, what, s string) string {
	if !c.doc.Has(at...) {
		return ""
	}
	host, port, err := net.SplitHostPort(s)
	_, portErr := strconv.ParseUint(port, 10, 16)
	if _, ipErr := netip.ParseAddr(host); err != nil || portErr != nil || host != "" && host != "localhost" && ipErr != nil {
		c.fault(at, `%s = %q is no place to listen at: give an IP address of this machine and a port, such as "127.0.0.1:8080", or ":8080" for all addresses`, what, s)
	}
	return s
}

// loopback says that what is sent to host does not leave the machine.
func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback() || strings.EqualFold(host, "localhost")
}
