/* SPDX-License-Identifier: Apache-2.0 */
/* tar: headers of tar files, blocks of 512 bytes: POSIX ustar and GNU, both ways. Private to this
 * folder. Thread: any; pure functions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WF_TAR_BLOCK_BYTES 512u
#define WF_TAR_NAME_BYTES 256u
#define WF_TAR_RECORD_BYTES 10240u /* a file has whole ones */
#define WF_TAR_NAME_IN_HEADER 100u

enum wf_tar_kind {
	WF_TAR_FILE,
	WF_TAR_LONG_NAME, /* GNU: its bytes are the next one's name */
	WF_TAR_PAX,       /* its bytes hold more about the next one */
	WF_TAR_ASIDE,     /* folders, and what speaks of all members or of links */
	WF_TAR_OTHER,
};

struct wf_tar_header {
	char name[WF_TAR_NAME_BYTES]; /* not ended */
	size_t name_bytes;
	uint64_t bytes; /* that follow, padded to whole blocks; 0 of folders */
	enum wf_tar_kind kind;
};

/* false: the block is no header. */
bool wf_tar_decode(const uint8_t block[WF_TAR_BLOCK_BYTES], struct wf_tar_header *out);
/* The block of zeros that ends a tar. */
bool wf_tar_is_end(const uint8_t block[WF_TAR_BLOCK_BYTES]);
/* Encodes a header in GNU's form, for a file that everybody may read, dated 1970. A name has at
 * most WF_TAR_NAME_IN_HEADER bytes here; kind is FILE or LONG_NAME. */
void wf_tar_encode(const struct wf_tar_header *header, uint8_t block[WF_TAR_BLOCK_BYTES]);
/* Parses a whole number of digits alone. false: it is not one, or is too large. */
bool wf_tar_decimal(const char *text, size_t bytes, uint64_t *out);
