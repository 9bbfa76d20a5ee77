package parts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sys/unix"

	"patchbench/bench/sandbox"
	"patchbench/store"
)

const (
	gib = 1 << 30
	// Below these a few evaluations, with mail and builds, may fill the disk.
	littleState, littleWork = 1 * gib, 5 * gib
)

// The mode of folders that the service makes: the code under test passes through
// them when the bot is root, and cannot list them.
const folderMode = 0o711

func (c *checker) state(context.Context) {
	const name = "state"
	dir := c.cfg.State
	free, ok := c.writable(name, dir)
	if !ok {
		return
	}
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		c.say(name, Wrong, "", "%v", err)
	case info.Mode().Perm()&0o066 != 0:
		c.say(name, Note, fmt.Sprintf("chmod %o %s", info.Mode().Perm()&^0o066, dir), "%s can be listed or changed by others (mode %04o)", dir, info.Mode().Perm())
	case free < littleState:
		c.say(name, Note, "make room, or name another folder", "%s has only %s free", dir, size(free))
	default:
		c.say(name, OK, "", "%s, %s free", dir, size(free))
	}
}

func (c *checker) work(context.Context) {
	const name = "work"
	dir := c.cfg.Worker.WorkDir
	free, ok := c.writable(name, dir)
	if !ok {
		return
	}
	uid := sandbox.Options{UID: c.cfg.Worker.SandboxUID}.RunsAs()
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err == nil && st.Flags&unix.ST_NOEXEC != 0 {
		c.say(name, Wrong, "set worker.work_dir to a folder on another file system", "%s is mounted noexec: what is built there cannot run", dir)
		return
	}
	if closed := impassable(dir, uid); closed != "" {
		c.say(name, Wrong, "chmod o+x "+closed, "%s: the code under test runs under uid %d, which cannot pass through %s", dir, uid, closed)
		return
	}
	if free < littleWork {
		c.say(name, Note, "make room, or set worker.work_dir", "%s has only %s free for checkouts and builds", dir, size(free))
		return
	}
	c.say(name, OK, "", "%s, %s free, class %s, %d at a time", dir, size(free), c.cfg.Worker.Class, c.cfg.Worker.Slots)
}

// writable makes a folder if it is not there, and a file in it. It says why not.
func (c *checker) writable(name, dir string) (free uint64, ok bool) {
	// Files that root makes in another's folder are ones that he cannot write.
	if uid := ownerAt(dir); os.Geteuid() == 0 && uid != 0 {
		c.say(name, Wrong, "run this as that user: runuser -u "+nameOf(uid)+" -- bot check --config "+c.cfg.File,
			"%s belongs to %s, and root tries it: what is made there now could not be changed by the bot", dir, nameOf(uid))
		return 0, false
	}
	if err := os.MkdirAll(dir, folderMode); err != nil {
		c.say(name, Wrong, fmt.Sprintf("as root: install -d -m 0%o -o %s %s", folderMode, self(), dir), "%v", err)
		return 0, false
	}
	f, err := os.CreateTemp(dir, ".check-")
	if err == nil {
		_, err = f.WriteString("bot check\n")
		err = errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name()))
	}
	if err != nil {
		c.say(name, Wrong, "let "+self()+" write there", "%v", err)
		return 0, false
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		c.say(name, Wrong, "", "%s: %v", dir, err)
		return 0, false
	}
	return st.Bavail * uint64(st.Bsize), true
}

// ownerAt is whose a folder is, or the nearest one above it that is there.
func ownerAt(dir string) int {
	for {
		if info, err := os.Stat(dir); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				return int(st.Uid)
			}
			return os.Geteuid()
		}
		if dir == filepath.Dir(dir) {
			return os.Geteuid()
		}
		dir = filepath.Dir(dir)
	}
}

// impassable gives the first folder above dir, or dir, that uid cannot pass
// through, "" if there is none or if the bot is that user.
func impassable(dir string, uid int) string {
	if uid == os.Geteuid() {
		return ""
	}
	at := "/"
	for _, part := range append([]string{""}, strings.Split(strings.Trim(dir, "/"), "/")...) {
		at = filepath.Join(at, part)
		if info, err := os.Stat(at); err == nil && info.Mode().Perm()&0o001 == 0 {
			return at
		}
	}
	return ""
}

// self names the user that this is.
func self() string { return nameOf(os.Geteuid()) }

func nameOf(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return "#" + strconv.Itoa(uid)
}

func size(n uint64) string { return fmt.Sprintf("%.1f GiB", float64(n)/gib) }

func (c *checker) store(ctx context.Context) {
	const name, key = "store", "check.time"
	if path, ok := strings.CutPrefix(string(c.cfg.Store.URL), "sqlite:"); ok {
		// What root would make there has been complained of above.
		if os.Geteuid() == 0 && ownerAt(filepath.Dir(path)) != 0 {
			c.say(name, Wrong, "run this as the bot's user", "%s was not opened: its folder is another user's", path)
			return
		}
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	st, err := store.Open(ctx, string(c.cfg.Store.URL))
	if err != nil {
		c.storeFailed(name, err)
		return
	}
	defer st.Close()
	now := c.o.Now().UTC().Format(time.RFC3339Nano)
	err = st.SetValue(ctx, key, now)
	got := ""
	if err == nil {
		got, err = st.Value(ctx, key)
	}
	switch {
	case err != nil:
		c.storeFailed(name, err)
	case got != now:
		c.say(name, Wrong, "give each bot a store of its own", "%s: what was written is not what is read: another program writes there", c.cfg.Store)
	default:
		c.say(name, OK, "", "%s: opened, written, read", c.cfg.Store)
	}
}

func (c *checker) storeFailed(name string, err error) {
	var said *pgconn.PgError
	if errors.As(err, &said) {
		// The server answered: only what it says of itself passes by itself.
		state := Wrong
		if strings.HasPrefix(said.Code, "53") || strings.HasPrefix(said.Code, "57P") {
			state = Away
		}
		c.say(name, state, "", "%v", err)
		return
	}
	c.failed(name, "", err)
}

func (c *checker) sandbox(ctx context.Context) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	name, err := c.o.Sandbox(ctx)
	switch {
	case err == nil:
		c.say("sandbox", OK, "", "%s: the self-test could not break out", name)
	case errors.Is(err, sandbox.ErrNone):
		c.say("sandbox", Unsafe, "nothing is evaluated without a sandbox", "%v", err)
	default:
		c.failed("sandbox", "", err)
	}
}

func (c *checker) web(ctx context.Context) {
	w := c.cfg.Web
	if w == nil {
		return
	}
	for _, l := range []struct{ name, address string }{{"web", w.Listen}, {"webhook", w.WebhookListen}} {
		if l.address == "" {
			continue
		}
		listener, err := net.Listen("tcp", l.address)
		switch {
		case err == nil:
			listener.Close()
			c.free(l.name, l.address)
		case errors.Is(err, syscall.EADDRINUSE) && c.ours(ctx, l.address):
			c.say(l.name, OK, "", "%s: a bot answers there already", l.address)
		case errors.Is(err, syscall.EADDRINUSE):
			c.say(l.name, Wrong, "give another port, or end what listens there", "%v", err)
		case errors.Is(err, fs.ErrPermission):
			c.say(l.name, Wrong, "give a port above 1023", "%v", err)
		default:
			c.say(l.name, Wrong, "give an address of this machine", "%v", err)
		}
	}
}

// free tells of an address that nobody listens at.
func (c *checker) free(name, address string) {
	host, _, _ := net.SplitHostPort(address)
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() || host == "localhost" {
		c.say(name, OK, "", "%s is free", address)
		return
	}
	c.say(name, Note, "put a proxy with TLS before it and listen at 127.0.0.1, unless this is a container", "%s is free, and reached from other machines as plain HTTP", address)
}

// ours says whether a bot answers at the address.
func (c *checker) ours(ctx context.Context, address string) bool {
	host, port, _ := net.SplitHostPort(address)
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/healthz", nil)
	if err != nil {
		return false
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	return res.StatusCode == http.StatusOK || res.StatusCode == http.StatusServiceUnavailable
}
