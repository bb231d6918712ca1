/* SPDX-License-Identifier: Apache-2.0 */
/* screen: see screen.h. */
#include "tools/watch/screen.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/assert.h"

#define LINE_BYTES 512u
#define TEXT_BYTES 32u
#define NEWS_SHOWN 5u
#define LAG_WIDTH 8u
#define PLAIN ""
#define DIM "\033[2m"
#define BOLD "\033[1m"
#define GOOD "\033[32m"
#define WARN "\033[33m"
#define BAD "\033[31m"

/* A line, cut to the width, in one colour. */
__attribute__((format(printf, 3, 4))) static void
put(const struct wf_screen *screen, const char *colour, const char *format, ...)
{
	char line[LINE_BYTES];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	bool coloured = screen->has_colour && colour[0] != '\0';
	(void)fprintf(screen->out, "%s%.*s%s%s", coloured ? colour : "", (int)screen->columns, line,
		      coloured ? "\033[0m" : "", screen->end);
}

static const char *
scaled(double value, double by, const char *const unit[], unsigned count, char out[TEXT_BYTES])
{
	unsigned i = 0;
	for (; value >= by && i + 1 < count; i++) {
		value /= by;
	}
	(void)snprintf(out, TEXT_BYTES, "%.*f %s",
		       value >= 100 || value == 0 ? 0
		       : value >= 10              ? 1
						  : 2,
		       value, unit[i]);
	return out;
}

static const char *
bytes_text(uint64_t bytes, char out[TEXT_BYTES])
{
	static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	return scaled((double)bytes, 1024, unit, WF_ARRAY_COUNT(unit), out);
}

static const char *
rate_text(double per_s, char out[TEXT_BYTES])
{
	static const char *const unit[] = {"B/s", "kB/s", "MB/s", "GB/s"};
	return scaled(per_s, 1000, unit, WF_ARRAY_COUNT(unit), out);
}

static const char *
count_text(double value, char out[TEXT_BYTES])
{
	static const char *const unit[] = {"", "k", "M", "G"};
	return scaled(value, 1000, unit, WF_ARRAY_COUNT(unit), out);
}

static const char *
ms_text(double ms, char out[TEXT_BYTES])
{
	static const char *const unit[] = {"us", "ms", "s"};
	if (isnan(ms)) {
		(void)snprintf(out, TEXT_BYTES, "-");
		return out;
	}
	return scaled(ms * 1000, 1000, unit, WF_ARRAY_COUNT(unit), out);
}

static const char *
age_text(uint64_t ns, char out[TEXT_BYTES])
{
	uint64_t s = ns / WF_NS_PER_S;
	if (s < 60) {
		(void)snprintf(out, TEXT_BYTES, "%" PRIu64 " s", s);
	} else if (s < 3600) {
		(void)snprintf(out, TEXT_BYTES, "%" PRIu64 " min", s / 60);
	} else {
		(void)snprintf(out, TEXT_BYTES, "%" PRIu64 " h %" PRIu64 " min", s / 3600,
			       s / 60 % 60);
	}
	return out;
}

static void
show_head(const struct wf_screen *screen, const struct wf_summary *summary)
{
	char a[TEXT_BYTES];
	char b[TEXT_BYTES];
	const struct wf_watch_record *pserver = summary->pserver;
	const struct wf_watch_record *first = summary->first;
	if (pserver != NULL) {
		put(screen, BOLD, "weft %s  pserver %" PRIu64 " on %s, port %" PRIu64 ", up %s",
		    pserver->text[WF_PSERVER_VERSION], pserver->value[WF_PSERVER_IDX],
		    pserver->text[WF_PSERVER_HOST], pserver->value[WF_PSERVER_PORT],
		    age_text(pserver->value[WF_PSERVER_AT_NS] -
				     pserver->value[WF_PSERVER_START_AT_NS],
			     a));
	}
	if (first == NULL || summary->job == WF_WATCH_JOB_NONE) {
		put(screen, WARN, "no job: it waits for trainers");
		return;
	}
	put(screen, summary->job == WF_WATCH_JOB_FAILED ? BAD : PLAIN,
	    "job: %s for %s, %" PRIu64 " of %" PRIu64 " trainers here, %" PRIu64 " lost, %" PRIu64
	    " left",
	    wf_summary_job_name(summary->job), age_text(first->value[WF_WLANE_JOB_NS], a),
	    first->value[WF_WLANE_TRAINERS_UP], first->value[WF_WLANE_TRAINERS],
	    first->value[WF_WLANE_TRAINERS_LOST], first->value[WF_WLANE_TRAINERS_GONE]);
	put(screen, PLAIN,
	    "step %" PRIu64 ", pass %" PRIu64 ": %.4g steps/s, a step takes %s, 99 %% within %s",
	    first->value[WF_WLANE_STEP], first->value[WF_WLANE_PASS], summary->steps_per_s,
	    ms_text(summary->steps_timed > 0 ? summary->p50_ms : (double)NAN, a),
	    ms_text(summary->steps_timed > 0 ? summary->p99_ms : (double)NAN, b));
	if (summary->cause[0] != '\0') {
		put(screen, BAD, "%s", summary->cause);
	} else if (summary->wait[0] != '\0') {
		put(screen, WARN, "%s, for %s now", summary->wait, age_text(summary->wait_ns, a));
	}
}

static void
show_totals(const struct wf_screen *screen, const struct wf_summary *summary)
{
	char a[TEXT_BYTES];
	char b[TEXT_BYTES];
	char c[TEXT_BYTES];
	char d[TEXT_BYTES];
	const struct wf_watch_record *pserver = summary->pserver;
	put(screen, PLAIN, "dense: %s in, %s out", rate_text(summary->received_per_s, a),
	    rate_text(summary->sent_per_s, b));
	if (pserver != NULL && pserver->value[WF_PSERVER_SPARSE_LANES] > 0) {
		put(screen, PLAIN, "sparse: %s in, %s out, %s keys/s read, %s keys/s pushed",
		    rate_text(summary->sparse_received_per_s, a),
		    rate_text(summary->sparse_sent_per_s, b), count_text(summary->pulled_per_s, c),
		    count_text(summary->pushed_per_s, d));
	}
	put(screen, PLAIN,
	    "memory: %s parameters and state, %s windows, %s copied aside, %s tables",
	    bytes_text(summary->shard_bytes, a), bytes_text(summary->slot_bytes, b),
	    bytes_text(summary->park_bytes, c), bytes_text(summary->table_bytes, d));
	if (pserver == NULL || pserver->value[WF_PSERVER_HAS_SNAPSHOTS] == 0) {
		return;
	}
	const uint64_t *value = pserver->value;
	if (value[WF_PSERVER_SNAPSHOT_STEP] == 0) {
		put(screen, PLAIN, "snapshots: none yet, %" PRIu64 " failed",
		    value[WF_PSERVER_SNAPSHOT_FAILED_COUNT]);
		return;
	}
	put(screen, PLAIN,
	    "snapshots: the newest is of step %" PRIu64 ", %s ago; %" PRIu64 " written, %" PRIu64
	    " failed",
	    value[WF_PSERVER_SNAPSHOT_STEP],
	    age_text(value[WF_PSERVER_AT_NS] - value[WF_PSERVER_SNAPSHOT_AT_NS], a),
	    value[WF_PSERVER_SNAPSHOT_COUNT], value[WF_PSERVER_SNAPSHOT_FAILED_COUNT]);
}

static const char *
state_colour(uint64_t state)
{
	return state == WF_WATCH_LOST     ? BAD
	       : state == WF_WATCH_ABSENT ? WARN
	       : state == WF_WATCH_GONE   ? DIM
					  : PLAIN;
}

static void
list_waits(uint64_t waits, char *out, size_t bytes)
{
	size_t used = 0;
	out[0] = '\0';
	for (unsigned bit = 0; bit < WF_SUMMARY_WAITS && used < bytes; bit++) {
		if ((waits >> bit & 1) != 0) {
			int wrote = snprintf(
				out + used, bytes - used, "%s%s",
				used > 0 ? "," : "waited for: ", wf_summary_wait_name(bit));
			used += wrote > 0 ? (size_t)wrote : 0;
		}
	}
}

static void
show_member(const struct wf_screen *screen, const struct wf_summary *summary,
	    const struct wf_summary_member *member, uint64_t worst)
{
	const struct wf_watch_record *record = member->record;
	uint64_t state = record->value[WF_MEMBER_STATE];
	char t[4][TEXT_BYTES];
	char where[TEXT_BYTES];
	char waits[64] = "";
	char last[TEXT_BYTES] = "-";
	char bar[LAG_WIDTH + 1] = "";
	memset(bar, '#', worst > 0 ? (size_t)(member->lag * LAG_WIDTH / worst) : 0);
	(void)snprintf(where, sizeof(where), "%.20s/%" PRIu64, record->text[WF_MEMBER_HOST],
		       record->value[WF_MEMBER_PID]);
	if (summary->wait[0] != '\0') {
		list_waits(member->waits, waits, sizeof(waits));
	}
	if (!isnan(member->last_share)) {
		(void)snprintf(last, sizeof(last), "%.0f %%", 100 * member->last_share);
	}
	bool told = !isnan(member->split.compute_ms);
	put(screen, state_colour(state),
	    "%7u  %-20s %-7s %9" PRIu64 " %4" PRIu64 " %-8s %9s %9s %9s %6s  %-6s %s%s%s",
	    member->trainer, where, wf_summary_state_name(state), member->step, member->lag, bar,
	    ms_text(told ? member->split.compute_ms : member->split.own_ms, t[0]),
	    told ? ms_text(member->split.network_ms, t[1]) : "with it",
	    ms_text(member->split.ahead_ms, t[2]), last,
	    record->text[WF_MEMBER_PATH_NAME][0] != '\0' ? record->text[WF_MEMBER_PATH_NAME] : "-",
	    record->text[WF_MEMBER_NOTE], record->text[WF_MEMBER_NOTE][0] != '\0' ? " " : "",
	    waits);
}

static void
show_members(const struct wf_screen *screen, const struct wf_summary *summary, unsigned most)
{
	uint64_t worst = 0;
	unsigned shown = 0;
	for (uint32_t i = 0; i < summary->member_count; i++) {
		worst = summary->member[i].lag > worst ? summary->member[i].lag : worst;
	}
	put(screen, PLAIN, "%s", "");
	put(screen, BOLD, "%7s  %-20s %-7s %9s %4s %-8s %9s %9s %9s %6s  %-6s", "trainer",
	    "host/pid", "state", "step", "lag", "", "compute", "network", "waits", "last", "path");
	for (uint32_t i = 0; i < summary->member_count && shown < most; i++) {
		if (summary->member[i].record != NULL) {
			show_member(screen, summary, &summary->member[i], worst);
			shown++;
		}
	}
	if (shown < summary->member_count) {
		put(screen, DIM, "        and %u more", summary->member_count - shown);
	}
}

static void
show_lanes(const struct wf_screen *screen, const struct wf_summary *summary)
{
	put(screen, PLAIN, "%s", "");
	put(screen, BOLD, "%7s  %-6s %6s %9s %11s %11s %6s %11s", "lane", "kind", "port", "steps/s",
	    "in", "out", "busy", "memory");
	for (uint32_t i = 0; i < summary->lane_count; i++) {
		const struct wf_summary_lane *lane = &summary->lane[i];
		const uint64_t *value = lane->record->value;
		char t[3][TEXT_BYTES];
		char busy[TEXT_BYTES] = "-";
		if (!isnan(lane->idle)) {
			double part = 1 - lane->idle;
			(void)snprintf(busy, sizeof(busy), "%.0f %%", part > 0 ? 100 * part : 0);
		}
		put(screen, PLAIN, "%7" PRIu64 "  %-6s %6" PRIu64 " %9.4g %11s %11s %6s %11s %s",
		    lane->record->lane, value[WF_WLANE_IS_SPARSE] != 0 ? "sparse" : "dense",
		    value[WF_WLANE_PORT], lane->steps_per_s, rate_text(lane->received_per_s, t[0]),
		    rate_text(lane->sent_per_s, t[1]), busy,
		    bytes_text(value[WF_WLANE_SHARD_BYTES] + value[WF_WLANE_SLOT_BYTES] +
				       value[WF_WLANE_PARK_BYTES],
			       t[2]),
		    lane->record->text[WF_WLANE_WAIT]);
	}
}

static void
show_table(const struct wf_screen *screen, const struct wf_watch_record *record)
{
	char t[3][TEXT_BYTES];
	char hot[160] = "";
	size_t used = 0;
	const uint64_t *value = record->value;
	for (uint64_t i = 0; i < value[WF_TAB_HOT_COUNT] && i < 5 && used < sizeof(hot); i++) {
		int wrote = snprintf(hot + used, sizeof(hot) - used, "%s%" PRIu64 ":%s",
				     i > 0 ? " " : "", value[WF_TAB_HOT_KEY + i],
				     count_text((double)value[WF_TAB_HOT_TIMES + i], t[2]));
		used += wrote > 0 ? (size_t)wrote : 0;
	}
	put(screen, PLAIN, "%7" PRIu64 "  %-20s %11s %11s  %s", record->lane,
	    record->text[WF_TAB_NAME], count_text((double)value[WF_TAB_ROWS], t[0]),
	    bytes_text(value[WF_TAB_BYTES], t[1]), hot);
}

static void
show_tables(const struct wf_screen *screen, const struct wf_picture *picture)
{
	bool any = false;
	for (uint32_t i = 0; i < picture->count; i++) {
		if (picture->record[i].kind != WF_WATCH_TABLE) {
			continue;
		}
		if (!any) {
			put(screen, PLAIN, "%s", "");
			put(screen, BOLD, "%7s  %-20s %11s %11s  %s", "lane", "table", "rows",
			    "memory", "hot keys: times");
		}
		any = true;
		show_table(screen, &picture->record[i]);
	}
}

static void
show_news(const struct wf_screen *screen, const struct wf_picture *picture,
	  const struct wf_summary *summary)
{
	uint64_t at_ns = summary->pserver != NULL ? summary->pserver->value[WF_PSERVER_AT_NS] : 0;
	uint64_t last = summary->first != NULL ? summary->first->value[WF_WLANE_NEWS] : 0;
	bool any = false;
	for (uint32_t i = 0; i < picture->count; i++) {
		const struct wf_watch_record *record = &picture->record[i];
		const uint64_t *value = record->value;
		char t[TEXT_BYTES];
		char who[TEXT_BYTES] = "";
		if (record->kind != WF_WATCH_NEWS || record->lane != 0 ||
		    value[WF_NEWS_NUMBER] + NEWS_SHOWN <= last) {
			continue;
		}
		if (!any) {
			put(screen, PLAIN, "%s", "");
		}
		any = true;
		if (value[WF_NEWS_WHAT] > WF_NEWS_JOB_FAILED) {
			(void)snprintf(who, sizeof(who), "trainer %" PRIu64 " ",
				       value[WF_NEWS_TRAINER]);
		}
		put(screen, value[WF_NEWS_WHAT] == WF_NEWS_LOST ? BAD : DIM, "%10s ago: %s%s %s",
		    age_text(at_ns - value[WF_NEWS_AT_NS], t), who,
		    wf_summary_news_name(value[WF_NEWS_WHAT]), record->text[WF_NEWS_WHY]);
	}
}

void
wf_screen_show(const struct wf_screen *screen, const struct wf_picture *picture,
	       const struct wf_summary *summary)
{
	/* Of a small screen, trainers get what the rest leaves. */
	unsigned rest = 10 + summary->lane_count;
	unsigned most = screen->rows == 0         ? UINT32_MAX
			: screen->rows > rest + 4 ? screen->rows - rest
						  : 4;
	bool has_room = screen->rows == 0 || screen->rows >= rest + summary->member_count + 10;
	show_head(screen, summary);
	show_totals(screen, summary);
	if (summary->member_count > 0) {
		show_members(screen, summary, most);
	}
	show_lanes(screen, summary);
	if (has_room) {
		show_tables(screen, picture);
		show_news(screen, picture, summary);
	}
}

void
wf_screen_row(FILE *out, const struct wf_summary *summary, bool is_first)
{
	const struct wf_watch_record *first = summary->first;
	const struct wf_split *split = &summary->split;
	bool told = !isnan(split->compute_ms);
	char t[6][TEXT_BYTES];
	if (is_first) {
		(void)fprintf(out, "%9s %9s %9s %9s %9s %9s %11s %11s %9s  %s\n", "step", "steps/s",
			      "compute", "network", "waits", "apply", "in", "out", "trainers",
			      "waits for");
	}
	(void)fprintf(out,
		      "%9" PRIu64 " %9.4g %9s %9s %9s %9s %11s %11s %5" PRIu64 "/%-3" PRIu64
		      "  %s\n",
		      first != NULL ? first->value[WF_WLANE_STEP] : 0, summary->steps_per_s,
		      ms_text(told ? split->compute_ms : split->own_ms, t[0]),
		      told ? ms_text(split->network_ms, t[1]) : "with it",
		      ms_text(split->ahead_ms, t[2]), ms_text(split->apply_ms, t[3]),
		      rate_text(summary->received_per_s + summary->sparse_received_per_s, t[4]),
		      rate_text(summary->sent_per_s + summary->sparse_sent_per_s, t[5]),
		      first != NULL ? first->value[WF_WLANE_TRAINERS_UP] : 0,
		      first != NULL ? first->value[WF_WLANE_TRAINERS] : 0,
		      summary->cause[0] != '\0' ? summary->cause : summary->wait);
}
