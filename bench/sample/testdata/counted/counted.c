/* A program of which it is known what it allocates, copies and executes. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB (1 << 20)

static void *volatile block[1000];
static void *(*volatile copy)(void *, const void *, size_t) = memcpy;

/* 10 MiB in 1,000 blocks, half of them alive at one time. */
static void allocate(void)
{
	for (int half = 0; half < 2; half++) {
		for (int i = 0; i < 500; i++)
			block[i] = malloc(i < 380 ? 10486 : 10485);
		for (int i = 0; i < 500; i++)
			free(block[i]);
	}
}

static void copies(void)
{
	char *from = calloc(1, MIB), *to = malloc(MIB);
	for (int i = 0; i < 10; i++)
		copy(to, from, MIB);
	free(from);
	free(to);
}

static void loop(int n)
{
	for (volatile int i = 0; i < n; i++)
		;
}

/* What is done before a fork is the parent's alone. */
static void forks(void)
{
	block[0] = malloc(5 * MIB);
	loop(1000000);
	for (int i = 0; i < 3; i++) {
		if (!fork()) {
			block[1] = malloc(MIB);
			_exit(0);
		}
		wait(NULL);
	}
	block[2] = malloc(2 * MIB);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	if (!strcmp(mode, "malloc"))
		allocate();
	else if (!strcmp(mode, "copy"))
		copies();
	else if (!strcmp(mode, "loop"))
		loop(atoi(argv[2]));
	else if (!strcmp(mode, "clock")) {
		/* Never twice the same: n turns of a loop, and up to a hundredth more. */
		struct timespec now;
		clock_gettime(CLOCK_MONOTONIC, &now);
		int n = atoi(argv[2]);
		loop(n + now.tv_nsec / 100 % (n / 100));
	} else if (!strcmp(mode, "fork"))
		forks();
	else if (!strcmp(mode, "shy") && getenv("LD_PRELOAD")) /* valgrind is there */
		raise(SIGSEGV);
	else if (!strcmp(mode, "kill")) {
		int ready[2], child = pipe(ready) ? -1 : fork();
		char byte;
		if (!child) {
			dup2(ready[1], 1);
			execl(argv[0], argv[0], "wait", NULL);
			_exit(1);
		}
		if (child < 0 || read(ready[0], &byte, 1) != 1)
			return 1;
		kill(child, SIGKILL);
		wait(NULL);
	} else if (!strcmp(mode, "wait") && write(1, "", 1) == 1)
		pause();
	return 0;
}
