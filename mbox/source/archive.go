package source

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// ArchiveOptions of OpenArchive. The zero value works.
type ArchiveOptions struct {
	// Client asks archives over HTTP; nil means one that gives up after a minute.
	Client *http.Client
	// MaxPacked and MaxUnpacked bound what an HTTP archive may send, in bytes; 0
	// means 64 MiB and 1 GiB.
	MaxPacked, MaxUnpacked int64
}

// OpenArchive opens the thread that a message belongs to, as a public-inbox keeps
// it. name is a Message-ID, with or without <>, or a message's address in an
// archive (https://HOST/LIST/MESSAGE-ID/). archive is where to look:
//
//	https://HOST/LIST    asked for MESSAGE-ID/t.mbox.gz
//	DIR                  git epochs, DIR/0.git or DIR/git/0.git and on
//	""                   name is an address and says it itself
//
// With an address and an archive, the archive is asked for the address's message.
// It fails with *InputError for what the user can mend: a name that is no
// Message-ID, an archive that is none or does not have the message. A failing
// network or server is another error.
//
// Of an archive on disk all messages from the newest back to the thread's
// beginning are looked at, in one pass and by their headers alone; 80 bytes are
// kept of each, and nothing is checked out. The thread's mails themselves are read
// one after another, by Next.
func OpenArchive(ctx context.Context, archive, name string, o ArchiveOptions) (*Source, error) {
	id := MessageID(name)
	if isAddress(name) {
		base, _, ok := splitAddress(name)
		if !ok {
			return nil, &InputError{Path: name, Reason: "no Message-ID in this address (want https://HOST/LIST/MESSAGE-ID/)"}
		}
		if archive == "" {
			archive = base
		}
	}
	switch {
	case archive == "":
		return nil, &InputError{Path: name, Reason: "a Message-ID, but no archive to look it up in"}
	case !isMessageID(id):
		return nil, &InputError{Path: name, Reason: "not a Message-ID (want one like 20240501.1@example.org)"}
	case isAddress(archive):
		return openHTTP(ctx, archive, id, o)
	case strings.Contains(archive, "://"):
		return nil, &InputError{Path: archive, Reason: "not an archive: want http:// or https://, or a folder with a public-inbox's git epochs"}
	}
	return openEpochs(ctx, archive, id)
}

// NamesMessage says that an argument is a Message-ID or the address of a message
// in an archive, and no file.
func NamesMessage(arg string) bool {
	if isAddress(arg) {
		return true
	}
	if arg == "-" || !isMessageID(MessageID(arg)) {
		return false
	}
	_, err := os.Lstat(arg)
	return err != nil
}

// MessageID is the id, without <>, in an argument that names a message; of an
// address without one it is "".
func MessageID(arg string) string {
	if isAddress(arg) {
		_, id, _ := splitAddress(arg)
		return id
	}
	return strings.Trim(strings.TrimSpace(arg), "<>")
}

func isAddress(s string) bool {
	s = strings.ToLower(s)
	return strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://")
}

// isMessageID is lenient: mailers write all kinds of things around an @.
func isMessageID(id string) bool {
	i := strings.IndexByte(id, '@')
	return i > 0 && i < len(id)-1 && len(id) <= 998 && !strings.ContainsFunc(id, func(r rune) bool {
		return r <= ' ' || r == 0x7f || r == '<' || r == '>'
	})
}

// splitAddress takes a message's address apart: https://host/list/ID/T/#u is the
// message ID of https://host/list.
func splitAddress(address string) (base, id string, ok bool) {
	address, _, _ = strings.Cut(address, "#")
	address, _, _ = strings.Cut(address, "?")
	segments := strings.Split(address, "/")
	for i := len(segments) - 1; i > 2; i-- {
		s, err := url.PathUnescape(segments[i])
		if err != nil {
			continue
		}
		if s = strings.Trim(s, "<>"); isMessageID(s) {
			return strings.Join(segments[:i], "/"), s, true
		}
	}
	return "", "", false
}
