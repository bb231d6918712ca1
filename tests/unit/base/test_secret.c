/* SPDX-License-Identifier: Apache-2.0 */
/* Which files may hold a job's secret, what it becomes, and what is left of it. */
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/secret.h"

static char root[64];
static char path[128];

static void
write_file(const char *bytes, size_t count, mode_t mode)
{
	(void)unlink(path);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, count), count);
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(close(fd), 0);
}

static int
set_up(void **state)
{
	(void)snprintf(root, sizeof(root), "/tmp/weft_secret_XXXXXX");
	assert_non_null(mkdtemp(root));
	(void)snprintf(path, sizeof(path), "%s/secret", root);
	return 0;
}

static int
tear_down(void **state)
{
	(void)unlink(path);
	return rmdir(root);
}

static void
assert_key(uint8_t out[WF_MAC_BYTES])
{
	struct wf_secret *secret = NULL;
	const struct wf_mac_part part = {"for", 3};
	assert_int_equal(wf_secret_open(path, &secret), WEFT_OK);
	wf_secret_derive(secret, &part, 1, out);
	wf_secret_close(secret);
}

/* And nothing of the contents is in the text. */
static void
assert_refused(enum weft_status status, const char *why)
{
	struct wf_secret *secret = NULL;
	assert_int_equal(wf_secret_open(path, &secret), status);
	assert_null(secret);
	assert_non_null(strstr(weft_last_error(), path));
	assert_non_null(strstr(weft_last_error(), why));
	assert_null(strstr(weft_last_error(), "zzzz"));
}

static char text[4098];

static void
the_length_decides(void **state)
{
	uint8_t key[WF_MAC_BYTES];
	memset(text, 'z', sizeof(text));
	static const size_t good[] = {32, 33, 4095, 4096};
	for (unsigned i = 0; i < 4; i++) {
		write_file(text, good[i], 0400);
		assert_key(key);
	}
	static const size_t few[] = {0, 1, 31};
	for (unsigned i = 0; i < 3; i++) {
		write_file(text, few[i], 0400);
		assert_refused(WEFT_INVALID, "too few bytes; 32 to 4096");
	}
	write_file(text, 4097, 0400);
	assert_refused(WEFT_INVALID, "too many bytes; 32 to 4096");
	write_file(text, 4098, 0400);
	assert_refused(WEFT_INVALID, "too many bytes");
}

static void
no_one_else_may_have_a_right(void **state)
{
	uint8_t key[WF_MAC_BYTES];
	memset(text, 'z', sizeof(text));
	static const mode_t good[] = {0400, 0600};
	for (unsigned i = 0; i < 2; i++) {
		write_file(text, 32, good[i]);
		assert_key(key);
	}
	for (mode_t bit = 1; bit <= 04000; bit <<= (bit == 0100 ? 3 : 1)) { /* not 0200, 0400 */
		char mode[32];
		write_file(text, 32, 0600 | bit);
		(void)snprintf(mode, sizeof(mode), "has mode %04o", 0600 | bit);
		assert_refused(WEFT_INVALID, mode);
	}
}

static void
only_a_file_holds_a_secret(void **state)
{
	char target[160];
	(void)unlink(path);
	assert_refused(WEFT_IO, "cannot be opened: No such file");
	assert_int_equal(mkdir(path, 0700), 0);
	assert_refused(WEFT_INVALID, "no regular file");
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0); /* without a writer: it does not block */
	assert_refused(WEFT_INVALID, "no regular file");
	assert_int_equal(unlink(path), 0);
	memset(text, 'z', sizeof(text));
	write_file(text, 32, 0400);
	(void)snprintf(target, sizeof(target), "%s.real", path);
	assert_int_equal(rename(path, target), 0);
	assert_int_equal(symlink(target, path), 0);
	assert_refused(WEFT_INVALID, "is a link");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rename(target, path), 0);
}

/* Only who is root can give a file away. */
static void
a_file_of_another_user_is_refused(void **state)
{
	memset(text, 'z', sizeof(text));
	write_file(text, 32, 0400);
	if (geteuid() != 0) {
		return;
	}
	assert_int_equal(chown(path, 12345, (gid_t)-1), 0);
	assert_refused(WEFT_INVALID, "belongs to user 12345");
}

/* The same bytes make the same key, and each byte counts, a newline too. The expected key is
 * Python's: k = hmac.digest(b"z" * 32, b"weft: the key of a job, 1", "sha256");
 * hmac.digest(k, b"for", "sha256"). */
static void
every_byte_counts(void **state)
{
	static const uint8_t expected[WF_MAC_BYTES] = {
		0x71, 0x4f, 0xb8, 0x64, 0x11, 0xb5, 0x01, 0x06, 0x9d, 0x2f, 0x01,
		0x8e, 0x52, 0x74, 0xe0, 0x1e, 0x04, 0xdc, 0x2d, 0x75, 0x15, 0xe1,
		0xb4, 0x37, 0xac, 0x26, 0xae, 0xb3, 0xe8, 0x74, 0x03, 0x48,
	};
	uint8_t key[WF_MAC_BYTES], other[WF_MAC_BYTES];
	memset(text, 'z', sizeof(text));
	write_file(text, 32, 0400);
	assert_key(key);
	assert_memory_equal(key, expected, sizeof(key));
	assert_key(other);
	assert_memory_equal(key, other, sizeof(key));
	text[32] = '\n';
	write_file(text, 33, 0400);
	assert_key(other);
	assert_memory_not_equal(key, other, sizeof(key));
	text[31] = '\0';
	write_file(text, 32, 0400);
	assert_key(other);
	assert_memory_not_equal(key, other, sizeof(key));
}

/* Not in the part of memory that a core dump takes: the mapping is marked so. */
static void
its_memory_is_left_out_of_dumps(void **state)
{
	struct wf_secret *secret = NULL;
	memset(text, 'z', sizeof(text));
	write_file(text, 32, 0400);
	assert_int_equal(wf_secret_open(path, &secret), WEFT_OK);
	FILE *maps = fopen("/proc/self/smaps", "re");
	assert_non_null(maps);
	char line[512];
	bool here = false;
	bool marked = false;
	while (fgets(line, sizeof(line), maps) != NULL) {
		uintptr_t first = 0, end = 0;
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &first, &end) == 2) {
			here = (uintptr_t)secret >= first && (uintptr_t)secret < end;
		} else if (here && strncmp(line, "VmFlags:", 8) == 0) {
			marked = strstr(line, " dd") != NULL;
		}
	}
	assert_int_equal(fclose(maps), 0);
	assert_true(marked);
	/* Of the file itself nothing is left. */
	for (size_t i = 0; i + 4 <= 4096 + WF_MAC_BYTES; i++) {
		assert_true(memcmp((const char *)secret + i, "zzzz", 4) != 0);
	}
	wf_secret_close(secret);
	wf_secret_close(NULL);
}

static void
a_launcher_gets_the_bytes_themselves(void **state)
{
	static uint8_t bytes[WF_SECRET_BYTES_MAX];
	size_t count = 0;

	memset(text, 'z', sizeof(text));
	write_file(text, WF_SECRET_BYTES_MAX, 0400);
	assert_int_equal(wf_secret_read(path, bytes, &count), WEFT_OK);
	assert_int_equal(count, WF_SECRET_BYTES_MAX);
	assert_memory_equal(bytes, text, WF_SECRET_BYTES_MAX);
	write_file(text, WF_SECRET_BYTES_MIN - 1, 0400);
	assert_int_equal(wf_secret_read(path, bytes, &count), WEFT_INVALID);
	write_file(text, WF_SECRET_BYTES_MIN, 0440);
	assert_int_equal(wf_secret_read(path, bytes, &count), WEFT_INVALID);
	assert_int_equal(count, WF_SECRET_BYTES_MAX);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_length_decides),
		cmocka_unit_test(no_one_else_may_have_a_right),
		cmocka_unit_test(only_a_file_holds_a_secret),
		cmocka_unit_test(a_file_of_another_user_is_refused),
		cmocka_unit_test(every_byte_counts),
		cmocka_unit_test(its_memory_is_left_out_of_dumps),
		cmocka_unit_test(a_launcher_gets_the_bytes_themselves),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
