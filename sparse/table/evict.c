/* SPDX-License-Identifier: Apache-2.0 */
/* evict: when a row goes. Thread: the lane's.
 *
 * Whether a row's time is over is a function of the row and of the last step, and lookups and
 * pushes ask it: what they give does not depend on when tend came by. Only what goes at the cap
 * depends on what else this lane has, and so on the number of lanes. */
#include "base/assert.h"
#include "sparse/table/table_internal.h"

/* Rows examined for the worst of them when one has to be evicted. */
#define LOOKED_AT 16u
/* Rows passed over for it, because they are part of the push in work, or free. */
#define PASSED_OVER 4096u
#define PASSED_OVER_NEAR 512u

/* The step that a row was last of use. */
static uint32_t
last_use(const struct wf_row_head *head)
{
	uint32_t born = head->born - 1;
	return head->stamp > born ? head->stamp : born;
}

/* fade^periods between two steps, by squaring. */
static double
fade_between(const struct wf_table *t, uint32_t from, uint32_t to)
{
	uint64_t periods = to / t->opts.evict.fade_steps - from / t->opts.evict.fade_steps;
	double square = t->opts.evict.fade;
	double power = 1.0;

	for (; periods > 0; periods >>= 1) {
		power = (periods & 1) != 0 ? power * square : power;
		square *= square;
	}
	return power;
}

void
wf_table_fade(const struct wf_table *t, struct wf_row_score *score, uint32_t stamp, uint32_t step)
{
	double power = fade_between(t, stamp, step);
	score->show = (float)((double)score->show * power);
	score->click = (float)((double)score->click * power);
}

static double
score_now(const struct wf_table *t, struct wf_row_head *head)
{
	const struct wf_row_score *score = wf_row_score(head);
	const struct wf_evict_opts *opts = &t->opts.evict;
	double show = (double)score->show;
	double click = (double)score->click;
	double fade = fade_between(t, head->stamp, t->step);
	return (opts->show_weight * (show - click) + opts->click_weight * click) * fade;
}

static bool
is_too_old(const struct wf_table *t, const struct wf_row_head *head)
{
	uint64_t age_steps = t->opts.evict.age_steps;
	return age_steps > 0 && t->step - last_use(head) > age_steps;
}

/* A row that was never pushed has no score yet: it is given fade_steps for it. */
static bool
is_too_low(const struct wf_table *t, struct wf_row_head *head)
{
	if (!t->has_score || score_now(t, head) >= t->opts.evict.score_least) {
		return false;
	}
	return head->stamp > 0 || t->step - last_use(head) > t->opts.evict.fade_steps;
}

bool
wf_table_is_expired(const struct wf_table *t, struct wf_row_head *head)
{
	return is_too_old(t, head) || is_too_low(t, head);
}

static void
remove_row(struct wf_table *t, uint32_t row)
{
	struct wf_row_head *head = wf_row_at(&t->rows, row);
	uint64_t hash = wf_index_hash(&t->index, head->key);

	WF_ASSERT(head->born != 0);
	WF_ASSERT(!wf_table_is_fixed(t));
	wf_index_remove(&t->index, hash, row);
	wf_rows_give(&t->rows, row);
}

void
wf_table_expire(struct wf_table *t, uint32_t row)
{
	bool old = is_too_old(t, wf_row_at(&t->rows, row));

	wf_stats_add(&t->stats, old ? WF_TABLE_EVICTED_BY_AGE : WF_TABLE_EVICTED_BY_SCORE, 1);
	remove_row(t, row);
}

void
wf_table_tend(struct wf_table *t, uint32_t rows)
{
	uint32_t used = t->rows.used_count;

	for (uint32_t i = 0; t->can_expire && i < rows && i < used; i++) {
		t->tend_at = t->tend_at < used ? t->tend_at : 0;
		uint32_t row = wf_rows_nth(&t->rows, t->tend_at);
		struct wf_row_head *head = wf_row_at(&t->rows, row);
		if (head->born != 0 && wf_table_is_expired(t, head)) {
			wf_table_expire(t, row);
		}
		t->tend_at++;
	}
	wf_stats_set(&t->stats, WF_TABLE_ROWS_LIVE, t->rows.live_count);
}

/* Whether `a` should go before `b`. */
static bool
is_worse(const struct wf_table *t, struct wf_row_head *a, struct wf_row_head *b)
{
	if (t->has_score) {
		double score_a = score_now(t, a);
		double score_b = score_now(t, b);
		if (score_a < score_b || score_a > score_b) {
			return score_a < score_b;
		}
	}
	return last_use(a) < last_use(b);
}

/* The worse of a row and the worst so far; rows that must stay count for nothing. */
static uint32_t
worse_of(const struct wf_table *t, uint32_t row, uint32_t worst)
{
	struct wf_row_head *head = wf_row_at(&t->rows, row);

	bool in_push =
		wf_table_is_grouped(t, head) || (t->push_step != 0 && head->stamp == t->push_step);
	if (head->born == 0 || in_push) {
		return worst;
	}
	if (worst == WF_ROW_NONE || is_worse(t, head, wf_row_at(&t->rows, worst))) {
		return row;
	}
	return worst;
}

static bool
evict_worst(struct wf_table *t, uint32_t worst)
{
	if (worst == WF_ROW_NONE) {
		return false;
	}
	wf_stats_add(&t->stats, WF_TABLE_EVICTED_AT_CAP, 1);
	remove_row(t, worst);
	return true;
}

bool
wf_table_reclaim(struct wf_table *t)
{
	uint32_t used = t->rows.used_count;
	uint32_t worst = WF_ROW_NONE;

	if (!t->opts.evict.at_cap) {
		return false;
	}
	/* The first few, and on from there while there was none to spare. */
	for (uint32_t i = 0; i < used && i < PASSED_OVER; i++) {
		if (i >= LOOKED_AT && worst != WF_ROW_NONE) {
			break;
		}
		t->reclaim_at = t->reclaim_at + 1 < used ? t->reclaim_at + 1 : 0;
		worst = worse_of(t, wf_rows_nth(&t->rows, t->reclaim_at), worst);
	}
	return evict_worst(t, worst);
}

bool
wf_table_reclaim_near(struct wf_table *t, uint64_t hash)
{
	uint32_t row[PASSED_OVER_NEAR];
	uint32_t worst = WF_ROW_NONE;

	if (!t->opts.evict.at_cap) {
		return false;
	}
	uint32_t count = wf_index_near(&t->index, hash, row, PASSED_OVER_NEAR);
	for (uint32_t i = 0; i < count && (i < LOOKED_AT || worst == WF_ROW_NONE); i++) {
		worst = worse_of(t, row[i], worst);
	}
	return evict_worst(t, worst);
}
