/* SPDX-License-Identifier: Apache-2.0 */
/* Settings that concern the network are there: in the queue pairs of both ends, and in the packets
 * between two devices. Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <unistd.h>

#include "rig.h"
#include "transport/verbs/verbs_internal.h"

#define TCLASS 0x68u /* DSCP 26 */
#define SETTINGS "tclass=104,mtu=1024,ack_timeout=15,retry=3,rnr_timer=14,rnr_retry=5"
#define PUT_BYTES (64u << 10)
#define ROCE_PORT 4791u

static bool
pair_across(struct conf *t, const char *settings, struct pair *p)
{
	char client_settings[128];
	(void)snprintf(client_settings, sizeof(client_settings), "device=rxe1,%s", settings);
	struct node *server = rig_node(t, settings, "10.9.2.1", NULL);
	struct node *client = rig_node(t, client_settings, NULL, NULL);
	CHECK(server != NULL && client != NULL);
	return rig_join(t, server, client, p);
}

static bool
query(struct wf_conn *conn, struct ibv_qp_attr *attr)
{
	const struct wf_verbs_conn *c = wf_verbs_conn_of(conn);
	struct ibv_qp_init_attr init;
	memset(attr, 0, sizeof(*attr));
	return c->t->lib->query_qp(c->link.qp, attr,
				   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_TIMEOUT |
					   IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					   IBV_QP_MIN_RNR_TIMER,
				   &init) == 0;
}

static bool
is_set(struct wf_conn *conn)
{
	struct ibv_qp_attr attr;
	CHECK(query(conn, &attr));
	CHECK(attr.path_mtu == IBV_MTU_1024);
	CHECK(attr.timeout == 15);
	CHECK(attr.retry_cnt == 3);
	CHECK(attr.rnr_retry == 5);
	CHECK(attr.min_rnr_timer == 14);
	CHECK(attr.ah_attr.grh.traffic_class == TCLASS);
	return true;
}

static bool
chosen_body(struct conf *t)
{
	struct pair p;
	CHECK(pair_across(t, SETTINGS, &p));
	return is_set(p.cc) && is_set(p.sc);
}

static bool
is_default(struct wf_conn *conn)
{
	struct ibv_qp_attr attr;
	CHECK(query(conn, &attr));
	CHECK(attr.path_mtu == IBV_MTU_4096);
	CHECK(attr.timeout == 16);       /* 268 ms; the connection manager would take 2 s */
	CHECK(attr.retry_cnt == 6);      /* 7 is for ever on some devices */
	CHECK(attr.min_rnr_timer == 12); /* 0.64 ms; 0 would be 655 ms */
	return true;
}

static bool
default_body(struct conf *t)
{
	struct pair p;
	CHECK(pair_across(t, "", &p));
	return is_default(p.cc) && is_default(p.sc);
}

/* A key that the device does not have is said, and nothing comes up with another one. */
static bool
pkey_body(struct conf *t)
{
	struct wf_conn *conn = NULL;
	struct node *server = rig_node(t, "", "10.9.2.1", NULL);
	struct node *client = rig_node(t, "device=rxe1,pkey=65535", NULL, NULL);
	CHECK(server != NULL && client != NULL);
	CHECK(wf_transport_connect(client->transport, &server->at, NULL, 0, NULL, &conn) ==
	      WEFT_OK);
	const struct seen *down = conf_await(t, client, conn, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_UNAVAILABLE);
	CHECK(strstr(down->why, "pkey=65535") != NULL);
	return conf_count(server, NULL, WF_EVENT_UP) == 0;
}

/* Packets that come in at e2. */
static int
listen_at_e2(void)
{
	struct sockaddr_ll at = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_IP),
		.sll_ifindex = (int)if_nametoindex("e2"),
	};
	int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETH_P_IP));
	if (fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0) {
		(void)close(fd);
		fd = -1;
	}
	return fd;
}

/* Those of RoCE v2 to this queue pair, and of them those of that class and no longer than so. */
static void
count_packets(int fd, uint32_t qp_num, unsigned *all, unsigned *good)
{
	uint8_t packet[8192];
	ssize_t n = 0;
	while ((n = recv(fd, packet, sizeof(packet), 0)) > 0) {
		const uint8_t *udp = packet + (packet[0] & 15) * 4;
		const uint8_t *bth = udp + 8;
		if (n < 40 || packet[9] != 17 || (udp[2] << 8 | udp[3]) != ROCE_PORT ||
		    (uint32_t)(bth[5] << 16 | bth[6] << 8 | bth[7]) != qp_num) {
			continue;
		}
		++*all;
		*good += packet[1] == TCLASS && n <= 1024 + 80;
	}
}

static bool
packets_body(struct conf *t)
{
	struct pair p;
	struct wf_grant_key key;
	unsigned all = 0, good = 0;
	CHECK(pair_across(t, SETTINGS, &p));
	CHECK(conf_grant_place(p.server, p.sc, 0, PUT_BYTES, &key));
	int fd = listen_at_e2();
	CHECK(fd >= 0);
	struct wf_op put = conf_put_op(p.client, &key, 0, PUT_BYTES, 0);
	CHECK(conf_post_all(t, p.cc, &put));
	CHECK(conf_await(t, p.server, p.sc, WF_EVENT_PUT) != NULL);
	count_packets(fd, wf_verbs_conn_of(p.sc)->link.qp_num, &all, &good);
	(void)close(fd);
	fprintf(stderr, "%u packets, %u as they should be\n", all, good);
	CHECK(all >= 32); /* the socket may have missed some */
	CHECK(good == all);
	return true;
}

static void
settings_reach_the_queue_pairs_of_both_ends(void **state)
{
	assert_true(rig_run(chosen_body));
}

static void
timers_are_not_those_of_the_connection_manager(void **state)
{
	assert_true(rig_run(default_body));
}

static void
partition_key_that_is_not_there_is_refused(void **state)
{
	assert_true(rig_run(pkey_body));
}

static void
packets_carry_class_and_length(void **state)
{
	assert_true(rig_run(packets_body));
}

/* argv[1]: a pattern of the tests to run. */
int
main(int argc, char **argv)
{
	if (!rig_has("rxe2")) {
		return 77;
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(settings_reach_the_queue_pairs_of_both_ends),
		cmocka_unit_test(timers_are_not_those_of_the_connection_manager),
		cmocka_unit_test(partition_key_that_is_not_there_is_refused),
		cmocka_unit_test(packets_carry_class_and_length),
	};
	if (argc > 1) {
		cmocka_set_test_filter(argv[1]);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
