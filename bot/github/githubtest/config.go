package githubtest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strconv"
	"sync"

	"patchbench/config/service"
)

// Secret is the webhook's in what Config gives.
const Secret = "It7ss3cr3tOfTheHook"

// AppKey is the App's private key.
var AppKey = sync.OnceValue(func() service.Secret {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return service.Secret(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
})

// Config is that of a service that serves kit/kit of this GitHub, as its App,
// with its state in dir.
func (s *Server) Config(dir string) *service.Config {
	return &service.Config{
		State:    dir,
		Projects: []service.Project{{Name: "kit", Class: "default"}},
		Web:      &service.Web{URL: "https://bench.example.org"},
		GitHub: &service.GitHub{
			AppID: s.AppID, Key: AppKey(), WebhookSecret: Secret, BaseURL: s.URL,
			Repositories: map[string]service.Repository{
				"kit/kit": {Project: "kit", Label: "bench", Trusted: []string{"friend", "friends-org"}, Policy: service.Strict},
			},
		},
	}
}

// Line makes n commits on top of main, each with another content of a file.
func (g *Git) Line(file string, n int) (head string) {
	head = g.Tip("main")
	for i := range n {
		head = g.Commit(map[string]string{"README": "one\n", file: strconv.Itoa(i)}, fmt.Sprintf("%s: change %d", file, i+1), head)
	}
	return head
}
