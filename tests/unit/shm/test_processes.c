/* SPDX-License-Identifier: Apache-2.0 */
/* Two processes: exchange, death, and users that share nothing. Thread: one per process. */
#include <dirent.h>
#include <grp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/assert.h"
#include "tests/unit/shm/shm_rig.h"

#define SLOT_COUNT 4u
#define PUT_BYTES (1u << 20)
#define EXCHANGE_BYTES (1ull << 30)
#define NOBODY 65534
/* Supplementary groups of this end. */
#define OTHER_GROUP 54321
#define COMMON_GROUP 54322
#define GROUPS_MAX 64

static unsigned
count_descriptors(void)
{
	unsigned count = 0;
	DIR *folder = opendir("/proc/self/fd");
	assert_non_null(folder);
	while (readdir(folder) != NULL) {
		count++;
	}
	closedir(folder);
	return count;
}

/* Mappings of memory that is passed between processes. */
static unsigned
count_mappings(void)
{
	unsigned count = 0;
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "r");
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps) != NULL) {
		count += strstr(line, "memfd:weft") != NULL ? 1 : 0;
	}
	fclose(maps);
	return count;
}

static void
grant_slots(struct shm_rig *rig, struct wf_grant_key *key)
{
	struct wf_grant grant = {.kind = WF_GRANT_SLOTS,
				 .region = rig->region,
				 .bytes = PUT_BYTES,
				 .slot_count = SLOT_COUNT};
	WF_ASSERT(wf_transport_grant(rig->conn, &grant, key) == WEFT_OK);
	struct wf_head head = {.service = WF_SERVICE_CONTROL};
	struct wf_op op = {.kind = WF_OP_SEND,
			   .head = &head,
			   .body = key->bytes,
			   .body_bytes = sizeof(key->bytes)};
	unsigned taken = 0;
	WF_ASSERT(wf_transport_post(rig->conn, &op, 1, &taken) == WEFT_OK);
}

/* The key that the server sent. */
static struct wf_grant_key
await_key(struct shm_rig *rig)
{
	struct wf_grant_key key;
	shm_rig_await(rig, &rig->msgs, 1);
	memcpy(key.bytes, rig->body, sizeof(key.bytes));
	return key;
}

/* PUTs `total` bytes; each begins with its number. */
static void
push_all(struct shm_rig *rig, const struct wf_grant_key *key, uint64_t total)
{
	const uint32_t count = (uint32_t)(total / PUT_BYTES);
	for (uint32_t i = 0; i < count; i++) {
		shm_rig_await(rig, &rig->dones, i < SLOT_COUNT ? 0 : i - SLOT_COUNT + 1);
		uint8_t *src = (uint8_t *)rig->slab.base + (i % SLOT_COUNT) * PUT_BYTES;
		memcpy(src, &i, sizeof(i));
		memcpy(src + PUT_BYTES - sizeof(i), &i, sizeof(i));
		struct wf_op op = {.kind = WF_OP_PUT,
				   .region = rig->region,
				   .src = src,
				   .bytes = PUT_BYTES,
				   .key = *key,
				   .tag = wf_tag(i, 0)};
		unsigned taken = 0;
		WF_ASSERT(wf_transport_post(rig->conn, &op, 1, &taken) == WEFT_OK);
	}
	shm_rig_await(rig, &rig->dones, count);
}

/* Runs `body` in a child that ends with it. */
static pid_t
spawn(void (*body)(const struct wf_host *at), const struct wf_host *at)
{
	fflush(NULL);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		body(at);
		_exit(0);
	}
	return pid;
}

static void
assert_ends_well(pid_t pid)
{
	int status = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void
child_pushes(const struct wf_host *at)
{
	struct shm_rig rig;
	shm_rig_open(&rig, false, NULL);
	shm_rig_connect(&rig, at);
	struct wf_grant_key key = await_key(&rig);
	push_all(&rig, &key, EXCHANGE_BYTES);
	wf_transport_disconnect(rig.conn, WF_DISCONNECT_DRAIN);
	shm_rig_await(&rig, &rig.downs, 1);
	shm_rig_close(&rig);
}

static void
two_processes_exchange_a_gigabyte(void **state)
{
	(void)state;
	struct shm_rig rig;
	shm_rig_open(&rig, true, NULL);
	pid_t pid = spawn(child_pushes, &rig.at);
	shm_rig_accept(&rig);
	struct wf_grant_key key;
	grant_slots(&rig, &key);
	const uint32_t count = (uint32_t)(EXCHANGE_BYTES / PUT_BYTES);
	for (uint32_t i = 0; i < count;) {
		struct wf_event event;
		unsigned events = 0;
		assert_int_equal(wf_transport_poll(rig.transport, &event, 1, &events), WEFT_OK);
		if (events == 0 || event.kind == WF_EVENT_DONE) {
			continue;
		}
		assert_int_equal(event.kind, WF_EVENT_PUT);
		assert_int_equal(event.put.tag, wf_tag(i, 0));
		/* In place: not in this end's memory. */
		const uint8_t *data = event.put.data;
		const uint8_t *base = rig.slab.base;
		assert_true(data < base || data >= base + rig.slab.bytes);
		assert_memory_equal(data, &i, sizeof(i));
		assert_memory_equal(data + PUT_BYTES - sizeof(i), &i, sizeof(i));
		wf_transport_release(event.conn, i);
		i++;
	}
	shm_rig_await(&rig, &rig.downs, 1);
	assert_int_equal(rig.down_status, WEFT_CLOSED);
	assert_ends_well(pid);
	shm_rig_close(&rig);
}

static void
child_is_killed(const struct wf_host *at)
{
	struct shm_rig rig;
	shm_rig_open(&rig, false, NULL);
	shm_rig_connect(&rig, at);
	struct wf_grant_key key = await_key(&rig);
	for (uint32_t i = 0; i < SLOT_COUNT; i++) {
		memset(rig.slab.base, 0x5a, PUT_BYTES);
		struct wf_op op = {.kind = WF_OP_PUT,
				   .region = rig.region,
				   .src = rig.slab.base,
				   .bytes = PUT_BYTES,
				   .key = key,
				   .tag = wf_tag(i, 0)};
		unsigned taken = 0;
		WF_ASSERT(wf_transport_post(rig.conn, &op, 1, &taken) == WEFT_OK);
	}
	shm_rig_pump(&rig);
	kill(getpid(), SIGKILL);
}

/* What it had posted is delivered, and can be read until DOWN has been handled. */
static void
a_killed_peer_leaves_nothing_behind(void **state)
{
	(void)state;
	struct shm_rig rig;
	shm_rig_open(&rig, true, NULL);
	shm_rig_pump(&rig);
	unsigned descriptors = count_descriptors();
	unsigned mappings = count_mappings();
	for (unsigned round = 1; round <= 3; round++) {
		pid_t pid = spawn(child_is_killed, &rig.at);
		shm_rig_accept(&rig);
		struct wf_grant_key key;
		grant_slots(&rig, &key);
		shm_rig_await(&rig, &rig.puts, round * SLOT_COUNT);
		assert_true(count_mappings() > mappings);
		shm_rig_await(&rig, &rig.downs, round);
		assert_int_equal(rig.down_status, WEFT_LOST);
		const uint8_t *data = rig.data;
		assert_true(data[0] == 0x5a && data[PUT_BYTES - 1] == 0x5a);
		shm_rig_pump(&rig);
		assert_int_equal(count_descriptors(), descriptors);
		assert_int_equal(count_mappings(), mappings);
		int status = 0;
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
	}
	shm_rig_close(&rig);
}

static gid_t groups_before[GROUPS_MAX];
static int group_count;

/* Root alone may. */
static int
take_groups(void **state)
{
	const gid_t group[] = {OTHER_GROUP, COMMON_GROUP};
	(void)state;
	group_count = geteuid() == 0 ? getgroups(GROUPS_MAX, groups_before) : -1;
	return group_count >= 0 ? setgroups(2, group) : 0;
}

static int
give_groups_back(void **state)
{
	(void)state;
	return group_count >= 0 ? setgroups((size_t)group_count, groups_before) : 0;
}

/* 0: sent away with the reason. */
static void
child_is_a_stranger(const struct wf_host *at)
{
	gid_t group = NOBODY;
	if (setgroups(1, &group) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0) {
		_exit(2);
	}
	struct shm_rig rig;
	shm_rig_open(&rig, false, NULL);
	struct wf_conn *conn = NULL;
	WF_ASSERT(wf_transport_connect(rig.transport, at, NULL, 0, NULL, &conn) == WEFT_OK);
	shm_rig_await(&rig, &rig.downs, 1);
	bool told = rig.down_status == WEFT_UNAVAILABLE && strstr(rig.why, "no group") != NULL;
	_exit(told ? 0 : 1);
}

static void
a_user_without_a_common_group_is_refused(void **state)
{
	(void)state;
	if (geteuid() != 0) {
		skip();
	}
	struct shm_rig rig;
	shm_rig_open(&rig, true, NULL);
	pid_t pid = spawn(child_is_a_stranger, &rig.at);
	struct wf_transport_info info = {0};
	while (info.strangers_refused == 0) {
		shm_rig_pump(&rig);
		wf_transport_query(rig.transport, &info);
	}
	assert_non_null(strstr(info.last_stranger, "no group"));
	int status = 0;
	while (waitpid(pid, &status, WNOHANG) == 0) {
		shm_rig_pump(&rig);
	}
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(rig.ups, 0);
	shm_rig_close(&rig);
}

static void
child_has_one_group_in_common(const struct wf_host *at)
{
	const gid_t group = COMMON_GROUP;
	if (setgroups(1, &group) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0) {
		_exit(2);
	}
	struct shm_rig rig;
	shm_rig_open(&rig, false, NULL);
	shm_rig_connect(&rig, at);
	wf_transport_disconnect(rig.conn, WF_DISCONNECT_DRAIN);
	shm_rig_await(&rig, &rig.downs, 1);
	shm_rig_close(&rig);
}

/* The second of this end's groups, and not the peer's own. */
static void
users_with_a_common_group_share_memory(void **state)
{
	(void)state;
	if (geteuid() != 0) {
		skip();
	}
	struct shm_rig rig;
	shm_rig_open(&rig, true, NULL);
	pid_t pid = spawn(child_has_one_group_in_common, &rig.at);
	shm_rig_accept(&rig);
	shm_rig_await(&rig, &rig.downs, 1);
	assert_int_equal(rig.down_status, WEFT_CLOSED);
	assert_ends_well(pid);
	shm_rig_close(&rig);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_processes_exchange_a_gigabyte),
		cmocka_unit_test(a_killed_peer_leaves_nothing_behind),
		cmocka_unit_test_setup_teardown(a_user_without_a_common_group_is_refused,
						take_groups, give_groups_back),
		cmocka_unit_test_setup_teardown(users_with_a_common_group_share_memory, take_groups,
						give_groups_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
