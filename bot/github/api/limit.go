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
	maxAnswer  = 32 << 20      // bytes of an answer
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
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxAnswer), res.Body}
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
		until := g.now().Add(min(max(wait, time.Second), maxWait)).UTC()
		g.mu.Lock()
		if until.After(g.until) {
			g.until = until
		}
		until = g.until
		g.mu.Unlock()
		return nil, &LimitError{until}
	}
	return res, nil
}

// limit says whether an answer tells of a rate limit, and how long to wait: both
// limits come as 403 or 429, with Retry-After, or with a count of 0, or with no
// more than a text.
func limit(res *http.Response, body []byte, now time.Time) (wait time.Duration, limited bool) {
	if res.StatusCode != http.StatusForbidden && res.StatusCode != http.StatusTooManyRequests {
		return 0, false
	}
	if after := res.Header.Get("Retry-After"); after != "" {
		if n, err := strconv.Atoi(after); err == nil && n >= 0 {
			return time.Duration(min(n, int(maxWait/time.Second))) * time.Second, true
		}
		if t, err := http.ParseTime(after); err == nil {
			return t.Sub(now), true
		}
		return minWait, true
	}
	if res.Header.Get("X-RateLimit-Remaining") == "0" {
		if n, err := strconv.ParseInt(res.Header.Get("X-RateLimit-Reset"), 10, 64); err == nil {
			return time.Unix(n, 0).Sub(now), true
		}
		return minWait, true
	}
	if res.StatusCode == http.StatusTooManyRequests || strings.Contains(strings.ToLower(string(body)), "rate limit") {
		return minWait, true
	}
	return 0, false
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
	case errors.As(err, &otp):
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
