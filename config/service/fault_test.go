package service

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"patchbench/config"
)

var update = flag.Bool("update", false, "write the golden files")

// rsaKey is made once: to find one takes long.
var rsaKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// folder writes what service files of the tests name, and gives the folder.
func folder(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"git.git", "mail", "inbox", "state/work/git.git", "keys"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	key, err := rsaKey()
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	notRSA, err := x509.MarshalPKCS8PrivateKey(other)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour), IsCA: true}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, data []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}))
	}
	for name, text := range map[string]string{
		"secret":        "hunter2-imap-secret\n",
		"crlf":          "hunter2-imap-secret\r\n",
		"hook":          "0123456789abcdef0123456789abcdef\n",
		"short":         "12345\n",
		"empty":         "\n",
		"lines":         "one\ntwo\n",
		"nul":           "a\x00b\n",
		"large":         strings.Repeat("x", maxSecret+1),
		"key.pem":       block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key)),
		"key8.pem":      block("PRIVATE KEY", pkcs8),
		"ec.pem":        block("PRIVATE KEY", notRSA),
		"broken.pem":    block("RSA PRIVATE KEY", []byte("x")),
		"ca.pem":        block("CERTIFICATE", cert),
		"suite.toml":    "[suite]\nname = \"git\"\n[[benchmark]]\nname = \"true\"\nrun = \"true\"\n",
		"bad.toml":      "[suite]\nname = \"git\"\n[[benchmark]]\nname = \"true\"\n",
		"state/work/pw": "hunter2-imap-secret\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err = errors.Join(
		os.WriteFile(filepath.Join(dir, "open"), []byte("hunter2-imap-secret\n"), 0o600), os.Chmod(filepath.Join(dir, "open"), 0o644),
		os.Symlink("git.git", filepath.Join(dir, "link.git")),
		os.Symlink("state/work", filepath.Join(dir, "around")),
		syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// complete adds the tables that a file cannot be without, behind all that it
// says itself.
func complete(text string) string {
	if strings.Contains(text, "# alone\n") {
		return text
	}
	for _, part := range []struct{ has, add string }{
		{`(?m)^\[+project\]`, "[project]\nname = \"git\"\nrepo = \"git.git\"\n"},
		{`(?m)^\[+(imap|maildir|inbox)\]`, "[maildir]\npath = \"mail\"\n"},
		{`(?m)^\[+list\]`, "[[list]]\naddress = \"git@vger.example.org\"\n"},
	} {
		if !regexp.MustCompile(part.has).MatchString(text) {
			text += part.add
		}
	}
	return text
}

// A case of testdata/faults.txtar is a service file, with comments for the test:
// "# mode 0644" is the file's mode, "# env A=B" sets a variable, "# alone" takes
// the file as it stands. The faults stand at its end as "#! FAULT".
func TestFaults(t *testing.T) {
	const golden = "testdata/faults.txtar"
	archive, err := txtar.ParseFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	dir := folder(t)
	var said []string
	seen := map[string]bool{}
	for i, f := range archive.Files {
		text := regexp.MustCompile(`(?m)^#! .*\n`).ReplaceAllString(string(f.Data), "")
		if seen[f.Name] {
			t.Errorf("the case %q is there twice", f.Name)
		}
		seen[f.Name] = true
		t.Run(f.Name, func(t *testing.T) {
			mode := fs.FileMode(0o640)
			if m := regexp.MustCompile(`(?m)^# mode (\d+)$`).FindStringSubmatch(text); m != nil {
				n, err := strconv.ParseUint(m[1], 8, 32)
				if err != nil {
					t.Fatal(err)
				}
				mode = fs.FileMode(n)
			}
			env := func(name string) string {
				m := regexp.MustCompile(`(?m)^# env ` + name + `=(.*)$`).FindStringSubmatch(text)
				if m == nil {
					return ""
				}
				return m[1]
			}
			file := filepath.Join(dir, "bot.toml")
			full := strings.ReplaceAll(complete(text), "DIR/", dir+"/")
			if err := errors.Join(os.WriteFile(file, []byte(full), 0o600), os.Chmod(file, mode)); err != nil {
				t.Fatal(err)
			}
			cfg, err := Load(file, env)
			var out strings.Builder
			if err != nil {
				var faults config.Errors
				if !errors.As(err, &faults) || cfg != nil {
					t.Errorf("the error is a %T beside the Config %v", err, cfg)
				}
				for line := range strings.SplitSeq(err.Error(), "\n") {
					fmt.Fprintf(&out, "#! %s\n", strings.ReplaceAll(line, dir, "DIR"))
				}
			} else {
				out.WriteString("#! none\n")
			}
			said = append(said, out.String())
			if strings.Contains(out.String(), "hunter2") {
				t.Errorf("a secret is shown:\n%s", &out)
			}
			got := strings.TrimRight(text, "\n") + "\n" + out.String()
			if *update {
				archive.Files[i].Data = []byte(got)
			} else if diff := cmp.Diff(string(f.Data), got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
	if *update {
		if err := os.WriteFile(golden, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	everyMessage(t, strings.Join(said, ""))
}

// everyMessage checks that each message of the package was seen.
func everyMessage(t *testing.T, said string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	messages := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			fun, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			place, ok := map[string]int{"fault": 1, "missing": 1, "empty": 2}[fun.Sel.Name]
			if !ok || place >= len(call.Args) {
				return true
			}
			lit, ok := call.Args[place].(*ast.BasicLit)
			if !ok {
				return true
			}
			format, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			messages++
			pattern := regexp.MustCompile(`%(\\\[\d+\\\])?(04o|[a-z])`).ReplaceAllString(regexp.QuoteMeta(format), `.*`)
			if ok, err := regexp.MatchString(`(?m)^#! (\S+: )?.*`+pattern+`$`, said); err != nil {
				t.Fatal(err)
			} else if !ok {
				t.Errorf("%s: no case gives the message %q", set.Position(lit.Pos()), format)
			}
			return true
		})
	}
	if messages < 80 {
		t.Errorf("only %d messages were found: has the way in which faults are made changed?", messages)
	}
}
