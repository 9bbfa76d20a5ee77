package reply

import (
	"fmt"
	"slices"
	"strings"

	"patchbench/config/service"
	"patchbench/store"
)

// withheld says why a letter may not leave as the service is configured now, which
// may be otherwise than when it was written; "" when it may. Somebody's approval
// stands above the mode of the list, but nothing leaves under an address that is
// not the bot's.
func withheld(c *service.Config, l *store.Letter) string {
	list := c.ListOf(nil, []string{l.Channel})
	switch {
	case !strings.EqualFold(l.From, c.SMTP.From.Email):
		return fmt.Sprintf("it was written as %s, and smtp.from is %s by now: drop it", l.From, c.SMTP.From.Email)
	case l.Approved:
		return ""
	case list == nil:
		return fmt.Sprintf("the service file has no list %s any more: approve it, or drop it", l.Channel)
	case list.Mode == service.DryRun:
		return "its list is in dry run by now: approve it, or drop it"
	case list.Mode == service.AuthorOnly && slices.ContainsFunc(l.To, func(r store.Recipient) bool { return strings.EqualFold(r.Address, list.Address) }):
		return "it goes to the list, to which nothing is written by now (author-only): approve it, or drop it"
	}
	return ""
}
