/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of weft doctor, on recorded and on damaged trees: each says what the tree shows, and
 * none crashes, hangs or believes a file that lies. Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"
#include "tools/doctor/doctor.h"
#include "tools/doctor/hosts.h"
#include "tools/doctor/report.h"

#define FINDINGS_MAX 512u
#define PORT "sys/class/infiniband/rxe0/ports/1/"

static char root[64];
static struct wf_doctor_finding found[FINDINGS_MAX];
static unsigned found_count;
static struct wf_doctor_ask ask;

/* ---- trees ---- */

static void
make_folders(char *path)
{
	for (char *at = strchr(path + strlen(root) + 1, '/'); at != NULL;
	     at = strchr(at + 1, '/')) {
		*at = '\0';
		(void)mkdir(path, 0755);
		*at = '/';
	}
}

static void
write_bytes(const char *below, const void *bytes, size_t count)
{
	char path[512];
	(void)snprintf(path, sizeof(path), "%s/%s", root, below);
	make_folders(path);
	FILE *out = fopen(path, "we");
	assert_non_null(out);
	assert_int_equal(fwrite(bytes, 1, count, out), count);
	assert_int_equal(fclose(out), 0);
}

static void
file(const char *below, const char *text)
{
	write_bytes(below, text, strlen(text));
}

static void
gone(const char *below)
{
	char path[512];
	(void)snprintf(path, sizeof(path), "%s/%s", root, below);
	assert_int_equal(unlink(path), 0);
}

static const struct {
	const char *path, *text;
} recorded[] = {
	{"proc/sys/kernel/osrelease", "6.1.0-37-amd64\n"},
	{"sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"},
	{"proc/self/status", "Name:\tweft\nCapEff:\t0000000000000000\nVmPin:\t       0 kB\n"
			     "Seccomp:\t0\nCpus_allowed_list:\t0-3\n"},
	{"proc/self/cgroup", "0::/job\n"},
	{"proc/self/limits",
	 "Limit                     Soft Limit           Hard Limit           Units     \n"
	 "Max file size             unlimited            unlimited            bytes     \n"
	 "Max processes             12345                12345                processes \n"
	 "Max open files            1024                 4096                 files     \n"
	 "Max locked memory         unlimited            unlimited            bytes     \n"},
	{"proc/meminfo", "MemTotal:       8000000 kB\nMemAvailable:    4000000 kB\n"},
	{"proc/stat", "cpu  100 0 100 800 0 0 0 1 0 0\n"},
	{"sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance\n"},
	{"sys/devices/system/cpu/cpufreq/policy0/scaling_driver", "acpi-cpufreq\n"},
	{"sys/devices/system/node/online", "0-1\n"},
	{"sys/kernel/mm/transparent_hugepage/shmem_enabled", "always within_size [advise] never\n"},
	{"sys/class/net/lo/flags", "0x9\n"},
	{"sys/class/net/lo/mtu", "65536\n"},
	{"sys/class/net/eth0/flags", "0x1003\n"},
	{"sys/class/net/eth0/mtu", "9000\n"},
	{"sys/class/net/eth0/speed", "25000\n"},
	{"sys/class/net/eth0/operstate", "up\n"},
	{"proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"},
	{"proc/sys/net/ipv4/tcp_wmem", "4096\t16384\t4194304\n"},
	{"proc/sys/net/ipv4/tcp_mem", "90000 120000 180000\n"},
	{"proc/sys/net/core/somaxconn", "4096\n"},
	{"proc/sys/net/ipv4/tcp_congestion_control", "cubic\n"},
	{"proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n"},
	{"sys/class/infiniband/rxe0/node_type", "1: CA\n"},
	{"sys/class/infiniband_verbs/uverbs0/ibdev", "rxe0\n"},
	{"dev/infiniband/uverbs0", "x"},
	{"dev/infiniband/rdma_cm", "x"},
	{"etc/libibverbs.d/rxe.driver", "driver rxe\n"},
	{PORT "state", "4: ACTIVE\n"},
	{PORT "phys_state", "5: LinkUp\n"},
	{PORT "rate", "100 Gb/sec (4X EDR)\n"},
	{PORT "link_layer", "Ethernet\n"},
	{PORT "gid_attrs/types/0", "IB/RoCE v1\n"},
	{PORT "gid_attrs/types/1", "RoCE v2\n"},
	{PORT "gid_attrs/types/2", "RoCE v2\n"},
	{PORT "gid_attrs/types/3", "RoCE v2\n"},
	{PORT "gid_attrs/ndevs/0", "eth0\n"},
	{PORT "gids/0", "fe80:0000:0000:0000:0000:00ff:fe00:0001\n"},
	{PORT "gids/1", "fe80:0000:0000:0000:0000:00ff:fe00:0001\n"},
	{PORT "gids/2", "fd09:0000:0000:0000:0000:0000:0000:0001\n"},
	{PORT "gids/3", "0000:0000:0000:0000:0000:ffff:0a09:0001\n"},
};
#define RECORDED (sizeof(recorded) / sizeof(recorded[0]))

static int
remove_one(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
	return remove(path);
}

static int
set_up(void **state)
{
	(void)snprintf(root, sizeof(root), "/tmp/weft_doctor_XXXXXX");
	assert_non_null(mkdtemp(root));
	for (size_t i = 0; i < RECORDED; i++) {
		file(recorded[i].path, recorded[i].text);
	}
	ask = (struct wf_doctor_ask){.root = root,
				     .transport = "auto",
				     .listen = "",
				     .port = 7164,
				     .lanes = 2,
				     .trainers = 2,
				     .memory_bytes = 64 << 20};
	return 0;
}

static int
tear_down(void **state)
{
	return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- running ---- */

static void
keep(void *arg, const struct wf_doctor_finding *finding)
{
	assert_true(found_count < FINDINGS_MAX);
	found[found_count++] = *finding;
}

static unsigned
count_level(enum wf_doctor_level level)
{
	unsigned count = 0;
	for (unsigned i = 0; i < found_count; i++) {
		count += found[i].level == level;
	}
	return count;
}

static void
run(void)
{
	found_count = 0;
	wf_doctor_run(&ask, keep, NULL);
}

/* Fails unless this is what the check says. */
static void
expect(const char *check, enum wf_doctor_level level, const char *text)
{
	run();
	for (unsigned i = 0; i < found_count; i++) {
		if (strcmp(found[i].check, check) == 0 && found[i].level == level &&
		    strstr(found[i].text, text) != NULL) {
			assert_true(level < WF_DOCTOR_FINDING || found[i].remedy[0] != '\0' ||
				    level == WF_DOCTOR_FAILS);
			return;
		}
	}
	for (unsigned i = 0; i < found_count; i++) {
		print_message("%s %s: %s\n", wf_doctor_level_name(found[i].level), found[i].check,
			      found[i].text);
	}
	fail_msg("%s does not say: %s", check, text);
}

static void
a_machine_without_faults_has_no_finding(void **state)
{
	run();
	assert_int_equal(count_level(WF_DOCTOR_FINDING), 0);
	assert_int_equal(count_level(WF_DOCTOR_FAILS), 0);
	expect("kernel", WF_DOCTOR_OK, "Linux 6.1.0-37-amd64");
	expect("numa", WF_DOCTOR_OK, "2 memory nodes (0-1)");
	expect("cpus", WF_DOCTOR_OK, "4 CPUs (0-3)");
	expect("interfaces", WF_DOCTOR_OK, "eth0 is up, MTU 9000, 25000 Mb/s");
	expect("rdma_links", WF_DOCTOR_OK, "rxe0 port 1 is active: 100 Gb/sec (4X EDR)");
	expect("rdma_gids", WF_DOCTOR_OK, "GID 3 is RoCE v2, IPv4");
	expect("rdma_mtus", WF_DOCTOR_OK, "packets of 4096 bytes; its interface eth0 has MTU 9000");
	expect("rdma_providers", WF_DOCTOR_OK, "the driver rxe");
}

/* One file is different, and one check says so. */
static void
each_fault_is_found(void **state)
{
	static const struct {
		const char *path, *text, *check;
		enum wf_doctor_level level;
		const char *says;
	} faults[] = {
		{"sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n",
		 "clock", WF_DOCTOR_FINDING, "is hpet"},
		{"proc/stat", "cpu  100 0 100 700 0 0 0 100 0 0\n", "steal", WF_DOCTOR_FINDING,
		 "10 %"},
		{"sys/fs/cgroup/job/cpu.max", "150000 100000\n", "cpus", WF_DOCTOR_FINDING,
		 "has the time of 2"},
		{"sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave\n",
		 "governor", WF_DOCTOR_FINDING, "powersave"},
		{"sys/devices/system/cpu/isolated", "2-3\n", "isolated", WF_DOCTOR_NOTE,
		 "--pin=2-3"},
		{"sys/fs/cgroup/job/memory.max", "33554432\n", "memory", WF_DOCTOR_FINDING,
		 "may use 32.0 MiB"},
		{"sys/fs/cgroup/job/pids.max", "20\n", "pids", WF_DOCTOR_FINDING,
		 "may have 20 processes"},
		{"proc/meminfo", "MemAvailable: 1024 kB\n", "memory", WF_DOCTOR_FINDING,
		 "1.0 MiB of memory are available"},
		{"sys/kernel/mm/transparent_hugepage/shmem_enabled", "always [never]\n",
		 "huge_pages", WF_DOCTOR_FINDING, "(never)"},
		{"sys/class/net/lo/flags", "0x8\n", "loopback", WF_DOCTOR_FAILS, "lo is down"},
		{"sys/class/net/lo/mtu", "1500\n", "loopback", WF_DOCTOR_FINDING, "1500"},
		{"sys/class/net/eth0/speed", "100\n", "interfaces", WF_DOCTOR_FINDING, "100 Mb/s"},
		{"sys/class/net/eth0/carrier", "0\n", "interfaces", WF_DOCTOR_NOTE, "no carrier"},
		{"proc/sys/net/ipv4/tcp_wmem", "4096 16384 65536\n", "buffers", WF_DOCTOR_FINDING,
		 "tcp_wmem lets a buffer grow to 64 KiB"},
		{"proc/sys/net/ipv4/tcp_mem", "1 2 3\n", "tcp_memory", WF_DOCTOR_FINDING, "12 KiB"},
		{"proc/sys/net/core/somaxconn", "16\n", "backlog", WF_DOCTOR_FINDING, "16 connect"},
		{"proc/sys/net/ipv4/ip_local_port_range", "1024 60999\n", "ports",
		 WF_DOCTOR_FINDING, "1024 to 60999"},
		{PORT "state", "1: DOWN\n", "rdma_links", WF_DOCTOR_FINDING, "rxe0 port 1 is DOWN"},
		{"sys/class/net/eth0/mtu", "1500\n", "rdma_mtus", WF_DOCTOR_FINDING,
		 "packets of 1024 bytes, because its interface eth0 has MTU 1500"},
	};
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		file(faults[i].path, faults[i].text);
		expect(faults[i].check, faults[i].level, faults[i].says);
		assert_int_equal(count_level(WF_DOCTOR_FINDING) + count_level(WF_DOCTOR_FAILS),
				 faults[i].level >= WF_DOCTOR_FINDING);
		(void)tear_down(state);
		(void)set_up(state);
	}
}

/* Rewrites one row of the limits. */
static void
limits(const char *file_size, const char *processes, const char *files, const char *locked)
{
	char text[1024];
	(void)snprintf(
		text, sizeof(text),
		"Limit                     Soft Limit           Hard Limit           Units\n"
		"Max file size             %s            %s            bytes     \n"
		"Max processes             %s                %s                processes \n"
		"Max open files            10                 %s                 files     \n"
		"Max locked memory         %s            %s            bytes     \n",
		file_size, file_size, processes, processes, files, locked, locked);
	file("proc/self/limits", text);
}

static void
limits_of_a_login_are_compared_with_what_a_job_needs(void **state)
{
	limits("1048576", "12345", "4096", "unlimited");
	expect("file_size", WF_DOCTOR_FINDING, "may have 1.0 MiB, and a process needs 64.0 MiB");
	limits("unlimited", "9", "4096", "unlimited");
	expect("pids", WF_DOCTOR_FINDING, "may have 9 processes");
	limits("unlimited", "12345", "70", "unlimited");
	expect("descriptors", WF_DOCTOR_FINDING, "2 trainers on 2 lanes need 76");
	limits("unlimited", "12345", "4096", "65536");
	expect("memlock", WF_DOCTOR_FINDING, "64 KiB of memory may be locked");
	ask.transport = "verbs";
	expect("memlock", WF_DOCTOR_FAILS, "64 KiB of memory may be locked");
	ask.transport = "tcp";
	expect("memlock", WF_DOCTOR_NOTE, "RDMA is not used");
	/* The host's CAP_IPC_LOCK: most devices do not look at the limit. */
	ask.transport = "verbs";
	file("proc/self/status", "CapEff:\t0000000000004000\nCpus_allowed_list:\t0-3\n");
	expect("memlock", WF_DOCTOR_NOTE, "CAP_IPC_LOCK");
}

static void
version_1_of_cgroups_counts_too(void **state)
{
	file("proc/self/cgroup", "8:pids:/a\n4:memory:/a/b\n");
	file("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1048576\n");
	file("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
	expect("memory", WF_DOCTOR_FINDING, "may use 1.0 MiB");
	file("sys/fs/cgroup/pids/a/pids.max", "3\n");
	expect("pids", WF_DOCTOR_FINDING, "may have 3 processes");
	file("proc/self/cgroup", "8:pids:/a\n4:memory:/a/b\n2:cpu,cpuacct:/a\n");
	file("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "150000\n");
	file("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
	expect("cpus", WF_DOCTOR_FINDING, "has the time of 2");
}

static void
what_is_asked_for_and_missing_fails(void **state)
{
	ask.transport = "verbs";
	run();
	assert_int_equal(count_level(WF_DOCTOR_FAILS), 0);
	file(PORT "state", "1: DOWN\n");
	expect("rdma_links", WF_DOCTOR_FAILS, "no port of an RDMA device is active");
	gone("dev/infiniband/uverbs0");
	expect("rdma_devices", WF_DOCTOR_FINDING, "there is no");
	expect("rdma_devices", WF_DOCTOR_FAILS, "may open none");
	(void)tear_down(state);
	(void)snprintf(root, sizeof(root), "/tmp/weft_doctor_XXXXXX");
	assert_non_null(mkdtemp(root));
	expect("rdma_devices", WF_DOCTOR_FAILS, "there is no RDMA device");
	ask.transport = "auto";
	expect("rdma_devices", WF_DOCTOR_NOTE, "there is no RDMA device");
}

static void
congestion_control_matters_where_tcp_stays_on_the_host(void **state)
{
	file("proc/sys/net/ipv4/tcp_congestion_control", "bbr\n");
	expect("congestion", WF_DOCTOR_NOTE, "bbr");
	ask.transport = "tcp";
	expect("congestion", WF_DOCTOR_FINDING, "bbr");
	assert_string_equal(ask.listen, "");
	ask.listen = "10.0.0.1";
	expect("congestion", WF_DOCTOR_NOTE, "bbr");
}

static void
roce_without_an_address_and_iwarp_are_told_apart(void **state)
{
	file(PORT "gids/2", "fe80::1\n");
	file(PORT "gids/3", "0000:0000:0000:0000:0000:0000:0000:0000\n");
	expect("rdma_gids", WF_DOCTOR_FINDING, "no GID of RoCE v2 that other hosts reach (3 of");
	file("sys/class/infiniband/rxe0/node_type", "4: RNIC\n");
	expect("rdma_gids", WF_DOCTOR_NOTE, "is not RoCE");
	expect("rdma_providers", WF_DOCTOR_FINDING, "libibverbs has no driver siw");
}

static void
only_what_matters_is_said_at_the_start(void **state)
{
	file("proc/sys/net/core/somaxconn", "16\n");
	found_count = 0;
	wf_doctor_run_at_start(&ask, keep, NULL);
	assert_int_equal(count_level(WF_DOCTOR_FINDING) + count_level(WF_DOCTOR_FAILS), 0);
	limits("1048576", "12345", "70", "65536");
	found_count = 0;
	wf_doctor_run_at_start(&ask, keep, NULL);
	assert_int_equal(count_level(WF_DOCTOR_FINDING), 3);
	for (unsigned i = 0; i < found_count; i++) {
		assert_string_not_equal(found[i].check, "backlog");
	}
}

/* ---- files that lie ---- */

static void
an_empty_tree_is_no_fault_of_the_machine(void **state)
{
	(void)tear_down(state);
	(void)snprintf(root, sizeof(root), "/tmp/weft_doctor_XXXXXX");
	assert_non_null(mkdtemp(root));
	expect("kernel", WF_DOCTOR_FINDING, "/proc cannot be read");
	assert_int_equal(count_level(WF_DOCTOR_FINDING), 1);
	assert_int_equal(count_level(WF_DOCTOR_FAILS), 0);
}

static void
replace(const char *below, int kind)
{
	char path[512];
	(void)snprintf(path, sizeof(path), "%s/%s", root, below);
	assert_int_equal(unlink(path), 0);
	if (kind == 0) {
		assert_int_equal(mkfifo(path, 0600), 0);
	} else if (kind == 1) {
		assert_int_equal(mkdir(path, 0700), 0);
	} else if (kind == 2) {
		assert_int_equal(symlink(path, path), 0);
	}
}

static void
put_back(size_t idx, int kind)
{
	char path[512];
	(void)snprintf(path, sizeof(path), "%s/%s", root, recorded[idx].path);
	if (kind < 3) {
		assert_int_equal(remove(path), 0);
	}
	file(recorded[idx].path, recorded[idx].text);
}

static bool
is_printable(const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text < 0x20 || *text == 0x7f) {
			return false;
		}
	}
	return true;
}

static void
check_sane(void)
{
	for (unsigned i = 0; i < found_count; i++) {
		assert_true(found[i].level < WF_DOCTOR_LEVELS);
		assert_true(is_printable(found[i].text) && is_printable(found[i].subject) &&
			    is_printable(found[i].remedy));
		if (strstr(found[i].text, "the check ") != NULL) {
			fail_msg("%s: %s", found[i].check, found[i].text);
		}
	}
}

static void
no_file_that_lies_ends_or_delays_a_check(void **state)
{
	static const char *const lies[] = {
		"",
		"\n",
		"-1\n",
		"999999999999999999999999999999999999999999\n",
		"0-4294967295,1-\n",
		"\x1b[2J\x07 [",
		"[[[[[[",
		"cpu  18446744073709551615 1 1 1 1 1 1 18446744073709551615\n",
		"MemAvailable: 18446744073709551615 kB\n",
		"MemAvailable: \nMax file size\nMax open files",
		"Max locked memory         x            y            bytes     \n",
		"0::/../../../../../../etc\n:memory:/../..\n",
		"../../../../etc/passwd\n",
		"fe80:::::::::::\n",
		"%s%s%s%n\n",
	};
	const size_t lie_count = sizeof(lies) / sizeof(lies[0]);
	for (size_t i = 0; i < RECORDED; i++) {
		file(recorded[i].path, lies[i % lie_count]); /* another one for each file */
		run();
		check_sane();
		for (int kind = (int)(i % 2); kind < 4; kind += 2) {
			replace(recorded[i].path, kind);
			run();
			check_sane();
			put_back(i, kind);
		}
	}
	for (size_t j = 0; j < lie_count; j++) {
		for (size_t i = 0; i < RECORDED; i++) {
			file(recorded[i].path, lies[j]);
		}
		run();
		check_sane();
	}
}

static void
no_random_bytes_end_a_check(void **state)
{
	struct wf_rng rng;
	uint8_t bytes[20000];
	wf_rng_init(&rng, 7, 0);
	for (size_t i = 0; i < RECORDED; i++) {
		size_t count = wf_rng_below(&rng, sizeof(bytes));
		for (size_t b = 0; b < count; b++) {
			bytes[b] = (uint8_t)wf_rng_u64(&rng);
		}
		write_bytes(recorded[i].path, bytes, count);
		run();
		check_sane();
	}
}

/* ---- the report ---- */

static void
the_report_counts_and_has_the_exit_code(void **state)
{
	struct wf_doctor_finding one = {.check = "memlock", .text = "a \"text\""};
	char *text = NULL;
	size_t bytes = 0;
	static const int codes[WF_DOCTOR_LEVELS] = {0, 0, 1, 69};
	for (unsigned level = 0; level < WF_DOCTOR_LEVELS; level++) {
		FILE *out = open_memstream(&text, &bytes);
		struct wf_doctor_report report = {.out = out, .json = true, .host = "b"};
		one.level = (enum wf_doctor_level)level;
		wf_doctor_report_begin(&report, "auto");
		wf_doctor_report_add(&report, &one);
		assert_int_equal(wf_doctor_report_end(&report), codes[level]);
		assert_int_equal(fclose(out), 0);
		assert_non_null(strstr(text, "\"check\": \"memlock\""));
		assert_non_null(strstr(text, "\"text\": \"a \\\"text\\\"\""));
		assert_non_null(strstr(text, wf_doctor_level_name(one.level)));
		free(text);
	}
}

/* ---- findings of other hosts ---- */

static void
a_finding_of_another_host_is_read_as_it_was_written(void **state)
{
	static const char *const lies[] = {
		"",
		"2",
		"2 memlock",
		"2 memlock 0 0",
		"9 memlock 0 0 text",
		"4 memlock 0 1 t",
		("2 memlock 80 0 ................................................................"
		 "................................"),
		"2 memlock 0 5 text",
		"2 memlock 3 9999 text",
		"-1 memlock 0 1 t",
		"2 memlock 0 4294967295 t",
		"2 memlock -1 4 text",
	};
	char line[1024];
	struct wf_doctor_finding finding;
	assert_true(wf_doctor_parse_line("2 memlock 4 4 rxe0textdo 5 6 it", &finding));
	assert_string_equal(finding.check, "memlock");
	assert_int_equal(finding.level, WF_DOCTOR_FINDING);
	assert_string_equal(finding.subject, "rxe0");
	assert_string_equal(finding.text, "text");
	assert_string_equal(finding.remedy, "do 5 6 it");
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		assert_false(wf_doctor_parse_line(lies[i], &finding));
	}
	unsigned count = 0;
	do {
		wf_doctor_examine(count, "auto", 64, line, sizeof(line));
		assert_true(line[0] == '\0' || wf_doctor_parse_line(line, &finding));
		count += line[0] != '\0';
	} while (line[0] != '\0' && count < FINDINGS_MAX);
	assert_true(count > 20);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_machine_without_faults_has_no_finding),
		TEST(each_fault_is_found),
		TEST(limits_of_a_login_are_compared_with_what_a_job_needs),
		TEST(version_1_of_cgroups_counts_too),
		TEST(what_is_asked_for_and_missing_fails),
		TEST(congestion_control_matters_where_tcp_stays_on_the_host),
		TEST(roce_without_an_address_and_iwarp_are_told_apart),
		TEST(only_what_matters_is_said_at_the_start),
		TEST(an_empty_tree_is_no_fault_of_the_machine),
		TEST(no_file_that_lies_ends_or_delays_a_check),
		TEST(no_random_bytes_end_a_check),
		TEST(the_report_counts_and_has_the_exit_code),
		TEST(a_finding_of_another_host_is_read_as_it_was_written),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
