/* SPDX-License-Identifier: Apache-2.0 */
/* evict: see evict.h. Thread: any; pure. */
#include "sparse/table/evict.h"

void
wf_evict_init(struct wf_evict *evict, const struct wf_evict_opts *opts, const struct wf_rows *rows)
{
	*evict = (struct wf_evict){
		.opts = *opts,
		.rows = rows,
		.has_score = opts->score_least > 0.0,
		.can_expire = opts->score_least > 0.0 || opts->age_steps > 0,
	};
}

/* The step that a row was last of use. */
static uint32_t
last_use(const struct wf_row_head *head)
{
	uint32_t born = head->born - 1;
	return head->stamp > born ? head->stamp : born;
}

/* fade^periods between two steps, by squaring. */
static double
fade_between(const struct wf_evict *evict, uint32_t from, uint32_t to)
{
	uint64_t periods = to / evict->opts.fade_steps - from / evict->opts.fade_steps;
	double square = evict->opts.fade;
	double power = 1.0;

	for (; periods > 0; periods >>= 1) {
		power = (periods & 1) != 0 ? power * square : power;
		square *= square;
	}
	return power;
}

void
wf_evict_fade(const struct wf_evict *evict, struct wf_row_score *score, uint32_t stamp,
	      uint32_t step)
{
	double power = fade_between(evict, stamp, step);
	score->show = (float)((double)score->show * power);
	score->click = (float)((double)score->click * power);
}

static double
score_of(const struct wf_evict *evict, struct wf_row_head *head, uint32_t step)
{
	const struct wf_row_score *score = wf_row_score(evict->rows, head);
	double show = (double)score->show;
	double click = (double)score->click;
	double fade = fade_between(evict, head->stamp, step);
	return (evict->opts.show_weight * (show - click) + evict->opts.click_weight * click) * fade;
}

bool
wf_evict_is_too_old(const struct wf_evict *evict, const struct wf_row_head *head, uint32_t step)
{
	uint64_t age_steps = evict->opts.age_steps;
	return age_steps > 0 && step - last_use(head) > age_steps;
}

/* A row that was never pushed has no score yet: it is given fade_steps for it. */
static bool
is_too_low(const struct wf_evict *evict, struct wf_row_head *head, uint32_t step)
{
	if (!evict->has_score || score_of(evict, head, step) >= evict->opts.score_least) {
		return false;
	}
	return head->stamp > 0 || step - last_use(head) > evict->opts.fade_steps;
}

bool
wf_evict_is_expired(const struct wf_evict *evict, struct wf_row_head *head, uint32_t step)
{
	return wf_evict_is_too_old(evict, head, step) || is_too_low(evict, head, step);
}

bool
wf_evict_is_worse(const struct wf_evict *evict, struct wf_row_head *a, struct wf_row_head *b,
		  uint32_t step)
{
	if (evict->has_score) {
		double score_a = score_of(evict, a, step);
		double score_b = score_of(evict, b, step);
		if (score_a < score_b || score_a > score_b) {
			return score_a < score_b;
		}
	}
	return last_use(a) < last_use(b);
}
