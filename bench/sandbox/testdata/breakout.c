// breakout tries each way out of a box and prints what came of it, one line
// each: NAME, a tab, and the name of the error, or "could":
//   gcc -O1 -static -o breakout breakout.c
//   breakout HOSTFILE HOSTPID PORT ABSTRACT
// HOSTFILE is a file and HOSTPID a process of the host, PORT on 127.0.0.1 and
// the abstract socket ABSTRACT are listened to there.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static void say(const char *name, long r)
{
	printf("%s\t%s\n", name, r < 0 ? strerrorname_np(errno) : "could");
	fflush(stdout);
}

#define TRY(name, call) (errno = 0, say(name, (long)(call)))

static long write_to(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY | O_NONBLOCK);
	long r = fd < 0 ? -1 : write(fd, text, strlen(text));
	int e = errno;
	close(fd);
	errno = e;
	return r;
}

static long create(const char *file) { return open(file, O_CREAT | O_WRONLY, 0600); }

static long reach4(const char *ip, int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	inet_pton(AF_INET, ip, &a.sin_addr);
	return connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&a, sizeof a);
}

static long reach6(void)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6, .sin6_port = htons(80) };
	inet_pton(AF_INET6, "2001:db8::1", &a.sin6_addr);
	return connect(socket(AF_INET6, SOCK_STREAM, 0), (void *)&a, sizeof a);
}

static long reach_abstract(const char *name)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	strncpy(a.sun_path + 1, name, sizeof a.sun_path - 2);
	return connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&a, offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}

// Sets the loopback down, by netlink.
static long change_network(void)
{
	struct { struct nlmsghdr h; struct ifinfomsg i; } q = {
		{ sizeof q, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK }, { .ifi_index = 1, .ifi_change = IFF_UP } };
	struct { struct nlmsghdr h; struct nlmsgerr e; char rest[256]; } a;
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	if (fd < 0 || send(fd, &q, sizeof q, 0) < 0 || recv(fd, &a, sizeof a, 0) < 0)
		return -1;
	errno = -a.e.error;
	return a.e.error ? -1 : 0;
}

static long low_port(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(80) };
	return bind(socket(AF_INET, SOCK_STREAM, 0), (void *)&a, sizeof a);
}

static long child_in(unsigned long flags)
{
	long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		_exit(0);
	return pid;
}

static long child3_in(uint64_t flags)
{
	uint64_t args[11] = { flags, 0, 0, 0, SIGCHLD };
	long pid = syscall(SYS_clone3, args, sizeof args);
	if (pid == 0)
		_exit(0);
	return pid;
}

static long gain_caps(void)
{
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct d[2] = { { 1 << CAP_SYS_ADMIN, 1 << CAP_SYS_ADMIN, 0 }, { 0, 0, 0 } };
	return syscall(SYS_capset, &h, d);
}

// runner_thread is a thread of the runner's beside its first.
static pid_t runner_thread(void)
{
	DIR *d = opendir("/proc/1/task");
	pid_t last = 0;
	for (struct dirent *e; d && (e = readdir(d));)
		if (atoi(e->d_name) > 1)
			last = atoi(e->d_name);
	return last;
}

// starter is the thread of the runner's that starts programs: the one to which calls
// are refused as to them.
static pid_t starter(void)
{
	static pid_t found;
	if (found)
		return found;
	DIR *d = opendir("/proc/1/task");
	for (struct dirent *e; d && (e = readdir(d));) {
		char name[300], line[256];
		int mode;
		snprintf(name, sizeof name, "/proc/1/task/%s/status", e->d_name);
		FILE *f = fopen(name, "r");
		while (f && fgets(line, sizeof line, f))
			if (sscanf(line, "Seccomp: %d", &mode) == 1 && mode == 2)
				found = atoi(e->d_name);
		if (f)
			fclose(f);
	}
	closedir(d);
	if (found)
		return found;
	puts("find the thread that starts programs\tit is not there");
	return 1;
}

// queued is a signal as sigqueue sends it.
static siginfo_t *queued(int sig)
{
	static siginfo_t info;
	info.si_signo = sig;
	info.si_code = SI_QUEUE;
	return &info;
}

static long read_runner(void)
{
	char b[16];
	struct iovec l = { b, sizeof b }, r = { (void *)0x400000, sizeof b };
	return process_vm_readv(1, &l, 1, &r, 1, 0);
}

static long more_than_allowed(int which)
{
	struct rlimit l;
	getrlimit(which, &l);
	if (l.rlim_max == RLIM_INFINITY) {
		errno = EPERM; // there is no more to be had
		return -1;
	}
	l.rlim_max++;
	return setrlimit(which, &l);
}

// Puts a letter into the input of a terminal, as if somebody had typed it.
static long type(void)
{
	int fd = open("/dev/ptmx", O_RDWR | O_NOCTTY);
	if (fd < 0)
		return -1;
	return ioctl(fd, TIOCSTI, "x");
}

static long pass_handle(void)
{
	struct { struct file_handle h; char rest[128]; } f = { { 128 } };
	int mount;
	if (name_to_handle_at(AT_FDCWD, "/usr", &f.h, &mount, 0) < 0)
		f.h.handle_bytes = 8;
	return open_by_handle_at(open("/usr", O_RDONLY), &f.h, O_RDONLY);
}

static long inherited(void)
{
	for (int fd = 3; fd < 4096; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			return fd;
	return -1;
}

int main(int argc, char **argv)
{
	char path[4200];
	struct stat st;

	// These would do their worst to the machine itself.
	if (argc != 5 || !getenv("HOME") || strcmp(getenv("HOME"), "/tmp/home")) {
		fputs("only in a box\n", stderr);
		return 2;
	}
	TRY("use an inherited descriptor", inherited()); // first: what follows opens its own

	// files
	TRY("read a file of the host", open(argv[1], O_RDONLY));
	snprintf(path, sizeof path, "/proc/1/root%s", argv[1]);
	TRY("read a file of the host by the runner's root", open(path, O_RDONLY));
	snprintf(path, sizeof path, "/../../../../..%s", argv[1]);
	TRY("read a file of the host by dots", open(path, O_RDONLY));
	TRY("read the list of passwords", open("/etc/shadow", O_RDONLY));
	TRY("write to /usr", create("/usr/x"));
	TRY("write to /etc", create("/etc/x"));
	TRY("write to /", create("/x"));
	TRY("write to /dev", create("/dev/x"));
	TRY("write to a mount for reading", create("/build/in/x"));
	TRY("change a mount for reading", chmod("/build/in", 0777));
	TRY("change the user list", write_to("/etc/passwd", "x"));
	TRY("make the user list writable", chmod("/etc/passwd", 0666));
	TRY("mark a file", setxattr("/usr", "user.x", "x", 1, 0));

	// mounts
	TRY("remount /usr for writing", mount(0, "/usr", 0, MS_REMOUNT | MS_BIND, 0));
	TRY("mount a file system", mount("x", "/tmp", "tmpfs", 0, 0));
	TRY("mount /proc anew", mount("x", "/tmp", "proc", 0, 0));
	TRY("mount a cgroup", mount("x", "/tmp", "cgroup2", 0, 0));
	TRY("show a folder elsewhere", mount("/usr", "/tmp", 0, MS_BIND, 0));
	TRY("unmount /usr", umount2("/usr", MNT_DETACH));
	TRY("mount by fsopen", syscall(SYS_fsopen, "tmpfs", 0));
	TRY("mount by fspick", syscall(SYS_fspick, AT_FDCWD, "/usr", 0));
	TRY("mount by open_tree", syscall(SYS_open_tree, AT_FDCWD, "/usr", 1));
	TRY("change a mount's flags", syscall(SYS_mount_setattr, AT_FDCWD, "/usr", 0, &(uint64_t[4]){ 0, 1 }, 32));
	TRY("pivot the root", syscall(SYS_pivot_root, "/tmp", "/tmp"));
	TRY("change the root", chroot("/tmp"));
	TRY("open by handle", pass_handle());

	// the runner
	TRY("read the runner's environment", open("/proc/1/environ", O_RDONLY));
	TRY("read the runner's memory", open("/proc/1/mem", O_RDONLY));
	TRY("write the runner's memory", open("/proc/1/mem", O_RDWR));
	TRY("see the runner's addresses", open("/proc/1/maps", O_RDONLY));
	TRY("read the runner's orders", open("/proc/1/fd/3", O_RDONLY | O_NONBLOCK));
	TRY("write the runner's answers", open("/proc/1/fd/4", O_WRONLY | O_NONBLOCK));
	TRY("list the runner's descriptors", open("/proc/1/fd", O_RDONLY | O_DIRECTORY) < 0 ? -1 : readlink("/proc/1/fd/4", path, sizeof path));
	TRY("take the runner's descriptor", syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, 1, 0), 4, 0));
	TRY("copy the runner's memory", read_runner());
	TRY("trace the runner", ptrace(PTRACE_SEIZE, 1, 0, 0));
	TRY("attach to the runner", ptrace(PTRACE_ATTACH, 1, 0, 0));
	TRY("limit the runner", prlimit(1, RLIMIT_NOFILE, &(struct rlimit){ 3, 3 }, 0));
	TRY("limit the runner by a thread", prlimit(runner_thread(), RLIMIT_NOFILE, &(struct rlimit){ 3, 3 }, 0));
	TRY("fault the runner", syscall(SYS_rt_sigqueueinfo, 1, SIGSEGV, queued(SIGSEGV)));
	TRY("fault a thread of the runner", syscall(SYS_rt_tgsigqueueinfo, 1, runner_thread(), SIGTRAP, queued(SIGTRAP)));
	TRY("fault the runner by its descriptor", syscall(SYS_pidfd_send_signal, syscall(SYS_pidfd_open, 1, 0), SIGBUS, queued(SIGBUS), 0));
	TRY("fault the runner by input", fcntl(0, F_SETSIG, SIGSEGV));
	TRY("slow the runner's thread that starts programs", setpriority(PRIO_PROCESS, starter(), 19));
	TRY("give the runner's reads and writes no room", syscall(SYS_ioprio_set, 1, starter(), 3 << 13));
	TRY("have the runner run when nobody else does", sched_setscheduler(starter(), SCHED_IDLE, &(struct sched_param){ 0 }));
	TRY("set the runner's parameters", sched_setparam(starter(), &(struct sched_param){ 0 }));
	TRY("set the runner's attributes", syscall(SYS_sched_setattr, starter(), &(uint32_t[12]){ 48, SCHED_BATCH }, 0));
	TRY("bind the runner's thread to one CPU", syscall(SYS_sched_setaffinity, starter(), 8, "\1\0\0\0\0\0\0\0"));
	TRY("slow the runner", setpriority(PRIO_PROCESS, 1, 19));
	TRY("slow all of the user", setpriority(PRIO_USER, 0, 19));
	TRY("a process that nobody follows", child_in(CLONE_UNTRACED));
	TRY("a process that nobody follows, by clone3", child3_in(CLONE_UNTRACED));
	TRY("bind the runner to one CPU", syscall(SYS_sched_setaffinity, 1, 8, "\1\0\0\0\0\0\0\0"));
	TRY("have the runner killed first", write_to("/proc/1/oom_score_adj", "1000"));
	snprintf(path, sizeof path, "/proc/%s/environ", argv[2]);
	TRY("see a process of the host", open(path, O_RDONLY));
	TRY("signal a process of the host", kill(atoi(argv[2]), 0));

	// network
	TRY("reach the network", reach4("192.0.2.1", 80));
	TRY("reach a name server", reach4("1.1.1.1", 80));
	TRY("reach the network by IPv6", reach6());
	TRY("reach the host's loopback", reach4("127.0.0.1", atoi(argv[3])));
	TRY("reach an abstract socket of the host", reach_abstract(argv[4]));
	TRY("reach the machine below (AF_VSOCK)", socket(AF_VSOCK, SOCK_STREAM, 0));
	TRY("see packets (AF_PACKET)", socket(AF_PACKET, SOCK_RAW, 0));
	TRY("use the kernel's ciphers (AF_ALG)", socket(AF_ALG, SOCK_SEQPACKET, 0));
	TRY("use Bluetooth", socket(AF_BLUETOOTH, SOCK_RAW, 0));
	TRY("make raw packets", socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
	TRY("change the network", change_network());
	TRY("take a low port", low_port());

	// privileges
	TRY("be root", setuid(0));
	TRY("be in root's group", setgid(0));
	TRY("be in other groups", setgroups(1, &(gid_t){ 0 }));
	TRY("gain capabilities", gain_caps());
	TRY("keep capabilities", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0));
	TRY("gain privileges by exec", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? (errno = EPERM, -1) : 0);
	TRY("a user name space by unshare", unshare(CLONE_NEWUSER));
	TRY("a user name space by clone", child_in(CLONE_NEWUSER));
	TRY("a user name space by clone3", child3_in(CLONE_NEWUSER));
	TRY("a mount name space by unshare", unshare(CLONE_NEWNS));
	TRY("a mount name space by clone", child_in(CLONE_NEWNS));
	TRY("a network name space by clone3", child3_in(CLONE_NEWNET));
	TRY("enter a name space", setns(open("/proc/self/ns/net", O_RDONLY), 0));
	TRY("enter the runner's name space", open("/proc/1/ns/mnt", O_RDONLY));
	TRY("have more files", more_than_allowed(RLIMIT_NOFILE));
	TRY("have more core", more_than_allowed(RLIMIT_CORE));
	TRY("go before others", setpriority(PRIO_PROCESS, 0, -5));
	TRY("run in real time", sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ 1 }));
	TRY("not be killed for memory", write_to("/proc/self/oom_score_adj", "-1000"));
	TRY("make a set-uid program root's", chown("/tmp/home", 0, 0));

	// devices and the kernel
	TRY("make a disk device", mknod("/tmp/disk", S_IFBLK | 0600, makedev(254, 0)));
	TRY("make a memory device", mknod("/tmp/mem", S_IFCHR | 0600, makedev(1, 1)));
	TRY("open the memory", open("/dev/mem", O_RDONLY));
	TRY("open the kernel's log", open("/dev/kmsg", O_RDONLY));
	TRY("open FUSE", open("/dev/fuse", O_RDWR));
	TRY("open KVM", open("/dev/kvm", O_RDWR));
	TRY("open a tunnel", open("/dev/net/tun", O_RDWR));
	TRY("open the terminal", open("/dev/tty", O_RDWR));
	TRY("open the console", open("/dev/console", O_RDWR));
	TRY("type into a terminal", type());
	TRY("write to /sys", write_to("/sys/devices/system/cpu/cpu1/online", "0"));
	TRY("see the rest of /sys", stat("/sys/kernel", &st));
	TRY("see the cgroups", stat("/sys/fs/cgroup", &st));
	TRY("set the core pattern", write_to("/proc/sys/kernel/core_pattern", "|/tmp/x"));
	TRY("set the module loader", write_to("/proc/sys/kernel/modprobe", "/tmp/x"));
	TRY("set the name by /proc", write_to("/proc/sys/kernel/hostname", "x"));
	TRY("allow name spaces", write_to("/proc/sys/user/max_user_namespaces", "100"));
	TRY("press a magic key", write_to("/proc/sysrq-trigger", "h"));
	TRY("read the kernel's memory", open("/proc/kcore", O_RDONLY) < 0 ? -1 : read(open("/proc/kcore", O_RDONLY), path, 1) > 0 ? 0 : (errno = EPERM, -1));
	TRY("read the kernel's log by syslog", syscall(SYS_syslog, 3, path, sizeof path));
	TRY("set the clock", clock_settime(CLOCK_REALTIME, &(struct timespec){ 1 }));
	TRY("set the time of day", settimeofday(&(struct timeval){ 1 }, 0));
	TRY("tune the clock", adjtimex(&(struct timex){ .modes = ADJ_FREQUENCY }));
	TRY("set the host's name", sethostname("x", 1));
	TRY("set the domain's name", setdomainname("x", 1));
	TRY("load a module", syscall(SYS_init_module, "x", 1, ""));
	TRY("load a module file", syscall(SYS_finit_module, 0, "", 0));
	TRY("unload a module", syscall(SYS_delete_module, "x", 0));
	TRY("load a kernel", syscall(SYS_kexec_load, 0, 0, 0, 0));
	TRY("load a kernel file", syscall(SYS_kexec_file_load, 0, 0, 0, "", 0));
	TRY("restart the machine", reboot(RB_AUTOBOOT));
	TRY("account", acct("/tmp/x"));
	TRY("swap to a file", swapon("/tmp/x", 0));
	TRY("set quotas", syscall(SYS_quotactl, 0x80000700, "/dev/vda", 0, 0));
	TRY("load a BPF program", syscall(SYS_bpf, 0, 0, 0));
	TRY("count events of the machine", syscall(SYS_perf_event_open, path, -1, 0, -1, 0));
	TRY("handle page faults", syscall(SYS_userfaultfd, 0));
	TRY("start io_uring", syscall(SYS_io_uring_setup, 1, path));
	TRY("watch file systems", syscall(SYS_fanotify_init, 0, 0));
	TRY("add a key", syscall(SYS_add_key, "user", "x", "x", 1, -3));
	TRY("ask for a key", syscall(SYS_request_key, "user", "x", 0, 0));
	TRY("use key rings", syscall(SYS_keyctl, 0, -3, 1));
#ifdef SYS_iopl
	TRY("use ports of the machine", syscall(SYS_iopl, 3));
#else
	puts("use ports of the machine\tEPERM");
#endif

	// None of these may end or stop the runner, which must still answer.
	for (int s = 1; s < 65; s++)
		kill(1, s);
	kill(0, SIGURG);

	// What is refused above is still there for oneself.
	if (setpriority(PRIO_PROCESS, 0, 19) || socket(AF_UNIX, SOCK_STREAM, 0) < 0 || socket(AF_INET6, SOCK_STREAM, 0) < 0 ||
	    prlimit(0, RLIMIT_NOFILE, &(struct rlimit){ 64, 64 }, 0) || open("/dev/shm/x", O_CREAT | O_RDWR, 0600) < 0)
		puts("be a program\ttoo much is refused");
	return 0;
}
