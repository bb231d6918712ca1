/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of forked: what children of fork see of slabs, and that what they write stays with them. A
 * child reports by its exit code: 0, or the number of the first thing that was wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/env.h"
#include "base/forked.h"

#define SMALL ((size_t)64 << 10)
#define LARGE ((size_t)5 << 20) /* asks for huge pages */

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

static struct wf_slab
open_filled(size_t bytes, char letter)
{
	struct wf_slab slab = {.memfd = -1};
	assert_int_equal(env->ops->slab_open(env, bytes, -1, &slab), WEFT_OK);
	memset(slab.base, letter, bytes);
	return slab;
}

static bool
is_filled(const struct wf_slab *slab, char letter)
{
	const char *at = slab->base;
	return at[0] == letter && memcmp(at, at + 1, slab->bytes - 1) == 0;
}

/* Runs the function in a child. Returns its exit code, or 128 + the signal that ended it. */
static int
in_child(int (*run)(struct wf_slab *slab), struct wf_slab *slab)
{
	int status = 0;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct sigaction plain = {.sa_handler = SIG_DFL}; /* cmocka has a handler */
		(void)sigaction(SIGSEGV, &plain, NULL);
		_exit(run(slab));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int
read_and_overwrite(struct wf_slab *slab)
{
	if (!is_filled(slab, 'p')) {
		return 1;
	}
	memset(slab->base, 'c', slab->bytes);
	return is_filled(slab, 'c') ? 0 : 2;
}

static void
a_child_reads_a_slab_and_what_it_writes_stays_its_own(void **state)
{
	static const size_t bytes[] = {1, SMALL, LARGE};
	for (unsigned i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
		struct wf_slab slab = open_filled(bytes[i], 'p');
		memset(slab.base, 'p', slab.bytes);
		for (unsigned again = 0; again < 2; again++) {
			assert_int_equal(in_child(read_and_overwrite, &slab), 0);
			assert_true(is_filled(&slab, 'p'));
		}
		env->ops->slab_close(env, &slab);
	}
}

static int
overwrite_and_fork(struct wf_slab *slab)
{
	if (wf_forked_depth() != 1) {
		return 1;
	}
	memset(slab->base, 'p', slab->bytes / 2);
	return in_child(read_and_overwrite, slab) != 0 ? 2 : !is_filled(slab, 'p');
}

static void
a_grandchild_reads_what_the_child_wrote(void **state)
{
	struct wf_slab slab = open_filled(SMALL, 'p');
	memset(slab.base, 'x', slab.bytes / 2);
	assert_int_equal(wf_forked_depth(), 0);
	assert_int_equal(in_child(overwrite_and_fork, &slab), 0);
	assert_int_equal(((char *)slab.base)[0], 'x');
	assert_int_equal(wf_forked_depth(), 0);
	env->ops->slab_close(env, &slab);
}

static int
touch_behind(struct wf_slab *slab)
{
	((char *)slab->base)[slab->bytes] = 1;
	return 1;
}

static void
a_child_has_the_guard_page_too(void **state)
{
	struct wf_slab slab = open_filled(SMALL, 'p');
	assert_int_equal(in_child(touch_behind, &slab), 128 + SIGSEGV);
	env->ops->slab_close(env, &slab);
}

/* As libibverbs does with registered memory after ibv_fork_init. */
static void
memory_that_is_kept_out_of_children_is_there_all_the_same(void **state)
{
#if defined(__SANITIZE_THREAD__)
	skip(); /* it maps memory of its own there in the child, before any handler runs */
#endif
	struct wf_slab slab = open_filled(LARGE, 'p');
	assert_int_equal(madvise(slab.base, slab.bytes / 2, MADV_DONTFORK), 0);
	assert_int_equal(in_child(read_and_overwrite, &slab), 128 + SIGSEGV); /* half a hole */
	assert_int_equal(madvise(slab.base, slab.bytes, MADV_DONTFORK), 0);
	assert_int_equal(in_child(read_and_overwrite, &slab), 0);
	assert_true(is_filled(&slab, 'p'));
	env->ops->slab_close(env, &slab);
}

static struct wf_slab *second;

static int
close_both(struct wf_slab *slab)
{
	env->ops->slab_close(env, slab);
	env->ops->slab_keep(env, second);
	struct wf_slab own = {.memfd = -1};
	if (env->ops->slab_open(env, SMALL, -1, &own) != WEFT_OK) {
		return 1;
	}
	memset(own.base, 'p', own.bytes);
	if (in_child(read_and_overwrite, &own) != 0 || !is_filled(&own, 'p')) {
		return 2;
	}
	env->ops->slab_close(env, &own);
	return 0;
}

static void
a_child_closes_slabs_and_opens_its_own(void **state)
{
	struct wf_slab slab = open_filled(SMALL, 'p');
	struct wf_slab other = open_filled(SMALL, 'p');
	second = &other;
	assert_int_equal(in_child(close_both, &slab), 0);
	assert_true(is_filled(&slab, 'p') && is_filled(&other, 'p'));
	env->ops->slab_close(env, &slab);
	assert_int_equal(in_child(read_and_overwrite, &other), 0); /* the list is whole */
	assert_true(is_filled(&other, 'p'));
	env->ops->slab_close(env, &other);
}

static void
memory_kept_beyond_its_slab_is_private_too(void **state)
{
	struct wf_slab slab = open_filled(LARGE, 'x');
	struct wf_slab kept = {.base = slab.base, .bytes = slab.bytes};
	env->ops->slab_keep(env, &slab);
	assert_true(is_filled(&kept, 'x'));
	memset(kept.base, 'p', kept.bytes);
	assert_int_equal(in_child(read_and_overwrite, &kept), 0);
	assert_true(is_filled(&kept, 'p'));
	assert_int_equal(munmap(kept.base, kept.bytes), 0);
}

/* The limit of the address space stands for a system that grants no private mapping. */
static int
write_without_memory(struct wf_slab *slab)
{
	if (!is_filled(slab, 'p')) {
		return 1;
	}
	memset(slab->base, 'c', slab->bytes);
	return 2;
}

static void
a_child_without_memory_cannot_write(void **state)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip(); /* their shadow is larger than any limit */
#endif
	struct wf_slab slab = open_filled(LARGE, 'p');
	struct rlimit before;
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	struct rlimit tight = {.rlim_cur = LARGE, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_AS, &tight), 0);
	int code = in_child(write_without_memory, &slab);
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	assert_int_equal(code, 128 + SIGSEGV);
	assert_true(is_filled(&slab, 'p'));
	env->ops->slab_close(env, &slab);
}

/* ---- descriptors ---- */

static int listed[2], unlisted;

static int
find_descriptors(struct wf_slab *slab)
{
	(void)slab;
	for (unsigned i = 0; i < 2; i++) {
		if (fcntl(listed[i], F_GETFD) != -1 || errno != EBADF) {
			return 1;
		}
	}
	if (fcntl(unlisted, F_GETFD) == -1) {
		return 2;
	}
	/* Its own descriptor of that number is not closed in a child of its own. */
	if (dup2(unlisted, listed[1]) != listed[1]) {
		return 3;
	}
	int status = 0;
	pid_t child = fork();
	if (child == 0) {
		_exit(fcntl(listed[1], F_GETFD) == -1);
	}
	return waitpid(child, &status, 0) == child && status == 0 ? 0 : 4;
}

static void
a_child_has_no_descriptor_that_is_listed(void **state)
{
	struct wf_slab slab = {.memfd = -1};
	listed[0] = dup(2);
	listed[1] = fcntl(2, F_DUPFD_CLOEXEC, 700);
	unlisted = dup(2);
	assert_true(listed[0] >= 0 && listed[1] >= 700 && unlisted >= 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(wf_forked_add_fd(listed[i]), WEFT_OK);
		assert_int_equal(wf_forked_add_fd(listed[i]), WEFT_OK);
	}
	assert_int_equal(wf_forked_add_fd(unlisted), WEFT_OK);
	wf_forked_remove_fd(unlisted);
	wf_forked_remove_fd(unlisted);
	wf_forked_remove_fd(-1);
	assert_int_equal(wf_forked_add_fd(-1), WEFT_OK);
	assert_int_equal(wf_forked_add_fd(WF_FORKED_FDS), WEFT_OK); /* which it cannot list */
	wf_forked_remove_fd(WF_FORKED_FDS);
	assert_int_equal(in_child(find_descriptors, &slab), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(fcntl(listed[i], F_GETFD), FD_CLOEXEC * (int)i); /* open here */
		wf_forked_remove_fd(listed[i]);
		(void)close(listed[i]);
	}
	(void)close(unlisted);
}

/* ---- other threads ---- */

static _Atomic bool done;

static void *
open_and_close(void *arg)
{
	while (!atomic_load_explicit(&done, memory_order_relaxed)) {
		struct wf_slab slab = {.memfd = -1};
		if (env->ops->slab_open(env, 1, -1, &slab) != WEFT_OK) {
			return arg;
		}
		env->ops->slab_close(env, &slab);
	}
	return NULL;
}

static void
a_fork_while_other_threads_open_and_close_slabs(void **state)
{
	pthread_t thread[2];
	void *failed = NULL;
	struct wf_slab slab = open_filled(SMALL, 'p');
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(pthread_create(&thread[i], NULL, open_and_close, &slab), 0);
	}
	for (unsigned i = 0; i < 50; i++) {
		assert_int_equal(in_child(read_and_overwrite, &slab), 0);
	}
	atomic_store_explicit(&done, true, memory_order_relaxed);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(thread[i], &failed), 0);
		assert_null(failed);
	}
	assert_true(is_filled(&slab, 'p'));
	env->ops->slab_close(env, &slab);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_reads_a_slab_and_what_it_writes_stays_its_own),
		cmocka_unit_test(a_grandchild_reads_what_the_child_wrote),
		cmocka_unit_test(a_child_has_the_guard_page_too),
		cmocka_unit_test(memory_that_is_kept_out_of_children_is_there_all_the_same),
		cmocka_unit_test(a_child_closes_slabs_and_opens_its_own),
		cmocka_unit_test(memory_kept_beyond_its_slab_is_private_too),
		cmocka_unit_test(a_child_without_memory_cannot_write),
		cmocka_unit_test(a_child_has_no_descriptor_that_is_listed),
		cmocka_unit_test(a_fork_while_other_threads_open_and_close_slabs),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
