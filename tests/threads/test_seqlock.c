/* SPDX-License-Identifier: Apache-2.0 */
/* Records under a sequence lock, written by one thread while others read them. Nothing else puts
 * the threads in order. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/seqlock.h"

#define WORDS 64u
#define WRITES 20000u
#define READERS 2u

struct record {
	struct wf_seqlock lock;
	_Atomic uint64_t word[WORDS];
	_Atomic bool done; /* relaxed: it carries no data */
};

struct reader {
	struct record *record;
	pthread_t thread;
	uint64_t reads, torn, backwards;
};

static void *
read_all(void *arg)
{
	struct reader *self = arg;
	uint64_t last = 0;
	while (!atomic_load_explicit(&self->record->done, memory_order_relaxed)) {
		uint64_t word[WORDS];
		if (!wf_seqlock_read(&self->record->lock, self->record->word, word, WORDS)) {
			(void)sched_yield();
			continue;
		}
		self->reads++;
		for (unsigned i = 1; i < WORDS; i++) {
			self->torn += word[i] != word[0] ? 1 : 0;
		}
		self->backwards += word[0] < last ? 1 : 0;
		last = word[0];
	}
	return NULL;
}

static void
test_what_is_read_was_written_in_one_piece(void **state)
{
	static struct record record;
	struct reader reader[READERS] = {0};
	(void)state;
	for (unsigned i = 0; i < READERS; i++) {
		reader[i].record = &record;
		assert_int_equal(pthread_create(&reader[i].thread, NULL, read_all, &reader[i]), 0);
	}
	for (uint64_t n = 1; n <= WRITES; n++) {
		uint64_t word[WORDS];
		for (unsigned i = 0; i < WORDS; i++) {
			word[i] = n;
		}
		wf_seqlock_write(&record.lock, record.word, word, WORDS);
		if (n % 16 == 0) {
			(void)sched_yield();
		}
	}
	uint64_t last[WORDS];
	assert_true(wf_seqlock_read(&record.lock, record.word, last, WORDS));
	assert_int_equal(last[WORDS - 1], WRITES);
	atomic_store_explicit(&record.done, true, memory_order_relaxed);
	for (unsigned i = 0; i < READERS; i++) {
		(void)pthread_join(reader[i].thread, NULL);
		assert_int_equal(reader[i].torn, 0);
		assert_int_equal(reader[i].backwards, 0);
	}
}

static void
test_nothing_is_read_before_the_first_write_or_during_one(void **state)
{
	static struct record record;
	uint64_t word[WORDS] = {7};
	uint64_t out[WORDS];
	(void)state;
	assert_false(wf_seqlock_read(&record.lock, record.word, out, WORDS));
	wf_seqlock_write(&record.lock, record.word, word, WORDS);
	assert_true(wf_seqlock_read(&record.lock, record.word, out, WORDS));
	assert_int_equal(out[0], 7);
	/* As a write leaves it that has not ended. */
	atomic_fetch_add_explicit(&record.lock.version, 1, memory_order_relaxed);
	assert_false(wf_seqlock_read(&record.lock, record.word, out, WORDS));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_read_was_written_in_one_piece),
		cmocka_unit_test(test_nothing_is_read_before_the_first_write_or_during_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
