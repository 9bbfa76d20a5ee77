package parts

import (
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
