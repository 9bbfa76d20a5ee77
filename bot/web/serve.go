package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// grace is how long answers that are under way may take when the server ends.
const grace = 5 * time.Second

// Serve serves h at listen (HOST:PORT) until ctx ends, and then lets what is
// under way finish for 5 s. Every wait for a client has an end. It returns nil
// when ctx has ended, else why the address cannot be served.
func Serve(ctx context.Context, listen string, h http.Handler) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("serve pages at %s: %w: end what uses the address, or choose another one", listen, err)
	}
	return serve(ctx, l, h)
}

func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	s := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      patience + 30*time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve pages at %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := s.Shutdown(ending); err != nil {
		s.Close() // those that are still under way are cut off
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve pages at %s: %w", l.Addr(), err)
	}
	return nil
}
