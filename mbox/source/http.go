package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// fetchError is what ended the download of a thread; it is never taken for the
// end of a mail.
type fetchError struct {
	url string
	err error
}

func (e *fetchError) Error() string {
	return fmt.Sprintf("fetch %s: %v; try again later", e.url, e.err)
}
func (e *fetchError) Unwrap() error { return e.err }

func newFetchError(url string, err error) *fetchError {
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		err = errors.New("no whole answer in time")
	}
	return &fetchError{url, err}
}

// openHTTP asks a public-inbox for the thread of a message.
func openHTTP(ctx context.Context, archive, id string, o ArchiveOptions) (*Source, error) {
	u, err := url.Parse(archive)
	if err != nil || u.Host == "" {
		return nil, &InputError{Path: archive, Reason: "not an address of an archive (want https://HOST/LIST)", Err: err}
	}
	u.RawQuery, u.Fragment = "", ""
	address := strings.TrimRight(u.String(), "/") + "/" + url.PathEscape(id) + "/t.mbox.gz"
	shown := strings.TrimRight(u.Redacted(), "/") + "/" + url.PathEscape(id) + "/t.mbox.gz"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, &InputError{Path: shown, Reason: "not an address of an archive: " + err.Error(), Err: err}
	}
	request.Header.Set("User-Agent", "patchbench")
	client := o.Client
	if client == nil {
		client = &http.Client{Timeout: time.Minute}
	}
	answer, err := client.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err // it repeats the address, secrets and all
		}
		return nil, newFetchError(shown, err)
	}
	s := &Source{name: shown, closer: []io.Closer{answer.Body}}
	if err := s.accept(answer, id, o); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// accept looks at an archive's answer and begins to read it.
func (s *Source) accept(answer *http.Response, id string, o ArchiveOptions) error {
	switch code := answer.StatusCode; {
	case code == http.StatusOK:
	case code == http.StatusNotFound || code == http.StatusGone:
		return &InputError{Path: s.name, Reason: fmt.Sprintf("the archive has no message <%s> (%s)", id, answer.Status)}
	case code == http.StatusTooManyRequests || code >= 500:
		return &fetchError{s.name, fmt.Errorf("the archive answered %s", answer.Status)}
	default:
		return &InputError{Path: s.name, Reason: "the archive answered " + answer.Status}
	}
	if typ, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type")); err == nil && typ == "text/html" {
		return &InputError{Path: s.name, Reason: "the archive sent a web page and no mailbox: is this the address of a public-inbox?"}
	}
	if o.MaxPacked == 0 {
		o.MaxPacked = 64 << 20
	}
	if o.MaxUnpacked == 0 {
		o.MaxUnpacked = 1 << 30
	}
	s.maxUnpacked = o.MaxUnpacked
	return s.read(s.name, &bounded{r: &fetched{answer.Body, s.name}, left: o.MaxPacked, name: s.name, max: o.MaxPacked})
}

// fetched marks the errors of a download, which would else look like a broken file.
type fetched struct {
	r    io.Reader
	name string
}

func (f *fetched) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err != nil && err != io.EOF {
		err = newFetchError(f.name, err)
	}
	return n, err
}

// bounded ends a stream that is longer than it may be with *InputError.
type bounded struct {
	r         io.Reader
	left, max int64
	name      string
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		// One byte more tells a full stream from one that goes on.
		var one [1]byte
		if n, err := b.r.Read(one[:]); n == 0 && err != nil {
			return 0, err
		}
		return 0, &InputError{Path: b.name, Reason: fmt.Sprintf("more than %s of mail in one thread; save the mails that matter and name the file", size(b.max))}
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.r.Read(p)
	b.left -= int64(n)
	return n, err
}

func size(n int64) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}
