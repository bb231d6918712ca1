/* SPDX-License-Identifier: Apache-2.0 */
/* Who stands before a listening socket: let in by turns, as far as there is room, and tried again
 * where there are no descriptors. Thread: the test's. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/transport/life_medium.h"
#include "transport/doors.h"

#define TURN 32u /* let in at a door */

static struct wf_doors doors;
static struct sockaddr_un at;
static unsigned adopted;
static bool keeps; /* who is let in becomes a connection; else it is closed */
static char last_at[WF_HOST_BYTES];

static void
adopt(struct wf_medium *m, int fd, const struct sockaddr_storage *peer, const struct wf_door *door)
{
	assert_ptr_equal(m, &medium);
	assert_int_equal(peer->ss_family, AF_UNIX);
	assert_true((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
	adopted++;
	memcpy(last_at, door->at.name, sizeof(last_at));
	close(fd);
	if (keeps) {
		(void)wf_life_come(m, "somebody");
	}
}

static int
listen_at(const char *name)
{
	at = (struct sockaddr_un){.sun_family = AF_UNIX};
	(void)snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "weft/test/%d/%s", (int)getpid(),
		       name);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, WF_DOORS_BACKLOG), 0);
	return fd;
}

static void
open_door(const char *name)
{
	struct wf_host here = {.port = 7};
	(void)snprintf(here.name, sizeof(here.name), "%s", name);
	int fd = listen_at(name);
	assert_int_equal(wf_doors_add(&doors, &fd, 1, &here), WEFT_OK);
}

/* Stands before the door that was opened last. */
static int
stand(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

/* A turn of a poll. */
static void
turn(void)
{
	wf_loop_begin(&medium.loop);
	(void)wf_loop_collect(&medium.loop);
	wf_doors_accept(&doors);
}

static void
begin(bool keep)
{
	medium_begin();
	assert_int_equal(wf_loop_open(&medium.loop), WEFT_OK);
	doors = (struct wf_doors){.medium = &medium, .adopt = adopt};
	adopted = 0;
	keeps = keep;
}

static void
end(void)
{
	wf_doors_close(&doors);
	assert_int_equal(doors.count, 0);
	medium_end();
	wf_loop_close(&medium.loop);
}

static void
who_stands_there_is_let_in_by_turns(void **state)
{
	int fd[TURN + 3];
	(void)state;
	begin(false);
	open_door("one");
	open_door("two");
	turn();
	assert_false(wf_doors_are_due(&doors));
	for (unsigned i = 0; i < TURN + 3; i++) {
		fd[i] = stand();
	}
	turn();
	assert_int_equal(adopted, TURN);
	assert_string_equal(last_at, "two");
	assert_true(wf_doors_are_due(&doors)); /* without another edge */
	turn();
	assert_int_equal(adopted, TURN + 3);
	assert_false(wf_doors_are_due(&doors));
	assert_false(doors.readable);
	for (unsigned i = 0; i < TURN + 3; i++) {
		close(fd[i]);
	}
	end();
}

/* Two newcomers, and as many who were sent away for others and are not freed yet. */
static void
a_full_house_lets_in_whom_it_frees_a_place_for(void **state)
{
	int fd[5];
	(void)state;
	begin(true);
	open_door("full");
	for (unsigned i = 0; i < 5; i++) {
		fd[i] = stand();
	}
	turn();
	assert_int_equal(adopted, 2 * MEDIUM_NEWCOMERS);
	assert_int_equal(did.deny, 2);
	assert_true(wf_doors_are_due(&doors)); /* it waits for DOWNs that polls bring */
	turn();
	assert_int_equal(adopted, 2 * MEDIUM_NEWCOMERS);
	wf_medium_reap(&medium);
	turn();
	assert_int_equal(adopted, 5);
	assert_false(wf_doors_are_due(&doors));
	for (unsigned i = 0; i < 5; i++) {
		close(fd[i]);
	}
	end();
}

/* Those who were refused come on top of the newcomers: they are sent away for who stands there. */
static void
who_was_refused_and_stays_is_sent_away_for_it(void **state)
{
	struct wf_life *refused[4];
	(void)state;
	begin(true);
	open_door("refused");
	medium.places.conn_max = 4;
	for (unsigned i = 0; i < 4; i++) {
		refused[i] = medium_conn_in(WF_LIFE_WAITING, true);
	}
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(wf_life_answer(&refused[i]->conn, false, NULL, 0), WEFT_OK);
	}
	assert_true(wf_places_are_overfull(&medium.places));
	int fd = stand();
	turn();
	assert_int_equal(adopted, 0); /* before they are freed */
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(refused[i]->state, i < 2 ? WF_LIFE_DYING : WF_LIFE_DRAINING);
	}
	assert_int_equal(refused[0]->end.status, WEFT_CLOSED);
	for (unsigned i = 0; i < 2; i++) {
		medium_visit(refused[i], 4);
	}
	wf_medium_reap(&medium);
	turn();
	assert_int_equal(adopted, 1);
	close(fd);
	end();
}

static void
want_of_descriptors_is_looked_at_a_little_later(void **state)
{
	struct rlimit before;
	(void)state;
	begin(false);
	open_door("few");
	int fd = stand();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	int lowest = dup(fd); /* the next that is free */
	close(lowest);
	struct rlimit none = {.rlim_cur = (rlim_t)lowest, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	turn();
	assert_int_equal(adopted, 0);
	assert_true(doors.readable);
	assert_false(wf_doors_are_due(&doors));
	assert_int_equal(did.logged, 1);
	assert_non_null(strstr(did.last_log, "none: cannot accept a connection: "));
	assert_int_equal(medium.loop.timer_ns, medium_now_ns + 100 * MS);
	medium.loop.timer_ns = WF_NEVER;
	wf_doors_expire(&doors, medium_now_ns + 99 * MS);
	assert_int_equal(medium.loop.timer_ns, medium_now_ns + 100 * MS);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	turn(); /* not before the time */
	assert_int_equal(adopted, 0);
	medium_now_ns += 100 * MS;
	turn();
	assert_int_equal(adopted, 1);
	assert_false(doors.readable);
	medium.loop.timer_ns = WF_NEVER;
	wf_doors_expire(&doors, medium_now_ns);
	assert_int_equal(medium.loop.timer_ns, WF_NEVER);
	close(fd);
	end();
}

/* Where a newcomer can go it goes, and nobody waits for time to pass. */
static void
want_of_descriptors_costs_a_newcomer_its_own(void **state)
{
	struct rlimit before;
	(void)state;
	begin(false);
	open_door("costs");
	struct wf_life *silent = medium_conn_in(WF_LIFE_SHAKING, true);
	int fd = stand();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	int lowest = dup(fd);
	close(lowest);
	struct rlimit none = {.rlim_cur = (rlim_t)lowest, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	turn();
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(silent->state, WF_LIFE_DEAD);
	assert_int_equal(did.deny, 1);
	close(fd);
	end();
}

static void
doors_are_added_together_or_not_at_all(void **state)
{
	const struct wf_host here = {.name = "here"};
	int fd[WF_DOORS_MAX];
	char name[8];
	(void)state;
	begin(false);
	open_door("first");
	for (unsigned i = 0; i < WF_DOORS_MAX; i++) {
		(void)snprintf(name, sizeof(name), "%u", i);
		fd[i] = listen_at(name);
	}
	assert_int_equal(wf_doors_add(&doors, fd, WF_DOORS_MAX, &here), WEFT_NOMEM);
	assert_string_equal(weft_last_error(), "none: 8 listening sockets are the most");
	assert_int_equal(doors.count, 1);
	for (unsigned i = 0; i < WF_DOORS_MAX; i++) {
		assert_int_equal(fcntl(fd[i], F_GETFD), -1);
	}
	for (unsigned i = 1; i < WF_DOORS_MAX; i++) {
		(void)snprintf(name, sizeof(name), "%u", i);
		fd[i] = listen_at(name);
	}
	int half[2] = {listen_at("half"), -1};
	assert_int_equal(wf_doors_add(&doors, half, 2, &here), WEFT_IO);
	assert_int_equal(doors.count, 1);
	assert_int_equal(fcntl(half[0], F_GETFD), -1);
	assert_int_equal(wf_doors_add(&doors, fd + 1, WF_DOORS_MAX - 1, &here), WEFT_OK);
	assert_int_equal(doors.count, WF_DOORS_MAX);
	end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_stands_there_is_let_in_by_turns),
		cmocka_unit_test(a_full_house_lets_in_whom_it_frees_a_place_for),
		cmocka_unit_test(who_was_refused_and_stays_is_sent_away_for_it),
		cmocka_unit_test(want_of_descriptors_is_looked_at_a_little_later),
		cmocka_unit_test(want_of_descriptors_costs_a_newcomer_its_own),
		cmocka_unit_test(doors_are_added_together_or_not_at_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
