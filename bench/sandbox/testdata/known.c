// known does one thing whose time and memory are known, or tries one thing that
// a program in a box must not get away with:
//   gcc -O1 -static -pthread -o known known.c
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

static void die(const char *what) { perror(what); exit(99); }

static void touch(long bytes)
{
	char *p = mmap(0, bytes + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		die("mmap");
	madvise(p, bytes + 1, MADV_NOHUGEPAGE);
	for (long i = 0; i < bytes; i += 4096)
		p[i] = 1;
}

static void burn(clockid_t clock, long ms)
{
	struct timespec t;
	do
		clock_gettime(clock, &t);
	while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < ms);
}

static void *burner(void *ms) { burn(CLOCK_THREAD_CPUTIME_ID, (long)ms); return 0; }

static void *pauser(void *none) { for (;;) pause(); return none; }

static void *execer(void *none) { execl("/proc/self/exe", "known", "resident", "0", NULL); return none; }

static void *late(void *bytes) { usleep(20000); touch((long)bytes); exit(0); }

// What the program says of itself: VmHWM in bytes.
static void say_peak(void)
{
	char line[256];
	long kb;
	FILE *f = fopen("/proc/self/status", "r");
	while (fgets(line, sizeof line, f))
		if (sscanf(line, "VmHWM: %ld", &kb) == 1)
			printf("%ld\n", kb * 1024);
}

static void leave(void)
{
	int id = shmget(42, 4096, IPC_CREAT | 0600);
	if (id < 0 || shmat(id, 0, 0) == (void *)-1)
		die("shm");
	if (msgget(42, IPC_CREAT | 0600) < 0 || semget(42, 1, IPC_CREAT | 0600) < 0)
		die("msg, sem");
	if (mq_open("/left", O_CREAT | O_RDWR, 0600, NULL) < 0)
		die("mq");
	close(open("/dev/shm/left", O_CREAT | O_WRONLY, 0600));
	close(open("/tmp/left", O_CREAT | O_WRONLY, 0));
	symlink("/usr", "/tmp/link");
	mkdir("/tmp/locked", 0700);
	mkdir("/tmp/locked/inner", 0700);
	close(open("/tmp/locked/inner/file", O_CREAT | O_WRONLY, 0));
	chmod("/tmp/locked/inner", 0);
	chmod("/tmp/locked", 0500);
	mkdir("/tmp/.patchbench-1", 0);
	if (chdir("/tmp"))
		die("chdir");
	// Deeper than a path can say.
	for (int i = 0; i < 3000; i++)
		if (mkdir("abc", 0700) || chdir("abc"))
			die("nest");
	close(open("file", O_CREAT | O_WRONLY, 0600));
	utimes("/dev/shm", (struct timeval[]){ { 42 }, { 43 } });
	chmod("/dev/shm", 07777);
	chmod("/tmp", 0);
}

// What an emptied /tmp does not undo; 77 where there is no such thing.
static int wear(const char *what)
{
	if (!strcmp(what, "attribute"))
		return setxattr("/tmp", "user.word", "word", 4, 0) ? 77 : 0;
	if (!strcmp(what, "permissions")) {
		// A default list of the folder, by which its owner may do nothing with new files.
		struct { unsigned version; struct { unsigned short tag, perm; unsigned id; } e[3]; } acl = {
			2, { { 1, 0, -1 }, { 4, 0, -1 }, { 0x20, 0, -1 } } };
		return setxattr("/dev/shm", "system.posix_acl_default", &acl, sizeof acl, 0) ? 77 : 0;
	}
	if (!strcmp(what, "terminals"))
		return chmod("/dev/pts/ptmx", 0) ? 77 : 0;
	if (!strcmp(what, "session")) {
		int fd = open("/proc/self/autogroup", O_WRONLY);
		if (fd < 0)
			return 77;
		// On all of the machine it can be set ten times a second.
		while (write(fd, "19", 2) != 2)
			if (errno == EAGAIN)
				usleep(10000);
			else
				return 77;
		return 0;
	}
	if (!strcmp(what, "port")) {
		// A server of the simplest kind, which ends the connection itself.
		struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(9000), .sin_addr = { htonl(INADDR_LOOPBACK) } };
		int one = socket(AF_INET, SOCK_STREAM, 0), other = socket(AF_INET, SOCK_STREAM, 0);
		char c;
		if (bind(one, (void *)&a, sizeof a) || listen(one, 1) || connect(other, (void *)&a, sizeof a) || close(accept(one, 0, 0)) || read(other, &c, 1))
			die("serve");
		return 0;
	}
	return 2;
}

static void list(const char *dir)
{
	DIR *d = opendir(dir);
	if (!d)
		die(dir);
	for (struct dirent *e; (e = readdir(d));)
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && strcmp(e->d_name, "home"))
			printf("%s/%s\n", dir, e->d_name);
}

static void look(void)
{
	list("/tmp"), list("/tmp/home"), list("/dev/shm"), list("/dev/mqueue");
	if (shmget(42, 0, 0) >= 0 || msgget(42, 0) >= 0 || semget(42, 0, 0) >= 0)
		puts("ipc");
	for (int i = 0; i < 2; i++) {
		const char *dir = i ? "/dev/shm" : "/tmp";
		struct stat st;
		stat(dir, &st);
		if ((st.st_mode & 07777) != 01777)
			printf("%s has mode %o\n", dir, st.st_mode & 07777);
		if (st.st_mtime < 1000)
			printf("%s has a time of the last run's choice\n", dir);
	}
}

// Signals as a shell would hand them on: nothing ignored, caught or blocked.
static void signals(void)
{
	sigset_t set;
	struct sigaction sa;
	sigprocmask(SIG_BLOCK, 0, &set);
	for (int s = 1; s < 65; s++) {
		if (sigaction(s, 0, &sa) == 0 && sa.sa_handler != SIG_DFL)
			printf("signal %d is not the default\n", s);
		if (sigismember(&set, s) == 1)
			printf("signal %d is blocked\n", s);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	long n = argc > 2 ? atol(argv[2]) : 0, m = argc > 3 ? atol(argv[3]) : 0;
	pthread_t t[64];

	// These would do their worst to the machine itself.
	if ((!strcmp(what, "leave") || !strcmp(what, "wear")) && strcmp(getenv("HOME"), "/tmp/home")) {
		fputs("only in a box\n", stderr);
		return 2;
	}
	if (!strcmp(what, "resident")) {
		touch(n), say_peak();
	} else if (!strcmp(what, "reserve")) {
		if (mmap(0, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED)
			die("mmap");
	} else if (!strcmp(what, "threads")) {
		for (int i = 0; i < n; i++)
			pthread_create(&t[i], 0, burner, (void *)m);
		for (int i = 0; i < n; i++)
			pthread_join(t[i], 0);
	} else if (!strcmp(what, "late")) {
		pthread_create(&t[0], 0, late, (void *)n);
		pthread_exit(0);
	} else if (!strcmp(what, "crash")) {
		touch(n);
		*(volatile int *)0 = 1;
	} else if (!strcmp(what, "kill")) {
		touch(n);
		kill(getpid(), SIGKILL);
	} else if (!strcmp(what, "family")) {
		// All hold their memory at the same time.
		int up[2], end[2];
		char c;
		if (pipe(up) || pipe(end))
			die("pipe");
		for (int i = 0; i < n; i++)
			if (fork() == 0) {
				touch(m), say_peak(), fflush(stdout);
				close(end[1]);
				write(up[1], "u", 1);
				return read(end[0], &c, 1);
			}
		for (int i = 0; i < n; i++)
			if (read(up[0], &c, 1) != 1)
				die("read");
		close(end[1]);
		while (wait(0) > 0)
			;
		say_peak();
	} else if (!strcmp(what, "herd")) {
		for (int i = 0; i < n; i++)
			if (fork() == 0) {
				touch(m);
				for (;;)
					pause();
			}
		while (wait(0) > 0)
			;
	} else if (!strcmp(what, "exec")) {
		touch(n);
		execl("/proc/self/exe", "known", "resident", "0", NULL);
	} else if (!strcmp(what, "thread-exec")) {
		touch(n);
		pthread_create(&t[0], 0, pauser, 0);
		pthread_create(&t[1], 0, execer, 0);
		for (;;)
			pause();
	} else if (!strcmp(what, "stop")) {
		pid_t pid = fork();
		int ws;
		if (pid == 0) {
			for (int i = 0; i < n; i++)
				pthread_create(&t[i], 0, pauser, 0);
			raise(SIGSTOP);
			_exit(7);
		}
		waitpid(pid, &ws, WUNTRACED);
		if (!WIFSTOPPED(ws))
			return 1;
		// It stays stopped: nothing to report within a while.
		usleep(50000);
		if (waitpid(pid, &ws, WNOHANG) != 0)
			return 2;
		kill(pid, SIGCONT);
		waitpid(pid, &ws, 0);
		return WIFEXITED(ws) ? WEXITSTATUS(ws) : 3;
	} else if (!strcmp(what, "daemon")) {
		if (fork() == 0) {
			setsid();
			prctl(PR_SET_NAME, "x) S 1 (y");
			if (fork() == 0)
				for (;;)
					pause();
			_exit(0);
		}
		wait(0);
	} else if (!strcmp(what, "orphan")) {
		// A daemon that works for n ms of CPU; its pipe's end tells that it is done.
		int p[2];
		char c;
		if (pipe(p))
			die("pipe");
		if (fork() == 0) {
			if (fork() == 0)
				burn(CLOCK_PROCESS_CPUTIME_ID, n);
			_exit(0);
		}
		close(p[1]);
		if (read(p[0], &c, 1) != 0)
			die("read");
	} else if (!strcmp(what, "hog")) {
		for (;;)
			touch(1 << 20);
	} else if (!strcmp(what, "leave")) {
		leave();
	} else if (!strcmp(what, "wear")) {
		return wear(argv[2]);
	} else if (!strcmp(what, "look")) {
		look();
	} else if (!strcmp(what, "signals")) {
		signals();
	} else {
		return 2;
	}
	return 0;
}
