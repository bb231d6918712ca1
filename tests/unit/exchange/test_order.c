/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of order: every interleaving of few members and few steps, in all modes, against a plain
 * reference that records what was sent and pushed and looks each question up in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "exchange/order.h"
#include "tests/support/sweep.h"

#define MEMBERS_MAX 3u
#define SAID_MAX 12u
#define STEPS_MAX 5u /* that members try to say */
#define PASSES 3u    /* 0 .. */
#define START 4u     /* the step that the job goes on from */
#define NO_PASS (-1)
#define SEEN_MAX (1u << 20)
#define EVENTS_MAX 10u

/* ---- members that are dropped, and others in their places ---- */

struct place {
	struct wf_member member;
};

/* Whether the place is counted as out of data in the step that is under way. */
static void
enter_after(uint32_t announced, bool dropped_first)
{
	struct place place[MEMBERS_MAX] = {0};
	struct wf_order order = {.first = &place[0].member,
				 .stride = sizeof(place[0]),
				 .count = MEMBERS_MAX,
				 .summed_count = 1};
	const struct wf_step_said said = {
		.message = "STEP", .step = START + 1, .samples = 10, .pass = 1};
	enum wf_step_news news;
	wf_order_begin(&order, START, 100);
	if (dropped_first) {
		wf_order_drop(&order, &place[0].member);
	}
	for (uint32_t i = 1; i <= announced; i++) {
		assert_int_equal(wf_order_on_step(&order, &place[i].member, &said, &news), WEFT_OK);
	}
	if (!dropped_first) {
		wf_order_drop(&order, &place[0].member);
	}
	assert_true(announced == 0 || wf_order_taking_part(&order) == MEMBERS_MAX - 1);
	wf_order_enter(&order, &place[0].member, START + 1);
	assert_true(announced == 0 || wf_order_taking_part(&order) == MEMBERS_MAX);
	assert_int_equal(order.out_count, 0);
	assert_int_equal(wf_order_on_step(&order, &place[0].member, &said, &news), WEFT_OK);
	assert_int_equal(news, WF_STEP_NEW);
	assert_int_equal(wf_order_taking_part(&order), MEMBERS_MAX);
	assert_int_equal(order.sum.heard, announced + 1);
	assert_int_equal(order.sum.samples, 10 * (announced + 1));
}

static void
a_place_that_was_empty_takes_part_again(void **state)
{
	(void)state;
	for (uint32_t announced = 0; announced < MEMBERS_MAX; announced++) {
		enter_after(announced, true);
		enter_after(announced, false);
	}
}

/* ---- the reference ---- */

/* A step that a member has said. */
struct line {
	uint64_t step;
	int pass;
	uint16_t summed, came; /* units of it; no padding, for hash_of */
};

/* All that a member has done. */
struct past {
	struct line line[SAID_MAX];
	unsigned lines;
	int out_pass;  /* out of data in that pass; NO_PASS: it has data */
	unsigned outs; /* the same of passes before, a bit each */
	bool left;
};

struct world {
	uint32_t count;
	uint32_t summed, came; /* units of a step */
	bool own_steps;
	struct past past[MEMBERS_MAX];
};

static const struct line *
last_line(const struct past *past)
{
	return past->lines > 0 ? &past->line[past->lines - 1] : NULL;
}

static uint64_t
last_step(const struct past *past)
{
	return past->lines > 0 ? last_line(past)->step : START;
}

static int
last_pass(const struct past *past)
{
	return past->lines > 0 ? last_line(past)->pass : 0;
}

static const struct line *
line_of(const struct past *past, uint64_t step)
{
	for (unsigned i = 0; i < past->lines; i++) {
		if (past->line[i].step == step) {
			return &past->line[i];
		}
	}
	return NULL;
}

static bool
all_is_here(const struct world *world, const struct past *past)
{
	const struct line *line = last_line(past);
	return line == NULL || (line->summed == world->summed && line->came == world->came);
}

/* The pass of a step, by whoever has said it. */
static int
pass_of(const struct world *world, uint64_t step)
{
	for (uint32_t i = 0; i < world->count; i++) {
		const struct line *line = line_of(&world->past[i], step);
		if (line != NULL) {
			return line->pass;
		}
	}
	return NO_PASS;
}

/* The step, which somebody has said, lacks something of this member. */
static bool
lacks(const struct world *world, const struct past *past, uint64_t step)
{
	const struct line *line = line_of(past, step);
	if (line != NULL) {
		return line->summed < world->summed;
	}
	return past->outs >> pass_of(world, step) == 0;
}

/* Synchronous: the step that the lane is in, the first that is not whole. */
static uint64_t
step_of(const struct world *world)
{
	uint64_t step = START + 1;
	for (;; step++) {
		if (pass_of(world, step) == NO_PASS) {
			return step;
		}
		for (uint32_t i = 0; i < world->count; i++) {
			if (lacks(world, &world->past[i], step)) {
				return step;
			}
		}
	}
}

static uint64_t
highest_of(const struct world *world)
{
	uint64_t highest = START;
	for (uint32_t i = 0; i < world->count; i++) {
		uint64_t last = last_step(&world->past[i]);
		highest = last > highest ? last : highest;
	}
	return highest;
}

enum answer { NO, AGAIN, NEW, BACK };

/* As pserver/README.md ("Modes") and wire/README.md (STEP) have it. */
static enum answer
may_say(const struct world *world, const struct past *past, const struct wf_step_said *said)
{
	int pass = (int)said->pass;
	uint64_t next = last_step(past) + 1;
	bool is_over = past->out_pass >= pass; /* this pass, for this member */
	if (said->out ? is_over : said->step < next) {
		return AGAIN;
	}
	if (is_over || pass < last_pass(past) || !all_is_here(world, past)) {
		return NO;
	}
	bool in_a_new_pass = pass > last_pass(past);
	bool is_next = said->step == next;
	bool joins = in_a_new_pass && said->step > next && said->step <= highest_of(world) + 1;
	if (said->out) {
		return is_next ? NEW : NO;
	}
	if (!is_next && !joins) {
		return NO;
	}
	if (!world->own_steps) {
		int begun = pass_of(world, said->step);
		if (said->step != step_of(world) || (begun != NO_PASS && begun != pass)) {
			return NO;
		}
	}
	return joins || past->out_pass != NO_PASS ? BACK : NEW;
}

/* The last step all of which `other` has pushed, where that counts for who is in `pass`, whose
 * first step of it came after `before`; INT64_MAX: it takes no part in it any more. */
static int64_t
done_by(const struct world *world, const struct past *other, int pass, uint64_t before)
{
	if (other->left || other->out_pass >= pass) {
		return INT64_MAX;
	}
	if (last_pass(other) < pass) {
		return (int64_t)before; /* it has still to come */
	}
	return (int64_t)last_step(other) - (all_is_here(world, other) ? 0 : 1);
}

/* "The answer to a trainer's step p waits until each other trainer has pushed all of step
 * p - staleness." For this one, does it? */
static bool
waits_on(const struct world *world, uint32_t of, uint32_t other, int64_t staleness)
{
	const struct past *past = &world->past[of];
	uint64_t before = START;
	for (unsigned i = 0; i < past->lines; i++) {
		bool first = i == 0 || past->line[i - 1].pass != past->line[i].pass;
		before = first ? past->line[i].step - 1 : before;
	}
	int64_t done = done_by(world, &world->past[other], last_pass(past), before);
	return other != of && past->lines > 0 && done < (int64_t)last_step(past) - staleness;
}

static bool
may_answer(const struct world *world, uint32_t of, int64_t staleness)
{
	bool waits = false;
	for (uint32_t i = 0; i < world->count; i++) {
		waits = waits || waits_on(world, of, i, staleness);
	}
	return !waits;
}

/* ---- what is tested, beside it ---- */

/* As a peer has its member. */
struct peer {
	uint64_t before;
	struct wf_member member;
	uint64_t behind[3];
};

struct lane {
	struct peer peer[MEMBERS_MAX];
	struct wf_order order;
	uint32_t arrived; /* pushes of the unit that is summed, if any */
	struct world world;
};

static unsigned states, questions;

/* States that were seen: by the hash of all that is known of them. What happened in another order
 * and comes to the same is one state; how many events led to it can be read off it. */
static uint64_t seen[SEEN_MAX];

static void
copy_lane(const struct lane *from, struct lane *to)
{
	*to = *from;
	to->order.first = &to->peer[0].member;
}

static void
fail_at(const struct lane *lane, const char *what)
{
	for (uint32_t i = 0; i < lane->order.count; i++) {
		const struct past *past = &lane->world.past[i];
		print_message("member %u:", i);
		for (unsigned j = 0; j < past->lines; j++) {
			print_message(" step %" PRIu64 " of pass %d (%u, %u)", past->line[j].step,
				      past->line[j].pass, past->line[j].summed, past->line[j].came);
		}
		print_message("; out of passes %#x, left %d\n", past->outs, past->left);
	}
	fail_msg("%s", what);
}

static void
must(const struct lane *lane, bool holds, const char *what)
{
	if (!holds) {
		fail_at(lane, what);
	}
}

static enum answer
answer_of(enum weft_status st, enum wf_step_news news)
{
	if (st != WEFT_OK) {
		return NO;
	}
	return news == WF_STEP_AGAIN ? AGAIN : news == WF_STEP_NEW ? NEW : BACK;
}

static void
check_one(const struct lane *lane, uint32_t of, const struct wf_step_said *said)
{
	enum wf_step_news news = WF_STEP_AGAIN;
	enum weft_status st = wf_order_check(&lane->order, &lane->peer[of].member, said, &news);
	enum answer expected = may_say(&lane->world, &lane->world.past[of], said);
	questions++;
	if (answer_of(st, news) != expected) {
		print_message("member %u says step %" PRIu64 " of pass %u%s: %d, expected %d\n", of,
			      said->step, said->pass, said->out ? ", out of data" : "",
			      (int)answer_of(st, news), (int)expected);
		fail_at(lane, st != WEFT_OK ? weft_last_error() : "it may be said");
	}
}

static void
check_words(const struct lane *lane, uint32_t of)
{
	for (uint32_t i = 0; i < 2 * PASSES * (STEPS_MAX + 2); i++) {
		const struct wf_step_said said = {
			.message = "STEP",
			.step = START + i / (2 * PASSES),
			.pass = i / 2 % PASSES,
			.out = i % 2 == 1,
		};
		check_one(lane, of, &said);
	}
}

/* What others wait for. */
static void
check_waits(const struct lane *lane, uint32_t of)
{
	const struct world *world = &lane->world;
	const struct wf_member *member = &lane->peer[of].member;
	uint64_t step = step_of(world);
	bool begun = !world->own_steps && pass_of(world, step) != NO_PASS;
	bool waited = begun && lacks(world, &world->past[of], step);
	bool others = false;
	for (uint32_t i = 0; i < world->count; i++) {
		others = others || (i != of && line_of(&world->past[i], step) != NULL);
	}
	must(lane, !begun || wf_order_waits_for(&lane->order, member) == waited,
	     "who is waited for");
	must(lane, wf_order_others_need(&lane->order, member) == (waited && others),
	     "whom others need");
	must(lane, wf_order_is_whole(&lane->order, member) == all_is_here(world, &world->past[of]),
	     "whose step is here");
}

static void
check_leads(const struct lane *lane, uint32_t of)
{
	uint64_t lead = wf_order_lead(&lane->order, &lane->peer[of].member);
	for (uint32_t staleness = 0; staleness <= STEPS_MAX; staleness++) {
		const struct wf_order_terms terms = {.staleness = staleness};
		must(lane,
		     wf_order_may_answer(&terms, lead) == may_answer(&lane->world, of, staleness),
		     "whose answers go");
	}
	must(lane, wf_order_may_answer(&(struct wf_order_terms){.staleness = WF_ORDER_NEVER}, lead),
	     "nobody waits where nothing is bounded");
}

/* All have answers that wait, or did: the second member's for longest. */
static void
check_holds(const struct lane *lane, uint32_t staleness)
{
	const struct world *world = &lane->world;
	struct lane held;
	copy_lane(lane, &held);
	held.order.staleness = staleness;
	uint64_t since = 0;
	for (uint32_t i = 0; i < world->count; i++) {
		uint64_t then = i == 1 ? 20 : 50 + i;
		held.peer[i].member.held_since_ns = then;
		bool oldest = since == 0 || then < since;
		since = oldest && !may_answer(world, i, staleness) ? then : since;
	}
	must(lane, wf_order_holds_since(&held.order) == since, "since when answers wait");
	for (uint32_t i = 0; i < world->count; i++) {
		bool waits = false;
		for (uint32_t j = 0; j < world->count; j++) {
			waits = waits || waits_on(world, j, i, staleness);
		}
		must(lane, wf_order_holds_for(&held.order, &held.peer[i].member) == waits,
		     "for whom answers wait");
	}
	held.peer[0].member.held_since_ns = 0;
	held.order.count = 1;
	must(lane, wf_order_holds_since(&held.order) == 0, "no answer waits");
	must(lane, !wf_order_holds_for(&held.order, &held.peer[1].member), "it waits for nobody");
}

static void
check_left(const struct lane *lane)
{
	const struct world *world = &lane->world;
	uint64_t step = step_of(world);
	uint32_t left = 0;
	if (pass_of(world, step) == NO_PASS) {
		return; /* it is asked of a step that somebody has begun */
	}
	while (left < world->count && (!world->past[left].left || world->own_steps ||
				       !lacks(world, &world->past[left], step))) {
		left++;
	}
	must(lane, wf_order_find_left(&lane->order) == left, "who has left and is waited for");
}

/* The step after its last one is announced with the same effect in both ways. */
static void
check_next(const struct lane *lane, uint32_t of)
{
	struct lane by_name, by_turn;
	copy_lane(lane, &by_name);
	copy_lane(lane, &by_turn);
	struct wf_member *member = &by_name.peer[of].member;
	const struct wf_step_said said = {
		.message = "STEP",
		.step = member->step_next,
		.samples = member->samples,
		.pass = member->pass,
	};
	enum wf_step_news news;
	enum weft_status st = wf_order_on_step(&by_name.order, member, &said, &news);
	must(lane, wf_order_on_next(&by_turn.order, &by_turn.peer[of].member) == st,
	     "whether the next step may begin");
	by_turn.order.first = by_name.order.first;
	must(lane, memcmp(&by_name, &by_turn, sizeof(by_name)) == 0, "the next step is another");
}

static void
check_state(const struct lane *lane)
{
	const struct world *world = &lane->world;
	uint64_t highest = highest_of(world);
	uint64_t step = world->own_steps ? (highest > START ? highest : START + 1) : step_of(world);
	states++;
	must(lane, lane->order.sum.step == step, "the lane's step");
	must(lane, !world->own_steps || lane->order.highest == highest, "the highest step");
	must(lane, lane->order.sum.heard > 0 || lane->order.sum.out == 0, "who is counted as out");
	uint32_t out = 0;
	for (uint32_t i = 0; i < world->count; i++) {
		out += world->past[i].out_pass != NO_PASS ? 1 : 0;
	}
	must(lane, lane->order.out_count == out, "how many have no data");
	for (uint32_t i = 0; i < world->count; i++) {
		check_words(lane, i);
		check_next(lane, i);
		check_waits(lane, i);
		check_leads(lane, i);
	}
	check_left(lane);
	for (uint32_t staleness = 0; staleness < 2; staleness++) {
		check_holds(lane, staleness);
	}
}

/* The payload: a unit is summed when it is here from all who take part; what is said with a step is
 * here with it. */
static void
try_apply(struct lane *lane)
{
	const struct wf_order *order = &lane->order;
	uint32_t members = wf_order_taking_part(order);
	uint32_t here = order->summed_count > 0 ? lane->arrived : order->sum.heard;
	if (!order->own_steps && order->sum.heard > 0 && members > 0 && here == members) {
		lane->arrived = 0;
		wf_order_step_is_applied(&lane->order);
	}
}

static void
say(struct lane *lane, uint32_t of, const struct wf_step_said *said)
{
	struct past *past = &lane->world.past[of];
	enum wf_step_news news;
	assert_int_equal(wf_order_on_step(&lane->order, &lane->peer[of].member, said, &news),
			 WEFT_OK);
	if (said->out) {
		past->out_pass = (int)said->pass;
		past->outs |= 1u << said->pass;
	} else {
		past->out_pass = NO_PASS;
		assert_true(past->lines < SAID_MAX);
		past->line[past->lines++] =
			(struct line){.step = said->step, .pass = (int)said->pass};
	}
	try_apply(lane);
}

static void
push(struct lane *lane, uint32_t of, bool summed)
{
	struct past *past = &lane->world.past[of];
	struct line *line = &past->line[past->lines - 1];
	if (summed) {
		line->summed++;
		lane->arrived++;
		lane->peer[of].member.summed++;
		try_apply(lane);
	} else {
		line->came++;
		lane->peer[of].member.came++;
	}
}

/* FNV-1a */
static uint64_t
hash_of(const struct lane *lane)
{
	struct lane copy = *lane;
	const uint8_t *byte = (const uint8_t *)&copy;
	uint64_t hash = 0xcbf29ce484222325u;
	copy.order.first = NULL;
	for (size_t i = 0; i < sizeof(copy); i++) {
		hash = (hash ^ byte[i]) * 0x100000001b3u;
	}
	return hash | 1;
}

static bool
was_seen(const struct lane *lane)
{
	uint64_t hash = hash_of(lane);
	uint64_t *at = &seen[hash >> 20 & (SEEN_MAX - 1)];
	while (*at != 0 && *at != hash) {
		at = at + 1 < seen + SEEN_MAX ? at + 1 : seen;
	}
	bool was = *at == hash;
	*at = hash;
	return was;
}

static void explore(const struct lane *lane, unsigned left);

static void
explore_words(const struct lane *lane, uint32_t of, unsigned left)
{
	uint64_t next = lane->peer[of].member.step_next;
	for (uint32_t i = 0; i < 2 * PASSES * STEPS_MAX; i++) {
		const struct wf_step_said said = {
			.message = "STEP",
			.step = next + i / (2 * PASSES),
			.pass = i / 2 % PASSES,
			.samples = 1,
			.out = i % 2 == 1,
		};
		enum answer answer = may_say(&lane->world, &lane->world.past[of], &said);
		if ((answer == NEW || answer == BACK) && said.step <= START + STEPS_MAX) {
			struct lane then;
			copy_lane(lane, &then);
			say(&then, of, &said);
			explore(&then, left - 1);
		}
	}
}

static void
explore_pushes(const struct lane *lane, uint32_t of, unsigned left)
{
	const struct world *world = &lane->world;
	const struct line *line = last_line(&world->past[of]);
	struct lane then;
	if (line != NULL && line->summed < world->summed) {
		copy_lane(lane, &then);
		push(&then, of, true);
		explore(&then, left - 1);
	}
	if (line != NULL && line->came < world->came) {
		copy_lane(lane, &then);
		push(&then, of, false);
		explore(&then, left - 1);
	}
}

static void
explore(const struct lane *lane, unsigned left)
{
	if (was_seen(lane)) {
		return;
	}
	check_state(lane);
	assert_true(states < SEEN_MAX / 2);
	for (uint32_t i = 0; left > 0 && i < lane->order.count; i++) {
		if (lane->world.past[i].left) {
			continue;
		}
		explore_words(lane, i, left);
		explore_pushes(lane, i, left);
		if (i == 0) {
			struct lane then;
			copy_lane(lane, &then);
			then.world.past[i].left = true;
			then.peer[i].member.left = true;
			explore(&then, left - 1);
		}
	}
}

struct kind {
	const char *name;
	uint32_t summed, came;
	bool own_steps;
	unsigned two, three; /* events of so many members */
};

static void
explore_kind(const struct kind *kind, uint32_t members, unsigned depth)
{
	struct lane lane = {.world = {.count = members,
				      .summed = kind->summed,
				      .came = kind->came,
				      .own_steps = kind->own_steps}};
	memset(seen, 0, sizeof(seen));
	states = 0;
	questions = 0;
	lane.order = (struct wf_order){
		.first = &lane.peer[0].member,
		.stride = sizeof(lane.peer[0]),
		.count = members,
		.summed_count = kind->summed,
		.came_count = kind->came,
		.own_steps = kind->own_steps,
	};
	for (uint32_t i = 0; i < members; i++) {
		lane.peer[i].member.step_next = 1;
		lane.world.past[i].out_pass = NO_PASS;
	}
	wf_order_begin(&lane.order, START, 0);
	explore(&lane, depth);
	print_message("%s, %u members, %u events: %u states, %u questions\n", kind->name, members,
		      depth, states, questions);
}

static void
every_interleaving_is_as_the_reference_says(void **state)
{
	static const struct kind kind[] = {
		{"synchronous slices", 1, 0, false, 8, 4},
		{"synchronous rows", 0, 0, false, 6, 4},
		{"asynchronous slices", 0, 1, true, 6, 4},
		{"asynchronous rows", 0, 0, true, 5, 3},
		{"slices of both modes", 1, 1, false, 8, 4},
	};
	unsigned begin, end;
	(void)state;
	wf_sweep_cases(sizeof(kind) / sizeof(kind[0]), &begin, &end);
	for (unsigned i = begin; i < end; i++) {
		explore_kind(&kind[i], 1, 5);
		explore_kind(&kind[i], 2, kind[i].two);
		explore_kind(&kind[i], 3, kind[i].three);
	}
}

/* ---- lag ---- */

/* Values that members read, and push to: who made each push that was applied, and how many had been
 * when each member read them. */
struct thing {
	uint32_t by[EVENTS_MAX];
	uint32_t applied;
	uint32_t read_at[MEMBERS_MAX];
};

static uint64_t
lag_of(const struct thing *thing, uint32_t member)
{
	uint64_t lag = 0;
	for (uint32_t i = thing->read_at[member]; i < thing->applied; i++) {
		lag += thing->by[i] != member ? 1 : 0;
	}
	return lag;
}

/* `events`: one of 2 x members after the other; odd ones are pushes. */
static void
play_events(uint64_t events, unsigned count, uint32_t members, double discard_ratio)
{
	struct wf_order order = {.count = members};
	const struct wf_order_terms terms = wf_order_add_terms(&order, discard_ratio, false, 0);
	struct wf_order_view view[MEMBERS_MAX] = {{0}};
	struct thing thing = {.applied = 0};
	uint64_t left = events;
	for (unsigned i = 0; i < count; i++, left /= 2 * members) {
		uint32_t of = (uint32_t)(left / 2 % members);
		if (left % 2 == 0) {
			thing.read_at[of] = thing.applied;
			wf_order_read(&view[of], thing.applied);
			continue;
		}
		uint64_t lag = lag_of(&thing, of);
		/* "A push whose lag is at least floor(ratio x trainers), if that is above 0." */
		uint64_t most = (uint64_t)(discard_ratio * members);
		bool discarded = most > 0 && lag >= most;
		assert_int_equal(wf_order_judge(&view[of], &terms, thing.applied), lag);
		assert_int_equal(view[of].discarded, discarded);
		if (!discarded) {
			thing.by[thing.applied++] = of;
			view[of].own++;
		}
	}
}

static void
every_sequence_of_reads_and_pushes_has_its_lags_and_verdicts(void **state)
{
	static const unsigned count[] = {10, 7, 6}; /* events of 1, 2 and 3 members */
	(void)state;
	for (uint32_t members = 1; members <= MEMBERS_MAX; members++) {
		uint64_t all = 1;
		for (unsigned i = 0; i < count[members - 1]; i++) {
			all *= 2 * members;
		}
		for (uint64_t events = 0; events < all; events++) {
			for (unsigned halves = 0; halves <= 4; halves++) {
				play_events(events, count[members - 1], members, halves / 2.0);
			}
		}
	}
}

static void
the_terms_of_modes(void **state)
{
	struct wf_order order = {.count = 3, .staleness = WF_ORDER_NEVER};
	const struct wf_order_terms other = wf_order_add_terms(&order, 0.3, false, 7);
	(void)state;
	assert_true(order.staleness == WF_ORDER_NEVER);
	const struct wf_order_terms bounded = wf_order_add_terms(&order, 1.5, true, 7);
	assert_int_equal(order.staleness, 7);
	(void)wf_order_add_terms(&order, 1.5, true, 9);
	assert_int_equal(order.staleness, 7);
	(void)wf_order_add_terms(&order, 1.5, true, 2);
	assert_int_equal(order.staleness, 2);
	assert_true(bounded.discard_lag == 4 && bounded.staleness == 7);
	assert_true(other.discard_lag == WF_ORDER_NEVER && other.staleness == WF_ORDER_NEVER);
}

static void
another_epoch_is_not_the_jobs(void **state)
{
	struct wf_member member = {.step_next = 1};
	const struct wf_order order = {
		.first = &member, .stride = sizeof(member), .count = 1, .sum = {.step = 1}};
	struct wf_step_said said = {.message = "STEP", .step = 1, .samples = 1};
	enum wf_step_news news;
	(void)state;
	assert_int_equal(wf_order_check(&order, &member, &said, &news), WEFT_OK);
	said.epoch = 1;
	assert_int_equal(wf_order_check(&order, &member, &said, &news), WEFT_PROTOCOL);
	assert_string_equal(weft_last_error(), "STEP 1: epoch 1, the job is in epoch 0");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_place_that_was_empty_takes_part_again),
		cmocka_unit_test(every_interleaving_is_as_the_reference_says),
		cmocka_unit_test(every_sequence_of_reads_and_pushes_has_its_lags_and_verdicts),
		cmocka_unit_test(the_terms_of_modes),
		cmocka_unit_test(another_epoch_is_not_the_jobs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
