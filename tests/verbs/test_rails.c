/* SPDX-License-Identifier: Apache-2.0 */
/* Several devices at both ends: lanes go over rails of their own, a rail that is taken away costs a
 * reconnect over another one, and where there is none left, TCP carries. What devices count proves
 * which of them was used. Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <unistd.h>

#include "rig.h"

#define SERVERS "device=rxe2+rxe4,lane=%u"
#define CLIENT "device=rxe1+rxe3"
#define PUT_BYTES (256u << 10)
#define PUTS 8u
#define PACKETS (PUT_BYTES / 4096u) /* of a PUT, at the MTU of tests/guest/devices */

/* Lane 0, lane 1, and who connects to both. */
struct scene {
	struct node *lane[2];
	struct node *client;
	struct pair pair[2];
};

/* Packets that the device has sent. */
static uint64_t
sent(const char *device)
{
	char path[128];
	char line[32] = "";
	(void)snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/sent_pkts",
		       device);
	FILE *file = fopen(path, "re");
	if (file != NULL) {
		(void)fgets(line, sizeof(line), file);
		(void)fclose(file);
	}
	return strtoull(line, NULL, 10);
}

static struct node *
lane_node(struct conf *t, unsigned lane)
{
	static char settings[2][64];
	(void)snprintf(settings[lane], sizeof(settings[lane]), SERVERS, lane);
	return rig_node(t, settings[lane], "10.9.0.1", NULL);
}

static bool
set_scene(struct conf *t, const char *paths, struct scene *s)
{
	t->transport = "paths";
	t->paths = paths;
	s->lane[0] = lane_node(t, 0);
	s->lane[1] = lane_node(t, 1);
	s->client = rig_node(t, CLIENT, NULL, NULL);
	CHECK(s->lane[0] != NULL && s->lane[1] != NULL && s->client != NULL);
	CHECK(rig_join(t, s->lane[0], s->client, &s->pair[0]));
	return rig_join(t, s->lane[1], s->client, &s->pair[1]);
}

/* What carries the client's end, and over which rail. */
static bool
goes_over(const struct pair *p, const char *name, const char *rail)
{
	struct wf_path_info info;
	wf_transport_path(p->cc, &info);
	if (strcmp(info.name, name) != 0 || strstr(info.why, rail) == NULL) {
		fprintf(stderr, "over %s: %s; and not %s, %s\n", info.name, info.why, name, rail);
		return false;
	}
	return true;
}

/* A PUT from the client, and that its bytes are there. */
static bool
put(struct conf *t, const struct pair *p, uint64_t mark)
{
	struct wf_grant_key key;
	unsigned before = conf_count(p->server, p->sc, WF_EVENT_PUT);
	CHECK(conf_grant_place(p->server, p->sc, 0, PUT_BYTES, &key));
	conf_fill(p->client->memory, PUT_BYTES, mark);
	struct wf_op op = conf_put_op(p->client, &key, 0, PUT_BYTES, mark);
	CHECK(conf_post_all(t, p->cc, &op));
	CHECK(conf_await_count(t, p->server, p->sc, WF_EVENT_PUT, before + 1));
	CHECK(conf_await(t, p->client, p->cc, WF_EVENT_DONE) != NULL);
	return conf_is_filled(p->server->memory, PUT_BYTES, mark);
}

/* PUTs make `device` send their packets. The other one may send some again. */
static bool
goes_out_of(struct conf *t, const struct pair *p, const char *device, const char *other)
{
	uint64_t before = sent(device), before_other = sent(other);
	for (unsigned i = 0; i < PUTS; i++) {
		CHECK(put(t, p, i));
	}
	CHECK(sent(device) - before >= PUTS * PACKETS);
	CHECK(sent(other) - before_other < PUTS * PACKETS / 2);
	return true;
}

static bool
spread_body(struct conf *t)
{
	struct scene s = {0};
	CHECK(set_scene(t, "verbs", &s));
	CHECK(goes_over(&s.pair[0], "verbs", "rail 10.9.2.1"));
	CHECK(goes_over(&s.pair[1], "verbs", "rail 10.9.4.1"));
	return goes_out_of(t, &s.pair[0], "rxe1", "rxe3") &&
	       goes_out_of(t, &s.pair[1], "rxe3", "rxe1");
}

/* Both ends of the client's connection are DOWN; then it comes again. */
static bool
come_again(struct conf *t, struct scene *s, unsigned lane)
{
	struct pair *p = &s->pair[lane];
	CHECK(rig_down(t, p->client, p->cc) != WEFT_OK);
	CHECK(rig_down(t, p->server, p->sc) != WEFT_OK);
	conf_forget(p->server);
	return rig_join(t, p->server, p->client, p);
}

/* `device` goes, and with it the rail of lane `lane`; `rail` is left. */
static bool
lost_body(struct conf *t, const char *device, unsigned lane, const char *rail)
{
	char netdev[] = "e0";
	const char *removal[] = {"rdma", "link", "delete", device, NULL};
	const char *back[] = {"rdma", "link", "add", device, "type", "rxe", "netdev", netdev, NULL};
	struct scene s = {0};
	netdev[1] = device[3];
	CHECK(set_scene(t, "tcp,verbs", &s));
	CHECK(put(t, &s.pair[lane], 1));
	pid_t pid = rig_command_start(removal);
	bool came = come_again(t, &s, lane);
	bool over = came && goes_over(&s.pair[lane], "verbs", rail);
	bool carried = over && put(t, &s.pair[lane], 2) && put(t, &s.pair[1 - lane], 3);
	int code = rig_command_wait(t, pid);
	int again = rig_command(back);
	CHECK(came && over && carried);
	CHECK(code == 0 && again == 0);
	return true;
}

static bool
lost_there_body(struct conf *t)
{
	return lost_body(t, "rxe4", 1, "rail 10.9.2.1");
}

static bool
lost_first_body(struct conf *t)
{
	return lost_body(t, "rxe2", 0, "rail 10.9.4.1");
}

static bool
lost_here_body(struct conf *t)
{
	return lost_body(t, "rxe3", 1, "rail 10.9.2.1");
}

static void
lanes_go_over_rails_of_their_own(void **state)
{
	assert_true(rig_run(spread_body));
}

static void
lost_rail_of_the_peer_leaves_the_other_one(void **state)
{
	assert_true(rig_run(lost_there_body));
}

static void
lost_rail_does_not_renumber_the_others(void **state)
{
	assert_true(rig_run(lost_first_body));
}

static void
lost_rail_of_this_end_leaves_the_other_one(void **state)
{
	assert_true(rig_run(lost_here_body));
}

/* argv[1]: a pattern of the tests to run. */
int
main(int argc, char **argv)
{
	if (!rig_has("rxe4")) {
		return 77;
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lanes_go_over_rails_of_their_own),
		cmocka_unit_test(lost_rail_of_the_peer_leaves_the_other_one),
		cmocka_unit_test(lost_rail_does_not_renumber_the_others),
		cmocka_unit_test(lost_rail_of_this_end_leaves_the_other_one),
	};
	if (argc > 1) {
		cmocka_set_test_filter(argv[1]);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
