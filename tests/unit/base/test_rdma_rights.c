/* SPDX-License-Identifier: Apache-2.0 */
/* A user who may not open a device's files learns which, why, and the remedy. Thread: one. */
#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/rdma_rights.h"

static char root[64];

static void
path_of(const char *below, char out[256])
{
	(void)snprintf(out, 256, "%s/%s", root, below);
}

static void
folder(const char *below)
{
	char path[256];
	path_of(below, path);
	assert_int_equal(mkdir(path, 0755), 0);
}

static void
file(const char *below, const char *text)
{
	char path[256];
	path_of(below, path);
	FILE *out = fopen(path, "we");
	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
	assert_int_equal(fclose(out), 0);
}

static void
gone(const char *below)
{
	char path[256];
	path_of(below, path);
	assert_int_equal(unlink(path), 0);
}

static void
mode(const char *below, mode_t bits)
{
	char path[256];
	path_of(below, path);
	assert_int_equal(chmod(path, bits), 0);
}

/* Two devices; the one asked about is not that of the first file. */
static int
set_up(void **state)
{
	(void)snprintf(root, sizeof(root), "/tmp/weft_rights_XXXXXX");
	assert_non_null(mkdtemp(root));
	assert_int_equal(chmod(root, 0755), 0);
	static const char *const folders[] = {
		"sys",
		"sys/class",
		"sys/class/infiniband_verbs",
		"sys/class/infiniband_verbs/uverbs0",
		"sys/class/infiniband_verbs/uverbs1",
		"dev",
		"dev/infiniband",
	};
	for (unsigned i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		folder(folders[i]);
	}
	file("sys/class/infiniband_verbs/abi_version", "6\n");
	file("sys/class/infiniband_verbs/uverbs0/ibdev", "mlx5_10\n");
	file("sys/class/infiniband_verbs/uverbs1/ibdev", "mlx5_1\n");
	file("dev/infiniband/uverbs0", "");
	file("dev/infiniband/uverbs1", "");
	file("dev/infiniband/rdma_cm", "");
	mode("dev/infiniband/uverbs1", 0666);
	mode("dev/infiniband/rdma_cm", 0666);
	return 0;
}

static int
drop(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	return remove(path);
}

static int
tear_down(void **state)
{
	return nftw(root, drop, 8, FTW_DEPTH | FTW_PHYS);
}

/* As a user without rights, whoever runs the test: its last words, "" where it may. */
static void
ask_as_nobody(char out[512])
{
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		const char *text = "";
		if (getuid() == 0 && setuid(65534) != 0) {
			text = "setuid";
		} else if (wf_rdma_rights_below(root, "mlx5_1") != WEFT_OK) {
			text = weft_last_error();
		}
		ssize_t n = write(ends[1], text, strlen(text));
		_exit(n == (ssize_t)strlen(text) ? 0 : 1);
	}
	int status = 0;
	assert_int_equal(close(ends[1]), 0);
	ssize_t n = read(ends[0], out, 511);
	assert_int_equal(close(ends[0]), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	out[n > 0 ? n : 0] = '\0';
}

static void
who_may_is_told_nothing(void **state)
{
	char said[512];
	assert_int_equal(wf_rdma_rights_below(root, "mlx5_1"), WEFT_OK);
	ask_as_nobody(said);
	assert_string_equal(said, "");
}

static void
a_file_of_root_alone_is_named_with_the_remedy(void **state)
{
	char said[512];
	mode("dev/infiniband/uverbs1", 0600);
	if (getuid() != 0) {
		mode("dev/infiniband/uverbs1", 0);
	}
	ask_as_nobody(said);
	assert_non_null(strstr(said, "mlx5_1: this user may not open"));
	assert_non_null(strstr(said, "/dev/infiniband/uverbs1 (Permission denied)"));
	assert_non_null(strstr(said, "--device=/dev/infiniband"));
	mode("dev/infiniband/uverbs1", 0666);
	mode("dev/infiniband/rdma_cm", 0);
	ask_as_nobody(said);
	assert_non_null(strstr(said, "/dev/infiniband/rdma_cm (Permission denied)"));
}

static void
a_file_that_is_missing_is_named_with_its_module(void **state)
{
	gone("dev/infiniband/rdma_cm");
	assert_int_equal(wf_rdma_rights_below(root, "mlx5_1"), WEFT_UNAVAILABLE);
	assert_non_null(strstr(weft_last_error(), "/dev/infiniband/rdma_cm (modprobe rdma_ucm"));
	gone("dev/infiniband/uverbs1");
	assert_int_equal(wf_rdma_rights_below(root, "mlx5_1"), WEFT_UNAVAILABLE);
	assert_non_null(strstr(weft_last_error(), "/dev/infiniband/uverbs1 (modprobe ib_uverbs"));
	/* Neither right nor file is wanting: whatever it is, it is said. */
	folder("dev/infiniband/uverbs1");
	assert_int_equal(wf_rdma_rights_below(root, "mlx5_1"), WEFT_UNAVAILABLE);
	assert_non_null(strstr(weft_last_error(), "/dev/infiniband/uverbs1 cannot be opened"));
	assert_non_null(strstr(weft_last_error(), strerror(EISDIR)));
	/* No other device's file stands for it. */
	assert_int_equal(wf_rdma_rights_below(root, "mlx5"), WEFT_UNAVAILABLE);
	assert_string_equal(weft_last_error(), "mlx5: the kernel has no file for programs that use "
					       "it (modprobe ib_uverbs)");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_may_is_told_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_file_of_root_alone_is_named_with_the_remedy,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_file_that_is_missing_is_named_with_its_module,
						set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
