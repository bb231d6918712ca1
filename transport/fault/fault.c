/* SPDX-License-Identifier: Apache-2.0 */
/* fault: the transport that wraps another: its name, opening, poll and sleep.
 *
 * A poll delivers held events that are due or, if there are none, polls the inner transport: so
 * what the events of either point to is valid until the next poll. Thread: the transport's owner.
 */
#include "transport/fault/fault.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "transport/fault/fault_internal.h"

#define PREFIX "fault"

/* The longest sleep. A poll that returns nothing may have consumed an event that is held back or
 * not shown: the descriptor does not wake for that again, so the caller polls by the clock. */
#define NAP_NS (5 * WF_NS_PER_MS)

static void
log_counts(const struct wf_fault *f)
{
	const uint64_t *injected = f->counts.injected;
	wf_log(f->base.env, WF_LOG_DEBUG,
	       "transport fault: injected refuse %llu delay %llu cut %llu split %llu short %llu "
	       "stall %llu as %.300s",
	       (unsigned long long)injected[WF_FAULT_REFUSE],
	       (unsigned long long)injected[WF_FAULT_DELAY],
	       (unsigned long long)injected[WF_FAULT_CUT],
	       (unsigned long long)injected[WF_FAULT_SPLIT],
	       (unsigned long long)injected[WF_FAULT_SHORT],
	       (unsigned long long)injected[WF_FAULT_STALL], f->name);
}

static void
fault_close(struct wf_transport *transport)
{
	struct wf_fault *f = wf_fault_of(transport);
	if (f->inner != NULL) {
		log_counts(f);
	}
	wf_transport_close(f->inner);
	while (f->conns != NULL) {
		wf_fault_conn_destroy(f->conns);
	}
	wf_fault_hold_fini(f);
	wf_free(transport->env, f, sizeof(*f));
}

static void
fault_query(struct wf_transport *transport, struct wf_transport_info *out)
{
	struct wf_fault *f = wf_fault_of(transport);
	wf_transport_query(f->inner, out);
	out->name = f->name;
	out->posts_again = f->posts_again;
	out->conns_down += f->conns_refused;
}

static enum weft_status
fault_region_add(struct wf_transport *transport, const struct wf_region *region, uint32_t *out)
{
	struct wf_fault *f = wf_fault_of(transport);
	return wf_transport_region_add(f->inner, region, out);
}

static void
fault_region_remove(struct wf_transport *transport, uint32_t region)
{
	struct wf_fault *f = wf_fault_of(transport);
	wf_transport_region_remove(f->inner, region);
}

static enum weft_status
fault_listen(struct wf_transport *transport, const struct wf_host *at, uint16_t *port)
{
	struct wf_fault *f = wf_fault_of(transport);
	return wf_transport_listen(f->inner, at, port);
}

/* --- the turn --- */

static void
run_rules(struct wf_fault *f)
{
	const struct wf_fault_rule *rule = NULL;
	while ((rule = wf_fault_next_rule(f)) != NULL) {
		if (rule->kind == WF_FAULT_STALL) {
			wf_fault_stall(f, rule->lasts_ns);
			continue;
		}
		WF_ASSERT(rule->kind == WF_FAULT_CUT);
		for (struct wf_fault_conn *c = f->conns; c != NULL; c = c->next) {
			wf_fault_conn_cut(c);
		}
	}
}

static void
free_gone(struct wf_fault *f)
{
	if (!f->gone_waiting) {
		return;
	}
	f->gone_waiting = false;
	struct wf_fault_conn *next = NULL;
	for (struct wf_fault_conn *c = f->conns; c != NULL; c = next) {
		next = c->next;
		if (c->gone) {
			wf_fault_conn_destroy(c);
		}
	}
}

static void
hand_out_held(struct wf_fault *f, struct wf_events *events)
{
	struct wf_event event;
	while (!wf_events_full(events) && wf_fault_hold_pop(f, &event)) {
		wf_fault_conn_handed(wf_fault_conn_of(event.conn), &event);
		events->at[events->count++] = event;
	}
}

/* How many events to request, of at most `most`. */
static unsigned
draw_room(struct wf_fault *f, unsigned most)
{
	bool splits = most > 1 && wf_fault_strikes(f, WF_FAULT_SPLIT, WF_FAULT_AT_POLL);
	return splits ? (unsigned)wf_fault_draw_between(f, 1, most - 1) : most;
}

static enum weft_status
poll_within(struct wf_fault *f, struct wf_events *events)
{
	wf_fault_see(f, WF_FAULT_AT_POLL);
	const struct wf_fault_rule *rule = wf_fault_stall_rule(f);
	if (rule != NULL) {
		wf_fault_stall(f, rule->lasts_ns);
		return WEFT_OK;
	}
	unsigned got = 0, most = wf_fault_hold_room(f);
	most = events->max < most ? events->max : most;
	unsigned room = draw_room(f, most);
	enum weft_status st = wf_transport_poll(f->inner, events->at, room, &got);
	/* The inner look may have found something for another path. */
	f->base.told |= f->inner->told;
	f->inner->told = false;
	if (st != WEFT_OK) {
		return st;
	}
	if (got == room && room < most) {
		wf_fault_count(f, WF_FAULT_SPLIT);
	}
	for (unsigned i = 0; i < got; i++) {
		struct wf_event event = events->at[i];
		if (wf_fault_conn_event(f, &event)) {
			wf_fault_conn_handed(wf_fault_conn_of(event.conn), &event);
			events->at[events->count++] = event;
		}
	}
	/* Drawn for polls that bring something, so that spinning does not stall for ever. */
	if (got > 0 && wf_fault_strikes(f, WF_FAULT_STALL, WF_FAULT_AT_POLL)) {
		wf_fault_stall(f, f->spec.lasts_ns[WF_FAULT_STALL]);
	}
	return WEFT_OK;
}

static enum weft_status
fault_poll(struct wf_transport *transport, struct wf_event *at, unsigned max, unsigned *event_count)
{
	struct wf_fault *f = wf_fault_of(transport);
	struct wf_events events = {.at = at, .max = max};
	f->now_ns = wf_now_ns(transport->env);
	wf_fault_hold_recycle(f);
	free_gone(f);
	run_rules(f);
	*event_count = 0;
	if (f->now_ns < f->stall_until_ns) {
		return WEFT_OK;
	}
	hand_out_held(f, &events);
	enum weft_status st = WEFT_OK;
	if (events.count == 0) {
		st = poll_within(f, &events);
	}
	*event_count = events.count;
	return st;
}

static int
fault_wait_fd(struct wf_transport *transport)
{
	struct wf_fault *f = wf_fault_of(transport);
	return wf_transport_wait_fd(f->inner);
}

static bool
fault_arm(struct wf_transport *transport, uint64_t *deadline_ns)
{
	struct wf_fault *f = wf_fault_of(transport);
	uint64_t now_ns = wf_now_ns(transport->env);
	if (now_ns < f->stall_until_ns) {
		*deadline_ns = f->stall_until_ns;
		return false;
	}
	const uint64_t dues[] = {
		now_ns + NAP_NS,
		wf_fault_next_rule_ns(f),
		f->hold.first == NULL ? WF_NEVER : f->hold.first->due_ns,
	};
	(void)wf_transport_arm(f->inner, deadline_ns);
	for (unsigned i = 0; i < WF_ARRAY_COUNT(dues); i++) {
		*deadline_ns = dues[i] < *deadline_ns ? dues[i] : *deadline_ns;
	}
	return false;
}

static void
fault_wake(struct wf_transport *transport)
{
	struct wf_fault *f = wf_fault_of(transport);
	wf_transport_kick(f->inner);
}

static const struct wf_transport_ops fault_ops = {
	.name = PREFIX,
	.close = fault_close,
	.query = fault_query,
	.region_add = fault_region_add,
	.region_remove = fault_region_remove,
	.grant = wf_fault_grant,
	.release = wf_fault_release,
	.listen = fault_listen,
	.answer = wf_fault_answer,
	.connect = wf_fault_connect,
	.disconnect = wf_fault_disconnect,
	.path = wf_fault_path,
	.post = wf_fault_post,
	.poll = fault_poll,
	.wait_fd = fault_wait_fd,
	.arm = fault_arm,
	.wait = wf_wait_on_fd,
	.wake = fault_wake,
};

/* --- opening --- */

bool
wf_fault_is_name(const char *name)
{
	const size_t bytes = strlen(PREFIX);
	return strncmp(name, PREFIX, bytes) == 0 &&
	       (name[bytes] == '(' || name[bytes] == '+' || name[bytes] == '\0');
}

enum weft_status
wf_fault_parse_name(const char *name, struct wf_fault_spec *out, const char **rest)
{
	const char *at = name + strlen(PREFIX);
	const char *spec = WF_FAULT_SPEC_DEFAULT;
	size_t spec_bytes = strlen(spec);
	if (*at == '(') {
		const char *end = strchr(at, ')');
		if (end == NULL) {
			return wf_fail(WEFT_INVALID,
				       "transport \"%.200s\": a \")\" is missing; write "
				       "fault(SPEC)+NAME",
				       name);
		}
		spec = at + 1;
		spec_bytes = (size_t)(end - spec);
		at = end + 1;
	}
	if (at[0] != '+' || at[1] == '\0') {
		return wf_fail(WEFT_INVALID,
			       "transport \"%.200s\": fault wraps another transport; write "
			       "fault(SPEC)+NAME or fault+NAME, fault+tcp, say",
			       name);
	}
	if (strlen(name) >= WF_FAULT_NAME_BYTES) {
		return wf_fail(WEFT_INVALID, "transport \"%.100s...\": %zu bytes; at most %u", name,
			       strlen(name), WF_FAULT_NAME_BYTES - 1);
	}
	*rest = at + 1;
	return wf_fault_spec_parse(spec, spec_bytes, out);
}

/* The name behind all leading "fault(SPEC)+"; NULL if one of them is malformed. */
static const char *
skip_wrappers(const char *name)
{
	while (name != NULL && wf_fault_is_name(name)) {
		const char *at = name + strlen(PREFIX);
		const char *end = *at == '(' ? strchr(at, ')') : at - 1;
		name = end != NULL && end[1] == '+' ? end + 2 : NULL;
	}
	return name;
}

bool
wf_fault_around_paths(const char *paths, char name[WF_FAULT_NAME_BYTES], const char **rest)
{
	const char *behind = skip_wrappers(paths);
	if (behind == paths || (behind != NULL && strchr(behind, ',') != NULL)) {
		return false;
	}
	*rest = behind == NULL ? "" : behind;
	size_t front = behind == NULL ? strlen(paths) : (size_t)(behind - paths);
	(void)snprintf(name, WF_FAULT_NAME_BYTES, "%.*s%s", (int)front, paths,
		       behind == NULL || *behind == '\0' ? "" : "paths");
	return true;
}

enum weft_status
wf_fault_wrap(const char *name, const struct wf_fault_spec *spec,
	      const struct wf_transport_opts *opts, struct wf_transport *inner,
	      struct wf_transport **out)
{
	struct wf_fault *f = wf_zalloc(opts->env, sizeof(*f));
	if (f == NULL) {
		return wf_fail(WEFT_NOMEM, "transport fault: %zu bytes", sizeof(*f));
	}
	f->base = (struct wf_transport){.ops = &fault_ops, .env = opts->env};
	f->opts = *opts;
	wf_places_init(&f->places, opts->conn_max, opts->newcomer_max);
	f->spec = *spec;
	(void)snprintf(f->name, sizeof(f->name), "%s", name);
	wf_rng_init(&f->rng, spec->seed, 0);
	f->open_ns = wf_now_ns(opts->env);
	enum weft_status st = wf_fault_hold_init(f);
	if (st != WEFT_OK) {
		fault_close(&f->base);
		return st;
	}
	f->inner = inner;
	*out = &f->base;
	return WEFT_OK;
}

bool
wf_fault_query(const struct wf_transport *transport, struct wf_fault_counts *out)
{
	if (transport->ops != &fault_ops) {
		return false;
	}
	*out = ((const struct wf_fault *)transport)->counts;
	return true;
}
