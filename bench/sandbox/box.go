package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Defaults of Limits, and the size of /dev/shm.
const (
	defaultProcesses   = 4096
	defaultDiskBytes   = 1 << 30
	defaultOutputBytes = 64 << 20
	shmBytes           = 64 << 20
	minMemoryBytes     = 256 << 20
)

// systemPath is the PATH of programs behind the toolchains outside /usr.
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// etcShown are the parts of /etc that programs need to start, all of them
// readable by everyone on any machine. A pattern that matches nothing is left out.
var etcShown = []string{
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/nsswitch.conf",
	"/etc/protocols", "/etc/services", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/java-*", "/etc/perl",
}

// etcNetwork is what programs need beside that to find hosts.
var etcNetwork = []string{"/etc/resolv.conf", "/etc/gai.conf", "/etc/host.conf", "/etc/ca-certificates", "/etc/pki/tls/certs"}

func withDefaults(l Limits) Limits {
	if l.MemoryBytes <= 0 {
		var info syscall.Sysinfo_t
		if syscall.Sysinfo(&info) == nil {
			l.MemoryBytes = int64(uint64(info.Totalram)*uint64(info.Unit)) / 4 * 3
		}
	}
	// The runner lives under the same bound, and needs some of it.
	l.MemoryBytes = max(l.MemoryBytes&^(1<<20-1), minMemoryBytes)
	if l.Processes <= 0 {
		l.Processes = defaultProcesses
	}
	if l.DiskBytes <= 0 {
		l.DiskBytes = defaultDiskBytes
	}
	if l.OutputBytes <= 0 {
		l.OutputBytes = defaultOutputBytes
	}
	return l
}

// findTools fills in the PATH of programs and the folders outside /usr that it
// needs. Of those only what is known to be a toolchain is shown: a folder like
// ~/bin or ~/.local may hold anything.
func (s *Sandbox) findTools() {
	path := s.opts.Path
	if path == "" {
		path = os.Getenv("PATH")
	}
	seen := map[string]bool{}
	var front []string
	for _, dir := range filepath.SplitList(path) {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil || !filepath.IsAbs(dir) || seen[real] {
			continue
		}
		seen[real] = true
		if s.opts.Unsafe {
			if !onSystemPath(dir) {
				front = append(front, dir)
			}
			continue
		}
		if under(real, "/usr") || under(real, "/bin") || under(real, "/sbin") {
			// /usr is shown as it is; only toolchains such as
			// /usr/local/go/bin are not on PATH by themselves.
			if !onSystemPath(dir) {
				front = append(front, real)
			}
			continue
		}
		root, why := toolRoot(real)
		if root != "" && os.Geteuid() == 0 {
			if at := unreachable(root, s.opts.RunsAs()); at != "" {
				why = fmt.Sprintf("uid %d cannot enter %s", s.opts.RunsAs(), at)
			}
		}
		if why != "" {
			s.facts.Hidden = append(s.facts.Hidden, dir+": "+why)
			continue
		}
		front = append(front, real)
		if !seen["root "+root] {
			seen["root "+root] = true
			s.tools = append(s.tools, root)
		}
	}
	s.facts.Path = strings.Join(append(front, systemPath), ":")
}

func onSystemPath(dir string) bool { return strings.Contains(":"+systemPath+":", ":"+dir+":") }

// toolRoot gives the folder that must be shown for the programs in bin to work,
// or why it is not known.
func toolRoot(bin string) (root, why string) {
	for _, store := range []string{"/nix/store", "/gnu/store"} {
		if under(bin, store) {
			return store, ""
		}
	}
	if parts := strings.Split(bin, "/"); len(parts) > 2 && parts[1] == "opt" {
		return "/opt/" + parts[2], ""
	}
	up := filepath.Dir(bin)
	if isFile(filepath.Join(bin, "go")) && isFile(filepath.Join(up, "VERSION")) && isDir(filepath.Join(up, "src/runtime")) {
		return up, ""
	}
	return "", "not a toolchain that is known to hold nothing private"
}

func under(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// unreachable names the first folder on the way to path, or path itself, that a
// process of uid and the group of that number alone may not enter; "" when there is none.
func unreachable(path string, uid int) string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return path
	}
	var at string
	for _, part := range strings.Split(real, "/") {
		at += part + "/"
		info, err := os.Stat(at[:max(1, len(at)-1)])
		if err != nil {
			return at
		}
		if !info.IsDir() {
			return ""
		}
		bit := os.FileMode(0o001)
		switch st := info.Sys().(*syscall.Stat_t); uint32(uid) {
		case st.Uid:
			bit = 0o100
		case st.Gid:
			bit = 0o010
		}
		if info.Mode()&bit == 0 {
			return filepath.Clean(at)
		}
	}
	return ""
}

// checkMounts says what is wrong with a Box's mounts before bubblewrap has to.
func (s *Sandbox) checkMounts(b Box) error {
	for _, m := range b.Mounts {
		if !filepath.IsAbs(m.Host) || !filepath.IsAbs(m.Inside) || filepath.Clean(m.Inside) != m.Inside {
			return fmt.Errorf("mount %s at %s: both must be absolute and clean paths", m.Host, m.Inside)
		}
		for _, own := range []string{"/tmp", "/var/tmp", "/dev", "/proc"} {
			if under(m.Inside, own) || m.Inside == "/" {
				return fmt.Errorf("mount %s at %s: programs find their own %s there, which is emptied; choose another place", m.Host, m.Inside, own)
			}
		}
		if _, err := os.Stat(m.Host); err != nil {
			return fmt.Errorf("mount at %s: %w", m.Inside, err)
		}
		if !s.drop {
			continue
		}
		if at := unreachable(m.Host, s.facts.UID); at != "" {
			return fmt.Errorf("mount %s at %s: uid %d cannot enter %s; choose a work folder whose parents everyone may enter (mode 0711)",
				m.Host, m.Inside, s.facts.UID, at)
		}
	}
	return nil
}

// hasQueues says that this kernel has POSIX message queues. They outlive a run,
// so that the runner must see them to remove them.
func hasQueues() bool { return isDir("/proc/sys/fs/mqueue") }

// data is a file of the box that the bot makes up. It reaches bubblewrap as a pipe.
type data struct {
	inside, text string
}

func (s *Sandbox) madeUp() []data {
	id := strconv.Itoa(s.facts.UID)
	return []data{
		{"/etc/passwd", "root:x:0:0:root:/:/usr/sbin/nologin\nbench:x:" + id + ":" + id + ":bench:/tmp/home:/bin/sh\n"},
		{"/etc/group", "root:x:0:\nbench:x:" + id + ":\n"},
		{"/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n"},
	}
}

// boxArgs are bubblewrap's arguments for a box. The made-up files are read from
// descriptors from firstData on.
func (s *Sandbox) boxArgs(b Box, l Limits, firstData int) []string {
	args := []string{
		"--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--as-pid-1",
		"--disable-userns", "--cap-drop", "ALL", "--hostname", "patchbench",
		"--ro-bind", "/usr", "/usr",
	}
	shown := etcShown
	if b.Network {
		args = append(args, "--share-net")
		shown = slices.Concat(shown, etcNetwork)
	}
	for _, name := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		if target, err := os.Readlink(name); err == nil {
			args = append(args, "--symlink", target, name)
		} else if isDir(name) {
			args = append(args, "--ro-bind", name, name)
		}
	}
	for _, pattern := range shown {
		// The patterns are constants, so Glob cannot fail.
		names, _ := filepath.Glob(pattern)
		for _, name := range names {
			args = append(args, "--ro-bind-try", name, name)
		}
	}
	for i, d := range s.madeUp() {
		args = append(args, "--perms", "0444", "--file", strconv.Itoa(firstData+i), d.inside)
	}
	args = append(args,
		"--ro-bind-try", "/sys/devices/system/cpu", "/sys/devices/system/cpu",
		"--proc", "/proc", "--dev", "/dev",
		"--perms", "1777", "--size", strconv.FormatInt(shmBytes, 10), "--tmpfs", "/dev/shm",
		"--perms", "1777", "--size", strconv.FormatInt(l.DiskBytes, 10), "--tmpfs", "/tmp",
		"--symlink", "/tmp", "/var/tmp",
	)
	if hasQueues() {
		args = append(args, "--dir", "/dev/mqueue", "--mqueue", "/dev/mqueue")
	}
	for _, dir := range s.tools {
		args = append(args, "--ro-bind", dir, dir)
	}
	// A mount point must exist before what is mounted below it.
	mounts := slices.SortedStableFunc(slices.Values(b.Mounts), func(a, b Mount) int { return strings.Compare(a.Inside, b.Inside) })
	for _, m := range mounts {
		bind := "--ro-bind"
		if m.Write {
			bind = "--bind"
		}
		args = append(args, bind, m.Host, m.Inside)
	}
	// The box's own root and /dev are file systems in memory too: programs must
	// not keep anything there.
	return append(args, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/")
}
