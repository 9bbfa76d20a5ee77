// Package sender tells who sent a mail, and whether that is known or only
// claimed: anybody can write any From.
//
// In goes a decoded mail, out comes a Verdict. Believed are, in this order:
//
//   - the Authentication-Results (RFC 8601) of the one server that the operator
//     names, if they say that DMARC passed for the domain of From, or that a DKIM
//     signature passed whose domain is that of From or one above it;
//   - a DKIM signature that is verified here, where the operator wants that.
//
// Authentication-Results count from the top of the header, where the own server
// puts them: those below a field of another server, or below the next Received,
// came with the mail and are ignored, whatever name stands in them. A server must
// also remove fields with its own name from the mail that comes in (RFC 8601
// section 5): where it neither removes them nor adds its own, a forged one cannot
// be told from it.
//
// A mailing list that puts its own address into From signs as itself. Of such a
// mail the Verdict tells that the list is known; who wrote to the list is then
// the list's word, not ours.
//
// The package also knows mail that no person sent: Automatic and Bounce.
package sender

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/mail"
	"slices"
	"strings"
	"time"

	"github.com/emersion/go-msgauth/authres"
	"github.com/emersion/go-msgauth/dkim"

	"patchbench/mbox"
)

// Options of Check. The zero value believes nobody.
type Options struct {
	// AuthservID names the server whose Authentication-Results are believed.
	AuthservID string
	// LookupTXT asks the DNS for the keys of DKIM signatures, which are then
	// verified here; nil means that they are not.
	LookupTXT func(ctx context.Context, domain string) ([]string, error)
}

// Verdict tells who sent a mail.
type Verdict struct {
	// Address is that of From, lower case; "" if From names none or several.
	Address string
	// Known says that the mail came from Address's domain; else it is a claim.
	Known bool
	// Why tells a reader what it was known by, or what is missing.
	Why string
}

// maxSignatures bounds the signatures that are verified of one mail, lookupTime
// the time that the DNS has for all of them.
const (
	maxSignatures = 3
	lookupTime    = 10 * time.Second
)

// Check tells who sent m.
func Check(ctx context.Context, m *mbox.Message, o Options) Verdict {
	header := fields(m.Raw)
	v := Verdict{Address: from(header)}
	if v.Address == "" {
		v.Why = "From is not one address"
		return v
	}
	_, domain, _ := strings.Cut(v.Address, "@")
	if o.AuthservID != "" {
		v.Known, v.Why = byServer(header, o.AuthservID, domain)
	} else {
		v.Why = "no server is named whose word would count"
	}
	if !v.Known && o.LookupTXT != nil {
		v.Known, v.Why = bySignature(ctx, m.Raw, header, domain, o)
	}
	if v.Known && partly(header, domain) {
		v.Known, v.Why = false, "a signature of "+domain+" covers the start of the mail alone: somebody else may have written on"
	}
	return v
}

// from is the address of the one From field.
func from(header []field) string {
	value, count := "", 0
	for _, f := range header {
		if f.name == "from" {
			value = f.value
			count++
		}
	}
	if count != 1 {
		return ""
	}
	a, err := mail.ParseAddress(value)
	if err != nil {
		// Names in raw 8-bit text are common; what stands in the only <> is
		// the address if nothing else could be one.
		i, j := strings.IndexByte(value, '<'), strings.IndexByte(value, '>')
		if i < 0 || j < i || strings.Count(value, "<") != 1 || strings.Count(value, "@") != 1 || strings.ContainsAny(value, "\",") || strings.TrimSpace(value[j+1:]) != "" {
			return ""
		}
		if a, err = mail.ParseAddress(value[i : j+1]); err != nil {
			return ""
		}
	}
	return strings.ToLower(a.Address)
}

// aligned says that a signature of the domain d speaks for a mail whose From has
// the other: d is that or above it.
func aligned(d, of string) bool {
	d, of = strings.ToLower(strings.Trim(d, ".")), strings.ToLower(strings.Trim(of, "."))
	return d != "" && strings.Contains(d, ".") && (d == of || strings.HasSuffix(of, "."+d))
}

// byServer reads what the own server found.
func byServer(header []field, id, domain string) (bool, string) {
	judged := make(map[string]bool) // methods; the topmost field that has one counts
	known, why, seen := false, "", false
	for _, f := range header {
		if f.name == "received" && seen {
			break
		}
		if f.name != "authentication-results" {
			continue
		}
		name, results, _ := authres.Parse(plain(f.value)) // up to a fault is good
		if !strings.EqualFold(name, id) {
			break
		}
		seen = true
		here := make(map[string]bool)
		for _, r := range results {
			switch r := r.(type) {
			case *authres.DKIMResult:
				here["dkim"] = true
				signer := r.Domain
				if signer == "" { // some servers give the identity alone
					_, signer, _ = strings.Cut(r.Identifier, "@")
				}
				if !judged["dkim"] && r.Value == authres.ResultPass && aligned(signer, domain) {
					known, why = true, "DKIM of "+strings.ToLower(signer)+", by "+id
				}
			case *authres.DMARCResult:
				here["dmarc"] = true
				if !judged["dmarc"] && r.Value == authres.ResultPass && strings.EqualFold(strings.Trim(r.From, "."), domain) {
					known, why = true, "DMARC of "+domain+", by "+id
				}
			}
		}
		for method := range here {
			judged[method] = true
		}
	}
	switch {
	case known:
		return true, why
	case !seen:
		return false, id + " has said nothing of this mail"
	}
	return false, "neither DKIM nor DMARC of " + domain + " passed, says " + id
}

// plain takes comments out of a structured value and makes what is quoted one
// word, so that neither can hold what looks like a result.
func plain(v string) string {
	var out strings.Builder
	depth, quoted := 0, false
	for i := 0; i < len(v); i++ {
		c := v[i]
		switch {
		case c == '\\' && (quoted || depth > 0):
			i++
		case quoted && c == '"':
			quoted = false
		case quoted:
			if strings.IndexByte("; \t=()\r\n", c) >= 0 {
				c = '_'
			}
			out.WriteByte(c)
		case c == '(':
			depth++
			out.WriteByte(' ')
		case c == ')' && depth > 0:
			depth--
		case depth > 0:
		case c == '"':
			quoted = true
		default:
			out.WriteByte(c)
		}
	}
	return out.String()
}

// bySignature verifies the mail's own signatures.
func bySignature(ctx context.Context, raw []byte, header []field, domain string, o Options) (bool, string) {
	signed := false
	for _, f := range header {
		signed = signed || f.name == "dkim-signature"
	}
	if !signed {
		return false, "the mail has no DKIM signature"
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	list, err := dkim.VerifyWithOptions(bytes.NewReader(crlf(raw)), &dkim.VerifyOptions{
		MaxVerifications: maxSignatures,
		LookupTXT:        func(name string) ([]string, error) { return o.LookupTXT(ctx, name) },
	})
	if err != nil && !errors.Is(err, dkim.ErrTooManySignatures) {
		return false, fmt.Sprintf("DKIM: %v", err)
	}
	why := "no DKIM signature of " + domain
	for _, v := range list {
		if !aligned(v.Domain, domain) {
			continue
		}
		if v.Err == nil {
			return true, "DKIM of " + strings.ToLower(v.Domain)
		}
		why = fmt.Sprintf("DKIM of %s: %v", strings.ToLower(v.Domain), v.Err)
	}
	return false, why
}

// Unsigned gives those of the named fields (lower case) that somebody could have
// changed or added without hurting the signatures of From's domain: a signature
// that passes covers the fields that it names, and a signed mail can be sent again
// by anybody. It is nil for mail without such a signature, of which the server knows
// by its way that it was not.
func Unsigned(m *mbox.Message, names ...string) []string {
	header := fields(m.Raw)
	_, domain, _ := strings.Cut(from(header), "@")
	there := make(map[string]int)
	for _, f := range header {
		there[f.name]++
	}
	var open []string
	for tags := range signatures(header, domain) {
		signed := make(map[string]int)
		for name := range strings.SplitSeq(strings.ToLower(tags["h"]), ":") {
			signed[name]++
		}
		for _, name := range names {
			if there[name] > signed[name] && !slices.Contains(open, name) {
				open = append(open, name)
			}
		}
	}
	return open
}

// partly says that a signature of a domain leaves what is below some length of the
// mail to anybody (l=, RFC 6376 section 8.2).
func partly(header []field, domain string) bool {
	for tags := range signatures(header, domain) {
		if _, ok := tags["l"]; ok {
			return true
		}
	}
	return false
}

// signatures gives the tags, without blanks, of each signature of a domain.
func signatures(header []field, domain string) iter.Seq[map[string]string] {
	return func(yield func(map[string]string) bool) {
		for _, f := range header {
			if f.name != "dkim-signature" {
				continue
			}
			tags := make(map[string]string)
			for tag := range strings.SplitSeq(f.value, ";") {
				name, value, _ := strings.Cut(strings.Join(strings.Fields(tag), ""), "=")
				tags[name] = value
			}
			if related(tags["d"], domain) && !yield(tags) {
				return
			}
		}
	}
}

// related says that two domains have one owner, as far as their last two labels
// tell; DMARC takes a signature of any of them.
func related(a, b string) bool {
	last := func(domain string) string {
		labels := strings.Split(strings.ToLower(strings.Trim(domain, ".")), ".")
		return strings.Join(labels[max(0, len(labels)-2):], ".")
	}
	return last(a) == last(b)
}

// crlf ends each line as on the wire, which is what was signed.
func crlf(b []byte) []byte {
	b = bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
	return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n"))
}

// field is one of a header, unfolded; its name is in lower case.
type field struct{ name, value string }

// fields takes a header apart, in order. mbox has refused what is too long.
func fields(raw []byte) []field {
	var out []field
	for len(raw) > 0 {
		line := raw
		if i := bytes.IndexByte(raw, '\n'); i >= 0 {
			line, raw = raw[:i], raw[i+1:]
		} else {
			raw = nil
		}
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) == 0 {
			break
		}
		if line[0] == ' ' || line[0] == '\t' {
			if n := len(out); n > 0 {
				out[n-1].value += " " + strings.TrimSpace(string(line))
			}
			continue
		}
		name, value, ok := strings.Cut(string(line), ":")
		if !ok {
			name = "" // no field; what is folded below it is none either
		}
		out = append(out, field{strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)})
	}
	return out
}
