// Package service reads the service's file: which mail comes in from where,
// which lists and repositories are served, what may be done for whom, where the
// record is kept, how replies go out.
//
// In goes the name of a TOML file, out comes a Config in which every default is
// filled in, every path is absolute and every secret is read; or config.Errors
// that name each fault by its line. A file by example:
//
//	state = "/var/lib/patchbench"
//
//	[store]
//	url = "sqlite:bot.db"
//
//	[project]                       # [[project]] for several
//	name = "git"
//	repo = "/srv/git.git"
//	branch = "master"
//	suite = "suite.toml"
//
//	[imap]
//	address = "imap.example.org:993"
//	user = "bench@example.org"
//	password_file = "imap.password"
//
//	[smtp]
//	address = "mail.example.org:587"
//	user = "bench@example.org"
//	password_file = "smtp.password"
//	from = "Patchbench <bench@example.org>"
//
//	[[list]]
//	address = "git@vger.kernel.org"
//	id = "git.vger.kernel.org"
//	project = "git"
//	mode = "dry-run"
//
// Relative paths begin at the folder of the file, the store's at the state
// folder. Secrets never stand in the file: they are in files of their own or in
// the environment. Nothing is written and nothing is connected to: whether a
// server answers is told by bot/check.
package service

import (
	"strings"
	"time"

	"patchbench/mbox"
)

// Config is a whole service. It is not changed after Load; a new file makes a
// new one.
type Config struct {
	File     string // where it was read, absolute
	State    string // absolute folder
	Store    Store
	Projects []Project
	IMAP     *IMAP // nil: no mail comes from there; likewise the others
	Maildir  *Maildir
	Inboxes  []Inbox
	SMTP     *SMTP
	Lists    []List
	Policy   Policy
	GitHub   *GitHub
	Worker   Worker
	Web      *Web
}

// Store is where the record is kept.
type Store struct {
	// URL is "sqlite:" and an absolute file, or begins with "postgres://" and
	// holds the password.
	URL Secret
}

// Project is a tree that series are evaluated on.
type Project struct {
	Name      string
	Repo      string        // absolute folder of the git repository; only read, but for what Remote fetches
	Branch    string        // "" is the repository's HEAD
	Suite     string        // absolute file; "" for the one that is committed in the base
	SuiteText []byte        // what was in it; nil without
	Budget    time.Duration // for measuring one series
	Margin    float64       // fraction: 0.01 is 1 %, what counts as the same
	Class     string        // of the machines that may evaluate it
	Remote    string        // fetched before an evaluation; "": somebody else keeps the repository fresh
}

// How a connection is protected.
const (
	TLS      = "tls"
	StartTLS = "starttls"
	NoTLS    = "none"
)

// IMAP is a mailbox to follow.
type IMAP struct {
	Address        string // host:port
	TLS            string // TLS, StartTLS or NoTLS
	User           string
	Password       Secret
	Folder         string
	AllowPlaintext bool   // NoTLS to another machine was asked for
	CAFile         string // certificates to trust beside the system's, absolute; "" none
}

// Maildir is a folder of mail to follow.
type Maildir struct {
	Path string // absolute
}

// Inbox is a public-inbox mirror to follow.
type Inbox struct {
	Path string // absolute
	Poll time.Duration
}

// SMTP is the way out for replies.
type SMTP struct {
	Address        string // host:port
	TLS            string // TLS, StartTLS or NoTLS
	User           string // "": no authentication
	Password       Secret
	From           mbox.Address
	AllowPlaintext bool   // NoTLS to another machine was asked for
	CAFile         string // certificates to trust beside the system's, absolute; "" none
	PerHour        int    // letters that leave in an hour at most
	// LookFor is how long a letter of which it is not known whether it was sent is
	// looked for before it is sent again.
	LookFor time.Duration
}

// What is done with an evaluated series.
const (
	DryRun     = "dry-run"     // letters are written and kept, never sent
	AuthorOnly = "author-only" // to the author, not to the list
	ToList     = "list"        // to the author, with a copy to the list
)

// List is a mailing list that is served.
type List struct {
	Address     string // lower case
	ID          string // of the List-Id field, lower case, without <>; "" matches by Address alone
	Project     string
	Mode        string            // DryRun, AuthorOnly or ToList
	Consent     string            // who of the list agreed, when, where
	Tags        map[string]string // tag, lower case, to branch
	RequireTags []string          // lower case; a series needs one of them, if there are any
	IgnoreTags  []string          // lower case
	Paths       []string          // a series must touch a file that one of them matches, if there are any
	Quiet       bool              // nothing is said when nothing changed
	Wait        time.Duration     // for missing patches, after the last mail of a series
	GiveUp      time.Duration     // after its first mail
}

// What is done for authors who are not trusted.
const (
	Hold   = "hold" // somebody approves each series
	Run    = "run"
	Ignore = "ignore"
)

// Policy says what is done for whom. People are addresses or @domains, in lower
// case.
type Policy struct {
	Trusted       []string
	Commands      []string // who may give commands by mail
	OptOut        []string // who is never answered
	AuthservID    string   // whose Authentication-Results are believed; "" nobody's
	Strangers     string   // Hold, Run or Ignore
	PerAuthorDay  int      // series evaluated for one author in a day
	StrangersDay  int      // and, without asking, for all together who are not trusted
	MaxAge        time.Duration
	ThreadCap     int  // replies in one thread
	AutoSubmitted bool // mark replies so that other robots keep quiet
	VerifyDKIM    bool // verify signatures here, with the keys that the DNS gives
}

// GitHub is the access to pull requests: either an App or a token.
type GitHub struct {
	AppID         int64
	Key           Secret // the App's private key, PEM
	Token         Secret
	WebhookSecret Secret                // "": there is no webhook
	BaseURL       string                // of an Enterprise server, without a slash at its end; "" for github.com
	Poll          time.Duration         // 0: never asks by itself
	MaxFetch      int64                 // bytes that a pull request may bring beside its base branch; 0: not bounded
	Repositories  map[string]Repository // by owner/name, as given
}

// What the check of a pull request concludes when something became worse.
const (
	Neutral = "neutral" // tells, and stops nobody
	Strict  = "strict"  // fails
)

// Repository is one that is served on GitHub.
type Repository struct {
	Project string
	Label   string   // that asks for an evaluation
	Trusted []string // logins whose pull requests need no label, lower case
	Policy  string   // Neutral or Strict
}

// Worker is this machine's part in evaluating.
type Worker struct {
	Class      string
	Slots      int    // evaluations at a time
	SandboxUID int    // of the first slot's programs when the bot is root; 0 for the default
	WorkDir    string // absolute
	Timeout    time.Duration
	Limits     Limits
}

// Limits bound those that a suite sets for its programs, which may have been written
// by the project and not by the owner of the machine. 0: not bounded.
type Limits struct {
	Memory, Disk, Output int64 // bytes
	Processes            int
	Timeout              time.Duration // of one program
}

// Web is what is served over HTTP.
type Web struct {
	Listen        string // host:port; "": no pages
	URL           string // at which readers find it, without a slash at its end; "" unknown
	WebhookListen string // host:port; "": no webhook
}

// ProjectOf gives the project of that name, nil if there is none.
func (c *Config) ProjectOf(name string) *Project {
	for i := range c.Projects {
		if c.Projects[i].Name == name {
			return &c.Projects[i]
		}
	}
	return nil
}

// ListOf gives the first list of the file that a message belongs to, nil if
// there is none: one of whose List-Id fields (with or without <>) is the list's,
// or one of whose recipients is its address. An id says more than an address: a
// copy that came through another list names both lists as recipients.
func (c *Config) ListOf(ids, addresses []string) *List {
	for i := range c.Lists {
		for _, id := range ids {
			if l := &c.Lists[i]; l.ID != "" && strings.EqualFold(strings.Trim(id, "<> \t"), l.ID) {
				return l
			}
		}
	}
	for i := range c.Lists {
		for _, a := range addresses {
			if l := &c.Lists[i]; strings.EqualFold(a, l.Address) {
				return l
			}
		}
	}
	return nil
}
