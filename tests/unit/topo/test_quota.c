/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of quota: limits of CPU time, in a folder that looks like the file system of cgroups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/quota.h"

static char root[64];

static int
set_up(void **state)
{
	(void)snprintf(root, sizeof(root), "/tmp/weft_quota_XXXXXX");
	return mkdtemp(root) != NULL ? 0 : -1;
}

static void
path_of(const char *group, const char *file, char *out, size_t bytes)
{
	(void)snprintf(out, bytes, "%s%s%s", root, group, file);
}

static void
write_limit(const char *group, const char *name, const char *text)
{
	char path[256];
	path_of(group, "", path, sizeof(path));
	(void)mkdir(path, 0700);
	path_of(group, name, path, sizeof(path));
	FILE *file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void
limit(const char *group, const char *text)
{
	write_limit(group, "/cpu.max", text);
}

/* In version 1. */
static void
limit_v1(const char *group, const char *quota, const char *period)
{
	write_limit(group, "/cpu.cfs_quota_us", quota);
	write_limit(group, "/cpu.cfs_period_us", period);
}

static int
tear_down(void **state)
{
	static const char *const groups[] = {
		"/cpu/job/lane", "/cpu/job",  "/cpu", "/cpu,cpuacct/job",
		"/cpu,cpuacct",  "/job/lane", "/job", ""};
	static const char *const files[] = {"/cpu.max", "/cpu.cfs_quota_us", "/cpu.cfs_period_us"};
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		char path[256];
		for (size_t k = 0; k < sizeof(files) / sizeof(files[0]); k++) {
			path_of(groups[i], files[k], path, sizeof(path));
			(void)unlink(path);
		}
		path_of(groups[i], "", path, sizeof(path));
		(void)rmdir(path);
	}
	return 0;
}

static void
a_limit_is_rounded_up_to_cpus(void **state)
{
	limit("/job", "250000 100000\n");
	assert_int_equal(wf_quota_cpus_at(root, "0::/job\n"), 3);
	limit("/job", "50000 100000\n");
	assert_int_equal(wf_quota_cpus_at(root, "0::/job\n"), 1);
	limit("/job", "400000 100000\n");
	assert_int_equal(wf_quota_cpus_at(root, "0::/job\n"), 4);
}

static void
the_least_on_the_way_up_counts(void **state)
{
	limit("", "300000 100000\n");
	limit("/job", "max 100000\n");
	limit("/job/lane", "800000 100000\n");
	assert_int_equal(wf_quota_cpus_at(root, "1:name=x:/\n0::/job/lane\n"), 3);
	assert_int_equal(wf_quota_cpus_at(root, "0::/job\n"), 3);
	assert_int_equal(wf_quota_cpus_at(root, "0::/"), 3); /* as a container sees itself */
	limit("/job/lane", "150000 100000\n");
	assert_int_equal(wf_quota_cpus_at(root, "0::/job/lane\n"), 2);
}

static void
what_says_nothing_limits_nothing(void **state)
{
	static const char *const texts[] = {"",
					    "max\n",
					    "0 100000\n",
					    "100000\n",
					    "5 0\n",
					    "-1 2\n",
					    "99999999999999999999 1\n"};
	assert_int_equal(wf_quota_cpus_at(root, "0::/job\n"), 0);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		limit("/job", texts[i]);
		assert_int_equal(wf_quota_cpus_at(root, "0::/job\n"), 0);
	}
	limit("/job", "100000 100000\n");
	assert_int_equal(wf_quota_cpus_at(root, ""), 0);
	assert_int_equal(wf_quota_cpus_at(root, "4:cpu:/job\n"), 0);
	assert_int_equal(wf_quota_cpus_at(root, "0::"), 0);
}

static void
a_number_is_the_least_on_the_way_up(void **state)
{
	const struct wf_quota_file file = {.controller = "memory", .name = "cpu.max"};
	limit("/job", "4096\n");
	limit("/job/lane", "8192\n");
	assert_int_equal(wf_quota_least_at(root, &file, "7:memory:/job/lane\n0::/\n"), 4096);
	limit("/job/lane", "100\n");
	assert_int_equal(wf_quota_least_at(root, &file, "7:memory:/job/lane\n"), 100);
	assert_int_equal(wf_quota_least_at(root, &file, "0::/job\n"), 0);
	limit("/job", "max\n");
	assert_int_equal(wf_quota_least_at(root, &file, "7:memory:/job\n"), 0);
	limit("/job", "-7\n");
	assert_int_equal(wf_quota_least_at(root, &file, "7:memory:/job\n"), 0);
	limit("/job", "7 8\n");
	assert_int_equal(wf_quota_least_at(root, &file, "7:memory:/job\n"), 0);
}

static void
version_1_has_quota_and_period_in_two_files(void **state)
{
	static const char groups[] = "9:cpuset:/\n4:cpu,cpuacct:/job/lane\n0::/\n";
	limit_v1("/cpu", "-1\n", "100000\n");
	assert_int_equal(wf_quota_cpus_at(root, groups), 0);
	limit_v1("/cpu/job", "250000\n", "100000\n");
	assert_int_equal(wf_quota_cpus_at(root, groups), 3);
	limit_v1("/cpu/job/lane", "20000\n", "10000\n");
	assert_int_equal(wf_quota_cpus_at(root, groups), 2);
	assert_int_equal(wf_quota_cpus_at(root, "4:cpuacct,cpu:/job\n"), 3);
	assert_int_equal(wf_quota_cpus_at(root, "4:cpu:/job\n"), 3);
	assert_int_equal(wf_quota_cpus_at(root, "4:cpuset,cpuacct:/job\n"), 0);
	assert_int_equal(wf_quota_cpus_at(root, "4:cpu\n:cpu\n4"), 0);
	/* Version 2 counts where it has a limit. */
	limit("", "500000 100000\n");
	assert_int_equal(wf_quota_cpus_at(root, groups), 5);
}

static void
version_1_may_have_a_folder_of_two_controllers(void **state)
{
	limit_v1("/cpu,cpuacct", "-1\n", "100000\n");
	limit_v1("/cpu,cpuacct/job", "150000\n", "50000\n");
	assert_int_equal(wf_quota_cpus_at(root, "4:cpu,cpuacct:/job\n"), 3);
	/* As in a container, where the group is the host's, and the folder the container's. */
	limit_v1("/cpu,cpuacct", "100000\n", "100000\n");
	assert_int_equal(wf_quota_cpus_at(root, "4:cpu,cpuacct:/docker/12ab\n"), 1);
}

static void
files_of_version_1_that_lie_limit_nothing(void **state)
{
	static const char *const numbers[] = {"",    "0\n",   "-1\n",
					      "x\n", "5 6\n", "99999999999999999999\n"};
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		limit_v1("/cpu", numbers[i], "100000\n");
		assert_int_equal(wf_quota_cpus_at(root, "4:cpu:/\n"), 0);
		limit_v1("/cpu", "100000\n", numbers[i]);
		assert_int_equal(wf_quota_cpus_at(root, "4:cpu:/\n"), 0);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_limit_is_rounded_up_to_cpus),
		TEST(the_least_on_the_way_up_counts),
		TEST(what_says_nothing_limits_nothing),
		TEST(a_number_is_the_least_on_the_way_up),
		TEST(version_1_has_quota_and_period_in_two_files),
		TEST(version_1_may_have_a_folder_of_two_controllers),
		TEST(files_of_version_1_that_lie_limit_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
