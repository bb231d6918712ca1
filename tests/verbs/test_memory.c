/* SPDX-License-Identifier: Apache-2.0 */
/* Registering takes as long as it takes, on the helper thread: nobody who calls waits for it, who
 * needs it does. The env of these tests holds back what is handed to that thread. Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "rig.h"
#include "transport/verbs/verbs_internal.h"

#define HELD_MAX 32u
#define MORE_BYTES (4u << 20) /* more than is registered at once */
#define MARK 7u

/* An env like `real`, but for the tasks. */
struct held {
	struct wf_env env; /* first */
	struct wf_env *real;
	bool holding;
	struct wf_task *task[HELD_MAX];
	unsigned count;
};

static struct wf_env *
real_of(struct wf_env *env)
{
	return ((struct held *)env)->real;
}

static uint64_t
held_now_ns(struct wf_env *env)
{
	return wf_now_ns(real_of(env));
}

static uint64_t
held_random(struct wf_env *env)
{
	return wf_random(real_of(env));
}

static void *
held_alloc(struct wf_env *env, size_t bytes, size_t align)
{
	return real_of(env)->ops->alloc(real_of(env), bytes, align);
}

static void
held_free(struct wf_env *env, void *memory, size_t bytes)
{
	wf_free(real_of(env), memory, bytes);
}

static enum weft_status
held_slab_open(struct wf_env *env, size_t bytes, int numa_node, struct wf_slab *out)
{
	return real_of(env)->ops->slab_open(real_of(env), bytes, numa_node, out);
}

static void
held_slab_close(struct wf_env *env, struct wf_slab *slab)
{
	real_of(env)->ops->slab_close(real_of(env), slab);
}

static void
held_wait(struct wf_env *env, int fd, uint64_t deadline_ns)
{
	wf_wait(real_of(env), fd, deadline_ns);
}

static enum weft_status
held_submit(struct wf_env *env, struct wf_task *task)
{
	struct held *h = (struct held *)env;
	if (!h->holding) {
		return h->real->ops->submit(h->real, task);
	}
	if (h->count == HELD_MAX) {
		return wf_fail(WEFT_NOMEM, "more than %u tasks", HELD_MAX);
	}
	task->done = false;
	h->task[h->count++] = task;
	return WEFT_OK;
}

static void
held_host_id(struct wf_env *env, uint8_t out[WF_HOST_ID_BYTES])
{
	wf_host_id(real_of(env), out);
}

static void
held_log(struct wf_env *env, enum weft_log_level level, const char *line)
{
	real_of(env)->ops->log(real_of(env), level, line);
}

static const struct wf_env_ops held_ops = {
	.now_ns = held_now_ns,
	.random = held_random,
	.alloc = held_alloc,
	.free = held_free,
	.slab_open = held_slab_open,
	.slab_close = held_slab_close,
	.wait = held_wait,
	.submit = held_submit,
	.host_id = held_host_id,
	.log = held_log,
};

/* From here on the helper thread has what was held back, and what comes. */
static bool
let_go(struct held *h)
{
	h->holding = false;
	for (unsigned i = 0; i < h->count; i++) {
		CHECK(h->real->ops->submit(h->real, h->task[i]) == WEFT_OK);
	}
	h->count = 0;
	return true;
}

/* The body that runs in the held env. */
static bool (*held_body)(struct conf *t, struct held *h);

static bool
in_held_env(struct conf *t)
{
	struct held held = {.env = {.ops = &held_ops}, .real = t->env};
	t->env = &held.env;
	bool passed = held_body(t, &held);
	passed = let_go(&held) && passed;
	while (t->node_count > 0) {
		conf_node_close(t, &t->node[--t->node_count]);
	}
	t->env = held.real;
	return passed;
}

static bool
rig_run_held(bool (*body)(struct conf *t, struct held *h))
{
	held_body = body;
	return rig_run(in_held_env);
}

/* One more region of the node's. */
static bool
add_region(struct conf *t, struct node *n, struct wf_slab *slab, uint32_t *region)
{
	CHECK(t->env->ops->slab_open(t->env, MORE_BYTES, -1, slab) == WEFT_OK);
	const struct wf_region more = {.base = slab->base, .bytes = slab->bytes, .memfd = -1};
	CHECK(wf_transport_region_add(n->transport, &more, region) == WEFT_OK);
	return true;
}

static bool
pair_up(struct conf *t, const char *settings, const char *host, struct pair *p)
{
	struct node *server = rig_node(t, settings, host, NULL);
	struct node *client = rig_node(t, settings, NULL, NULL);
	CHECK(server != NULL && client != NULL);
	return rig_join(t, server, client, p);
}

static bool
connect_waits_body(struct conf *t, struct held *h)
{
	struct pair p;
	p.server = rig_node(t, "", "10.9.0.1", NULL);
	p.client = rig_node(t, "", NULL, NULL);
	CHECK(p.server != NULL && p.client != NULL);
	h->holding = true;
	CHECK(wf_transport_connect(p.client->transport, &p.server->at, NULL, 0, NULL, &p.cc) ==
	      WEFT_OK);
	for (unsigned i = 0; i < 20000 && h->count == 0; i++) {
		conf_pump(t);
	}
	CHECK(h->count == 1); /* the region of the one that connects */
	conf_settle(t);
	CHECK(p.client->seen_count == 0 && p.server->seen_count == 0);
	CHECK(let_go(h));
	const struct seen *up = conf_await(t, p.server, NULL, WF_EVENT_UP);
	CHECK(up != NULL);
	CHECK(wf_transport_answer(up->conn, true, NULL, 0) == WEFT_OK);
	return conf_await(t, p.client, p.cc, WF_EVENT_UP) != NULL;
}

/* The accepting end registers for longer than the peer would wait: it is shown nevertheless, and
 * what needs the region waits. */
static bool
accept_waits_body(struct conf *t, struct held *h)
{
	const struct wf_transport_opts hasty = {.connect_timeout_ns = 500 * WF_NS_PER_MS};
	struct wf_grant_key key;
	struct pair p;
	p.server = rig_node(t, "", "10.9.0.1", &hasty);
	p.client = rig_node(t, "", NULL, NULL);
	CHECK(p.server != NULL && p.client != NULL);
	CHECK(wf_transport_connect(p.client->transport, &p.server->at, NULL, 0, NULL, &p.cc) ==
	      WEFT_OK);
	for (unsigned i = 0;
	     i < 100000 && wf_verbs_conn_of(p.cc)->attempt.stage < WF_VERBS_REQUESTING; i++) {
		(void)conf_poll(t, p.client);
		conf_rest(t);
	}
	CHECK(wf_verbs_conn_is_at(wf_verbs_conn_of(p.cc), WF_VERBS_REQUESTING));
	h->holding = true;
	const struct seen *up = conf_await(t, p.server, NULL, WF_EVENT_UP);
	CHECK(up != NULL && h->count == 1);
	p.sc = up->conn;
	CHECK(wf_transport_answer(p.sc, true, NULL, 0) == WEFT_OK);
	CHECK(conf_await(t, p.client, p.cc, WF_EVENT_UP) != NULL);
	CHECK(conf_grant_place(p.client, p.cc, 0, MORE_BYTES, &key));
	conf_fill(p.server->memory, MORE_BYTES, MARK);
	struct wf_op put = conf_put_op(p.server, &key, 0, MORE_BYTES, 0);
	CHECK(conf_post_all(t, p.sc, &put));
	conf_settle(t);
	CHECK(conf_count(p.client, p.cc, WF_EVENT_PUT) == 0);
	CHECK(let_go(h));
	CHECK(conf_await(t, p.client, p.cc, WF_EVENT_PUT) != NULL);
	return conf_is_filled(p.client->memory, MORE_BYTES, MARK);
}

static bool
put_waits_body(struct conf *t, struct held *h)
{
	struct pair p;
	struct wf_slab slab;
	struct wf_grant_key key;
	uint32_t region = 0;
	CHECK(pair_up(t, "", "10.9.0.1", &p));
	CHECK(conf_grant_place(p.server, p.sc, 0, MORE_BYTES, &key));
	h->holding = true;
	CHECK(add_region(t, p.client, &slab, &region));
	CHECK(h->count == 1);
	conf_fill(slab.base, MORE_BYTES, MARK);
	struct wf_op put = conf_put_op(p.client, &key, 0, MORE_BYTES, 0);
	put.region = region;
	put.src = slab.base;
	CHECK(conf_post_all(t, p.cc, &put));
	CHECK(conf_send_all(t, p.cc, MARK, 100));
	conf_settle(t);
	CHECK(conf_count(p.server, p.sc, WF_EVENT_MSG) == 0);
	CHECK(let_go(h));
	CHECK(conf_await(t, p.server, p.sc, WF_EVENT_PUT) != NULL);
	CHECK(conf_is_filled(p.server->memory, MORE_BYTES, MARK));
	CHECK(conf_await(t, p.server, p.sc, WF_EVENT_MSG) != NULL);
	wf_transport_region_remove(p.client->transport, region);
	t->env->ops->slab_close(t->env, &slab);
	return true;
}

/* The key is told in a message of the same connection: that is not sent before the window is bound.
 */
static bool
grant_waits_body(struct conf *t, struct held *h)
{
	struct pair p;
	struct wf_slab slab;
	struct wf_grant_key key;
	uint32_t region = 0;
	CHECK(pair_up(t, "mw=on", "10.9.0.1", &p));
	h->holding = true;
	CHECK(add_region(t, p.server, &slab, &region));
	const struct wf_grant grant = {
		.kind = WF_GRANT_PLACE, .region = region, .bytes = MORE_BYTES};
	CHECK(wf_transport_grant(p.sc, &grant, &key) == WEFT_OK);
	CHECK(conf_send_all(t, p.sc, MARK, 100));
	conf_settle(t);
	CHECK(conf_count(p.client, p.cc, WF_EVENT_MSG) == 0);
	CHECK(let_go(h));
	CHECK(conf_await(t, p.client, p.cc, WF_EVENT_MSG) != NULL);
	conf_fill(p.client->memory, MORE_BYTES, MARK);
	struct wf_op put = conf_put_op(p.client, &key, 0, MORE_BYTES, 0);
	CHECK(conf_post_all(t, p.cc, &put));
	CHECK(conf_await(t, p.server, p.sc, WF_EVENT_PUT) != NULL);
	CHECK(conf_is_filled(slab.base, MORE_BYTES, MARK));
	wf_transport_disconnect(p.sc, WF_DISCONNECT_NOW);
	CHECK(conf_await(t, p.server, p.sc, WF_EVENT_DOWN) != NULL);
	wf_transport_region_remove(p.server->transport, region);
	t->env->ops->slab_close(t->env, &slab);
	return true;
}

/* Regions, of all that this machine has. */
static unsigned
count_regions(void)
{
	const char *words[] = {"rdma", "resource", "show", "mr", NULL};
	char text[1u << 14];
	unsigned lines = 0;
	int fd = memfd_create("regions", MFD_CLOEXEC);
	if (fd >= 0 && rig_command_output(words, fd) == 0) {
		ssize_t n = pread(fd, text, sizeof(text), 0);
		for (ssize_t i = 0; i < n; i++) {
			lines += text[i] == '\n';
		}
	}
	(void)(fd < 0 || close(fd));
	return lines;
}

/* The helper is done when it is done. */
static bool
await_regions(struct conf *t, unsigned count)
{
	for (unsigned i = 0; i < 200 && count_regions() != count; i++) {
		conf_settle(t);
	}
	return count_regions() == count;
}

/* Region and connection go while the helper is at it: nothing stays behind. `settings` say whether
 * the region is the device's or the connection's. */
static bool
gone_meanwhile(struct conf *t, struct held *h, const char *settings)
{
	struct pair p;
	struct wf_slab slab;
	uint32_t region = 0;
	unsigned before = count_regions();
	CHECK(pair_up(t, settings, "10.9.0.1", &p));
	CHECK(rig_warm(t, &p));
	unsigned up = count_regions();
	CHECK(up > before);
	h->holding = true;
	CHECK(add_region(t, p.client, &slab, &region));
	wf_transport_region_remove(p.client->transport, region);
	CHECK(let_go(h));
	CHECK(await_regions(t, up));
	h->holding = true;
	const struct wf_region again = {.base = slab.base, .bytes = slab.bytes, .memfd = -1};
	CHECK(wf_transport_region_add(p.client->transport, &again, &region) == WEFT_OK);
	wf_transport_disconnect(p.cc, WF_DISCONNECT_NOW);
	CHECK(conf_await(t, p.client, p.cc, WF_EVENT_DOWN) != NULL);
	CHECK(conf_await(t, p.server, p.sc, WF_EVENT_DOWN) != NULL);
	CHECK(let_go(h));
	conf_settle(t);
	while (t->node_count > 0) {
		conf_node_close(t, &t->node[--t->node_count]);
	}
	t->env->ops->slab_close(t->env, &slab);
	CHECK(count_regions() == before);
	return true;
}

static bool
gone_meanwhile_body(struct conf *t, struct held *h)
{
	return gone_meanwhile(t, h, "");
}

static bool
gone_meanwhile_domains_body(struct conf *t, struct held *h)
{
	return gone_meanwhile(t, h, "mw=off");
}

/* There was room when it was asked for, and is none when it is done. */
static bool
too_late_body(struct conf *t, struct held *h)
{
	const struct rlimit little = {.rlim_cur = 1u << 20, .rlim_max = RLIM_INFINITY};
	const struct rlimit all = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
	struct pair p;
	struct wf_slab slab;
	uint32_t region = 0;
	CHECK(pair_up(t, "", "10.8.0.1", &p));
	h->holding = true;
	CHECK(add_region(t, p.client, &slab, &region));
	CHECK(setrlimit(RLIMIT_MEMLOCK, &little) == 0);
	CHECK(let_go(h));
	const struct seen *down = conf_await(t, p.client, p.cc, WF_EVENT_DOWN);
	CHECK(setrlimit(RLIMIT_MEMLOCK, &all) == 0);
	CHECK(down != NULL && down->status == WEFT_LOST);
	CHECK(strstr(down->why, "cannot be locked") != NULL);
	wf_transport_region_remove(p.client->transport, region);
	t->env->ops->slab_close(t->env, &slab);
	return true;
}

/* Nothing comes of it for several times peer_timeout, and it is there. */
static bool
silent_meanwhile_body(struct conf *t, struct held *h)
{
	const struct wf_transport_opts hasty = {.peer_timeout_ns = 400 * WF_NS_PER_MS};
	struct pair p;
	struct wf_slab slab;
	struct wf_grant_key key;
	uint32_t region = 0;
	p.server = rig_node(t, "", "10.8.0.1", &hasty);
	p.client = rig_node(t, "", NULL, NULL);
	CHECK(p.server != NULL && p.client != NULL && rig_join(t, p.server, p.client, &p));
	CHECK(conf_grant_place(p.server, p.sc, 0, MORE_BYTES, &key));
	h->holding = true;
	CHECK(add_region(t, p.client, &slab, &region));
	struct wf_op put = conf_put_op(p.client, &key, 0, MORE_BYTES, 0);
	put.region = region;
	put.src = slab.base;
	CHECK(conf_post_all(t, p.cc, &put));
	uint64_t until_ns = wf_now_ns(t->env) + 4 * hasty.peer_timeout_ns;
	while (wf_now_ns(t->env) < until_ns) {
		conf_pump(t);
	}
	CHECK(conf_count(p.server, p.sc, WF_EVENT_DOWN) == 0);
	CHECK(conf_count(p.client, p.cc, WF_EVENT_DOWN) == 0);
	CHECK(conf_count(p.server, p.sc, WF_EVENT_PUT) == 0);
	CHECK(let_go(h));
	CHECK(conf_await(t, p.server, p.sc, WF_EVENT_PUT) != NULL);
	wf_transport_region_remove(p.client->transport, region);
	t->env->ops->slab_close(t->env, &slab);
	return true;
}

static void
connect_waits_until_its_regions_are_registered(void **state)
{
	assert_true(rig_run_held(connect_waits_body));
}

static void
accepting_end_shows_a_connection_before_its_peer_gives_up(void **state)
{
	assert_true(rig_run_held(accept_waits_body));
}

static void
put_waits_until_its_region_is_registered(void **state)
{
	assert_true(rig_run_held(put_waits_body));
}

static void
key_of_a_window_is_told_when_its_region_is_registered(void **state)
{
	assert_true(rig_run_held(grant_waits_body));
}

static void
what_goes_while_it_is_registered_stays_nowhere(void **state)
{
	assert_true(rig_run_held(gone_meanwhile_body));
}

static void
what_goes_while_it_is_registered_stays_nowhere_without_windows(void **state)
{
	assert_true(rig_run_held(gone_meanwhile_domains_body));
}

static void
who_waits_for_its_region_keeps_its_connection_over_iwarp(void **state)
{
	if (!rig_has("siw0")) {
		skip();
	}
	assert_true(rig_run_held(silent_meanwhile_body));
}

static void
memory_that_cannot_be_locked_in_the_end_is_said(void **state)
{
	if (!rig_has("siw0")) {
		skip(); /* others do not count what a privileged process locks */
	}
	assert_true(rig_run_held(too_late_body));
}

/* argv[1]: a pattern of the tests to run. */
int
main(int argc, char **argv)
{
	if (!rig_has("rxe0")) {
		return 77;
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connect_waits_until_its_regions_are_registered),
		cmocka_unit_test(accepting_end_shows_a_connection_before_its_peer_gives_up),
		cmocka_unit_test(put_waits_until_its_region_is_registered),
		cmocka_unit_test(key_of_a_window_is_told_when_its_region_is_registered),
		cmocka_unit_test(what_goes_while_it_is_registered_stays_nowhere),
		cmocka_unit_test(what_goes_while_it_is_registered_stays_nowhere_without_windows),
		cmocka_unit_test(who_waits_for_its_region_keeps_its_connection_over_iwarp),
		cmocka_unit_test(memory_that_cannot_be_locked_in_the_end_is_said),
	};
	if (argc > 1) {
		cmocka_set_test_filter(argv[1]);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
