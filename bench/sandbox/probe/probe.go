// Package probe is the program of the sandbox's self-test: it tries to get out of
// the box and prints what it could do.
//
//	Lay(dir) -> Bait      on the host: what the program must not reach
//	Main(bait.Args())     in the box, by the bot's own binary
//	Could(output)         on the host: what it could do; nothing, in a good box
package probe

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"patchbench/bench/sandbox/runner"
	"patchbench/bench/sandbox/seccomp"
)

// Arg is the first argument that makes the bot's binary this program.
const Arg = "sandbox-probe"

// done ends the output; without it the program did not get to its end.
const done = "done\n"

// Could reads the output: what the program could do, separated by commas, and
// whether it got to its end.
func Could(output string) (what string, complete bool) {
	lines, complete := strings.CutSuffix(output, done)
	return strings.ReplaceAll(strings.TrimSpace(lines), "\n", ", "), complete
}

// Bait is what the program must not be able to reach: a file of the host, a
// listener on the loopback, and one in the abstract name space.
type Bait struct {
	dir  string
	file string
	tcp  net.Listener
	unix net.Listener
}

// Lay makes the bait, in a folder that is then the Bait's own.
func Lay(dir string) (*Bait, error) {
	b := &Bait{dir: dir, file: filepath.Join(dir, "bait")}
	// Everyone may read it, so that only the box keeps a program from it.
	err := os.Chmod(b.dir, 0o755)
	if err == nil {
		err = os.WriteFile(b.file, []byte("bait\n"), 0o644)
	}
	if err != nil {
		b.Close()
		return nil, err
	}
	// A machine may lack either kind of listener; the probe then tries less.
	b.tcp, _ = net.Listen("tcp", "127.0.0.1:0")
	b.unix, _ = net.Listen("unix", "@"+filepath.Base(b.dir))
	return b, nil
}

// Args are the program's arguments behind Arg.
func (b *Bait) Args() []string {
	args := []string{b.file, "", ""}
	if b.tcp != nil {
		args[1] = b.tcp.Addr().String()
	}
	if b.unix != nil {
		args[2] = b.unix.Addr().String()
	}
	return args
}

// Close removes the bait and its folder.
func (b *Bait) Close() {
	os.RemoveAll(b.dir)
	for _, l := range []net.Listener{b.tcp, b.unix} {
		if l != nil {
			l.Close()
		}
	}
}

// Main prints a line for everything that it could do and should not, and ends
// the process.
func Main(args []string) {
	// Read first: what follows opens descriptors of its own.
	inherited := openDescriptors()
	if len(args) != 3 {
		fmt.Fprintln(os.Stderr, "the self-test's program is started by the self-test only")
		os.Exit(2)
	}
	for _, t := range []struct {
		could string
		try   func() bool
	}{
		{"write to the system", canWriteSystem},
		{"mount", canMount},
		{"read the bot's environment", canReadEnvironment},
		{"read an inherited descriptor (" + strings.Join(inherited, " ") + ")", func() bool { return len(inherited) > 0 }},
		{"open the runner's descriptors", canOpenRunner},
		{"trace the runner", func() bool { return unix.PtraceSeize(1) == nil }},
		{"read a file of the host", func() bool {
			_, err := os.ReadFile(args[0])
			_, viaRoot := os.ReadFile("/proc/1/root" + args[0])
			return err == nil || viaRoot == nil
		}},
		{"reach the network", func() bool { return canReachNetwork(args[1], args[2]) }},
		{"reach the machine below this one (AF_VSOCK)", func() bool {
			fd, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
			if err == nil {
				unix.Close(fd)
			}
			return err == nil && seccomp.Known()
		}},
		{"be root", canBeRoot},
		{"make a name space of users", canMakeNamespace},
		{"use key rings", func() bool {
			_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true)
			return err == nil && seccomp.Known()
		}},
		{"set the machine up", canSetUp},
		{"open a device", canOpenDevice},
		{"have capabilities or gain privileges", hasPrivileges},
	} {
		if t.try() {
			fmt.Println(t.could)
		}
	}
	fmt.Print(done)
	os.Exit(0)
}

// openDescriptors lists what is open beside the standard streams and what the Go
// runtime opened for itself.
func openDescriptors() []string {
	var found []string
	for fd := 3; fd < 256; fd++ {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) != nil {
			continue
		}
		target, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		if strings.HasPrefix(target, "anon_inode:[event") {
			continue
		}
		found = append(found, fmt.Sprintf("%d %s", fd, target))
	}
	return found
}

func canWriteSystem() bool {
	for _, dir := range []string{"/usr", "/usr/bin", "/etc", "/", "/dev"} {
		name := filepath.Join(dir, "patchbench-probe")
		if f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			f.Close()
			os.Remove(name)
			return true
		}
	}
	return false
}

func canMount() bool {
	if unix.Mount("", "/usr", "", unix.MS_BIND|unix.MS_REMOUNT, "") == nil {
		return true
	}
	dir, err := os.MkdirTemp("", "probe-")
	if err != nil {
		return false
	}
	defer os.Remove(dir)
	if unix.Mount("none", dir, "tmpfs", 0, "") != nil {
		return false
	}
	_ = unix.Unmount(dir, 0) // the machine is the user's, if this is no box
	return true
}

// canReadEnvironment looks for more than the runner's own environment, which
// holds at most the PWD that bubblewrap sets.
func canReadEnvironment() bool {
	env, err := os.ReadFile("/proc/1/environ")
	if err == nil {
		for _, v := range bytes.Split(env, []byte{0}) {
			if len(v) > 0 && !bytes.HasPrefix(v, []byte("PWD=")) {
				return true
			}
		}
	}
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "PATH", "HOME", "TMPDIR", "LANG", "TZ":
		default:
			return true
		}
	}
	return false
}

func canOpenRunner() bool {
	for _, fd := range []int{runner.OrderFD, runner.AnswerFD} {
		for _, mode := range []int{os.O_RDONLY, os.O_WRONLY} {
			f, err := os.OpenFile(fmt.Sprintf("/proc/1/fd/%d", fd), mode|syscall.O_NONBLOCK, 0)
			if err == nil {
				f.Close()
				return true
			}
		}
	}
	f, err := os.Open("/proc/1/mem")
	if err == nil {
		f.Close()
	}
	return err == nil
}

// canReachNetwork connects by UDP, which sends nothing, to addresses set aside
// for documentation, and to the bot's own listeners.
func canReachNetwork(tcp, abstract string) bool {
	for _, to := range [][2]string{
		{"udp4", "192.0.2.1:9"}, {"udp6", "[2001:db8::1]:9"},
		{"tcp", tcp}, {"unix", abstract},
	} {
		if to[1] == "" {
			continue
		}
		if c, err := net.Dial(to[0], to[1]); err == nil {
			c.Close()
			return true
		}
	}
	return false
}

// canMakeNamespace starts itself in one, where it would have all privileges.
func canMakeNamespace() bool {
	cmd := exec.Command("/proc/self/exe", Arg)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
	err := cmd.Start()
	if err == nil {
		_ = cmd.Wait() // that it started is enough
	}
	return err == nil
}

// canSetUp writes what changes nothing if it works: a setting's own value, and
// the name that there is.
func canSetUp() bool {
	for _, name := range []string{"/proc/sys/kernel/core_pattern", "/proc/sys/user/max_user_namespaces", "/proc/sys/vm/overcommit_memory"} {
		if text, err := os.ReadFile(name); err == nil && os.WriteFile(name, text, 0) == nil {
			return true
		}
	}
	host, err := os.Hostname()
	return err == nil && unix.Sethostname([]byte(host)) == nil || isThere("/sys/fs/cgroup")
}

func isThere(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// canOpenDevice looks for what is no terminal and no source of bytes, and makes one.
func canOpenDevice() bool {
	for _, name := range []string{"/dev/kmsg", "/dev/mem", "/dev/fuse", "/dev/kvm", "/dev/net/tun"} {
		f, err := os.Open(name)
		if err == nil {
			f.Close()
			return true
		}
	}
	name := filepath.Join(os.TempDir(), "patchbench-device")
	defer os.Remove(name)
	return unix.Mknod(name, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 1))) == nil
}

func canBeRoot() bool {
	return os.Getuid() == 0 || os.Geteuid() == 0 || syscall.Setuid(0) == nil
}

func hasPrivileges() bool {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return true // what cannot be seen is not trusted
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		fields[name] = strings.TrimSpace(value)
	}
	return strings.Trim(fields["CapEff"], "0") != "" || strings.Trim(fields["CapPrm"], "0") != "" || fields["NoNewPrivs"] != "1"
}
