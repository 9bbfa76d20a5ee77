package reply

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
		{name: "password", user: "bench", faults: faults{auth: answer(535, "who are you")}, want: "authenticate: who are you", refused: true},
		{name: "sender", faults: faults{mail: answer(550, "not from here")}, want: "sender bench@example.org: not from here", refused: true},
		{name: "sender later", faults: faults{mail: answer(451, "not now")}, want: "sender bench@example.org: not now"},
		{name: "busy", faults: faults{greeting: "421 full\r\n"}, want: "full"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := serve(t, nil, test.faults)
			var steps []string
			s.at = func(step string) { steps = append(steps, step) }
			c := plainServer(s).SMTP
			c.User, c.Password = test.user, "sesame"
			err := Check(context.Background(), c, nil)
			if test.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff([]string{"connect", "mail", "logout"}, steps); diff != "" {
					t.Errorf("what was done (-want +got):\n%s", diff)
				}
			} else if err == nil || !strings.HasSuffix(err.Error(), test.want) || Refused(err) != test.refused {
				t.Errorf("the error is %v (refused %v), want %s", err, Refused(err), test.want)
			}
			if len(s.copies) > 0 {
				t.Error("a mail was sent")
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
