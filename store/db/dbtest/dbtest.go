// Package dbtest gives databases to tests: SQLite files in temporary folders, and
// PostgreSQL where there is one; and faults between a program and its database.
//
// PostgreSQL is the server that PATCHBENCH_POSTGRES names by its URL, else a
// throw-away one of the installed binaries, which lives as long as the test's
// process and listens on a socket in a temporary folder only. Where neither is
// to be had tests are skipped, and fail if CI is "true".
package dbtest

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

// EachURL runs a test with the URL of a new store on each kind of database.
func EachURL(t *testing.T, f func(t *testing.T, url string)) {
	t.Run("sqlite", func(t *testing.T) { f(t, SQLite(t)) })
	t.Run("postgres", func(t *testing.T) { f(t, Postgres(t)) })
}

// SQLite gives the URL of a new store in a temporary folder.
func SQLite(t testing.TB) string {
	t.Helper()
	return "sqlite:" + filepath.Join(t.TempDir(), "bot.db")
}

var schemas atomic.Int64

// Postgres gives the URL of a new schema on a PostgreSQL server, which is dropped
// when the test ends.
func Postgres(t testing.TB) string {
	t.Helper()
	base, err := server()
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("PostgreSQL: %v", err)
		}
		t.Skipf("PostgreSQL: %v", err)
	}
	name := fmt.Sprintf("test_%d_%d", os.Getpid(), schemas.Add(1))
	admin, err := sql.Open("pgx", base)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin.ExecContext(t.Context(), `CREATE SCHEMA `+name); err != nil {
		admin.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := admin.ExecContext(context.WithoutCancel(t.Context()), `DROP SCHEMA `+name+` CASCADE`); err != nil {
			t.Error(err)
		}
		admin.Close()
	})
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String()
}

// server gives the URL of a server.
var server = sync.OnceValues(func() (string, error) {
	if named := os.Getenv("PATCHBENCH_POSTGRES"); named != "" {
		return named, nil
	}
	return start()
})

// script makes a cluster in the folder $1 with the binaries in $2, says that it
// runs, and when its input ends, with the test's process, removes all.
const script = `
set -eu
dir=$1
export PATH="$2:$PATH"
cd "$dir"
trap 'pg_ctl -D "$dir/data" -m immediate stop >/dev/null 2>&1 || :; rm -rf "$dir"' EXIT
initdb -D "$dir/data" -U bot -A trust --no-sync --no-instructions --locale=C -E UTF8 >"$dir/log" 2>&1
cat >>"$dir/data/postgresql.conf" <<END
listen_addresses = ''
unix_socket_directories = '$dir'
fsync = off
full_page_writes = off
synchronous_commit = off
shared_buffers = 16MB
max_connections = 100
END
pg_ctl -D "$dir/data" -l "$dir/log" -w -t 120 start >/dev/null 2>&1
echo runs
cat >/dev/null
`

// start starts a cluster as an unprivileged user, as PostgreSQL wants it.
func start() (string, error) {
	bin, err := binaries()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "patchbench-postgres-")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("sh", "-c", script, "sh", dir, bin)
	// It outlives an interrupt from the terminal, to clean up.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 {
		id, err := unprivileged()
		if err != nil {
			return "", errors.Join(err, os.Remove(dir))
		}
		if err := os.Chown(dir, int(id.Uid), int(id.Gid)); err != nil {
			return "", errors.Join(err, os.Remove(dir))
		}
		cmd.SysProcAttr.Credential = id
	}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	if _, err := cmd.StdinPipe(); err != nil { // held open until this process ends
		return "", err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", errors.Join(err, os.Remove(dir))
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return "", fmt.Errorf("start a server with the binaries in %s: %q, %w", bin, line, err)
	}
	// The pipe must not be collected, and so closed, while this process lives.
	go cmd.Wait()
	u := url.URL{Scheme: "postgres", User: url.User("bot"), Path: "/postgres", RawQuery: url.Values{"host": {dir}}.Encode()}
	return u.String(), nil
}

// binaries gives the folder of the newest PostgreSQL that is installed.
func binaries() (string, error) {
	all, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return "", err
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(strings.Split(path, "/")[4])
		return n
	}
	if len(all) > 0 {
		newest := slices.MaxFunc(all, func(a, b string) int { return version(a) - version(b) })
		return filepath.Dir(newest), nil
	}
	path, err := exec.LookPath("initdb")
	if err != nil {
		return "", errors.New("neither PATCHBENCH_POSTGRES is set nor is initdb installed (apt-get install postgresql)")
	}
	return filepath.Dir(path), nil
}

func unprivileged() (*syscall.Credential, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody")
}
