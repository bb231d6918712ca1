/* SPDX-License-Identifier: Apache-2.0 */
/* What a lane shows of itself: nothing as long as nobody watches, and what is true from then on,
 * under a virtual clock. Thread: the test's. */
#include "tests/unit/pserver/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define TRAINERS 3u
#define LATE 1u
#define STEPS 10u
#define DELAY_NS WF_NS_PER_S
#define SLACK_NS (3 * WF_NS_PER_MS)
#define PAUSE_NS (100 * WF_NS_PER_MS)
#define SHOWN_NS (2 * WF_VIEW_PERIOD_NS)

static struct wf_watch_record
read_record(struct stage *stage, enum wf_watch_kind kind, uint32_t idx)
{
	struct wf_watch_record record = {0};
	CHECK(stage, wf_views_read(stage->views, kind, 0, idx, &record));
	CHECK(stage, record.kind == kind);
	return record;
}

static void
watch(struct stage *stage)
{
	wf_views_want(stage->views, WF_NEVER);
	stage_run(stage, SHOWN_NS);
}

static void
run_steps(struct stage *stage, uint64_t first, uint64_t count)
{
	for (uint64_t k = first; k < first + count; k++) {
		stage_run(stage, PAUSE_NS);
		for (uint32_t t = 0; t < TRAINERS; t++) {
			stage->puppet[t].compute_ns = t == LATE ? PAUSE_NS + DELAY_NS : PAUSE_NS;
			if (t != LATE) {
				puppet_continue(&stage->puppet[t], k);
			}
		}
		stage_run(stage, DELAY_NS);
		puppet_continue(&stage->puppet[LATE], k);
		stage_run(stage, 10 * WF_NS_PER_MS); /* answered */
	}
}

static void
show_nothing(struct stage *stage)
{
	struct wf_watch_record record;
	puppets_begin(stage);
	run_steps(stage, 1, 2);
	CHECK(stage, !wf_views_read(stage->views, WF_WATCH_LANE, 0, 0, &record));
	CHECK(stage, !wf_views_read(stage->views, WF_WATCH_MEMBER, 0, 0, &record));
	CHECK(stage, !stage->lane[0]->turn.times.on);
	CHECK(stage, (stage_dense(stage->lane[0])->features.points & WF_AT_STEP_DONE) == 0);
}

static void
as_long_as_nobody_watches_nothing_is_shown_or_measured(void **state)
{
	const struct stage_opts opts = {.trainers = TRAINERS, .has_views = true};
	(void)state;
	stage_play(&opts, show_nothing, NULL);
}

static bool
is_near(uint64_t sum_ns, uint64_t count, uint64_t expected_ns)
{
	uint64_t mean = count > 0 ? sum_ns / count : 0;
	return count > 0 && mean + SLACK_NS >= expected_ns && mean <= expected_ns + SLACK_NS;
}

static void
show_steps(struct stage *stage)
{
	puppets_begin(stage);
	run_steps(stage, 1, 3); /* nobody looks at these */
	watch(stage);
	run_steps(stage, 4, STEPS);
	stage_run(stage, SHOWN_NS);
	struct wf_watch_record lane = read_record(stage, WF_WATCH_LANE, 0);
	CHECK(stage, lane.value[WF_WLANE_NEWS] == 0); /* they were here before */
	CHECK(stage, lane.value[WF_WLANE_JOB] == WF_WATCH_JOB_RUNNING);
	CHECK(stage, lane.value[WF_WLANE_TRAINERS] == TRAINERS);
	CHECK(stage, lane.value[WF_WLANE_TRAINERS_UP] == TRAINERS);
	CHECK(stage, lane.value[WF_WLANE_MEMBERS] == TRAINERS);
	CHECK(stage, lane.value[WF_WLANE_STEP] == 3 + STEPS);
	CHECK(stage, lane.value[WF_WLANE_STEPS] == 3 + STEPS);
	CHECK(stage, lane.value[WF_WLANE_IS_TIMED] == 1);
	CHECK(stage, lane.value[WF_WLANE_SPLIT_STEPS] == STEPS - 1);
	CHECK(stage, lane.value[WF_WLANE_BUCKET_LAST] >= STEPS - 1);
	CHECK(stage, lane.value[WF_WLANE_STEP_P50_NS] >= DELAY_NS &&
			     lane.value[WF_WLANE_STEP_P50_NS] < 2 * DELAY_NS);
	for (uint32_t t = 0; t < TRAINERS; t++) {
		struct wf_watch_record member = read_record(stage, WF_WATCH_MEMBER, t);
		const uint64_t *value = member.value;
		CHECK(stage, value[WF_MEMBER_STATE] == WF_WATCH_UP);
		CHECK(stage, value[WF_MEMBER_STEP] == 3 + STEPS);
		CHECK(stage, strcmp(member.text[WF_MEMBER_PATH_NAME], "") != 0);
		CHECK(stage, value[WF_MEMBER_ARRIVED] == STEPS - 1);
		CHECK(stage, is_near(value[WF_MEMBER_AHEAD_NS], value[WF_MEMBER_ARRIVED],
				     t == LATE ? 0 : DELAY_NS));
		CHECK(stage, value[WF_MEMBER_LAST] == (t == LATE ? STEPS - 1 : 0));
		CHECK(stage, value[WF_MEMBER_SPLIT] == STEPS - 2);
		CHECK(stage, is_near(value[WF_MEMBER_COMPUTE_NS], value[WF_MEMBER_SPLIT],
				     t == LATE ? PAUSE_NS + DELAY_NS : PAUSE_NS));
	}
}

static void
who_begins_to_watch_a_running_job_sees_where_its_time_goes(void **state)
{
	const struct stage_opts opts = {.trainers = TRAINERS, .has_views = true};
	(void)state;
	stage_play(&opts, show_steps, NULL);
}

static void
show_waits(struct stage *stage)
{
	puppets_begin(stage);
	watch(stage);
	for (uint32_t t = 0; t < TRAINERS; t++) {
		if (t != LATE) {
			puppet_continue(&stage->puppet[t], 1);
		}
	}
	stage_run(stage, 2 * WF_NS_PER_S);
	struct wf_watch_record lane = read_record(stage, WF_WATCH_LANE, 0);
	CHECK(stage, strcmp(lane.text[WF_WLANE_WAIT], "step 1 waits for trainer 1") == 0);
	CHECK(stage, lane.value[WF_WLANE_WAIT_STEP_NS] > WF_NS_PER_S);
	CHECK(stage, lane.value[WF_WLANE_WAIT_START_NS] == 0);
	for (uint32_t t = 0; t < TRAINERS; t++) {
		struct wf_watch_record member = read_record(stage, WF_WATCH_MEMBER, t);
		CHECK(stage, member.value[WF_MEMBER_WAITS] == (t == LATE ? WF_WATCH_WAIT_STEP : 0));
		CHECK(stage, member.value[WF_MEMBER_STEP] == (t == LATE ? 0 : 1));
	}
}

static void
a_wait_is_shown_with_whom_it_is_for(void **state)
{
	const struct stage_opts opts = {.trainers = TRAINERS, .has_views = true};
	(void)state;
	stage_play(&opts, show_waits, NULL);
}

static void
lose_one(struct stage *stage)
{
	watch(stage);
	puppets_begin(stage);
	stage_run(stage, SHOWN_NS);
	puppet_continue(&stage->puppet[0], 1);
	stage_settle(stage);
	wf_transport_disconnect(stage->puppet[LATE].peer.conn, WF_DISCONNECT_NOW);
	stage_run(stage, SHOWN_NS);
	struct wf_watch_record member = read_record(stage, WF_WATCH_MEMBER, LATE);
	CHECK(stage, member.value[WF_MEMBER_STATE] == WF_WATCH_LOST);
	CHECK(stage, member.value[WF_MEMBER_LEFT_NS] > 0);
	CHECK(stage, member.text[WF_MEMBER_NOTE][0] != '\0');
	CHECK(stage, member.text[WF_MEMBER_PATH_NAME][0] == '\0');
	uint64_t news = read_record(stage, WF_WATCH_LANE, 0).value[WF_WLANE_NEWS];
	CHECK(stage, news == 1 + TRAINERS + 1); /* the job began, they came, one is lost */
	struct wf_watch_record last = read_record(stage, WF_WATCH_NEWS, (uint32_t)news);
	CHECK(stage, last.value[WF_NEWS_WHAT] == WF_NEWS_LOST);
	CHECK(stage, last.value[WF_NEWS_TRAINER] == LATE);
	CHECK(stage, last.text[WF_NEWS_WHY][0] != '\0');
	CHECK(stage, read_record(stage, WF_WATCH_NEWS, 1).value[WF_NEWS_WHAT] == WF_NEWS_JOB_BEGAN);
	struct wf_watch_record none;
	CHECK(stage, !wf_views_read(stage->views, WF_WATCH_NEWS, 0, (uint32_t)news + 1, &none));
	puppet_meet(&stage->puppet[LATE]);
	stage_run(stage, SHOWN_NS);
	last = read_record(stage, WF_WATCH_NEWS, (uint32_t)news + 1);
	CHECK(stage, last.value[WF_NEWS_WHAT] == WF_NEWS_BACK);
}

static void
who_comes_and_goes_is_news(void **state)
{
	const struct stage_opts opts = {.trainers = TRAINERS, .has_views = true};
	(void)state;
	stage_play(&opts, lose_one, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_long_as_nobody_watches_nothing_is_shown_or_measured),
		cmocka_unit_test(who_begins_to_watch_a_running_job_sees_where_its_time_goes),
		cmocka_unit_test(a_wait_is_shown_with_whom_it_is_for),
		cmocka_unit_test(who_comes_and_goes_is_news),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
