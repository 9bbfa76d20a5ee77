package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/google/go-github/v62/github"
)

const (
	// maxAnswer is bytes of an answer: a hundred comments of 65,536 characters, for
	// each of which JSON may need twelve bytes, must fit, or who writes them
	// would blind us.
	maxAnswer  = 96 << 20
	maxRefusal = 64 << 10      // bytes of an answer that refuses
	minWait    = time.Minute   // after a limit that does not say how long
	maxWait    = 2 * time.Hour // whatever an answer says: limits are counted by the hour
)

// LimitError says that GitHub wants no requests until then.
type LimitError struct {
	Until time.Time // UTC
}

func (e *LimitError) Error() string {
	return "GitHub's rate limit is used up until " + e.Until.Format(time.RFC3339)
}

// bearer puts a token on requests.
type bearer struct {
	token string
	next  http.RoundTripper
}

func (b *bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(req)
}

// gate is shut while a rate limit holds: who goes on asking is locked out for longer.
type gate struct {
	now  func() time.Time
	next http.RoundTripper

	mu    sync.Mutex
	until time.Time
	vain  int // limits in a row that did not say how long
}

func (g *gate) RoundTrip(req *http.Request) (*http.Response, error) {
	g.mu.Lock()
	until := g.until
	g.mu.Unlock()
	if g.now().Before(until) {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, &LimitError{until}
	}
	res, err := g.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode < 400 {
		said := res.StatusCode == http.StatusOK || res.StatusCode == http.StatusCreated
		res.Body = &bounded{ReadCloser: res.Body, left: maxAnswer, empty: said}
		g.mu.Lock()
		g.vain = 0
		g.mu.Unlock()
		return res, nil
	}
	// Read here, so that a refusal that nobody reads holds no connection.
	data, err := io.ReadAll(io.LimitReader(res.Body, maxRefusal))
	res.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("read GitHub's refusal: %w", err)
	}
	res.Body = io.NopCloser(bytes.NewReader(data))
	if wait, limited := limit(res, data, g.now()); limited {
		return nil, &LimitError{g.shut(wait)}
	}
	return res, nil
}

// shut shuts the gate and gives until when. With wait 0 nobody said how long:
// a minute, and twice as long each time that it was not enough.
func (g *gate) shut(wait time.Duration) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	if wait == 0 {
		if !now.Before(g.until) { // or those on their way at the same time would count
			g.vain++
		}
		wait = minWait << min(max(g.vain-1, 0), 10)
	}
	if until := now.Add(min(max(wait, time.Second), maxWait)).UTC(); until.After(g.until) {
		g.until = until
	}
	return g.until
}

// bounded is a body of which too much is an error, as its end would be taken for
// that of the answer, and so is nothing, which go-github takes for an empty list.
type bounded struct {
	io.ReadCloser
	left  int64
	empty bool // nothing was read where something must be
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("read GitHub's answer: it has more than %d bytes", maxAnswer)
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if b.empty = b.empty && n == 0; b.empty && err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// ClockError says that GitHub refused what the App signed with this machine's
// time, which is another one than GitHub's.
type ClockError struct {
	Off time.Duration // how far this machine is ahead, below zero behind
}

func (e *ClockError) Error() string {
	how := "ahead of"
	if e.Off < 0 {
		how = "behind"
	}
	return fmt.Sprintf("GitHub does not take what the App signs: this machine's clock is %v %s GitHub's: set it", e.Off.Abs(), how)
}

// tolerance is how far the clock may be off for what the App signs to be taken,
// and some seconds for the way.
const tolerance = 20 * time.Second

// clock tells when it is the clock for which GitHub does not know the App.
type clock struct{ next http.RoundTripper }

func (c *clock) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := c.next.RoundTrip(req)
	if err != nil || res.StatusCode != http.StatusUnauthorized || !strings.HasPrefix(req.Header.Get("Authorization"), "Bearer ") {
		return res, err
	}
	there, err := http.ParseTime(res.Header.Get("Date"))
	if err != nil {
		return res, nil
	}
	// The library that signs has no clock but this one.
	if off := time.Since(there).Round(time.Second); off.Abs() > tolerance {
		res.Body.Close()
		return nil, &ClockError{off}
	}
	return res, nil
}

// limit says whether an answer tells of a rate limit, and how long to wait, 0 if it
// does not say: both limits come as 403 or 429, with Retry-After, or with a count of
// 0, or with no more than a text. Times in it are by the clock of GitHub, which may
// not be ours.
func limit(res *http.Response, body []byte, now time.Time) (wait time.Duration, limited bool) {
	if given, err := http.ParseTime(res.Header.Get("Date")); err == nil {
		now = given
	}
	until := func(t time.Time) time.Duration { return max(t.Sub(now), 1) }
	if res.StatusCode != http.StatusForbidden && res.StatusCode != http.StatusTooManyRequests {
		return 0, false
	}
	if after := res.Header.Get("Retry-After"); after != "" {
		if n, err := strconv.Atoi(after); err == nil && n >= 0 {
			return max(time.Duration(min(n, int(maxWait/time.Second)))*time.Second, 1), true
		}
		if t, err := http.ParseTime(after); err == nil {
			return until(t), true
		}
		return 0, true
	}
	if res.Header.Get("X-RateLimit-Remaining") == "0" {
		if n, err := strconv.ParseInt(res.Header.Get("X-RateLimit-Reset"), 10, 64); err == nil {
			return until(time.Unix(n, 0)), true
		}
		return 0, true
	}
	text := strings.ToLower(string(body))
	return 0, res.StatusCode == http.StatusTooManyRequests || strings.Contains(text, "rate limit") || strings.Contains(text, "abuse detection")
}

// Fault is what an error of a request means for whoever asked.
type Fault int

// The faults.
const (
	None      Fault = iota
	Temporary       // no answer, or one that says that GitHub is unwell: ask again later
	Limited         // ask again when the limit has passed
	Missing         // not there, or not shown to us
	Denied          // we are not who we say, or may not do that
	Refused         // the request itself is wrong
)

// FaultOf tells what an error of a request means; until is when a limit passes,
// zero for the other faults.
func FaultOf(err error) (fault Fault, until time.Time) {
	var (
		limit   *LimitError
		primary *github.RateLimitError
		abuse   *github.AbuseRateLimitError
		plain   *github.ErrorResponse
		otp     *github.TwoFactorAuthError
		install *ghinstallation.HTTPError
		off     *ClockError
	)
	switch {
	case err == nil:
		return None, until
	case errors.As(err, &limit):
		return Limited, limit.Until
	case errors.As(err, &primary):
		return Limited, primary.Rate.Reset.Time
	case errors.As(err, &abuse):
		wait := minWait
		if abuse.RetryAfter != nil {
			wait = *abuse.RetryAfter
		}
		return Limited, time.Now().Add(wait)
	case errors.As(err, &otp), errors.As(err, &off):
		return Denied, until
	case errors.As(err, &plain) && plain.Response != nil:
		return statusFault(plain.Response.StatusCode), until
	case errors.As(err, &install) && install.Response != nil:
		if f := statusFault(install.Response.StatusCode); f != Refused {
			return f, until
		}
		return Denied, until // 422: the App lacks a permission that a token was asked with
	}
	return Temporary, until
}

func statusFault(status int) Fault {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return Denied
	case status == http.StatusNotFound, status == http.StatusGone:
		return Missing
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status >= 500, status < 400:
		return Temporary
	}
	return Refused
}

// NotModified says whether an error is the answer that nothing changed since the
// ETag that was sent.
func NotModified(err error) bool {
	var plain *github.ErrorResponse
	return errors.As(err, &plain) && plain.Response != nil && plain.Response.StatusCode == http.StatusNotModified
}

// Get asks for a page of a list into v unless it is what etag stands for; then
// the error is one of NotModified. path is relative to the API.
func (r *Repo) Get(ctx context.Context, path, etag string, v any) (*github.Response, error) {
	req, err := r.NewRequest(http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	return r.Do(ctx, req, v)
}
