package web

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

func TestServe(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	begun, end := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- serve(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			close(begun)
			<-end
			io.WriteString(w, "all of it")
		}))
	}()
	if err := Serve(t.Context(), l.Addr().String(), nil); err == nil || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("an address in use: %v", err)
	}
	type answer struct {
		text string
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		r, err := http.Get("http://" + l.Addr().String())
		if err != nil {
			got <- answer{err: err}
			return
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		got <- answer{string(b), err}
	}()
	<-begun
	cancel() // with an answer under way
	close(end)
	if a := <-got; a.err != nil || a.text != "all of it" {
		t.Errorf("%+v", a)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("still listens")
	}
}

func TestServeBadAddress(t *testing.T) {
	for _, listen := range []string{"127.0.0.1", "example.invalid:80", "127.0.0.1:99999"} {
		if err := Serve(t.Context(), listen, http.NotFoundHandler()); err == nil || !strings.HasPrefix(err.Error(), "serve pages at "+listen+": ") {
			t.Errorf("%s: %v", listen, err)
		}
	}
}
