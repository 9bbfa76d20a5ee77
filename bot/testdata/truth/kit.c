/* Four small workloads of about 30 ms each. The lines that define MARK, HASH,
 * PARSE and CELLS are what patches of the tests change. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARK "series 00 version 0"
#define HASH 100
#define PARSE 160
#define CELLS 2000000

/* Part of the binary, used by nothing. */
__attribute__((used)) static const char mark[] = MARK;

#define TEXT (256 * 1024)

static uint64_t next(uint64_t *s)
{
	*s = *s * 6364136223846793005ULL + 1442695040888963407ULL;
	return *s >> 17;
}

static char *text(uint64_t seed)
{
	char *p = malloc(TEXT);
	size_t i;

	if (!p)
		abort();
	for (i = 0; i < TEXT; i++)
		p[i] = i % 6 == 5 ? '\n' : (char)('0' + next(&seed) % 10);
	return p;
}

static uint64_t once(uint64_t h, const char *p)
{
	size_t i;

	for (i = 0; i < TEXT; i++)
		h = (h ^ (unsigned char)p[i]) * 0x9E3779B97F4A7C15ULL;
	return h;
}

static void hash(void)
{
	char *p = text(1);
	uint64_t h = 1;
	int i;

	for (i = 0; i < HASH; i++)
		h = once(h, p);
	printf("%016llx\n", (unsigned long long)h);
}

static uint64_t total(const char *p)
{
	uint64_t sum = 0, n = 0;
	size_t i;

	for (i = 0; i < TEXT; i++) {
		if (p[i] == '\n') {
			sum += n;
			n = 0;
		} else {
			n = n * 10 + (uint64_t)(p[i] - '0');
		}
	}
	return sum;
}

static void parse(void)
{
	char *p = text(2);
	uint64_t sum = 0;
	int i;

	for (i = 0; i < PARSE; i++) {
		p[i] = '1';
		sum ^= total(p) + (uint64_t)i;
	}
	printf("%llu\n", (unsigned long long)sum);
}

static void sort(void)
{
	enum { n = 280000 };
	uint32_t *v = malloc(n * sizeof(*v));
	uint64_t s = 3;
	size_t gap, i, j;

	if (!v)
		abort();
	for (i = 0; i < n; i++)
		v[i] = (uint32_t)next(&s);
	for (gap = 81920; gap; gap = gap == 2 ? 1 : gap * 5 / 11)
		for (i = gap; i < n; i++) {
			uint32_t x = v[i];

			for (j = i; j >= gap && v[j - gap] > x; j -= gap)
				v[j] = v[j - gap];
			v[j] = x;
		}
	printf("%u\n", (unsigned)v[n / 2]);
}

static void table(void)
{
	uint64_t *cell = malloc(CELLS * sizeof(*cell)), s = 4, sum = 0;
	long i;

	if (!cell)
		abort();
	memset(cell, 1, CELLS * sizeof(*cell));
	for (i = 0; i < 700000; i++)
		sum += cell[next(&s) % CELLS]++;
	printf("%llu\n", (unsigned long long)sum);
}

int main(int argc, char **argv)
{
	const char *what = argc == 2 ? argv[1] : "";

	if (!strcmp(what, "hash"))
		hash();
	else if (!strcmp(what, "parse"))
		parse();
	else if (!strcmp(what, "sort"))
		sort();
	else if (!strcmp(what, "table"))
		table();
	else
		return 2;
	return 0;
}
