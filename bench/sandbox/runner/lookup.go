package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// environment is the whole environment of a program; of two entries with one
// name the later wins.
func (h *host) environment(own []string) []string {
	env := []string{"PATH=" + h.Path, "HOME=" + filepath.Join(h.Tmp, "home"), "TMPDIR=" + h.Tmp, "LANG=C.UTF-8", "TZ=UTC"}
	for _, v := range own {
		name, _, _ := strings.Cut(v, "=")
		at := slices.IndexFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
		if at >= 0 {
			env[at] = v
		} else {
			env = append(env, v)
		}
	}
	return env
}

// find looks a program up as a shell in dir would.
func find(name, dir string, env []string) (string, error) {
	if !isDir(dir) {
		return "", fmt.Errorf("folder %s: not there", dir)
	}
	if strings.Contains(name, "/") {
		return name, nil // execve says what is wrong with it
	}
	var path string
	for _, v := range env {
		if p, ok := strings.CutPrefix(v, "PATH="); ok {
			path = p
		}
	}
	for _, d := range filepath.SplitList(path) {
		if !filepath.IsAbs(d) {
			d = filepath.Join(dir, d)
		}
		p := filepath.Join(d, name)
		if unix.Access(p, unix.X_OK) == nil && isFile(p) {
			return p, nil
		}
	}
	return "", fmt.Errorf("%s: not found on PATH (%s)", name, path)
}

// openStdin opens a plain file, without waiting if it is something else: the
// name may be a link or pipe that the program's authors put there.
func openStdin(name string) (*os.File, error) {
	if name == "" {
		fd, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, fmt.Errorf("standard input: %s: %w", os.DevNull, err)
		}
		return os.NewFile(uintptr(fd), os.DevNull), nil
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	var fs unix.Statfs_t
	info, err := f.Stat()
	if err == nil {
		err = unix.Fstatfs(int(f.Fd()), &fs)
	}
	// A link into /proc would open what is the runner's own.
	if err != nil || !info.Mode().IsRegular() || fs.Type == unix.PROC_SUPER_MAGIC {
		f.Close()
		return nil, fmt.Errorf("standard input: %s is not a plain file", name)
	}
	return f, nil
}

// Size writes a number of bytes for people: "64 MiB", "1000 bytes".
func Size(bytes int64) string {
	if bytes >= 1<<20 && bytes%(1<<20) == 0 {
		return strconv.FormatInt(bytes>>20, 10) + " MiB"
	}
	return strconv.FormatInt(bytes, 10) + " bytes"
}

// seconds writes a duration for people: "600 s", "1.5 s".
func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s"
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
