// Package command reads what people ask the bot for in replies.
//
// In goes a decoded mail, out come its commands, in order. Who may give them, and
// what they do, is decided in bot/watch.
//
//	> [PATCH 2/3] table: hash once
//	Nice. Let us see what that brings.
//
//	bench: run probe fill base v2.1
//
// A command stands at the start of a line of the mail's first text, unquoted. Lines
// do not count in attachments, below a signature's "-- ", in what a mailer has
// appended of the mail that is answered, and in mail that holds a patch or is a
// part of a series: what a commit message says is no order. Words are
//
//	bench: run [BENCHMARK...] [base REV] [CLASS...]   evaluate; approve what is held
//	bench: stop                                       end what runs for this thread
//	bench: ignore                                     and leave the thread alone
//
// BENCHMARK is a name of the suite, REV one commit, tag or branch, CLASS a class of
// machines that the service knows.
//
// What was probably meant as one of these, and is none, is a Line too: its sender is
// told (see Fault), if he is one who may give commands.
package command

import (
	"fmt"
	"slices"
	"strings"

	"patchbench/bot/report/plain"
	"patchbench/config"
	"patchbench/mbox"
	"patchbench/mbox/series/patch"
)

// Verbs.
const (
	Run    = "run"
	Stop   = "stop"
	Ignore = "ignore"
)

var verbs = []string{Run, Stop, Ignore}

// Line is a line with a command as it stands, of any verb.
type Line struct {
	// Verb is in lower case; one that is none of the above is unknown. It is "" where
	// the mark is mistyped ("bnech: run", "bench run").
	Verb string
	Args string // the rest of the line, trimmed; without a verb the whole of it
}

// String is the line as it could be written.
func (l Line) String() string {
	if l.Verb == "" {
		return l.Args
	}
	return strings.TrimSpace(mark + " " + l.Verb + " " + l.Args)
}

// Fault says why a line cannot be obeyed, with what was probably meant; "" if it can.
// classes are those of machines that are known.
func (l Line) Fault(classes []string) string {
	switch {
	case l.Verb == "":
		return fmt.Sprintf("a command begins with %q", mark)
	case !slices.Contains(verbs, l.Verb):
		return fmt.Sprintf("there is no command %.40q; %s", l.Verb, config.Hint(l.Verb, verbs))
	case l.Verb == Run:
		if _, err := ParseRun(l.Args, classes); err != nil {
			return err.Error()
		}
	}
	return ""
}

// Usage tells all commands, in lines of up to 72 columns.
func Usage(classes []string) []string {
	lines := []string{
		mark + " run [BENCHMARK...] [base REV] [CLASS]",
		"    evaluate the series again, or approve it if it waits for that",
		mark + " stop",
		"    end what runs for this thread",
		mark + " ignore",
		"    end it, and leave the thread alone",
	}
	if len(classes) > 1 {
		lines = append(lines, plain.Wrap("Classes of machines: "+strings.Join(classes, ", "), 72, "    ")...)
	}
	return lines
}

// Limits on what one mail may ask for; what goes beyond is not read.
const (
	maxLines  = 5
	maxLine   = 1000
	maxNames  = 50
	maxName   = 200
	mark      = "bench:"
	signature = "-- "
)

// Find gives the command lines of a reply; none of other mail.
func Find(m *mbox.Message) []Line {
	if len(m.InReplyTo) == 0 && len(m.References) == 0 {
		return nil
	}
	if s := patch.ParseSubject(m.Subject); s.Numbered && !s.Reply {
		return nil // a cover letter or a patch
	}
	if len(patch.Find(m, patch.Options{}).Patches) > 0 {
		return nil
	}
	for _, p := range m.Parts {
		if p.Text && !p.Attached && p.Name == "" && (p.Type == "text/plain" || p.Type == "") {
			return Lines(mbox.ToUTF8(p.Body, p.Charset))
		}
	}
	return nil
}

// Lines gives the command lines of a text.
func Lines(text string) []Line {
	var out []Line
	before := ""
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		if line == signature || appended(line, before) || len(out) == maxLines {
			break
		}
		before = line
		rest, ok := cutFold(line, mark)
		if len(line) > maxLine {
			continue
		}
		if !ok {
			if mistyped(line) {
				out = append(out, Line{"", strings.TrimSpace(line)})
			}
			continue
		}
		rest = strings.TrimLeft(rest, ": \t")
		verb, args := rest, ""
		if i := strings.IndexAny(rest, ": \t"); i >= 0 {
			verb, args = rest[:i], strings.Trim(rest[i:], ": \t")
		}
		if verb != "" {
			out = append(out, Line{strings.ToLower(verb), args})
		}
	}
	return out
}

// mistyped says that a line was meant to begin with the mark: a word much like it
// with a colon, before a verb; or a verb alone behind it, without one.
func mistyped(line string) bool {
	words := strings.Fields(strings.ToLower(line))
	if len(words) < 2 || line[0] == ' ' || line[0] == '\t' || !slices.Contains(verbs, words[1]) {
		return false
	}
	first, colon := strings.CutSuffix(words[0], ":")
	want := strings.TrimSuffix(mark, ":")
	if !colon {
		return first == want && len(words) == 2
	}
	other := func(r rune) bool { return r < 'a' || r > 'z' } // no mark of a quote
	return first != want && config.Distance(first, want) == 1 && strings.IndexFunc(first, other) < 0
}

// appended says that a mailer has put the mail that is answered below this line,
// without quoting it.
func appended(line, before string) bool {
	line = strings.TrimSpace(line)
	if len(line) > 10 && strings.HasPrefix(line, "-----") && strings.HasSuffix(line, "-----") && strings.Trim(line, "- ") != "" {
		return true // -----Original Message-----
	}
	rule := strings.TrimSpace(before)
	return strings.HasPrefix(line, "From:") && (rule == "" || strings.Trim(rule, "_") == "")
}

func cutFold(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return "", false
	}
	return s[len(prefix):], true
}

// Request is what a run command asks for.
type Request struct {
	Benchmarks []string // nil: all
	Base       string   // "": what the series says
	Class      string   // "": the project's
}

// Plain says that nothing particular is asked for.
func (r Request) Plain() bool { return len(r.Benchmarks) == 0 && r.Base == "" && r.Class == "" }

// ParseRun reads what follows run. classes are those of machines that are known. An
// error says what cannot be meant; it is for the log, and nothing of the command is
// done.
func ParseRun(args string, classes []string) (Request, error) {
	var r Request
	words := strings.Fields(args)
	if len(words) > maxNames {
		return r, fmt.Errorf("%d words, limit %d", len(words), maxNames)
	}
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case w == "base":
			if i++; i == len(words) {
				return r, fmt.Errorf("no revision behind base")
			}
			if r.Base != "" {
				return r, fmt.Errorf("two bases")
			}
			if !revision(words[i]) {
				return r, fmt.Errorf("base %.100q is not the plain name of a commit, tag or branch", words[i])
			}
			r.Base = words[i]
		case slices.Contains(classes, w):
			if r.Class != "" && r.Class != w {
				return r, fmt.Errorf("two classes of machines, %s and %s: give one command for each", r.Class, w)
			}
			r.Class = w
		case !name(w):
			return r, fmt.Errorf("%.100q cannot be the name of a benchmark", w)
		case !slices.Contains(r.Benchmarks, w):
			r.Benchmarks = append(r.Benchmarks, w)
		}
	}
	return r, nil
}

// revision says that s can be the name of one commit, tag or branch (git
// check-ref-format, and no more of gitrevisions than a plain name): no option, no
// range, no path.
func revision(s string) bool {
	if len(s) > maxName || strings.Contains(s, "..") || strings.Contains(s, "//") || strings.HasSuffix(s, "/") || strings.HasSuffix(s, ".") {
		return false
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == "" || part[0] == '.' || part[0] == '-' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return only(s, "/._-+")
}

// name says that s can be the name of a benchmark with its parameters.
func name(s string) bool {
	return len(s) <= maxName && s[0] != '-' && !strings.Contains(s, "..") && only(s, "/._-+={}:,")
}

// only says that s is made of ASCII letters, digits and some more.
func only(s, more string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && strings.IndexByte(more, c) < 0 {
			return false
		}
	}
	return s != ""
}
