package service

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"patchbench/bench/late"
)

var (
	repositoryName = late.Regexp(`^[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}$`)
	login          = late.Regexp(`^[A-Za-z0-9][A-Za-z0-9-]{0,38}(\[bot\])?$`)
)

// defaultFetch is what a pull request may bring beside its base branch.
const defaultFetch = 512 << 20

func (c *checker) github(g *fileGitHub, cfg *Config) *GitHub {
	if g == nil {
		return nil
	}
	at := func(name ...any) []any { return append(place("github"), name...) }
	out := &GitHub{AppID: g.AppID, BaseURL: strings.TrimRight(g.BaseURL, "/"), Repositories: map[string]Repository{}}
	token := credential{table: "github", key: "token", file: g.TokenFile, literal: g.Token}
	key := credential{table: "github", key: "key", file: g.KeyFile, literal: g.Key, many: true}
	switch app := c.doc.Has("github", "app_id"); {
	case app && c.doc.Has("github", "token_file"):
		c.fault(at("token_file"), "github has an app_id and a token_file: give one of them")
	case app:
		between(c, at("app_id"), "github.app_id", g.AppID, 0, 1, 1<<53, number)
		out.Key = c.secret(key)
		c.needed(key, out.Key, fmt.Sprintf("the GitHub App %d", g.AppID))
		if out.Key != "" && !isKey(string(out.Key)) {
			c.fault(at("key_file"), "github.key is no RSA private key: download one from the App's page (a PEM file that begins with -----BEGIN RSA PRIVATE KEY-----)")
		}
	case c.doc.Has("github", "key_file"):
		c.missing(at("key_file"), "github.key_file is the key of an App: add app_id")
	default:
		out.Token = c.secret(token)
		c.needed(token, out.Token, "github, without app_id,")
	}
	hook := credential{table: "github", key: "webhook_secret", file: g.WebhookSecretFile, literal: g.WebhookSecret}
	out.WebhookSecret = c.secret(hook)
	if n := len(out.WebhookSecret); n > 0 && n < minWebhookSecret {
		c.fault(at("webhook_secret_file"), "github.webhook_secret has %d bytes: give at least %d random ones", n, minWebhookSecret)
	}
	poll := time.Minute
	if out.WebhookSecret != "" {
		poll = 0
	}
	out.Poll = between(c, at("poll"), "github.poll", g.Poll, poll, 10*time.Second, maxPoll, period)
	out.MaxFetch = between(c, at("max_fetch"), "github.max_fetch", int64(g.MaxFetch), defaultFetch, minBytes, maxBytes, number)
	if at := at("base_url"); c.doc.Has(at...) {
		if u := c.url(at, "github.base_url", g.BaseURL, "https://github.example.org"); u != nil && u.Scheme == "http" && !loopback(u.Hostname()) {
			c.fault(at, "github.base_url is plain text, and a token goes there: give an https:// address")
		}
	}
	if len(g.Repositories) == 0 {
		c.missing(at("repositories"), `github serves no repository: add repositories = { "owner/name" = { project = "..." } }`)
	}
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(g.Repositories)) {
		out.Repositories[name] = c.repository(at("repositories", name), name, g.Repositories[name], cfg)
		// GitHub's names differ by more than case.
		if low := strings.ToLower(name); seen[low] {
			c.fault(at("repositories", name), "github: %s is there twice: remove one", name)
		} else {
			seen[low] = true
		}
	}
	return out
}

func (c *checker) repository(at []any, name string, r repository, cfg *Config) Repository {
	whose := fmt.Sprintf("github: %q: ", name)
	if !repositoryName().MatchString(name) {
		c.fault(at, "%swant OWNER/NAME, such as \"git/git\"", whose)
	}
	out := Repository{
		Project: c.projectOf(below(at, "project"), whose, r.Project, cfg),
		Label:   "bench",
		Policy:  c.choice(below(at, "policy"), whose+"policy", r.Policy, Neutral, Strict),
	}
	if at := below(at, "label"); c.doc.Has(at...) && !c.empty(at, r.Label, "%slabel is empty: give the label that asks for an evaluation", whose) {
		out.Label = c.text(at, whose+"label", r.Label)
	}
	for i, t := range r.Trusted {
		if !login().MatchString(t) {
			c.fault(below(at, "trusted", i), "%strusted: %q is no GitHub login: give it without @", whose, t)
		}
		out.Trusted = append(out.Trusted, strings.ToLower(t))
	}
	return out
}

// isKey says that text is a PEM file with an RSA key, of either form.
func isKey(text string) bool {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return false
	}
	if _, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return true
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	_, ok := key.(*rsa.PrivateKey)
	return err == nil && ok
}
