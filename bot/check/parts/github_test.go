package parts

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"patchbench/config/service"
)

func TestGitHub(t *testing.T) {
	well := map[string]string{"/user": `{"login":"bench"}`, "/repos/o/kit": `{"name":"kit"}`, "/repos/o/kit/labels/bench": `{"name":"bench"}`}
	but := func(path, answer string) map[string]string {
		m := map[string]string{path: answer}
		for k, v := range well {
			if k != path {
				m[k] = v
			}
		}
		return m
	}
	checks := []string{"note github with a token there are comments and no check runs: GitHub takes those from Apps alone", "register a GitHub App if you want checks"}
	as := append([]string{"ok github writes as bench, asks every 1m0s"}, checks...)
	tests := []struct {
		name    string
		answers map[string]string
		token   service.Secret
		want    []string
	}{
		{"well", well, password, append(as[:3:3], `ok github o/kit: public, label "bench", project kit`)},
		{"no label", but("/repos/o/kit/labels/bench", "404 {}"), password, append(as[:3:3],
			`note github o/kit has no label "bench": only /bench and trusted authors start evaluations`, "make the label on its page of labels")},
		{"archived", but("/repos/o/kit", `{"archived":true}`), password, append(as[:3:3],
			"wrong github o/kit is archived: nobody can comment there", "take it out of github.repositories")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cfg := least(t)
			cfg.GitHub = &service.GitHub{Token: test.token, BaseURL: hub(t, test.answers), Poll: time.Minute, Repositories: map[string]service.Repository{"o/kit": {Project: "kit", Label: "bench"}}}
			got := told(t, cfg, Options{}, "github clock")
			expect(t, got, append(test.want, "ok clock agrees with GitHub")...)
		})
	}
	for _, test := range []struct {
		name    string
		answers map[string]string
		token   service.Secret
		want    string // beginning of the last line but its advice
		do      string
	}{
		{"token", well, "revoked-token", "wrong github ask GitHub whose token this is: ", "check token_file: the token may have been revoked or have expired"},
		{"no repository", but("/repos/o/kit", "404 {}"), password, "wrong github o/kit: ", "check its name, and that the token may read it"},
		{"unwell", but("/user", "502 {}"), password, "away github ask GitHub whose token this is: ", "try again later"},
		{"limit", but("/user", `429 {"message":"slow down"}`), password, "away github ask GitHub whose token this is: ", "try again then"},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := least(t)
			cfg.GitHub = &service.GitHub{Token: test.token, BaseURL: hub(t, test.answers), Poll: time.Minute, Repositories: map[string]service.Repository{"o/kit": {Project: "kit", Label: "bench"}}}
			got := told(t, cfg, Options{}, "github")
			if n := len(got); n < 2 || !strings.HasPrefix(got[n-2], test.want) || got[n-1] != test.do {
				t.Errorf("told %q, want %s... and %s", got, test.want, test.do)
			}
		})
	}
	t.Run("nobody", func(t *testing.T) {
		cfg := least(t)
		cfg.GitHub = &service.GitHub{Token: password, BaseURL: "http://" + refuser(t)}
		if got := told(t, cfg, Options{}, "github"); len(got) != 2 || !strings.HasPrefix(got[0], "away github ") {
			t.Errorf("told %q", got)
		}
	})
}

// An App whose webhook is told of less than it needs is told of here: it would be
// deaf without a word.
func TestGitHubApp(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	pemText := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	const all = `["pull_request","issue_comment","check_run","check_suite"]`
	for _, test := range []struct {
		name, events, secret string
		want                 []string // wrong
	}{
		{"all", all, "0123456789abcdef", nil},
		{"no comments", `["pull_request","check_run"]`, "0123456789abcdef", []string{
			"wrong github o/kit: the webhook is not told of issue_comment: /bench is not seen", "subscribe to Issue comment on the App's page, under permissions and events"}},
		{"no webhook", `[]`, "", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			answers := map[string]string{
				"/app": `{"slug":"bench"}`, "/repos/o/kit/installation": `{"id":5,"events":` + test.events + `}`,
				"/app/installations/5/access_tokens": fmt.Sprintf(`{"token":"ghs_1","expires_at":%q}`, time.Now().Add(time.Hour).Format(time.RFC3339)),
				"/repos/o/kit":                       `{"name":"kit"}`, "/repos/o/kit/labels/bench": `{"name":"bench"}`,
			}
			hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, answers[strings.TrimPrefix(r.URL.Path, "/api/v3")])
			}))
			defer hub.Close()
			cfg := least(t)
			cfg.GitHub = &service.GitHub{AppID: 1, Key: service.Secret(pemText), WebhookSecret: service.Secret(test.secret), BaseURL: hub.URL,
				Repositories: map[string]service.Repository{"o/kit": {Project: "kit", Label: "bench"}}}
			var wrong []string
			got := told(t, cfg, Options{}, "github")
			for i, line := range got {
				if strings.HasPrefix(line, "wrong ") {
					wrong = append(wrong, line, got[i+1])
				}
			}
			if !slices.Equal(wrong, test.want) || !slices.Contains(got, `ok github o/kit: public, label "bench", project kit`) {
				t.Errorf("told %q, want of what is wrong %q", got, test.want)
			}
		})
	}
}
