package imap

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheck(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		s.deliver(t, 0, 12)
		check := func(user, password, folder string) (State, error) {
			src, err := New(Options{Address: s.plain, TLS: "none", User: user, Password: password, Folder: folder})
			if err != nil {
				t.Fatal(err)
			}
			return src.Check(context.Background(), day0.AddDate(0, 0, -1),
				[]Field{{"Message-ID", "<7@example.org>"}, {"Message-ID", "@example.org"}},
				[]Field{{"Message-ID", "<7@example.org>"}, {"Message-ID", "<9@example.org>"}},
				[]Field{{"List-Id", "none.example.org"}})
		}
		st, err := check(testUser, testPassword, testFolder)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(State{Mails: 12, Idle: true, Found: []int{12, 2, 0}}, st); diff != "" {
			t.Errorf("state (-want +got):\n%s", diff)
		}
		for name, c := range map[string][3]string{
			"password": {testUser, "wrong", testFolder},
			"folder":   {testUser, testPassword, "nowhere"},
		} {
			if _, err := check(c[0], c[1], c[2]); !Refused(err) {
				t.Errorf("a wrong %s gives %v, which is not a refusal", name, err)
			} else if strings.Contains(err.Error(), testPassword) {
				t.Errorf("the password is shown: %v", err)
			}
		}
		src, err := New(Options{Address: "127.0.0.1:1", TLS: "none", User: testUser})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := src.Check(context.Background(), day0); err == nil || Refused(err) {
			t.Errorf("no server gives %v", err)
		}
	})
}
