package reply

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	tests := []struct {
		name    string
		faults  faults
		user    string
		want    string // "" for success
		refused bool
	}{
		{name: "well"},
		{name: "well, logged in", user: "bench"},
		{name: "password", user: "bench", faults: faults{auth: answer(535, "who are you")}, want: "authenticate: SMTP error 535: who are you", refused: true},
		{name: "a server that repeats it", user: "bench", faults: faults{auth: answer(535, "no AGJlbmNoAHJpZ2h0 (bench/right) here")}, want: "SMTP error 535: no (secret) (bench/(secret)) here", refused: true},
		{name: "sender", faults: faults{mail: answer(550, "not from here")}, want: "sender bench@example.org: SMTP error 550: not from here", refused: true},
		{name: "sender later", faults: faults{mail: answer(451, "not now")}, want: "sender bench@example.org: SMTP error 451: not now"},
		{name: "busy", faults: faults{greeting: "421 full\r\n"}, want: "full"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := serve(t, nil, test.faults)
			c := plainServer(s).SMTP
			c.User, c.Password = test.user, "right"
			err := Check(context.Background(), c, nil)
			if test.want == "" {
				if err != nil {
					t.Fatal(err)
				}
			} else if err == nil || !strings.HasSuffix(err.Error(), test.want) || Refused(err) != test.refused {
				t.Errorf("the error is %v (refused %v), want %s", err, Refused(err), test.want)
			}
			if n := s.connections(); n != 1 {
				t.Errorf("%d connections were made", n)
			}
			if n := s.got(author) + s.got(list) + s.got("bench@example.org"); n > 0 {
				t.Errorf("%d mails were sent", n)
			}
		})
	}
	t.Run("nobody", func(t *testing.T) {
		c := plainServer(&server{addr: "127.0.0.1:1"}).SMTP
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := Check(ctx, c, nil); !errors.Is(err, context.Canceled) && err == nil || Refused(err) {
			t.Errorf("no server gives %v", err)
		}
	})
}

func (s *server) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions
}
