/* SPDX-License-Identifier: Apache-2.0 */
/* A part that goes through the ring is on the disk as it was put in, whatever the lengths of its
 * blocks and the places where they fall; the ring never gives away room that was not written yet,
 * and the rate is kept. */
#include "tests/unit/pserver/outgoing_bench.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/rng.h"

#define AHEAD_NS (WF_NS_PER_S / 10) /* what the rate allows at once */

/* ---- the ring ---- */

/* An oracle of the ring: which of its units are used, by records that are not written yet. */
#define RING_UNITS_MAX 12u
#define RECORDS_MAX 64u

struct oracle {
	unsigned units;
	bool is_used[RING_UNITS_MAX];
	unsigned head; /* the next unit */
	unsigned first, count;
	unsigned length[RECORDS_MAX]; /* of the records in the ring, oldest first, with what is */
	unsigned place[RECORDS_MAX];  /* skipped as one of its own */
};

static bool
is_free(const struct oracle *o, unsigned place, unsigned units)
{
	for (unsigned i = place; i < place + units; i++) {
		if (i >= o->units || o->is_used[i]) {
			return false;
		}
	}
	return true;
}

static void
oracle_use(struct oracle *o, unsigned place, unsigned units)
{
	const unsigned at = (o->first + o->count++) % RECORDS_MAX;

	assert_true(o->count < RECORDS_MAX);
	o->place[at] = place;
	o->length[at] = units;
	memset(&o->is_used[place], true, units);
	o->head = (place + units) % o->units;
}

/* A record of so many units fits behind the last one, or at the beginning of the ring if the rest
 * of the ring is too short and free. */
static bool
oracle_add(struct oracle *o, unsigned units)
{
	const unsigned rest = o->units - o->head;

	if (units <= rest) {
		if (!is_free(o, o->head, units)) {
			return false;
		}
	} else {
		if (!is_free(o, o->head, rest) || !is_free(o, 0, units)) {
			return false;
		}
		oracle_use(o, o->head, rest);
	}
	oracle_use(o, o->head, units);
	return true;
}

/* The oldest one is written. Returns its units. */
static unsigned
oracle_write(struct oracle *o)
{
	const unsigned at = o->first++ % RECORDS_MAX;

	o->count--;
	memset(&o->is_used[o->place[at]], false, o->length[at]);
	return o->length[at];
}

/* A part that goes through a small ring, beside the oracle. At a rate of 10 bytes per second the
 * clock says to the byte how far it is written. */
struct ring_run {
	struct bench b;
	struct oracle oracle;
	uint64_t begin_ns;
	uint64_t written; /* bytes of the ring's records */
	uint64_t *bytes;  /* of each block's payload */
	uint64_t room;
	unsigned refusals;
};

static void
write_oldest(struct ring_run *r)
{
	assert_true(r->oracle.count > 0);
	/* Up to the first byte of the oldest: it is written as a whole. */
	helper.now_ns = r->begin_ns + r->written * AHEAD_NS + 1000;
	r->written += (uint64_t)UNIT * oracle_write(&r->oracle);
	(void)pump(&r->b);
}

static void
write_all(struct ring_run *r)
{
	while (r->oracle.count > 0) {
		write_oldest(r);
	}
}

/* `short_by` bytes less than the record's units have room for. */
static bool
add_units(struct ring_run *r, unsigned units, uint64_t short_by)
{
	const uint64_t bytes = (uint64_t)(units - 1) * UNIT - (units > 1 ? short_by % UNIT : 0);
	const bool fits = oracle_add(&r->oracle, units);

	if (r->b.blocks == r->room) {
		r->room = 2 * r->room + 1000;
		r->bytes = realloc(r->bytes, r->room * sizeof(*r->bytes));
		assert_non_null(r->bytes);
	}
	r->bytes[r->b.blocks] = bytes;
	if (add(&r->b, bytes) != fits) {
		fail_msg("ring of %u units, head at %u: %u more %s fit", r->oracle.units,
			 r->oracle.head, units, fits ? "should" : "should not");
	}
	r->refusals += !fits;
	return fits;
}

static void
open_ring(struct ring_run *r, struct scene *scene, unsigned units)
{
	*r = (struct ring_run){.oracle.units = units};
	open_bench(&r->b, scene, (uint64_t)units * UNIT, 10);
	begin(&r->b);
	r->begin_ns = helper.now_ns;
}

static void
end_ring(struct ring_run *r)
{
	write_all(r);
	helper.now_ns += 100 * WF_NS_PER_S;
	assert_int_equal(finish(&r->b), WF_OUTGOING_DURABLE);
	assert_part(&r->b, r->bytes, 0, r->b.blocks);
	close_bench(&r->b);
	free(r->bytes);
}

/* Three records of any lengths from this place on, and a fourth when the first has been written. */
static void
play_place(struct ring_run *r, unsigned place, unsigned a, unsigned second, unsigned third)
{
	write_all(r);
	while (r->oracle.head != place) {
		assert_true(add_units(r, 1, 0));
		write_all(r);
	}
	assert_true(add_units(r, a, place)); /* it is empty: any that may be there at all fits */
	(void)add_units(r, second, second);
	while (add_units(r, third, 1)) {
		/* Until it is full. */
	}
	write_oldest(r);
	(void)add_units(r, a, 3);
	(void)add_units(r, third, 5);
}

static void
every_block_fits_where_it_can_at_every_place_of_small_rings(void **state)
{
	unsigned refusals = 0;

	for (unsigned units = 2; units <= RING_UNITS_MAX; units++) {
		struct ring_run r;
		open_ring(&r, *state, units);
		const unsigned most = units / 2;
		for (unsigned i = 0; i < units * most * most * most; i++) {
			play_place(&r, i % units, 1 + i / units % most, 1 + i / units / most % most,
				   1 + i / units / most / most);
		}
		refusals += r.refusals;
		end_ring(&r);
	}
	assert_true(refusals > 1000);
}

static void
blocks_come_out_in_order_with_their_bytes_for_random_lengths(void **state)
{
	const char *text = getenv("WEFT_SEED");
	const uint64_t first = text != NULL ? strtoull(text, NULL, 0) : 1;

	for (uint64_t seed = first; seed < first + (text != NULL ? 1 : 40); seed++) {
		struct ring_run r;
		struct wf_rng rng;
		wf_rng_init(&rng, seed, 82);
		const unsigned units = 2 + (unsigned)wf_rng_below(&rng, RING_UNITS_MAX - 1);
		print_message("seed %llu: a ring of %u units\n", (unsigned long long)seed, units);
		open_ring(&r, *state, units);
		for (unsigned i = 0; i < 400; i++) {
			if (r.oracle.count > 0 && wf_rng_below(&rng, 2) == 0) {
				write_oldest(&r);
			} else {
				(void)add_units(&r, 1 + (unsigned)wf_rng_below(&rng, units / 2),
						wf_rng_below(&rng, UNIT));
			}
		}
		end_ring(&r);
	}
}

static void
the_least_ring_has_room_for_two_of_the_longest_blocks(void **state)
{
	static const uint64_t lengths[] = {0, 1, 63, 64, 65, 1000, 70000};

	for (size_t i = 0; i < WF_ARRAY_COUNT(lengths); i++) {
		struct bench b;
		open_bench(&b, *state, wf_outgoing_ring_bytes(lengths[i]), 0);
		begin(&b);
		assert_true(add(&b, lengths[i]) && add(&b, lengths[i]));
		assert_false(add(&b, lengths[i]));
		assert_false(add(&b, 0));
		(void)pump(&b);
		assert_true(add(&b, lengths[i]));
		assert_int_equal(finish(&b), WF_OUTGOING_DURABLE);
		assert_part(&b, NULL, lengths[i], 3);
		close_bench(&b);
	}
}

/* It would never fit where the ring's other half is in use: the caller's mistake, at once. */
static void
a_block_longer_than_half_of_the_ring_is_an_assertion(void **state)
{
	struct bench b;

	open_bench(&b, *state, 10 * UNIT, 0);
	begin(&b);
	for (unsigned units = 5; units <= 6; units++) {
		int status = 0;
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			(void)dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
			(void)signal(SIGABRT, SIG_DFL);
			_exit(add(&b, (uint64_t)(units - 1) * UNIT) ? 0 : 1);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(WIFSIGNALED(status), units == 6);
		assert_int_equal(WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
				 units == 6 ? SIGABRT : 0);
	}
	close_bench(&b);
}

static void
nothing_is_overwritten_and_nothing_else_begun_while_a_task_waits(void **state)
{
	struct bench b;

	open_bench(&b, *state, 4 * UNIT, 0);
	helper.holds = true;
	begin(&b);
	assert_true(add(&b, 10));
	(void)pump(&b);
	assert_non_null(helper.held); /* and it has not run */
	assert_true(add(&b, 20));
	assert_false(add(&b, 30));
	(void)pump(&b);
	assert_int_equal(helper.tasks, 1);
	assert_false(add(&b, 30));
	run_held();
	assert_true(add(&b, 30));
	assert_int_equal(finish(&b), WF_OUTGOING_DURABLE);
	assert_part(&b, (const uint64_t[]){10, 20, 30}, 0, 3);
	close_bench(&b);
}

/* ---- the rate ---- */

static uint64_t written_bytes; /* to files */

static ssize_t
counted_write(int fd, const void *bytes, size_t count)
{
	written_bytes += count;
	return wf_saved_posix()->write(fd, bytes, count);
}

/* A lane that always has more, and pumps when it is told to. */
static void
the_rate_is_neither_exceeded_nor_missed(void **state)
{
	static const uint64_t rates[] = {100000, 1000000, 5000000};
	const uint64_t payload = 50000;
	const uint64_t record = wf_outgoing_ring_bytes(payload) / 2;
	const uint64_t chunk = 256u << 10; /* of a file that is written */

	for (size_t i = 0; i < WF_ARRAY_COUNT(rates); i++) {
		struct wf_saved_calls calls = *sound();
		struct bench b;
		open_bench(&b, *state, 20 * record, rates[i]);
		calls.write = counted_write;
		b.folder->calls = &calls;
		written_bytes = 0;
		begin(&b);
		const uint64_t begin_ns = helper.now_ns;
		const uint64_t end_ns = begin_ns + 10000000 * WF_NS_PER_S / rates[i];
		for (uint64_t next = begin_ns; next < end_ns; helper.now_ns = next) {
			while (add(&b, payload)) {
				/* Until it is full. */
			}
			next = pump(&b);
			assert_true(next > helper.now_ns);
			const double seconds =
				(double)(helper.now_ns - begin_ns + AHEAD_NS) / (double)WF_NS_PER_S;
			const double allowed = seconds * (double)rates[i];
			const double written = (double)written_bytes;
			assert_true(written <= allowed + (double)record + 64);
			assert_true(written + (double)(2 * record + chunk) >= allowed);
		}
		assert_true(written_bytes > 10 * chunk);
		assert_int_equal(finish(&b), WF_OUTGOING_DURABLE);
		const double seconds = (double)(helper.now_ns - begin_ns + AHEAD_NS) / 1e9;
		assert_true((double)written_bytes <= seconds * (double)rates[i] + (double)record);
		assert_part(&b, NULL, payload, b.blocks);
		close_bench(&b);
	}
}

/* Products of rate and time that no 64 bits hold. */
static void
the_highest_rates_are_no_limit(void **state)
{
	static const uint64_t rates[] = {UINT64_MAX, UINT64_MAX / 2, 1ull << 63, 1ull << 60};

	for (size_t i = 0; i < WF_ARRAY_COUNT(rates); i++) {
		struct bench b;
		open_bench(&b, *state, 16 * UNIT, rates[i]);
		begin(&b);
		for (uint64_t seconds = 0; seconds <= 1000; seconds++) {
			assert_true(add(&b, 6 * UNIT));
			(void)pump(&b);
			helper.now_ns += WF_NS_PER_S;
		}
		assert_int_equal(finish(&b), WF_OUTGOING_DURABLE);
		assert_part(&b, NULL, 6 * UNIT, 1001);
		close_bench(&b);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SCENE(every_block_fits_where_it_can_at_every_place_of_small_rings),
		WITH_SCENE(blocks_come_out_in_order_with_their_bytes_for_random_lengths),
		WITH_SCENE(the_least_ring_has_room_for_two_of_the_longest_blocks),
		WITH_SCENE(a_block_longer_than_half_of_the_ring_is_an_assertion),
		WITH_SCENE(nothing_is_overwritten_and_nothing_else_begun_while_a_task_waits),
		WITH_SCENE(the_rate_is_neither_exceeded_nor_missed),
		WITH_SCENE(the_highest_rates_are_no_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
