/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of topo: machines that hwloc makes up, machines that somebody captured, the one at hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <hwloc.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/topo_internal.h"
#include "tests/support/failing_env.h"

static struct wf_env *env;

/* The linker calls this in place of what the child process understands a file with, which is
 * __real_. */
enum weft_status __wrap_wf_topo_read(struct wf_env *of, const struct wf_topo_source *source,
				     struct wf_topo **out);
enum weft_status __real_wf_topo_read(struct wf_env *of, const struct wf_topo_source *source,
				     struct wf_topo **out);

/* What the child does instead of that. */
static enum { READ, SPIN, WAIT, CRASH } child_does;
static int tell_fd = -1; /* gets a byte when the child waits */

enum weft_status
__wrap_wf_topo_read(struct wf_env *of, const struct wf_topo_source *source, struct wf_topo **out)
{
	switch (child_does) {
	case READ:
		break;
	case SPIN:
		for (;;) {
		}
	case WAIT:
		(void)!write(tell_fd, "x", 1);
		for (;;) {
			(void)pause();
		}
	case CRASH:
		(void)raise(SIGSEGV); /* whoever handles that handles it elsewhere */
		break;
	}
	return __real_wf_topo_read(of, source, out);
}

static int
set_up(void **state)
{
	return wf_env_system_create(WF_LOG_ERROR, -1, &env) == WEFT_OK ? 0 : -1;
}

static int
tear_down(void **state)
{
	wf_env_system_destroy(env);
	return 0;
}

static struct wf_topo *
synthetic(const char *text)
{
	struct wf_topo *topo = NULL;
	assert_int_equal(wf_topo_open(env, &(struct wf_topo_source){.synthetic = text}, &topo),
			 WEFT_OK);
	return topo;
}

static struct wf_topo *
captured(const char *name)
{
	char path[512];
	struct wf_topo *topo = NULL;
	(void)snprintf(path, sizeof(path), "%s/%s", WF_MACHINES, name);
	assert_int_equal(wf_topo_open(env, &(struct wf_topo_source){.xml = path}, &topo), WEFT_OK);
	return topo;
}

static const struct wf_topo_device *
device_of(const struct wf_topo *topo, const char *name)
{
	uint32_t i = 0;
	while (i < topo->device_count && strcmp(topo->device[i].name, name) != 0) {
		i++;
	}
	assert_true(i < topo->device_count);
	return &topo->device[i];
}

static void
cores_have_their_hardware_threads_side_by_side(void **state)
{
	/* Each core's two threads are numbered apart, and nodes alternate. */
	struct wf_topo *topo = synthetic("node:2 core:2 pu:2(indexes=0,4,2,6,1,5,3,7)");
	static const uint32_t cpus[] = {0, 4, 2, 6, 1, 5, 3, 7};
	assert_false(topo->is_here);
	assert_int_equal(topo->core_count, 4);
	assert_int_equal(topo->cpu_count, 8);
	assert_memory_equal(topo->cpu, cpus, sizeof(cpus));
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(topo->core[i].cpu_first, 2 * i);
		assert_int_equal(topo->core[i].cpu_count, 2);
		assert_int_equal(topo->core[i].numa_node, i / 2);
	}
	assert_ptr_equal(wf_topo_core_of(topo, 6), &topo->core[1]);
	assert_null(wf_topo_core_of(topo, 8));
	wf_topo_close(topo);
}

static void
nodes_count_their_own_cores(void **state)
{
	struct wf_topo *topo =
		synthetic("node:2(memory=1073741824) l3:1(size=4194304) core:3 pu:2");
	char list[64];
	assert_int_equal(topo->node_count, 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(topo->node[i].numa_node, i);
		assert_int_equal(topo->node[i].memory_bytes, 1073741824);
		assert_int_equal(topo->node[i].core_count, 3);
		assert_int_equal(topo->node[i].cpu_count, 6);
	}
	assert_int_equal(topo->cache_count, 1);
	assert_int_equal(topo->cache[0].level, 3);
	assert_int_equal(topo->cache[0].count, 2);
	assert_int_equal(topo->cache[0].bytes, 4194304);
	assert_int_equal(topo->cache[0].core_count, 3);
	wf_topo_cpu_list(topo, 1, list, sizeof(list));
	assert_string_equal(list, "6-11");
	wf_topo_cpu_list(topo, -1, list, sizeof(list));
	assert_string_equal(list, "0-11");
	wf_topo_close(topo);
}

static void
a_machine_that_tells_of_no_cores_has_one_for_each_cpu(void **state)
{
	struct wf_topo *topo = synthetic("node:1 pu:3");
	assert_int_equal(topo->core_count, 3);
	assert_int_equal(topo->core[2].cpu_count, 1);
	wf_topo_close(topo);
}

static void
an_old_capture_has_devices_whose_ports_nobody_knows(void **state)
{
	struct wf_topo *topo = captured("24em64t-2n6c2t-pci.xml");
	assert_false(topo->is_here);
	assert_int_equal(topo->package_count, 2);
	assert_int_equal(topo->core_count, 12);
	assert_int_equal(topo->cpu_count, 24);
	assert_int_equal(topo->node_count, 2);
	/* CPUs of the two packages take turns. */
	for (uint32_t i = 0; i < topo->core_count; i++) {
		int node = topo->core[i].numa_node;
		assert_int_equal(topo->cpu[topo->core[i].cpu_first] % 2, node);
		assert_int_equal(topo->core[i].package, node);
	}
	assert_int_equal(topo->device_count, 5);
	assert_int_equal(topo->device[0].kind, WF_TOPO_RDMA); /* they come first */
	const struct wf_topo_device *hca = device_of(topo, "mlx4_0");
	assert_ptr_equal(hca, &topo->device[0]);
	assert_int_equal(hca->numa_node, 0);
	assert_string_equal(hca->pci, "0000:05:00.0");
	assert_int_equal(hca->port_count, 1);
	assert_int_equal(hca->port[0], WF_TOPO_UNKNOWN);
	assert_string_equal(device_of(topo, "ib0")->pci, hca->pci);
	wf_topo_close(topo);
}

static void
a_capture_has_devices_at_the_node_of_their_bus(void **state)
{
	struct wf_topo *topo = captured("32em64t-2n8c2t-pci-normalio.xml");
	assert_int_equal(topo->core_count, 16);
	const struct wf_topo_device *hca = device_of(topo, "mlx5_0");
	assert_int_equal(hca->kind, WF_TOPO_RDMA);
	assert_int_equal(hca->numa_node, 1);
	assert_int_equal(hca->port_count, 1);
	assert_int_equal(hca->port[0], WF_TOPO_ACTIVE);
	assert_string_equal(hca->vendor, "Mellanox Technologies");
	const struct wf_topo_device *nic = device_of(topo, "eth1");
	assert_int_equal(nic->kind, WF_TOPO_NET);
	assert_int_equal(nic->numa_node, 1);
	assert_int_equal(nic->port[0], WF_TOPO_UNKNOWN);
	wf_topo_close(topo);
}

static void
the_guest_has_huge_pages_set_aside_on_each_node(void **state)
{
	struct wf_topo *topo = captured("guest.xml");
	assert_int_equal(topo->node_count, 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(topo->node[i].core_count, 2);
		assert_int_equal(topo->node[i].huge_page_bytes, 2 << 20);
		assert_int_equal(topo->node[i].huge_page_count, 32);
	}
	wf_topo_close(topo);
}

static void
what_describes_no_machine_is_refused_with_the_reason(void **state)
{
	static const struct {
		struct wf_topo_source source;
		enum weft_status status;
		const char *reason;
	} cases[] = {
		{{.synthetic = "nodes:two"},
		 WEFT_INVALID,
		 "\"nodes:two\" does not describe a machine"},
		{{.xml = "/dev/null"}, WEFT_DATA, "/dev/null cannot be read as XML of hwloc"},
		{{.xml = "/no/such/file"}, WEFT_DATA, "No such file"},
		{{.xml = WF_MACHINES "/README.md"}, WEFT_DATA, "README.md"},
	};
	struct wf_failing_env failing;
	wf_failing_env_init(&failing, env);
	for (size_t i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		struct wf_topo *topo = NULL;
		assert_int_equal(wf_topo_open(&failing.env, &cases[i].source, &topo),
				 cases[i].status);
		assert_null(topo);
		assert_non_null(strstr(weft_last_error(), cases[i].reason));
	}
	assert_true(wf_failing_env_is_clean(&failing));
}

#define MUTANTS 300
#define MUTANTS_LONG 10000
#define XML_BYTES_MAX 65536u

/* One byte of a file is another one: a machine, or an error of one line; and this process lives. */
static void
one_damaged_byte_does_no_harm(void **state)
{
	static const char *const files[] = {"24em64t-2n6c2t-pci.xml",
					    "32em64t-2n8c2t-pci-normalio.xml", "guest.xml"};
	static char bytes[XML_BYTES_MAX];
	char path[] = "/tmp/weft-topo-XXXXXX";
	char from[300];
	uint64_t seed = 12;
	const unsigned mutants = getenv("WEFT_LONG") == NULL ? MUTANTS : MUTANTS_LONG;
	unsigned read_count = 0;
	int fd = mkstemp(path);
	hwloc_topology_t kept = NULL;

	(void)state;
	assert_true(fd >= 0);
	/* While there is a topology, a child has the plugins of hwloc from here, and loads none. */
	assert_int_equal(hwloc_topology_init(&kept), 0);
	for (unsigned i = 0; i < mutants; i++) {
		struct wf_topo *topo = NULL;
		snprintf(from, sizeof(from), WF_MACHINES "/%s", files[i % WF_ARRAY_COUNT(files)]);
		int in = open(from, O_RDONLY | O_CLOEXEC);
		assert_true(in >= 0);
		const ssize_t count = read(in, bytes, sizeof(bytes));
		assert_int_equal(close(in), 0);
		assert_true(count > 1000 && count < (ssize_t)sizeof(bytes));
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		bytes[(seed >> 33) % (uint64_t)count] ^= (char)(1 + (seed >> 20) % 255);
		assert_int_equal(pwrite(fd, bytes, (size_t)count, 0), count);
		assert_int_equal(ftruncate(fd, count), 0);
		enum weft_status st =
			wf_topo_open(env, &(struct wf_topo_source){.xml = path}, &topo);
		if (st != WEFT_OK) {
			assert_int_equal(st, WEFT_DATA);
			assert_non_null(strstr(weft_last_error(), path));
			assert_null(strchr(weft_last_error(), '\n'));
		}
		read_count += st == WEFT_OK;
		wf_topo_close(topo);
	}
	assert_int_equal(close(fd), 0);
	assert_int_equal(unlink(path), 0);
	hwloc_topology_destroy(kept);
	assert_true(read_count > mutants / 10 && read_count < mutants);
}

/* A limit that was reached is told as one, and damage as damage. */
static void
a_file_that_takes_too_long_to_understand_is_told_so(void **state)
{
	static const struct {
		struct wf_topo_limits limits;
		int does;
		const char *text;
	} cases[] = {
		{{.wall_ms = 0, .cpu_s = 5}, WAIT, "took longer than it may"},
		{{.wall_ms = 1300, .cpu_s = 5}, WAIT, "(1.3 s, 5 s of computing)"},
		{{.wall_ms = 60000, .cpu_s = 1}, SPIN, "(60.0 s, 1 s of computing)"},
		{{.wall_ms = 60000, .cpu_s = 5}, CRASH, "is damaged, so that hwloc"},
	};
	const struct wf_topo_source source = {.xml = WF_MACHINES "/guest.xml"};

	(void)state;
	for (size_t i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		struct wf_topo *topo = NULL;
		child_does = cases[i].does;
		enum weft_status st = wf_topo_ask_child(env, &source, &cases[i].limits, &topo);
		child_does = READ;
		assert_int_equal(st, WEFT_DATA);
		assert_non_null(strstr(weft_last_error(), cases[i].text));
		assert_non_null(strstr(weft_last_error(), "guest.xml"));
		assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	}
}

struct feeder {
	const char *fifo;
	unsigned delay_ms; /* before the second half */
};

static void *
feed(void *arg)
{
	const struct feeder *feeder = arg;
	static char bytes[XML_BYTES_MAX];
	int in = open(WF_MACHINES "/guest.xml", O_RDONLY | O_CLOEXEC);
	int out = open(feeder->fifo, O_WRONLY | O_CLOEXEC);
	const ssize_t count = read(in, bytes, sizeof(bytes));
	bool ok = count > 1000 && write(out, bytes, 1000) == 1000;
	(void)poll(NULL, 0, (int)feeder->delay_ms);
	ok = ok && write(out, bytes + 1000, (size_t)count - 1000) == count - 1000;
	return close(in) + close(out) == 0 && ok ? arg : NULL;
}

/* Reads a machine of which the second half comes later than the child may take. */
static enum weft_status
read_late(unsigned wall_ms, struct wf_topo **topo)
{
	const struct wf_topo_limits limits = {.wall_ms = wall_ms, .cpu_s = 5};
	char folder[] = "/tmp/weft-topo-XXXXXX";
	char path[64];
	struct feeder feeder = {.fifo = path, .delay_ms = wall_ms + 200};
	pthread_t thread;
	void *fed = NULL;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/machine", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(pthread_create(&thread, NULL, feed, &feeder), 0);
	enum weft_status st =
		wf_topo_ask_child(env, &(struct wf_topo_source){.xml = path}, &limits, topo);
	assert_int_equal(pthread_join(thread, &fed), 0);
	assert_non_null(fed);
	assert_int_equal(unlink(path) + rmdir(folder), 0);
	return st;
}

/* As from a server far away: it is no damage. The child itself may be late on a busy machine, and
 * gets more time then; a limit that included the reading would be exceeded each time. */
static void
a_file_that_is_slow_to_read_is_waited_for(void **state)
{
	enum weft_status st = WEFT_DATA;
	struct wf_topo *topo = NULL;

	(void)state;
	for (unsigned wall_ms = 1000; st != WEFT_OK && wall_ms <= 27000; wall_ms *= 3) {
		st = read_late(wall_ms, &topo);
	}
	assert_int_equal(st, WEFT_OK);
	assert_true(topo->cpu_count > 0);
	wf_topo_close(topo);
}

static void
a_file_that_has_no_end_is_refused(void **state)
{
	struct wf_failing_env failing;
	struct wf_topo *topo = NULL;

	(void)state;
	wf_failing_env_init(&failing, env);
	assert_int_equal(
		wf_topo_open(&failing.env, &(struct wf_topo_source){.xml = "/dev/zero"}, &topo),
		WEFT_DATA);
	assert_non_null(strstr(weft_last_error(), "/dev/zero has more than 64 MiB"));
	assert_int_equal(wf_topo_open(&failing.env, &(struct wf_topo_source){.xml = "/tmp"}, &topo),
			 WEFT_DATA);
	assert_non_null(strstr(weft_last_error(), "/tmp cannot be read: Is a directory"));
	assert_true(wf_failing_env_is_clean(&failing));
}

/* Whoever has the second end of the pipe is alive. */
static void
the_child_ends_with_who_asked_it(void **state)
{
	char byte = 0;
	int alive[2];

	(void)state;
	assert_int_equal(pipe(alive), 0);
	pid_t asker = fork();
	assert_true(asker >= 0);
	if (asker == 0) {
		const struct wf_topo_source source = {.xml = WF_MACHINES "/guest.xml"};
		const struct wf_topo_limits limits = {.wall_ms = 600000, .cpu_s = 5};
		struct wf_topo *topo = NULL;
		child_does = WAIT;
		tell_fd = alive[1];
		enum weft_status st = wf_topo_ask_child(env, &source, &limits, &topo);
		_exit((int)st);
	}
	assert_int_equal(close(alive[1]), 0);
	assert_int_equal(read(alive[0], &byte, 1), 1);
	assert_int_equal(kill(asker, SIGKILL), 0);
	assert_int_equal(waitpid(asker, NULL, 0), asker);
	struct pollfd end = {.fd = alive[0], .events = POLLIN};
	assert_int_equal(poll(&end, 1, 60000), 1);
	assert_int_equal(read(alive[0], &byte, 1), 0);
	assert_int_equal(close(alive[0]), 0);
}

/* As a site may set it for all processes: hwloc would read the file in ours. */
static void
a_file_of_the_environment_is_not_read(void **state)
{
	struct wf_topo *topo = NULL;

	(void)state;
	assert_int_equal(setenv("HWLOC_XMLFILE", WF_MACHINES "/guest.xml", 1), 0);
	enum weft_status st = wf_topo_open(env, &(struct wf_topo_source){0}, &topo);
	enum weft_status named = wf_topo_open(
		env, &(struct wf_topo_source){.xml = WF_MACHINES "/24em64t-2n6c2t-pci.xml"}, &topo);
	assert_int_equal(unsetenv("HWLOC_XMLFILE"), 0);
	assert_int_equal(st, WEFT_INVALID);
	assert_int_equal(named, WEFT_OK);
	assert_int_equal(topo->core_count, 12);
	wf_topo_close(topo);
}

static void
no_memory_is_a_status_and_leaves_nothing_behind(void **state)
{
	struct wf_failing_env failing;
	struct wf_topo *topo = NULL;
	const struct wf_topo_source source = {.synthetic = "node:2 l2:1 core:2 pu:2"};
	uint64_t nth = 0;
	wf_failing_env_init(&failing, env);
	do {
		wf_failing_env_fail(&failing, ++nth, false);
		enum weft_status st = wf_topo_open(&failing.env, &source, &topo);
		assert_int_equal(st, failing.failed > 0 ? WEFT_NOMEM : WEFT_OK);
		assert_true(st == WEFT_OK || wf_failing_env_is_clean(&failing));
	} while (failing.failed > 0);
	assert_true(nth > 5);
	wf_topo_close(topo);
	assert_true(wf_failing_env_is_clean(&failing));
	wf_topo_close(NULL);
}

static void
the_machine_at_hand_has_the_cpus_of_this_process(void **state)
{
	cpu_set_t before;
	cpu_set_t one;
	struct wf_topo *topo = NULL;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	assert_int_equal(wf_topo_open(env, &(struct wf_topo_source){0}, &topo), WEFT_OK);
	assert_true(topo->is_here);
	assert_int_equal(topo->cpu_count, CPU_COUNT(&before));
	uint32_t last = topo->cpu[topo->cpu_count - 1];
	wf_topo_close(topo);

	CPU_ZERO(&one);
	CPU_SET(last, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(wf_topo_open(env, &(struct wf_topo_source){0}, &topo), WEFT_OK);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	assert_int_equal(topo->core_count, 1);
	assert_int_equal(topo->cpu_count, 1);
	assert_int_equal(topo->cpu[0], last);
	wf_topo_close(topo);
}

static void
a_saved_machine_reads_as_it_was(void **state)
{
	char path[] = "/tmp/weft_topo_XXXXXX";
	struct wf_topo *here = NULL;
	struct wf_topo *there = NULL;
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(wf_topo_save(path), WEFT_OK);
	assert_int_equal(wf_topo_open(env, &(struct wf_topo_source){0}, &here), WEFT_OK);
	assert_int_equal(wf_topo_open(env, &(struct wf_topo_source){.xml = path}, &there), WEFT_OK);
	assert_false(there->is_here);
	assert_int_equal(there->node_count, here->node_count);
	assert_true(there->cpu_count >= here->cpu_count); /* without this process's mask */
	assert_int_equal(there->package_count, here->package_count);
	wf_topo_close(here);
	wf_topo_close(there);
	(void)close(fd);
	(void)unlink(path);
	assert_int_equal(wf_topo_save("/no/such/folder/machine.xml"), WEFT_IO);
}

static void
a_machine_is_saved_over_no_file_of_somebody_else(void **state)
{
	char folder[] = "/tmp/weft-topo-XXXXXX";
	char mine[64], out[64], text[8] = "";

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(mine, sizeof(mine), "%s/mine", folder);
	snprintf(out, sizeof(out), "%s/out", folder);
	int fd = open(mine, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "mine", 4), 4);
	for (unsigned i = 0; i < 4; i++) {
		int made = i == 0   ? symlink("mine", out)
			   : i == 1 ? link(mine, out)
			   : i == 2 ? mkfifo(out, 0600)
				    : symlink("nowhere", out);
		assert_int_equal(made, 0);
		assert_int_equal(wf_topo_save(out), WEFT_IO);
		assert_non_null(strstr(weft_last_error(), "move it away"));
		assert_int_equal(pread(fd, text, sizeof(text), 0), 4);
		assert_memory_equal(text, "mine", 4);
		assert_int_equal(unlink(out), 0);
	}
	assert_int_equal(wf_topo_save(mine), WEFT_OK); /* a file is replaced */
	assert_int_equal(pread(fd, text, sizeof(text), 0), sizeof(text));
	assert_memory_equal(text, "<?xml ve", sizeof(text));
	assert_int_equal(close(fd) + unlink(mine) + rmdir(folder), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(cores_have_their_hardware_threads_side_by_side),
		TEST(nodes_count_their_own_cores),
		TEST(a_machine_that_tells_of_no_cores_has_one_for_each_cpu),
		TEST(an_old_capture_has_devices_whose_ports_nobody_knows),
		TEST(a_capture_has_devices_at_the_node_of_their_bus),
		TEST(the_guest_has_huge_pages_set_aside_on_each_node),
		TEST(what_describes_no_machine_is_refused_with_the_reason),
		TEST(one_damaged_byte_does_no_harm),
		TEST(a_file_that_takes_too_long_to_understand_is_told_so),
		TEST(a_file_that_is_slow_to_read_is_waited_for),
		TEST(a_file_that_has_no_end_is_refused),
		TEST(the_child_ends_with_who_asked_it),
		TEST(a_file_of_the_environment_is_not_read),
		TEST(no_memory_is_a_status_and_leaves_nothing_behind),
		TEST(the_machine_at_hand_has_the_cpus_of_this_process),
		TEST(a_saved_machine_reads_as_it_was),
		TEST(a_machine_is_saved_over_no_file_of_somebody_else),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
