/* SPDX-License-Identifier: Apache-2.0 */
/* tar: see tar.h. Thread: any. */
#include "saved/tar.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

/* Fields of a header: where they are, and how long. */
#define MODE_AT 100u
#define UID_AT 108u
#define GID_AT 116u
#define BYTES_AT 124u
#define BYTES_FIELD 12u
#define TIME_AT 136u
#define SUM_AT 148u
#define SUM_FIELD 8u
#define KIND_AT 156u
#define MAGIC_AT 257u
#define PREFIX_AT 345u
#define PREFIX_BYTES 155u

/* Of all bytes, those of the sum itself counted as blanks. */
static uint32_t
sum_of(const uint8_t *block)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < WF_TAR_BLOCK_BYTES; i++) {
		sum += i >= SUM_AT && i < SUM_AT + SUM_FIELD ? ' ' : block[i];
	}
	return sum;
}

/* Octal digits, with blanks before and a blank or zero after them; or, for large numbers in GNU's
 * form, 0x80 and big-endian bytes. */
static bool
get_number(const uint8_t *at, unsigned field, uint64_t *out)
{
	uint64_t value = 0;
	unsigned i = 0;

	if (at[0] == 0x80) {
		for (i = 1; i < field; i++) {
			if (value >> 55 != 0) {
				return false;
			}
			value = value << 8 | at[i];
		}
		*out = value;
		return true;
	}
	while (i < field && at[i] == ' ') {
		i++;
	}
	const unsigned first = i;
	for (; i < field && at[i] >= '0' && at[i] <= '7'; i++) {
		value = value << 3 | (uint64_t)(at[i] - '0');
	}
	const bool has_digits = i > first;
	while (i < field && (at[i] == ' ' || at[i] == '\0')) {
		i++;
	}
	*out = value;
	return has_digits && i == field;
}

static enum wf_tar_kind
kind_of(uint8_t letter)
{
	switch (letter) {
	case '\0':
	case '0':
	case '7':
		return WF_TAR_FILE;
	case 'L':
		return WF_TAR_LONG_NAME;
	case 'x':
		return WF_TAR_PAX;
	case '5':
	case 'g':
	case 'K':
		return WF_TAR_ASIDE;
	default:
		return WF_TAR_OTHER;
	}
}

static void
get_name(const uint8_t *block, struct wf_tar_header *out)
{
	const char *text = (const char *)block;
	const bool is_posix = memcmp(block + MAGIC_AT, "ustar\0", 6) == 0;
	const size_t prefix = is_posix ? strnlen(text + PREFIX_AT, PREFIX_BYTES) : 0;

	if (prefix > 0) {
		memcpy(out->name, text + PREFIX_AT, prefix);
		out->name[prefix] = '/';
		out->name_bytes = prefix + 1;
	}
	const size_t bytes = strnlen(text, WF_TAR_NAME_IN_HEADER);
	WF_ASSERT(out->name_bytes + bytes <= sizeof(out->name));
	memcpy(out->name + out->name_bytes, text, bytes);
	out->name_bytes += bytes;
}

bool
wf_tar_decode(const uint8_t block[WF_TAR_BLOCK_BYTES], struct wf_tar_header *out)
{
	uint64_t sum = 0;

	*out = (struct wf_tar_header){.kind = kind_of(block[KIND_AT])};
	if (!get_number(block + SUM_AT, SUM_FIELD, &sum) || sum != sum_of(block) ||
	    !get_number(block + BYTES_AT, BYTES_FIELD, &out->bytes)) {
		return false;
	}
	if (block[KIND_AT] == '5') {
		out->bytes = 0;
	}
	get_name(block, out);
	return out->name_bytes > 0;
}

bool
wf_tar_is_end(const uint8_t block[WF_TAR_BLOCK_BYTES])
{
	for (unsigned i = 0; i < WF_TAR_BLOCK_BYTES; i++) {
		if (block[i] != 0) {
			return false;
		}
	}
	return true;
}

static void
put_octal(uint8_t *at, unsigned field, uint64_t value)
{
	at[field - 1] = '\0';
	for (unsigned i = field - 1; i > 0; i--, value >>= 3) {
		at[i - 1] = (uint8_t)('0' + (value & 7));
	}
}

static void
put_bytes(uint8_t *at, uint64_t value)
{
	if (value >> 33 == 0) {
		put_octal(at, BYTES_FIELD, value);
		return;
	}
	memset(at, 0, BYTES_FIELD);
	at[0] = 0x80;
	for (unsigned i = BYTES_FIELD - 1; value > 0; i--, value >>= 8) {
		at[i] = (uint8_t)value;
	}
}

void
wf_tar_encode(const struct wf_tar_header *header, uint8_t block[WF_TAR_BLOCK_BYTES])
{
	WF_ASSERT(header->name_bytes > 0 && header->name_bytes <= WF_TAR_NAME_IN_HEADER);
	WF_ASSERT(header->kind == WF_TAR_FILE || header->kind == WF_TAR_LONG_NAME);
	memset(block, 0, WF_TAR_BLOCK_BYTES);
	memcpy(block, header->name, header->name_bytes);
	put_octal(block + MODE_AT, 8, 0644);
	put_octal(block + UID_AT, 8, 0);
	put_octal(block + GID_AT, 8, 0);
	put_bytes(block + BYTES_AT, header->bytes);
	put_octal(block + TIME_AT, 12, 0);
	block[KIND_AT] = header->kind == WF_TAR_FILE ? '0' : 'L';
	memcpy(block + MAGIC_AT, "ustar  ", 8); /* GNU's, with its zero */
	put_octal(block + SUM_AT, 7, sum_of(block));
	block[SUM_AT + 7] = ' ';
}

bool
wf_tar_decimal(const char *text, size_t bytes, uint64_t *out)
{
	uint64_t value = 0;

	if (bytes == 0 || bytes > 18) {
		return false;
	}
	for (size_t i = 0; i < bytes; i++) {
		if (text[i] < '0' || text[i] > '9') {
			return false;
		}
		value = value * 10 + (uint64_t)(text[i] - '0');
	}
	*out = value;
	return true;
}
