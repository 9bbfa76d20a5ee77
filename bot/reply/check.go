package reply

import (
	"context"
	"fmt"
	"net"

	"patchbench/config/service"
)

// Check connects to the server and logs in as for a letter, and asks whether it
// takes mail from the bot's address. No mail is sent. dial is nil but for tests,
// and for who wants to hear what the server says.
func Check(ctx context.Context, c *service.SMTP, dial func(ctx context.Context, network, address string) (net.Conn, error)) error {
	s := New(nil, nil, Options{})
	if dial != nil {
		s.dial = dial
	}
	client, err := s.connect(ctx, c)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", c.Address, err)
	}
	defer client.Close()
	if err := client.Mail(c.From.Email, nil); err != nil {
		return fmt.Errorf("sender %s: %w", c.From.Email, err)
	}
	if err := client.Reset(); err != nil {
		return fmt.Errorf("take back the sender: %w", err)
	}
	return client.Quit()
}

// Refused says that an error of Check is the server's answer, and final: it does
// not know us, or does not take mail from this sender.
func Refused(err error) bool { return permanent(err) }
