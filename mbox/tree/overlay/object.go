package overlay

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"patchbench/mbox"
)

// Has says that an object is there.
func (r *Repo) Has(id plumbing.Hash) bool {
	r.mu.RLock()
	_, ok := r.over[id]
	r.mu.RUnlock()
	return ok || r.odb.Has(id)
}

// Read gives an object's type and bytes, which must not be changed;
// plumbing.ErrObjectNotFound if it is not there.
func (r *Repo) Read(id plumbing.Hash) (plumbing.ObjectType, []byte, error) {
	r.mu.RLock()
	o, ok := r.over[id]
	r.mu.RUnlock()
	if ok {
		return o.typ, o.data, nil
	}
	return r.odb.Read(id)
}

// Want reads an object that must be there and be of a type.
func (r *Repo) Want(typ plumbing.ObjectType, id plumbing.Hash) ([]byte, error) {
	have, data, err := r.Read(id)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return nil, fmt.Errorf("%s %s is not in %s; run git fsck there: %w", typ, id, r.dir, err)
	} else if err != nil {
		return nil, err
	}
	if have != typ {
		return nil, fmt.Errorf("%s is a %s in %s, not a %s", id, have, r.dir, typ)
	}
	return data, nil
}

// Blob reads a file's bytes, which must not be changed.
func (r *Repo) Blob(id plumbing.Hash) ([]byte, error) { return r.Want(plumbing.BlobObject, id) }

// Size is the length of an object in bytes.
func (r *Repo) Size(id plumbing.Hash) (int64, error) {
	r.mu.RLock()
	o, ok := r.over[id]
	r.mu.RUnlock()
	if ok {
		return int64(len(o.data)), nil
	}
	return r.odb.Size(id)
}

// ID is the id that git gives to an object.
func ID(typ plumbing.ObjectType, data []byte) (id plumbing.Hash) {
	h := sha1.New()
	h.Write(append(strconv.AppendInt([]byte(typ.String()+" "), int64(len(data)), 10), 0))
	h.Write(data)
	h.Sum(id[:0])
	return id
}

// Write puts an object into memory and gives its id. The bytes belong to it from
// then on.
func (r *Repo) Write(typ plumbing.ObjectType, data []byte) plumbing.Hash {
	id := ID(typ, data)
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.over[id]; !ok {
		r.over[id] = object{typ, data}
	}
	return id
}

// Commit is what is needed of a commit object.
type Commit struct {
	ID      plumbing.Hash
	Tree    plumbing.Hash
	Parents []plumbing.Hash
	Author  mbox.Address
	Date    int64  // of the committer, in Unix seconds
	Subject string // its first paragraph as one line, valid UTF-8
	Message string // all of it, with the subject, valid UTF-8
}

func (r *Repo) Commit(id plumbing.Hash) (*Commit, error) {
	data, err := r.Want(plumbing.CommitObject, id)
	if err != nil {
		return nil, err
	}
	c := &Commit{ID: id}
	head, body, _ := bytes.Cut(data, []byte("\n\n"))
	for line := range strings.Lines(string(head) + "\n") {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch key {
		case "tree":
			c.Tree = plumbing.NewHash(value)
		case "parent":
			c.Parents = append(c.Parents, plumbing.NewHash(value))
		case "author":
			name, rest, _ := strings.Cut(value, "<")
			email, _, _ := strings.Cut(rest, ">")
			c.Author = mbox.Address{Name: strings.TrimSpace(name), Email: email}
		case "committer":
			_, when, _ := strings.Cut(value, "> ")
			when, _, _ = strings.Cut(when, " ")
			c.Date, _ = strconv.ParseInt(when, 10, 64)
		}
	}
	// A subject is the first paragraph as one line.
	text, _, _ := strings.Cut(strings.TrimLeft(string(body), "\n"), "\n\n")
	c.Message = strings.ToValidUTF8(string(body), "\uFFFD")
	c.Subject = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "\uFFFD")
	return c, nil
}

// WriteCommit makes a commit by the patch's author. The committer is the bot at
// the author's date, so that equal input gives equal ids.
func (r *Repo) WriteCommit(tree, parent plumbing.Hash, p *mbox.Patch) plumbing.Hash {
	when := "0 +0000"
	if !p.Date.IsZero() {
		when = strconv.FormatInt(max(p.Date.Unix(), 0), 10) + " " + p.Date.Format("-0700")
	}
	email := identity(p.Author.Email)
	name := identity(p.Author.Name)
	if name == "" {
		name = email
	}
	if name == "" {
		name = "unknown"
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\nparent %s\nauthor %s <%s> %s\ncommitter Patchbench <patchbench@localhost> %s\n\n%s",
		tree, parent, name, email, when, when, strings.ReplaceAll(p.Message, "\x00", ""))
	return r.Write(plumbing.CommitObject, b.Bytes())
}

// identity leaves out of a name or address what git leaves out of one: angle
// brackets and control characters anywhere, and crud at the ends.
func identity(s string) string {
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c == '<' || c == '>' {
			return -1
		}
		return c
	}, s)
	return strings.Trim(s, " .,:;\"\\'")
}

var hexID = regexp.MustCompile(`^[0-9a-fA-F]{7,40}$`)

// CommitByPrefix finds the one commit with a full or abbreviated id.
func (r *Repo) CommitByPrefix(prefix string) (found plumbing.Hash, ok bool) {
	if !hexID.MatchString(prefix) {
		return found, false
	}
	for _, id := range r.odb.Prefix(prefix) {
		if typ, _, err := r.Read(id); err != nil || typ != plumbing.CommitObject {
			continue
		}
		if ok {
			return plumbing.ZeroHash, false
		}
		found, ok = id, true
	}
	return found, ok
}

// BlobByPrefix finds the one blob whose id starts so; zero for none or several.
func (r *Repo) BlobByPrefix(prefix string) plumbing.Hash {
	if strings.Trim(prefix, "0") == "" {
		return plumbing.ZeroHash
	}
	ids := r.odb.Prefix(prefix)
	r.mu.RLock()
	for id, o := range r.over {
		if o.typ == plumbing.BlobObject && strings.HasPrefix(id.String(), strings.ToLower(prefix)) {
			ids = append(ids, id)
		}
	}
	r.mu.RUnlock()
	var found plumbing.Hash
	for _, id := range ids {
		if typ, _, err := r.Read(id); err != nil || typ != plumbing.BlobObject || id == found {
			continue
		}
		if !found.IsZero() {
			return plumbing.ZeroHash
		}
		found = id
	}
	return found
}
