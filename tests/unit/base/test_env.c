/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of env: the system env's promises, op by op. Times are only ever compared with deadlines.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/env.h"

static struct wf_env *env;

static int
set_up(void **state)
{
	return wf_env_system_create(WF_LOG_ERROR, -1, &env) == WEFT_OK ? 0 : -1;
}

static int
tear_down(void **state)
{
	wf_env_system_destroy(env);
	return 0;
}

static bool
is_zero(const unsigned char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (bytes[i] != 0) {
			return false;
		}
	}
	return true;
}

/* ---- clock and chance ---- */

static void
the_clock_never_goes_back(void **state)
{
	uint64_t last_ns = wf_now_ns(env);
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t now_ns = wf_now_ns(env);
		assert_true(now_ns >= last_ns);
		last_ns = now_ns;
	}
}

static void
chance_does_not_repeat(void **state)
{
	uint64_t first = wf_random(env);
	uint64_t second = wf_random(env);
	assert_true(first != second); /* wrong once in 2^64 runs */
}

/* ---- memory ---- */

static void
memory_is_zeroed_and_aligned_at_every_size(void **state)
{
	static const size_t sizes[] = {
		0, 1, 63, 64, 4097, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20};
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (size_t align = 1; align <= 4096; align *= 4) {
			/* Twice, so that the second may be used memory. */
			for (unsigned again = 0; again < 2; again++) {
				unsigned char *memory = env->ops->alloc(env, sizes[i], align);
				assert_non_null(memory);
				assert_int_equal((uintptr_t)memory % align, 0);
				assert_true(is_zero(memory, sizes[i]));
				memset(memory, 0xa5, sizes[i]);
				wf_free(env, memory, sizes[i]);
			}
		}
	}
	wf_free(env, NULL, 0);
	wf_free(env, NULL, 2 << 20);
}

static void
impossible_memory_is_null(void **state)
{
	assert_null(wf_zalloc(env, SIZE_MAX));
	assert_null(wf_zalloc(env, SIZE_MAX / 2));
	assert_null(wf_zalloc_array(env, SIZE_MAX / 4, 8));
	assert_null(wf_zalloc_array(env, 8, SIZE_MAX / 4));
}

static void
an_array_has_room_for_all_items(void **state)
{
	uint64_t *array = wf_zalloc_array(env, 100, sizeof(*array));
	assert_non_null(array);
	assert_int_equal((uintptr_t)array % 64, 0);
	assert_true(is_zero((unsigned char *)array, 800));
	memset(array, 1, 800);
	wf_free(env, array, 800);
}

static void
a_slab_is_whole_pages_that_others_can_map(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct wf_slab slab;
	assert_int_equal(env->ops->slab_open(env, page + 1, -1, &slab), WEFT_OK);
	assert_int_equal(slab.bytes, 2 * page);
	assert_int_equal((uintptr_t)slab.base % page, 0);
	assert_true(is_zero(slab.base, slab.bytes));
	assert_true(slab.memfd >= 0);
	assert_int_equal(fcntl(slab.memfd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);

	char *other = mmap(NULL, slab.bytes, PROT_READ, MAP_SHARED, slab.memfd, 0);
	assert_ptr_not_equal(other, MAP_FAILED);
	memcpy((char *)slab.base + page, "seen", 5);
	assert_string_equal(other + page, "seen");
	assert_int_equal(munmap(other, slab.bytes), 0);
	env->ops->slab_close(env, &slab);
	assert_null(slab.base);
	assert_int_equal(slab.memfd, -1);
	env->ops->slab_close(env, &slab);
}

/* A limit on files is no lack of memory, and SIGXFSZ ends nobody. The limit is this process's. */
static void
a_slab_above_the_limit_of_file_sizes_is_refused(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct rlimit before;
	struct wf_slab slab;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	const struct rlimit low = {.rlim_cur = page, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	enum weft_status fits = env->ops->slab_open(env, page, -1, &slab);
	if (fits == WEFT_OK) {
		env->ops->slab_close(env, &slab);
	}
	enum weft_status st = env->ops->slab_open(env, page + 1, -1, &slab);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(fits, WEFT_OK);
	assert_int_equal(st, WEFT_IO);
	assert_non_null(strstr(weft_last_error(), "ulimit -f"));
}

/* The kernel places mappings side by side: without a guard, behind one slab comes another. */
static void
nothing_is_to_be_had_behind_a_slab(void **state)
{
	enum { SLABS = 8 };
	struct wf_slab slab[SLABS];
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	for (unsigned i = 0; i < SLABS; i++) {
		/* Small and huge pages. */
		size_t bytes = i % 2 == 0 ? 8192 : (size_t)4 << 20;
		assert_int_equal(env->ops->slab_open(env, bytes, -1, &slab[i]), WEFT_OK);
	}
	for (unsigned i = 0; i < SLABS; i++) {
		const char *end = (const char *)slab[i].base + slab[i].bytes;
		assert_int_equal(write(ends[1], end - 1, 1), 1);
		errno = 0;
		assert_int_equal(write(ends[1], end, 1), -1);
		assert_int_equal(errno, EFAULT);
	}
	for (unsigned i = 0; i < SLABS; i++) {
		env->ops->slab_close(env, &slab[i]);
	}
	assert_int_equal(close(ends[0]) | close(ends[1]), 0);
}

static void
nobody_can_cut_a_slab_short(void **state)
{
	struct wf_slab slab;
	assert_int_equal(env->ops->slab_open(env, 8192, -1, &slab), WEFT_OK);
	assert_int_not_equal(ftruncate(slab.memfd, 0), 0);
	assert_int_not_equal(ftruncate(slab.memfd, 1 << 20), 0);
	env->ops->slab_close(env, &slab);
}

static void
an_untouched_slab_costs_no_memory(void **state)
{
	struct wf_slab slab;
	struct stat stat;
	assert_int_equal(env->ops->slab_open(env, (size_t)1 << 30, -1, &slab), WEFT_OK);
	assert_int_equal(fstat(slab.memfd, &stat), 0);
	assert_int_equal(stat.st_blocks, 0);
	env->ops->slab_close(env, &slab);
}

static void
a_slab_may_prefer_a_node(void **state)
{
	struct wf_slab slab;
	assert_int_equal(env->ops->slab_open(env, 4 << 20, 0, &slab), WEFT_OK);
	memset(slab.base, 7, slab.bytes);
	env->ops->slab_close(env, &slab);
}

/* Lines in what was logged to `fd`. */
static unsigned
count_lines(int fd)
{
	char text[256];
	unsigned count = 0;
	ssize_t n = 0;
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	while ((n = read(fd, text, sizeof(text))) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			count += text[i] == '\n' ? 1 : 0;
		}
	}
	return count;
}

/* As many as can be bound to a node, and more: a line is logged of each that is not, so it is none,
 * or all where the kernel binds nothing. */
static void
a_slab_that_is_kept_stays_mapped_and_nothing_else_of_it_is_left(void **state)
{
	enum { SLABS = 80 };
	struct wf_env *own;
	struct wf_slab slab = {0};
	int log = memfd_create("log", MFD_CLOEXEC);
	assert_true(log >= 0);
	assert_int_equal(wf_env_system_create(WF_LOG_INFO, log, &own), WEFT_OK);
	for (unsigned i = 0; i < SLABS; i++) {
		assert_int_equal(own->ops->slab_open(own, 4096, 0, &slab), WEFT_OK);
		char *memory = slab.base;
		size_t bytes = slab.bytes;
		int memfd = slab.memfd;
		memcpy(memory, "kept", 5);
		own->ops->slab_keep(own, &slab);
		assert_null(slab.base);
		assert_int_equal(slab.memfd, -1);
		assert_int_equal(fcntl(memfd, F_GETFD), -1);
		assert_string_equal(memory, "kept");
		assert_int_equal(munmap(memory, bytes), 0);
	}
	own->ops->slab_keep(own, &slab); /* kept already: no effect */
	wf_env_system_destroy(own);
	unsigned lines = count_lines(log);
	assert_true(lines == 0 || lines == SLABS);
	assert_int_equal(close(log), 0);
}

static void
impossible_slabs_are_refused(void **state)
{
	struct wf_slab slab = {.memfd = 77};
	assert_int_equal(env->ops->slab_open(env, 0, -1, &slab), WEFT_INVALID);
	assert_int_equal(env->ops->slab_open(env, SIZE_MAX, -1, &slab), WEFT_NOMEM);
	assert_int_equal(env->ops->slab_open(env, (size_t)1 << 60, -1, &slab), WEFT_NOMEM);
	assert_int_equal(env->ops->slab_open(env, 4096, 1 << 20, &slab), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "numa node 1048576"));
	assert_int_equal(slab.memfd, 77);
}

/* ---- waiting ---- */

static void
a_readable_fd_ends_a_wait_without_a_deadline(void **state)
{
	int fd = eventfd(1, EFD_CLOEXEC);
	uint64_t value = 0;
	assert_true(fd >= 0);
	wf_wait(env, fd, WF_NEVER);
	assert_int_equal(read(fd, &value, sizeof(value)), sizeof(value));
	assert_int_equal(close(fd), 0);
}

static void
wait_until(int fd, uint64_t deadline_ns)
{
	/* Early ends are allowed, but a wait that never lasts would spin here for ever. */
	while (wf_now_ns(env) < deadline_ns) {
		wf_wait(env, fd, deadline_ns);
	}
}

static void
a_wait_ends_at_its_deadline(void **state)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	uint64_t value = 0;
	assert_true(fd >= 0);
	uint64_t deadline_ns = wf_now_ns(env) + 2 * WF_NS_PER_MS;
	wait_until(fd, deadline_ns);
	assert_true(wf_now_ns(env) >= deadline_ns);
	assert_true(read(fd, &value, sizeof(value)) < 0);
	deadline_ns = wf_now_ns(env) + 2 * WF_NS_PER_MS;
	wait_until(-1, deadline_ns);
	assert_true(wf_now_ns(env) >= deadline_ns);
	assert_int_equal(close(fd), 0);
}

static void
a_wait_for_events_takes_them(void **state)
{
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	int fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = 7};
	assert_true(epoll_fd >= 0 && fd >= 0);
	assert_int_equal(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event), 0);
	struct epoll_event got = {0};
	assert_int_equal(wf_wait_events(env, epoll_fd, WF_NEVER, &got, 1), 1);
	assert_int_equal(got.data.u64, 7);
	/* Its one edge is taken: now only the deadline ends it. */
	uint64_t deadline_ns = wf_now_ns(env) + WF_NS_PER_MS;
	while (wf_now_ns(env) < deadline_ns) {
		assert_int_equal(wf_wait_events(env, epoll_fd, deadline_ns, &got, 1), 0);
	}
	(void)close(fd);
	(void)close(epoll_fd);
}

static void
a_past_deadline_does_not_wait(void **state)
{
	int fd = eventfd(0, EFD_CLOEXEC);
	assert_true(fd >= 0);
	wf_wait(env, fd, 0); /* would never end otherwise */
	wf_wait(env, -1, 0);
	wf_wait(env, fd, wf_now_ns(env));
	assert_int_equal(close(fd), 0);
}

/* ---- helper ---- */

struct counted_task {
	struct wf_task task; /* first: run casts back */
	_Atomic unsigned *counter;
	unsigned order; /* what the counter was when this one ran */
};

static void
count(struct wf_task *task)
{
	struct counted_task *self = (struct counted_task *)task;
	self->order = atomic_fetch_add_explicit(self->counter, 1, memory_order_relaxed);
}

static void
wait_done(struct wf_task *task)
{
	uint64_t value = 0;
	while (!atomic_load_explicit(&task->done, memory_order_acquire)) { /* helper's release */
		wf_wait(env, task->wake_fd, WF_NEVER);
		(void)read(task->wake_fd, &value, sizeof(value));
	}
}

static void
a_task_runs_and_wakes_its_owner(void **state)
{
	_Atomic unsigned counter = 0;
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct counted_task counted = {.task = {.run = count, .wake_fd = fd}, .counter = &counter};
	assert_true(fd >= 0);
	assert_int_equal(env->ops->submit(env, &counted.task), WEFT_OK);
	wait_done(&counted.task);
	assert_int_equal(atomic_load_explicit(&counter, memory_order_relaxed), 1);
	/* The same task again. */
	assert_int_equal(env->ops->submit(env, &counted.task), WEFT_OK);
	wait_done(&counted.task);
	assert_int_equal(counted.order, 1);
	assert_int_equal(close(fd), 0);
}

static void
tasks_run_in_the_order_they_were_handed_over(void **state)
{
	enum { N = 20 };
	_Atomic unsigned counter = 0;
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct counted_task counted[N];
	for (unsigned i = 0; i < N; i++) {
		counted[i] = (struct counted_task){
			.task = {.run = count, .wake_fd = i == N - 1 ? fd : -1},
			.counter = &counter,
		};
		assert_int_equal(env->ops->submit(env, &counted[i].task), WEFT_OK);
	}
	wait_done(&counted[N - 1].task);
	for (unsigned i = 0; i < N; i++) {
		assert_true(atomic_load_explicit(&counted[i].task.done, memory_order_acquire));
		assert_int_equal(counted[i].order, i);
	}
	assert_int_equal(close(fd), 0);
}

struct where_task {
	struct wf_task task; /* first */
	cpu_set_t cpus;
};

static void
look_where(struct wf_task *task)
{
	struct where_task *self = (struct where_task *)task;
	(void)sched_getaffinity(0, sizeof(self->cpus), &self->cpus);
}

/* A lane that is bound to its core asks; the work is not to be done on that core alone. */
static void
the_helper_runs_where_the_creator_of_the_env_could(void **state)
{
	cpu_set_t before;
	cpu_set_t one;
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct wf_env *other = NULL;
	struct where_task where = {.task = {.run = look_where, .wake_fd = fd}};
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	assert_int_equal(wf_env_system_create(WF_LOG_ERROR, -1, &other), WEFT_OK);
	CPU_ZERO(&one);
	for (unsigned cpu = 0; CPU_COUNT(&one) == 0; cpu++) {
		if (CPU_ISSET(cpu, &before)) {
			CPU_SET(cpu, &one);
		}
	}
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(other->ops->submit(other, &where.task), WEFT_OK);
	wait_done(&where.task);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	assert_true(CPU_EQUAL(&where.cpus, &before));
	wf_env_system_destroy(other);
	assert_int_equal(close(fd), 0);
}

struct gate_task {
	struct wf_task task; /* first */
	int entered;         /* eventfd that the task adds to */
	int gate;            /* eventfd that it reads, so blocks on */
};

static void
pass_gate(struct wf_task *task)
{
	struct gate_task *self = (struct gate_task *)task;
	uint64_t value = 1;
	(void)write(self->entered, &value, sizeof(value));
	(void)read(self->gate, &value, sizeof(value));
}

static void
destroying_an_env_waits_for_the_running_task(void **state)
{
	struct wf_env *other = NULL;
	uint64_t value = 0;
	struct gate_task gated = {
		.task = {.run = pass_gate, .wake_fd = -1},
		.entered = eventfd(0, EFD_CLOEXEC),
		.gate = eventfd(0, EFD_CLOEXEC),
	};
	assert_int_equal(wf_env_system_create(WF_LOG_ERROR, -1, &other), WEFT_OK);
	assert_int_equal(other->ops->submit(other, &gated.task), WEFT_OK);
	assert_int_equal(read(gated.entered, &value, sizeof(value)), sizeof(value));
	assert_false(atomic_load_explicit(&gated.task.done, memory_order_acquire));
	assert_int_equal(write(gated.gate, &value, sizeof(value)), sizeof(value));
	wf_env_system_destroy(other);
	assert_true(atomic_load_explicit(&gated.task.done, memory_order_acquire));
	wf_env_system_destroy(NULL);
	assert_int_equal(close(gated.entered), 0);
	assert_int_equal(close(gated.gate), 0);
}

/* ---- log ---- */

/* What arrives in a pipe when `text` is logged, and whether one read gets all of it. */
static void
logged(enum weft_log_level least, enum weft_log_level level, const char *text, char *out,
       size_t bytes)
{
	struct wf_env *logging = NULL;
	int fds[2];
	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(wf_env_system_create(least, fds[1], &logging), WEFT_OK);
	wf_log(logging, level, "%s", text);
	wf_env_system_destroy(logging);
	ssize_t n = read(fds[0], out, bytes - 1);
	out[n > 0 ? n : 0] = '\0';
	assert_int_equal(close(fds[0]), 0);
	assert_int_equal(close(fds[1]), 0);
}

static void
a_log_line_has_time_level_and_text(void **state)
{
	static const char shape[] = "dddd-dd-dd dd:dd:dd.ddd W lane 1 up\n";
	char line[256];
	logged(WF_LOG_INFO, WF_LOG_WARN, "lane 1 up", line, sizeof(line));
	assert_int_equal(strlen(line), sizeof(shape) - 1);
	for (unsigned i = 0; i < 23; i++) {
		if (shape[i] == 'd') {
			assert_in_range(line[i], '0', '9');
		} else {
			assert_int_equal(line[i], shape[i]);
		}
	}
	assert_string_equal(line + 23, shape + 23);
}

static void
each_level_has_its_letter(void **state)
{
	for (unsigned level = WF_LOG_DEBUG; level <= WF_LOG_ERROR; level++) {
		char line[256];
		logged(WF_LOG_DEBUG, (enum weft_log_level)level, "x", line, sizeof(line));
		assert_int_equal(line[24], "DIWE"[level]);
	}
}

static void
lines_below_the_level_are_not_written(void **state)
{
	char line[256];
	logged(WF_LOG_WARN, WF_LOG_INFO, "quiet", line, sizeof(line));
	assert_string_equal(line, "");
	wf_log(env, WF_LOG_ERROR, "to nowhere");
}

static void
a_logged_quote_cannot_write_lines_of_its_own(void **state)
{
	char line[256];
	logged(WF_LOG_INFO, WF_LOG_INFO, "name a\nb\rc\x1b[2J", line, sizeof(line));
	assert_string_equal(line + 26, "name a b c [2J\n");
}

static void
a_log_line_is_cut_at_its_limit(void **state)
{
	char text[3000];
	char line[3000];
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	logged(WF_LOG_INFO, WF_LOG_INFO, text, line, sizeof(line));
	size_t bytes = strlen(line);
	assert_int_equal(bytes, 26 + 1023 + 1);
	assert_int_equal(line[bytes - 1], '\n');
}

static void
a_log_limit_passes_once_per_period(void **state)
{
	struct wf_log_limit limit = {0};
	assert_true(wf_log_limit_pass(&limit, 0, 100));
	assert_false(wf_log_limit_pass(&limit, 0, 100));
	assert_false(wf_log_limit_pass(&limit, 99, 100));
	assert_true(wf_log_limit_pass(&limit, 100, 100));
	assert_false(wf_log_limit_pass(&limit, 199, 100));
	assert_true(wf_log_limit_pass(&limit, 1000, WF_NEVER));
	assert_false(wf_log_limit_pass(&limit, WF_NEVER - 1, 100));
}

static void
a_log_limit_counts_what_it_leaves_out_until_its_period_is_over(void **state)
{
	struct wf_log_limit limit = {.most = 3};
	for (unsigned second = 0; second < 3; second++) {
		uint64_t now = 1000 + 100 * second;
		for (unsigned i = 0; i < 10; i++) {
			assert_int_equal(wf_log_limit_pass(&limit, now + i, 100), i < 3);
			assert_int_equal(wf_log_limit_unsaid(&limit, now + i), 0);
		}
		assert_int_equal(wf_log_limit_unsaid(&limit, now + 99), 0);
		if (second > 0) { /* told, or added up if nobody asked in between */
			assert_int_equal(wf_log_limit_unsaid(&limit, now + 100),
					 second == 1 ? 14 : 7);
			assert_int_equal(wf_log_limit_unsaid(&limit, now + 100), 0);
		}
	}
}

static void
the_host_has_one_name_for_all(void **state)
{
	uint8_t first[WF_HOST_ID_BYTES];
	uint8_t second[WF_HOST_ID_BYTES];
	static const uint8_t unknown[WF_HOST_ID_BYTES];
	wf_host_id(env, first);
	wf_host_id(env, second);
	assert_memory_equal(first, second, sizeof(first));
	if (access("/proc/sys/kernel/random/boot_id", R_OK) == 0) {
		assert_memory_not_equal(first, unknown, sizeof(first));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_host_has_one_name_for_all),
		cmocka_unit_test(the_clock_never_goes_back),
		cmocka_unit_test(chance_does_not_repeat),
		cmocka_unit_test(memory_is_zeroed_and_aligned_at_every_size),
		cmocka_unit_test(impossible_memory_is_null),
		cmocka_unit_test(an_array_has_room_for_all_items),
		cmocka_unit_test(a_slab_is_whole_pages_that_others_can_map),
		cmocka_unit_test(nothing_is_to_be_had_behind_a_slab),
		cmocka_unit_test(a_slab_above_the_limit_of_file_sizes_is_refused),
		cmocka_unit_test(nobody_can_cut_a_slab_short),
		cmocka_unit_test(an_untouched_slab_costs_no_memory),
		cmocka_unit_test(a_slab_may_prefer_a_node),
		cmocka_unit_test(a_slab_that_is_kept_stays_mapped_and_nothing_else_of_it_is_left),
		cmocka_unit_test(impossible_slabs_are_refused),
		cmocka_unit_test(a_readable_fd_ends_a_wait_without_a_deadline),
		cmocka_unit_test(a_wait_ends_at_its_deadline),
		cmocka_unit_test(a_wait_for_events_takes_them),
		cmocka_unit_test(a_past_deadline_does_not_wait),
		cmocka_unit_test(a_task_runs_and_wakes_its_owner),
		cmocka_unit_test(tasks_run_in_the_order_they_were_handed_over),
		cmocka_unit_test(the_helper_runs_where_the_creator_of_the_env_could),
		cmocka_unit_test(destroying_an_env_waits_for_the_running_task),
		cmocka_unit_test(a_log_line_has_time_level_and_text),
		cmocka_unit_test(each_level_has_its_letter),
		cmocka_unit_test(lines_below_the_level_are_not_written),
		cmocka_unit_test(a_logged_quote_cannot_write_lines_of_its_own),
		cmocka_unit_test(a_log_line_is_cut_at_its_limit),
		cmocka_unit_test(a_log_limit_passes_once_per_period),
		cmocka_unit_test(a_log_limit_counts_what_it_leaves_out_until_its_period_is_over),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
