package watch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"patchbench/bot/watch/sender"
	"patchbench/config/service"
	"patchbench/mbox"
	"patchbench/mbox/series/patch"
	"patchbench/store"
)

// facts are what the mails of a series say beside their patches.
type facts struct {
	head      *mbox.Message // the header of the mail that is answered, nil without one
	received  time.Time     // when that came in
	last      time.Time     // when the last one came in
	author    mbox.Address  // who is answered
	ids       []string      // List-Id values of all copies
	addresses []string      // of To and Cc
	automatic string        // why no person sent it, "" if one may have
	optOut    bool          // the mail says that it wants no answer
	unclear   bool          // From of the head is not plainly one address
	known     bool          // all of it comes from where it says
	senders   []string      // addresses of From, without doubles
	why       string        // how the first is known, or why one is not
}

// OptOutField with the value no is the header field by which an author wants no
// evaluation of a series.
const OptOutField = "X-Patchbench"

// gather reads the mails of a series back: those with these keys, the head first.
func (w *Watcher) gather(ctx context.Context, cfg *service.Config, keys []string) (*facts, error) {
	f := &facts{known: true}
	auth := w.authentication(cfg)
	for i, key := range keys {
		mails, err := w.st.MailsByKey(ctx, key)
		if err != nil {
			return nil, err
		}
		if err := f.add(ctx, cfg, auth, mails, i == 0); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// add takes in the copies of one mail. The first is the one that the patch is
// taken from; another vouches for it only if it holds the same.
func (f *facts) add(ctx context.Context, cfg *service.Config, auth sender.Options, copies []store.Mail, head bool) error {
	var first *mbox.Message
	known, why, what := false, "its mail is not in the store", ""
	for _, mail := range copies {
		m, err := read(mail.Raw)
		if mail.Problem != "" || err != nil {
			continue
		}
		if first == nil {
			first, what = m, contents(m)
			v := f.check(ctx, cfg, auth, m)
			known, why = v.Known, v.Why
			if v.Address != "" && !slices.Contains(f.senders, v.Address) {
				f.senders = append(f.senders, v.Address)
			}
			if !strings.EqualFold(v.Address, m.From.Email) {
				// Whose series it is goes by what stands there, in quotes too.
				known, why = false, "From is not one address"
			}
			f.automatic = cmpOr(f.automatic, sender.Automatic(m))
			f.optOut = f.optOut || strings.EqualFold(strings.TrimSpace(m.Header(OptOutField)), "no")
			if head {
				f.head, f.received, f.author, f.why = m, mail.Received, answered(m, cfg), v.Why
				f.unclear = !strings.EqualFold(v.Address, m.From.Email)
			}
		} else if contents(m) != what {
			continue // another mail with the same Message-ID
		} else if !known {
			if v := f.check(ctx, cfg, auth, m); v.Known && strings.EqualFold(m.From.Email, first.From.Email) {
				known, why = true, v.Why
				if head {
					f.why = v.Why
				}
			}
		}
		if mail.Received.After(f.last) {
			f.last = mail.Received
		}
		f.ids = appendNew(f.ids, m.Lists)
		for _, name := range []string{"To", "Cc"} {
			for _, value := range m.Headers(name) {
				for _, a := range mbox.ParseAddresses(value) {
					f.addresses = appendNew(f.addresses, []string{strings.ToLower(a.Email)})
				}
			}
		}
	}
	if !known && f.known {
		f.known, f.why = false, why
	}
	return ctx.Err()
}

// check tells who sent a mail. The DNS is asked only where it matters: for senders
// that would be trusted, and while nothing else has failed.
func (f *facts) check(ctx context.Context, cfg *service.Config, auth sender.Options, m *mbox.Message) sender.Verdict {
	if !f.known || !listed(cfg.Policy.Trusted, m.From.Email) {
		auth.LookupTXT = nil
	}
	return sender.Check(ctx, m, auth)
}

// answered is who gets the answer to a mail: whoever From names or, where a list
// that is served has put itself there, whom it has put into Reply-To instead.
// Reply-To of other mail is not heeded: anybody can name a stranger there.
func answered(m *mbox.Message, cfg *service.Config) mbox.Address {
	if slices.ContainsFunc(cfg.Lists, func(l service.List) bool { return strings.EqualFold(l.Address, m.From.Email) }) {
		return patch.Author(m)
	}
	return m.From
}

// standing is how far the senders of a series are known.
type standing int

const (
	claimed standing = iota // From is all that is known of one of them
	known                   // all come from where they say
	trusted                 // and the service file trusts them
)

func (f *facts) standing(cfg *service.Config) standing {
	switch {
	case !f.known || len(f.senders) == 0:
		return claimed
	case !slices.ContainsFunc(f.senders, func(a string) bool { return !listed(cfg.Policy.Trusted, a) }):
		return trusted
	case slices.ContainsFunc(cfg.Lists, func(l service.List) bool { return slices.Contains(f.senders, strings.ToLower(l.Address)) }):
		return claimed // the list is known, and not who wrote to it
	}
	return known
}

// lists gives the lists that the series came through: those whose ids are known
// before those whose addresses are.
func (f *facts) lists(cfg *service.Config) []*service.List {
	var out []*service.List
	for byID := range 2 {
		for i := range cfg.Lists {
			l := &cfg.Lists[i]
			hit := byID == 0 && l.ID != "" && slices.ContainsFunc(f.ids, func(id string) bool { return strings.EqualFold(strings.Trim(id, "<> \t"), l.ID) }) ||
				byID == 1 && slices.Contains(f.addresses, strings.ToLower(l.Address))
			if hit && !slices.Contains(out, l) {
				out = append(out, l)
			}
		}
	}
	return out
}

// listed says that an address is one of some addresses and @domains.
func listed(list []string, address string) bool {
	address = strings.ToLower(address)
	i := strings.LastIndexByte(address, '@')
	return i > 0 && slices.ContainsFunc(list, func(e string) bool {
		e = strings.ToLower(e)
		return e == address || e == address[i:]
	})
}

func appendNew(list, more []string) []string {
	for _, s := range more {
		if s != "" && !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// quoted is text from outside for a reason: short and on one line.
func quoted(s string) string { return fmt.Sprintf("%.100q", s) }
