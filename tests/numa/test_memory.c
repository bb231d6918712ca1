/* SPDX-License-Identifier: Apache-2.0 */
/* Where slabs and threads really are, asked of the kernel, on a machine with two NUMA nodes.
 * Skipped (77) where there are none. Thread: main, and those that it starts. */
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
#include <sys/syscall.h>
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
