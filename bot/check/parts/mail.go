package parts

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/emersion/go-smtp"

	"patchbench/bot/reply"
	"patchbench/config/service"
	"patchbench/mbox/source/epoch"
	"patchbench/mbox/source/imap"
)

// lookBack is how old mail of a list may be to show that it still arrives.
const lookBack = 30 // days

func (c *checker) imap(ctx context.Context) {
	const name = "imap"
	m := c.cfg.IMAP
	if m == nil {
		return
	}
	if m.Password == service.Placeholder {
		c.say(name, Wrong, "write it into the file that imap.password_file names", "the password is still to be written")
		return
	}
	hear := c.listening("the IMAP server")
	src, err := imap.New(imap.Options{
		Address: m.Address, TLS: m.TLS, AllowPlaintext: m.AllowPlaintext, CAFile: m.CAFile, User: m.User, Password: string(m.Password), Folder: m.Folder,
		Dial: func(ctx context.Context, address string) (net.Conn, error) { return hear(ctx, "tcp", address) },
	})
	if err != nil {
		c.say(name, Wrong, "", "%v", err)
		return
	}
	var groups [][]imap.Field
	for _, l := range c.cfg.Lists {
		if l.ID != "" {
			groups = append(groups, []imap.Field{{Name: "List-Id", Text: "<" + l.ID + ">"}})
		} else {
			groups = append(groups, []imap.Field{{Name: "To", Text: l.Address}, {Name: "Cc", Text: l.Address}})
		}
	}
	// Whose word about senders is taken can be seen in the mail that is there.
	if id := c.cfg.Policy.AuthservID; id != "" {
		groups = append(groups, []imap.Field{{Name: "Authentication-Results", Text: id}})
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	st, err := src.Check(ctx, c.o.Now().AddDate(0, 0, -lookBack), groups...)
	if err != nil {
		c.failed(name, serverAdvice(err, imap.Refused(err), "check user, password_file, folder and tls", "check address and tls"), err)
		return
	}
	c.say(name, OK, "", "%s: %d mails, %s", m, st.Mails, map[bool]string{true: "tells of new mail itself (IDLE)", false: "has no IDLE: it is asked every half minute"}[st.Idle])
	recent := 0
	for i, l := range c.cfg.Lists {
		if recent += st.Found[i]; st.Found[i] == 0 {
			c.say(name, Note, "subscribe "+m.User+" to the list, or check id, address and imap.folder", "no mail of %s from the last %d days is in the folder", l.Address, lookBack)
		}
	}
	if id := c.cfg.Policy.AuthservID; id != "" && recent > 0 && st.Found[len(c.cfg.Lists)] == 0 {
		c.say(name, Wrong, "look at the Authentication-Results fields that your server writes", "no mail in the folder has results by policy.authserv_id = %s: nobody could be recognised", id)
	}
}

// serverAdvice says what to do about a server's error.
func serverAdvice(err error, refused bool, answer, connection string) string {
	var verify *tls.CertificateVerificationError
	switch {
	case errors.As(err, &verify):
		return "name the server as its certificate does, or name who signed it with ca_file"
	case refused:
		return answer
	}
	return connection
}

func (c *checker) maildir(context.Context) {
	const name = "maildir"
	m := c.cfg.Maildir
	if m == nil {
		return
	}
	mails := 0
	for _, sub := range []string{"cur", "new"} {
		files, err := os.ReadDir(filepath.Join(m.Path, sub))
		if err != nil {
			c.say(name, Wrong, "name a Maildir (a folder with cur, new and tmp) that "+self()+" may read", "%v", err)
			return
		}
		mails += len(files)
	}
	c.say(name, OK, "", "%s: %d mails", m.Path, mails)
}

func (c *checker) inboxes(context.Context) {
	const name = "inbox"
	for _, in := range c.cfg.Inboxes {
		dirs := epoch.Dirs(in.Path)
		if len(dirs) == 0 {
			c.say(name, Wrong, "name a public-inbox mirror: a folder with git/0.git or 0.git, or one such repository", "%s holds none", in.Path)
			continue
		}
		newest := dirs[len(dirs)-1]
		tip, err := epoch.Tip(newest)
		if err != nil {
			c.say(name, Wrong, "fetch the mirror anew, or let "+self()+" read it", "%v", err)
			continue
		}
		c.say(name, OK, "", "%s: newest epoch %s at %.12s", in.Path, newest, tip)
	}
}

func (c *checker) smtp(ctx context.Context) {
	const name = "smtp"
	s := c.cfg.SMTP
	if s == nil {
		return
	}
	if s.User != "" && s.Password == service.Placeholder {
		c.say(name, Wrong, "write it into the file that smtp.password_file names", "the password is still to be written")
		return
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	if err := reply.Check(ctx, s, c.listening("the SMTP server")); err != nil {
		var said *smtp.SMTPError
		if errors.As(err, &said) && said.Code < 500 {
			c.say(name, Away, "try again later", "%v", err)
			return
		}
		c.failed(name, serverAdvice(err, reply.Refused(err), "check user, password_file and from", "check address and tls"), err)
		return
	}
	how := "logged in as " + s.User
	if s.User == "" {
		how = "without a login"
	}
	c.say(name, OK, "", "%s takes mail from %s, %s; nothing was sent", s.Address, s.From.Email, how)
}

func (c *checker) lists(context.Context) {
	const name = "list"
	for _, l := range c.cfg.Lists {
		switch l.Mode {
		case service.ToList:
			c.say(name, OK, "", "%s: replies go to authors with a copy to the list, by consent of: %s", l.Address, l.Consent)
		case service.AuthorOnly:
			c.say(name, OK, "", "%s: replies go to authors alone", l.Address)
		default:
			c.say(name, Note, "read them with bot outbox; mode \"author-only\" or \"list\" sends them", "%s: dry-run: replies are kept, nobody gets one", l.Address)
		}
		if l.ID == "" {
			c.say(name, Note, fmt.Sprintf("add id = %q, if that is what its mail has", strings.Replace(l.Address, "@", ".", 1)), "%s: without id a mail is the list's only by To and Cc, which a Bcc has not", l.Address)
		}
	}
}

func (c *checker) policy(context.Context) {
	p := c.cfg.Policy
	if len(c.cfg.Lists) == 0 {
		return
	}
	switch {
	case len(p.Trusted) > 0:
		c.say("policy", OK, "", "%d trusted; strangers: %s; %d may command", len(p.Trusted), p.Strangers, len(p.Commands))
	case p.Strangers == service.Hold:
		c.say("policy", Note, "list them with bot jobs list, approve one with bot jobs release; name people with policy.trusted", "nobody is trusted: each series waits for you")
	case p.Strangers == service.Ignore:
		c.say("policy", Wrong, `name people with policy.trusted, or set strangers = "hold"`, "nobody is trusted and strangers are ignored: no series will be evaluated")
	default:
		c.say("policy", Note, "everything then rests on the sandbox: see the operator's guide", "whoever writes to a list gets his code run, %d series a day", p.PerAuthorDay)
	}
}
