package service

import (
	"strings"
)

// credential is a secret that a table of the file names.
type credential struct {
	table   string
	key     string // the file's key is this and _file
	file    string // as given
	literal literal
	many    bool // may have several lines
}

func (s credential) name() string { return s.table + "." + s.key }

// variable is the secret's name in the environment.
func (s credential) variable() string {
	return "PATCHBENCH_" + strings.ToUpper(s.table+"_"+s.key)
}

// maxSecret bounds a secret, in bytes.
const maxSecret = 64 << 10

// secret gives the text of a secret, "" if there is none: the caller knows
// whether it is needed.
func (c *checker) secret(s credential) Secret {
	if s.literal {
		c.inFile(place(s.table, s.key), s)
	}
	if v := c.env(s.variable()); v != "" {
		return c.clean(place(s.table), "the variable "+s.variable(), v, s.many)
	}
	at := place(s.table, s.key+"_file")
	if !c.doc.Has(at...) {
		return ""
	}
	what := s.name() + "_file"
	path := c.path(at, what, s.file)
	if path == "" {
		return ""
	}
	text, mode, err := read(path, maxSecret)
	switch {
	case err != nil:
		c.fault(at, "%s: %v", what, err)
		return ""
	case mode&0o007 != 0:
		c.fault(at, "%s: %s is readable by others (mode %04o): chmod o= %[2]s", what, path, mode)
		return ""
	}
	c.apart(at, what, s.file, path)
	return c.clean(at, what+": "+path, string(text), s.many)
}

// inFile says that a secret stands in the service file itself.
func (c *checker) inFile(at []any, s credential) {
	if c.mode&0o007 != 0 && !c.open {
		c.open = true
		c.fault(at, "config has a %s and is readable by others (mode %04o): change the %[1]s, which is known by now", strings.ReplaceAll(s.key, "_", " "), c.mode)
	}
	c.fault(at, "%s: no secret stands in this file: write it into a file that only the bot can read, name that with %s_file, or set %s", s.name(), s.key, s.variable())
}

// needed says what to do about a secret that is missing, unless what is wrong
// with its file has been said.
func (c *checker) needed(s credential, got Secret, why string) {
	if got == "" && !c.doc.Has(s.table, s.key+"_file") && !bool(s.literal) {
		c.missing(place(s.table), "%s has no %s: name its file with %s_file, or set %s", why, strings.ReplaceAll(s.key, "_", " "), s.key, s.variable())
	}
}

// clean takes the end of the line off a secret.
func (c *checker) clean(at []any, what, text string, many bool) Secret {
	text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
	switch {
	case strings.TrimSpace(text) == "":
		c.fault(at, "%s is empty: write the secret into it", what)
	case strings.ContainsRune(text, 0) || !many && strings.ContainsAny(text, "\r\n"):
		c.fault(at, "%s has more than one line, or is no text: it must hold the secret and nothing else", what)
	case len(text) > maxSecret:
		c.fault(at, "%s has %d bytes: give at most %d", what, len(text), maxSecret)
	default:
		return Secret(text)
	}
	return ""
}
