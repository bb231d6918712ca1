/* SPDX-License-Identifier: Apache-2.0 */
/* Where slabs and threads really are, according to the kernel, on a machine with two NUMA nodes.
 * Skipped (77) on others. Thread: main, and those that it starts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/env_slab.h"
#include "base/pin.h"

#define SLAB_BYTES ((size_t)6 << 20)
#define PAGES_MAX 2048
#define SHMEM_ENABLED "/sys/kernel/mm/transparent_hugepage/shmem_enabled"

static struct wf_env *env;
static struct wf_topo *topo;

static int
set_up(void **state)
{
	if (wf_env_system_create(WF_LOG_ERROR, 2, &env) != WEFT_OK) {
		return -1;
	}
	return wf_topo_open(env, &(struct wf_topo_source){0}, &topo) == WEFT_OK ? 0 : -1;
}

static int
tear_down(void **state)
{
	wf_topo_close(topo);
	wf_env_system_destroy(env);
	return 0;
}

static void
run_on(uint32_t cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

/* What the kernel was told of the slab; the node, if it is one. */
static int
mode_of(const struct wf_slab *slab, int *node)
{
	unsigned long mask[WF_NUMA_NODE_MAX / (8 * sizeof(unsigned long))] = {0};
	int mode = -1;
	assert_int_equal(syscall(SYS_get_mempolicy, &mode, mask, (unsigned long)WF_NUMA_NODE_MAX,
				 slab->base, (unsigned long)MPOL_F_ADDR),
			 0);
	*node = mask[0] == 0 ? -1 : __builtin_ctzl(mask[0]);
	return mode;
}

static int
mode_at(const struct wf_slab *slab, int wanted)
{
	int node = -1;
	int mode = mode_of(slab, &node);
	assert_int_equal(node, wanted);
	return mode;
}

/* Every page is there, and at this node. */
static void
expect_at_node(const struct wf_slab *slab, int node)
{
	static void *page[PAGES_MAX];
	static int at[PAGES_MAX];
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	size_t count = slab->bytes / page_bytes;
	assert_true(count <= PAGES_MAX);
	for (size_t i = 0; i < count; i++) {
		page[i] = (char *)slab->base + i * page_bytes;
	}
	/* No nodes to move to: where they are. */
	assert_int_equal(syscall(SYS_move_pages, 0, count, page, NULL, at, 0), 0);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(at[i], node);
	}
	int by_address = -1;
	assert_int_equal(syscall(SYS_get_mempolicy, &by_address, NULL, 0ul, slab->base,
				 (unsigned long)(MPOL_F_NODE | MPOL_F_ADDR)),
			 0);
	assert_int_equal(by_address, node);
}

/* The same of the first and the last page. */
static void
expect_ends_at_node(const struct wf_slab *slab, int node)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	struct wf_slab last = {.base = (char *)slab->base + slab->bytes - page_bytes,
			       .bytes = page_bytes};
	struct wf_slab first = {.base = slab->base, .bytes = page_bytes};
	expect_at_node(&first, node);
	expect_at_node(&last, node);
}

/* Whoever touches it first, and wherever that runs. */
static void
a_slab_lies_at_the_node_that_was_asked_for(void **state)
{
	for (uint32_t n = 0; n < topo->node_count; n++) {
		for (uint32_t c = 0; c < topo->core_count; c++) {
			struct wf_slab slab;
			int node = topo->node[n].numa_node;
			run_on(topo->cpu[topo->core[c].cpu_first]);
			assert_int_equal(env->ops->slab_open(env, SLAB_BYTES, node, &slab),
					 WEFT_OK);
			assert_int_equal(mode_at(&slab, node), MPOL_BIND);
			memset(slab.base, 1, slab.bytes);
			expect_at_node(&slab, node);
			env->ops->slab_close(env, &slab);
		}
	}
}

/* So the check above can fail. */
static void
a_slab_for_any_node_lies_where_it_was_touched(void **state)
{
	for (uint32_t c = 0; c < topo->core_count; c++) {
		struct wf_slab slab;
		run_on(topo->cpu[topo->core[c].cpu_first]);
		assert_int_equal(env->ops->slab_open(env, SLAB_BYTES, -1, &slab), WEFT_OK);
		memset(slab.base, 1, slab.bytes);
		expect_at_node(&slab, topo->core[c].numa_node);
		env->ops->slab_close(env, &slab);
	}
}

/* Also for what no page of it has been touched yet. */
static void
a_slab_is_bound_while_its_node_has_room_in_plenty(void **state)
{
	int node = topo->node[1].numa_node;
	size_t third = wf_numa_available_bytes(node) / 3;
	struct wf_slab slab[3];
	assert_true(third > 0);
	assert_int_equal(env->ops->slab_open(env, third, node, &slab[0]), WEFT_OK);
	assert_int_equal(mode_at(&slab[0], node), MPOL_BIND);
	assert_int_equal(env->ops->slab_open(env, third, node, &slab[1]), WEFT_OK);
	assert_int_equal(mode_at(&slab[1], node), MPOL_PREFERRED); /* two thirds were promised */
	assert_int_equal(env->ops->slab_open(env, SLAB_BYTES, node, &slab[2]), WEFT_OK);
	assert_int_equal(mode_at(&slab[2], node), MPOL_BIND); /* the second one was not counted */
	env->ops->slab_close(env, &slab[2]);
	env->ops->slab_close(env, &slab[0]);
	env->ops->slab_close(env, &slab[1]);
	assert_int_equal(env->ops->slab_open(env, third, node, &slab[0]), WEFT_OK);
	assert_int_equal(mode_at(&slab[0], node), MPOL_BIND); /* a promise ends with its slab */
	env->ops->slab_close(env, &slab[0]);
}

/* Pages that are there are no longer promised: they are missing at the node already. */
static void
what_was_touched_is_counted_once(void **state)
{
	int node = topo->node[0].numa_node;
	struct wf_slab slab[2];
	size_t most = wf_numa_available_bytes(node) / 2 - ((size_t)64 << 20);
	assert_int_equal(env->ops->slab_open(env, (size_t)256 << 20, node, &slab[0]), WEFT_OK);
	memset(slab[0].base, 1, slab[0].bytes);
	expect_ends_at_node(&slab[0], node);
	assert_int_equal(env->ops->slab_open(env, most - slab[0].bytes / 2, node, &slab[1]),
			 WEFT_OK);
	assert_int_equal(mode_at(&slab[1], node), MPOL_BIND);
	env->ops->slab_close(env, &slab[1]);
	env->ops->slab_close(env, &slab[0]);
}

/* In a cpuset that leaves its node out, a slab lies where it may. */
static int
run_in_cpuset(void)
{
	struct wf_slab slab;
	int node = -1;
	if (wf_numa_rule(1, 0) != WF_NUMA_ANYWHERE || wf_numa_rule(0, 0) != WF_NUMA_BOUND ||
	    env->ops->slab_open(env, SLAB_BYTES, 1, &slab) != WEFT_OK) {
		return 1;
	}
	memset(slab.base, 1, slab.bytes);
	return mode_of(&slab, &node) == MPOL_DEFAULT ? 0 : 2;
}

static bool
write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));
	if (fd >= 0) {
		(void)close(fd);
	}
	return n == (ssize_t)strlen(text);
}

static void
a_node_outside_the_cpuset_costs_a_line_and_nothing_else(void **state)
{
	static const char group[] = "/sys/fs/cgroup/weft-numa";
	int status = -1;
	(void)write_file("/sys/fs/cgroup/cgroup.subtree_control", "+cpuset");
	assert_int_equal(mkdir(group, 0755), 0);
	assert_true(write_file("/sys/fs/cgroup/weft-numa/cpuset.mems", "0"));
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		bool in = write_file("/sys/fs/cgroup/weft-numa/cgroup.procs", "0");
		_exit(in ? run_in_cpuset() : 3);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(rmdir(group), 0);
	assert_int_equal(status, 0);
}

struct sitter {
	const struct wf_pin *pin;
	unsigned idx;
	unsigned cpu, node;
	enum weft_status status;
};

static void *
sit(void *arg)
{
	struct sitter *sitter = arg;
	sitter->status = wf_pin_self(sitter->pin, sitter->idx);
	(void)syscall(SYS_getcpu, &sitter->cpu, &sitter->node, NULL);
	return NULL;
}

static void
a_thread_runs_on_the_cpu_and_node_of_its_place(void **state)
{
	struct wf_pin *pin = NULL;
	const struct wf_seat_process process = {.dense = topo->core_count};
	const struct wf_seat_ask ask = {.process = &process, .process_count = 1};
	assert_int_equal(wf_pin_create_for(env, "auto", &ask, &pin), WEFT_OK);
	for (unsigned i = 0; i < topo->core_count; i++) {
		struct sitter sitter = {.pin = pin, .idx = i};
		struct wf_pin_place place = wf_pin_place_of(pin, i);
		pthread_t thread;
		assert_int_equal(pthread_create(&thread, NULL, sit, &sitter), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(sitter.status, WEFT_OK);
		assert_int_equal(sitter.cpu, place.cpu);
		assert_int_equal(sitter.node, place.numa_node);
	}
	wf_pin_destroy(pin);
}

static void
write_setting(const char *word)
{
	int fd = open(SHMEM_ENABLED, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, word, strlen(word)), strlen(word));
	assert_int_equal(close(fd), 0);
}

/* KiB of huge pages in the mapping at `base`. */
static unsigned long
huge_kib(const void *base)
{
	char line[512];
	char wanted[32];
	unsigned long kib = 0;
	bool inside = false;
	FILE *smaps = fopen("/proc/self/smaps", "re");
	assert_non_null(smaps);
	(void)snprintf(wanted, sizeof(wanted), "%lx-", (unsigned long)(uintptr_t)base);
	while (fgets(line, sizeof(line), smaps) != NULL) {
		if (strchr(line, '-') != NULL && strchr(line, ':') > strchr(line, '-')) {
			inside = strncmp(line, wanted, strlen(wanted)) == 0;
		}
		if (inside) {
			(void)sscanf(line, "ShmemPmdMapped: %lu kB", &kib);
		}
	}
	(void)fclose(smaps);
	return kib;
}

static void
a_slab_has_huge_pages_where_the_kernel_gives_them(void **state)
{
	char before[32];
	char word[32];
	(void)wf_env_slab_is_huge(before, sizeof(before));
	if (before[0] == '\0') {
		print_message("this kernel has no huge pages for shared memory\n");
		skip();
	}
	write_setting("advise");
	assert_true(wf_env_slab_is_huge(word, sizeof(word)));
	for (uint32_t n = 0; n < topo->node_count; n++) {
		struct wf_slab slab;
		int node = topo->node[n].numa_node;
		assert_int_equal(env->ops->slab_open(env, SLAB_BYTES, node, &slab), WEFT_OK);
		memset(slab.base, 1, slab.bytes);
		unsigned long kib = huge_kib(slab.base);
		expect_at_node(&slab, node);
		env->ops->slab_close(env, &slab);
		assert_true(kib >= 2048);
	}
	write_setting("never");
	assert_false(wf_env_slab_is_huge(word, sizeof(word)));
	assert_string_equal(word, "never");
	write_setting(before);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_slab_lies_at_the_node_that_was_asked_for),
		TEST(a_slab_for_any_node_lies_where_it_was_touched),
		TEST(a_slab_is_bound_while_its_node_has_room_in_plenty),
		TEST(what_was_touched_is_counted_once),
		TEST(a_node_outside_the_cpuset_costs_a_line_and_nothing_else),
		TEST(a_thread_runs_on_the_cpu_and_node_of_its_place),
		TEST(a_slab_has_huge_pages_where_the_kernel_gives_them),
	};
	cpu_set_t all;
	void *state = NULL;
	if (set_up(&state) != 0) {
		return 1;
	}
	uint32_t nodes = topo->node_count;
	(void)tear_down(&state);
	if (nodes < 2 || getenv("GUEST_OUT") == NULL) {
		fputs("SKIPPED: this needs two NUMA nodes, and settings of the kernel: the guest\n",
		      stderr);
		return 77;
	}
	(void)sched_getaffinity(0, sizeof(all), &all);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
