package service

import (
	"crypto/x509"
	"fmt"
	"maps"
	"net/mail"
	"path"
	"slices"
	"strings"
	"time"

	"patchbench/bench/late"
	"patchbench/config"
	"patchbench/mbox"
)

const (
	minWait, maxWait           = time.Second, 7 * day
	minGiveUp, maxGiveUp       = time.Minute, 30 * day
	minAge, maxAge             = time.Hour, 60 * day
	minPerDay, maxPerDay       = 1, 1000
	minThread, maxThread       = 1, 100
	minPerHour, maxPerHour     = 1, 1000
	minLookFor, maxLookFor     = time.Second, day
	maxAddress, maxFolder      = 254, 255 // bytes
	imapExample, smtpExample   = "imap.example.org:993", "mail.example.org:587"
	fromExample, personExample = "Patchbench <bench@example.org>", "dev@example.org"
)

func (c *checker) imap(f *fileIMAP) *IMAP {
	if f == nil {
		return nil
	}
	at := func(name string) []any { return place("imap", name) }
	out := &IMAP{Address: f.Address, User: f.User, Folder: "INBOX", AllowPlaintext: f.AllowPlaintext}
	out.TLS = c.protection("imap", f.TLS, TLS, c.address(at("address"), "imap.address", f.Address, imapExample), f.AllowPlaintext)
	if !c.empty(at("user"), f.User, `imap has no user: add user = "..."`) {
		out.User = c.text(at("user"), "imap.user", f.User)
	}
	password := credential{table: "imap", key: "password", file: f.PasswordFile, literal: f.Password}
	out.Password = c.secret(password)
	c.needed(password, out.Password, "imap")
	if at := at("folder"); c.doc.Has(at...) && !c.empty(at, f.Folder, `imap.folder is empty: give the folder's name, such as "INBOX"`) {
		out.Folder = c.text(at, "imap.folder", f.Folder)
		if len(f.Folder) > maxFolder {
			c.fault(at, "imap.folder has %d bytes: give at most %d", len(f.Folder), maxFolder)
		}
	}
	out.CAFile = c.certificates("imap", f.CAFile)
	return out
}

func (c *checker) smtp(f *fileSMTP) *SMTP {
	if f == nil {
		return nil
	}
	at := func(name string) []any { return place("smtp", name) }
	out := &SMTP{Address: f.Address, User: f.User, AllowPlaintext: f.AllowPlaintext}
	out.TLS = c.protection("smtp", f.TLS, StartTLS, c.address(at("address"), "smtp.address", f.Address, smtpExample), f.AllowPlaintext)
	out.PerHour = between(c, at("per_hour"), "smtp.per_hour", f.PerHour, 30, minPerHour, maxPerHour, number)
	out.LookFor = between(c, at("look_for"), "smtp.look_for", f.LookFor, 20*time.Minute, minLookFor, maxLookFor, period)
	password := credential{table: "smtp", key: "password", file: f.PasswordFile, literal: f.Password}
	out.Password = c.secret(password)
	if at := at("user"); c.doc.Has(at...) && !c.empty(at, f.User, "smtp.user is empty: give the name to log in with, or leave it out") {
		out.User = c.text(at, "smtp.user", f.User)
		c.needed(password, out.Password, "smtp")
	} else if c.doc.Has("smtp", "password_file") {
		c.missing(place("smtp", "password_file"), "smtp.password_file: there is no user to log in as: add smtp.user")
	}
	if !c.empty(at("from"), f.From, "smtp has no from: add from = %q", fromExample) {
		out.From = c.from(at("from"), f.From)
	}
	out.CAFile = c.certificates("smtp", f.CAFile)
	return out
}

// from reads the bot's own address.
func (c *checker) from(at []any, s string) mbox.Address {
	a, err := mail.ParseAddress(s)
	if err != nil || !isAddress(a.Address) || strings.ContainsFunc(a.Name, bad) || len(s) > maxText {
		c.fault(at, "smtp.from = %q is no address such as %q", s, fromExample)
		return mbox.Address{}
	}
	return mbox.Address{Name: a.Name, Email: a.Address}
}

// protection gives how a connection is protected, and refuses one to another
// machine that is not.
func (c *checker) protection(table, s, without, host string, allowed bool) string {
	at := place(table, "tls")
	if !c.doc.Has(at...) {
		return without
	}
	switch valid := []string{TLS, StartTLS, NoTLS}; {
	case !slices.Contains(valid, s):
		c.fault(at, "%s.tls = %q is unknown (%s)", table, s, config.Hint(s, valid))
	case s == NoTLS && host != "" && !loopback(host) && !allowed:
		c.fault(at, `%s.tls = "none" would send password and mail to %s as plain text: use "tls" or "starttls", or set %[1]s.allow_plaintext = true if the way there is safe`, table, host)
	}
	return s
}

// certificates checks a file of certificates to trust.
func (c *checker) certificates(table, s string) string {
	at, what := place(table, "ca_file"), table+".ca_file"
	if !c.doc.Has(at...) {
		return ""
	}
	path := c.path(at, what, s)
	if path == "" {
		return ""
	}
	text, _, err := read(path, config.MaxBytes)
	if err != nil {
		c.fault(at, "%s: %v", what, err)
		return ""
	}
	if !x509.NewCertPool().AppendCertsFromPEM(text) {
		c.fault(at, "%s: %s holds no certificate: give a PEM file (-----BEGIN CERTIFICATE-----)", what, path)
	}
	return path
}

func (c *checker) maildir(f *fileMaildir) *Maildir {
	if f == nil {
		return nil
	}
	return &Maildir{Path: c.folder(place("maildir", "path"), "maildir.path", f.Path)}
}

func (c *checker) inboxes(fs []fileInbox) []Inbox {
	var out []Inbox
	for i, f := range fs {
		at := c.table("inbox", i)
		in := Inbox{
			Path: c.folder(below(at, "path"), "inbox.path", f.Path),
			Poll: between(c, below(at, "poll"), "inbox.poll", f.Poll, time.Minute, minPoll, maxPoll, period),
		}
		if slices.ContainsFunc(out, func(o Inbox) bool { return o.Path == in.Path && in.Path != "" }) {
			c.fault(below(at, "path"), "inbox.path = %q is there twice: remove one", f.Path)
		}
		out = append(out, in)
	}
	return out
}

var (
	listID = late.Regexp(`^[A-Za-z0-9._-]{1,255}$`)
	// A tag is a word of the brackets in a subject.
	tagWord = late.Regexp(`^[^\s,\[\]]{1,100}$`)
)

func (c *checker) lists(ls []list, cfg *Config) []List {
	var out []List
	for i, l := range ls {
		out = append(out, c.list(c.table("list", i), l, out, cfg))
	}
	return out
}

func (c *checker) list(at []any, l list, before []List, cfg *Config) List {
	q := List{Address: strings.ToLower(l.Address), ID: strings.ToLower(strings.Trim(l.ID, "<>")), Consent: l.Consent, Paths: l.Paths, Quiet: l.Quiet}
	whose := fmt.Sprintf("list %q: ", l.Address)
	if !c.empty(below(at, "address"), l.Address, `a list has no address: add address = "list@example.org"`) {
		c.person(below(at, "address"), "list.address", l.Address, false)
	}
	if at := below(at, "id"); c.doc.Has(at...) && !listID().MatchString(q.ID) {
		c.fault(at, "%sid = %q is no List-Id: give what stands between <> in that field of the list's mail, such as \"git.vger.kernel.org\"", whose, l.ID)
	}
	for _, o := range before {
		if o.Address == q.Address && q.Address != "" {
			c.fault(below(at, "address"), "%sit is there twice: remove one", whose)
		}
		if o.ID == q.ID && q.ID != "" {
			c.fault(below(at, "id"), "%sid = %q is that of the list %s too: remove one", whose, l.ID, o.Address)
		}
	}
	q.Project = c.projectOf(below(at, "project"), whose, l.Project, cfg)
	q.Mode = c.choice(below(at, "mode"), whose+"mode", l.Mode, DryRun, AuthorOnly, ToList)
	q.Consent = c.text(below(at, "consent"), whose+"consent", l.Consent)
	if q.Mode == ToList && q.Consent == "" {
		c.missing(below(at, "mode"), `%smode = "list" writes to the list: add consent = "who of the list agreed, when, where (a link)"`, whose)
	}
	if q.Mode != DryRun && cfg.SMTP == nil {
		c.missing(below(at, "mode"), "%smode = %q sends mail: add [smtp]", whose, q.Mode)
	}
	if cfg.SMTP != nil && q.Address != "" && strings.EqualFold(cfg.SMTP.From.Email, q.Address) {
		c.fault(place("smtp", "from"), "smtp.from = %q is the address of a list: every reply would loop: give the bot an address of its own", cfg.SMTP.From.Email)
	}
	q.Tags = map[string]string{}
	for _, tag := range slices.Sorted(maps.Keys(l.Tags)) {
		at := below(at, "tags", tag)
		c.tag(at, whose+"tags", tag)
		c.branch(at, fmt.Sprintf("%stags: the branch for %q", whose, tag), l.Tags[tag])
		low := strings.ToLower(tag)
		if _, ok := q.Tags[low]; ok {
			c.fault(at, "%stags: %q is there twice, upper and lower case being the same: remove one", whose, tag)
		}
		q.Tags[low] = l.Tags[tag]
	}
	q.RequireTags = c.tags(below(at, "require_tags"), whose+"require_tags", l.RequireTags)
	q.IgnoreTags = c.tags(below(at, "ignore_tags"), whose+"ignore_tags", l.IgnoreTags)
	for _, t := range q.IgnoreTags {
		if slices.Contains(q.RequireTags, t) {
			c.fault(below(at, "ignore_tags"), "%signore_tags: %q stands in require_tags too: remove one", whose, t)
		}
	}
	for j, p := range l.Paths {
		if _, err := path.Match(p, ""); err != nil || strings.TrimSpace(p) == "" || strings.HasPrefix(p, "/") || strings.ContainsFunc(p, bad) {
			c.fault(below(at, "paths", j), "%spaths: %q is no pattern of files: give one such as \"*.c\" or \"lib/**\", from the top of the tree", whose, p)
		}
	}
	q.Wait = between(c, below(at, "wait"), whose+"wait", l.Wait, 30*time.Minute, minWait, maxWait, period)
	q.GiveUp = between(c, below(at, "give_up"), whose+"give_up", l.GiveUp, max(day, q.Wait), minGiveUp, maxGiveUp, period)
	if q.GiveUp < q.Wait {
		c.fault(below(at, "give_up"), "%sgive_up = %s is shorter than wait = %s: give more", whose, period(q.GiveUp), period(q.Wait))
	}
	return q
}

func (c *checker) tag(at []any, what, s string) {
	if !tagWord().MatchString(s) || strings.ContainsFunc(s, bad) {
		c.fault(at, "%s: %q is no tag: give a word of the brackets of a subject, without blanks, commas and brackets", what, s)
	}
}

func (c *checker) tags(at []any, what string, ts []string) []string {
	var out []string
	for i, t := range ts {
		c.tag(below(at, i), what, t)
		out = append(out, strings.ToLower(t))
	}
	return out
}

// projectOf gives the project that a list or repository is for: there is no
// need to name the only one.
func (c *checker) projectOf(at []any, whose, name string, cfg *Config) string {
	if !c.doc.Has(at...) && len(cfg.Projects) == 1 {
		return cfg.Projects[0].Name
	}
	var names []string
	for _, p := range cfg.Projects {
		if p.Name != "" {
			names = append(names, p.Name)
		}
	}
	switch {
	case len(names) == 0: // that has been said
	case !c.doc.Has(at...):
		c.missing(at, "%sthere are several projects: add project = %q or another", whose, names[0])
	case !slices.Contains(names, name):
		c.fault(at, "%sproject = %q: there is no project of that name (%s)", whose, name, config.Hint(name, names))
	}
	return name
}

func (c *checker) policy(f filePolicy) Policy {
	at := func(name string) []any { return place("policy", name) }
	out := Policy{
		Trusted:       c.people(at("trusted"), "policy.trusted", f.Trusted),
		Commands:      c.people(at("commands"), "policy.commands", f.Commands),
		OptOut:        c.people(at("opt_out"), "policy.opt_out", f.OptOut),
		AuthservID:    f.AuthservID,
		Strangers:     c.choice(at("strangers"), "policy.strangers", f.Strangers, Hold, Run, Ignore),
		PerAuthorDay:  between(c, at("per_author_day"), "policy.per_author_day", f.PerAuthorDay, 5, minPerDay, maxPerDay, number),
		StrangersDay:  between(c, at("strangers_day"), "policy.strangers_day", f.StrangersDay, 20, minPerDay, maxPerDay, number),
		MaxAge:        between(c, at("max_age"), "policy.max_age", f.MaxAge, 7*day, minAge, maxAge, period),
		ThreadCap:     between(c, at("thread_cap"), "policy.thread_cap", f.ThreadCap, 10, minThread, maxThread, number),
		AutoSubmitted: f.AutoSubmitted == nil || *f.AutoSubmitted,
		VerifyDKIM:    f.VerifyDKIM,
	}
	if at := at("authserv_id"); c.doc.Has(at...) && !domain().MatchString(f.AuthservID) {
		c.fault(at, "policy.authserv_id = %q is no name of a server: give the first word of the Authentication-Results fields that your own server writes", f.AuthservID)
	}
	for _, who := range []string{"trusted", "commands"} {
		if c.doc.Has(at(who)...) && f.AuthservID == "" && !f.VerifyDKIM && len(map[string][]string{"trusted": f.Trusted, "commands": f.Commands}[who]) > 0 {
			c.missing(at(who), "policy.%s: who sent a mail could not be told, since anybody can write any From: set authserv_id to your own mail server's name, or verify_dkim = true", who)
		}
	}
	return out
}

var (
	dotAtom = late.Regexp("^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$")
	domain  = late.Regexp(`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*$`)
)

// isAddress says that s is an address that a reply could go to.
func isAddress(s string) bool {
	local, host, ok := strings.Cut(s, "@")
	return ok && len(s) <= maxAddress && dotAtom().MatchString(local) && domain().MatchString(host)
}

// person checks an address, or @domain where a whole domain is allowed.
func (c *checker) person(at []any, what, s string, whole bool) {
	host, all := strings.CutPrefix(s, "@")
	switch {
	// A * could stand in an address, but who writes one means a pattern.
	case whole && all && domain().MatchString(host), isAddress(s) && !strings.Contains(s, "*"):
	case whole:
		c.fault(at, "%s: %q is no address: give one such as %q, or \"@example.org\" for all of a domain", what, s, personExample)
	default:
		c.fault(at, "%s = %q is no address such as %q", what, s, personExample)
	}
}

func (c *checker) people(at []any, what string, all []string) []string {
	var out []string
	for i, s := range all {
		c.person(below(at, i), what, s, true)
		out = append(out, strings.ToLower(s))
	}
	return out
}
