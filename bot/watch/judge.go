package watch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"patchbench/bot/watch/pathspec"
	"patchbench/config/service"
	"patchbench/mbox"
	"patchbench/store"
)

// verdict is what is done about a series, and why.
type verdict struct {
	state    store.State
	reason   string
	list     *service.List // nil: none that is served
	branch   string        // to evaluate it on; "" is the project's
	standing standing
}

// judge says what the service file wants done about a series, by what stands in
// it alone. Whether there is a newer version, and how much was done for its author
// already, is left to decide.
func judge(cfg *service.Config, s *mbox.Series, f *facts, now time.Time) verdict {
	v := verdict{state: store.Ignored, standing: f.standing(cfg)}
	lists := f.lists(cfg)
	if len(lists) > 0 {
		v.list = lists[0]
	}
	no := func(format string, args ...any) verdict {
		v.reason = fmt.Sprintf(format, args...)
		return v
	}
	switch {
	case f.head == nil || !properID(f.head.ID):
		return no("no Message-ID: it cannot be answered")
	case len(lists) == 0:
		return no("came through no list that is served")
	case f.automatic != "":
		return no("sent by a program (%s)", f.automatic)
	case f.unclear:
		return no("From is not one address: it cannot be answered")
	case !dotAtom(f.author.Email):
		return no("the sender's address %s cannot be answered", quoted(f.author.Email))
	case slices.ContainsFunc(cfg.Lists, func(l service.List) bool { return strings.EqualFold(l.Address, f.author.Email) }):
		return no("the list does not tell who sent it")
	case listed(cfg.Policy.OptOut, f.author.Email):
		return no("its author wants no answers")
	case f.optOut:
		return no("its author wants no answer to it (%s: no)", OptOutField)
	case cfg.Policy.MaxAge > 0 && now.Sub(f.last) > cfg.Policy.MaxAge:
		return no("came in on %s, longer ago than %s", f.last.UTC().Format(time.DateOnly), days(cfg.Policy.MaxAge))
	}
	// Of several lists the first that wants it counts.
	reason := ""
	for _, l := range lists {
		branch, why := wanted(l, s)
		if why == "" {
			v.list, v.branch, reason = l, branch, ""
			break
		}
		reason = cmpOr(reason, why)
	}
	switch {
	case reason != "":
		return no("%s", reason)
	case size(s) > maxDiffs:
		return no("its diffs are %d MiB, limit %d", size(s)>>20, maxDiffs>>20)
	case !s.Complete:
		v.state = store.Incomplete
		return no("%s", missing(s))
	case v.standing == trusted:
		v.state = store.Queued
		return no("its author is trusted: %s", f.why)
	}
	who := "nobody trusts " + quoted(f.author.Email)
	switch {
	case !listed(cfg.Policy.Trusted, f.author.Email):
	case f.known:
		who = quoted(f.author.Email) + " is trusted, but somebody else sent a part of it: " + strings.Join(f.senders, ", ")
	default:
		who = quoted(f.author.Email) + " is trusted, but it is not known that this came from there: " + f.why
	}
	switch cfg.Policy.Strangers {
	case service.Run:
		v.state = store.Queued
		return no("strangers are served")
	case service.Ignore:
		return no("%s", who)
	}
	v.state = store.Held
	return no("%s", who)
}

// wanted says why a list does not want a series evaluated, "" if it does, and on
// which branch.
func wanted(l *service.List, s *mbox.Series) (branch, why string) {
	required := len(l.RequireTags) == 0
	for _, written := range s.Tags {
		tag := strings.ToLower(written)
		if slices.Contains(l.IgnoreTags, tag) {
			return "", fmt.Sprintf("tag %s is not evaluated on %s", quoted(written), l.Address)
		}
		required = required || slices.Contains(l.RequireTags, tag)
		if b := l.Tags[tag]; b != "" && branch == "" {
			branch = b
		}
	}
	if !required {
		return "", fmt.Sprintf("none of the tags %s, as %s wants", strings.Join(l.RequireTags, ", "), l.Address)
	}
	if len(l.Paths) > 0 && s.Complete && !slices.ContainsFunc(s.Patches, func(p mbox.Patch) bool {
		return slices.ContainsFunc(p.Files, func(name string) bool { return pathspec.Match(l.Paths, name) })
	}) {
		return "", fmt.Sprintf("touches no file of interest for %s", l.Address)
	}
	return branch, ""
}

// maxDiffs bounds the diffs of a series: a task holds them all.
const maxDiffs = 64 << 20

// size is how many bytes the diffs of a series are.
func size(s *mbox.Series) int {
	n := 0
	for _, p := range s.Patches {
		n += len(p.Diff)
	}
	return n
}

// missing tells which patches of a series are not there.
func missing(s *mbox.Series) string {
	numbers := make([]string, 0, len(s.Missing))
	for i, n := range s.Missing {
		if i == 10 {
			numbers = append(numbers, "...")
			break
		}
		numbers = append(numbers, fmt.Sprint(n))
	}
	return fmt.Sprintf("missing %s of %d", strings.Join(numbers, ", "), s.Total)
}

func days(d time.Duration) string {
	if d >= 48*time.Hour && d%(24*time.Hour) == 0 {
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
	return d.String()
}

// dotAtom says that an address is of the plain form that can be written to
// (RFC 5322 dot-atom, ASCII).
func dotAtom(address string) bool {
	local, domain, ok := strings.Cut(address, "@")
	return ok && len(address) <= 254 && atoms(local, "!#$%&'*+-/=?^_`{|}~") && atoms(domain, "-") && strings.Contains(domain, ".")
}

// atoms says that s is words of ASCII letters, digits and some more, with dots
// between them.
func atoms(s, more string) bool {
	for word := range strings.SplitSeq(s, ".") {
		if word == "" || strings.IndexFunc(word, func(r rune) bool {
			return (r|0x20 < 'a' || r|0x20 > 'z') && (r < '0' || r > '9') && !strings.ContainsRune(more, r)
		}) >= 0 {
			return false
		}
	}
	return true
}
