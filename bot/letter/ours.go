package letter

import (
	"crypto/hmac"
	"encoding/hex"
	"slices"
	"strings"

	"patchbench/mbox"
)

// Ours says that a message is the bot's own: it carries the mark that only the
// holder of secret can make, or it comes from the address from, with +anything in it
// too.
func Ours(m *mbox.Message, secret []byte, from string) bool {
	if isFrom(m.From, from) {
		return true
	}
	want := keyed(secret, "mark", m.ID)
	return len(secret) > 0 && m.ID != "" && hmac.Equal([]byte(m.Header(markField)), []byte(want))
}

// Under says that a message is a letter, of this bot or of another one under the
// same address, whose secret is another: its Message-ID and mark have the form, and
// it comes from the address, which a list may have moved into Reply-To. Who wrote it
// is not certain by that. It gives the mail that the letter answers, without <>.
func Under(m *mbox.Message, from string) (answers string, ok bool) {
	a := mbox.ParseAddress(from).Email
	_, domain, _ := strings.Cut(strings.ToLower(a), "@")
	id, named := strings.CutPrefix(m.ID, idPrefix)
	id, at := strings.CutSuffix(id, "@"+domain)
	by := isFrom(m.From, from) || slices.ContainsFunc(mbox.ParseAddresses(m.Header("Reply-To")), func(r mbox.Address) bool { return isFrom(r, from) })
	if a == "" || !named || !at || !by || !isKeyed(id) || !isKeyed(m.Header(markField)) || len(m.InReplyTo) != 1 || !validID(m.InReplyTo[0]) {
		return "", false
	}
	return m.InReplyTo[0], true
}

func isFrom(a mbox.Address, from string) bool {
	own := mbox.ParseAddress(from).Email
	return own != "" && strings.EqualFold(untagged(a.Email), untagged(own))
}

// untagged is an address without what stands behind a + in its local part.
func untagged(address string) string {
	local, domain, _ := strings.Cut(address, "@")
	local, _, _ = strings.Cut(local, "+")
	return local + "@" + domain
}

// isKeyed says that a text can be one of keyed.
func isKeyed(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == keyBytes && s == strings.ToLower(s)
}
