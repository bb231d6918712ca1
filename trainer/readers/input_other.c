/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are packed in a way that is not read. They are refused by the packer's name: the
 * readers would take them for damaged text. Thread: the input's owner. */
#include <string.h>

#include "base/assert.h"
#include "trainer/readers/input_internal.h"

struct packer {
	const char *name;
	const char *unpack; /* the command that unpacks to stdout */
	const char *magic;  /* a question mark stands for any byte */
	size_t magic_bytes;
};

static const struct packer packers[] = {
	/* A block, or the end of a stream without one. */
	{"bzip2", "bzip2 -dc", "BZh?1AY&SY", 10},
	{"bzip2", "bzip2 -dc", "BZh?\x17\x72\x45\x38\x50\x90", 10},
	{"xz", "xz -dc", "\xfd\x37zXZ\0", 6},
	{"lz4", "lz4 -dc", "\x04\x22\x4d\x18", 4},
	{"zip", "unzip -p", "PK\x03\x04", 4},
};

/* NULL: it is none of them. */
static const struct packer *
find_packer(const uint8_t *head, size_t count)
{
	for (unsigned i = 0; i < WF_ARRAY_COUNT(packers); i++) {
		const struct packer *packer = &packers[i];
		size_t same = 0;
		while (same < packer->magic_bytes && same < count &&
		       (packer->magic[same] == '?' || (uint8_t)packer->magic[same] == head[same])) {
			same++;
		}
		if (same == packer->magic_bytes) {
			return packer;
		}
	}
	return NULL;
}

static bool
other_recognises(const uint8_t *head, size_t count)
{
	return find_packer(head, count) != NULL;
}

static enum weft_status
other_open(struct wf_input *input)
{
	const struct packer *packer = find_packer(input->chunk, wf_input_have(input));

	WF_ASSERT(packer != NULL); /* it was recognised */
	return wf_fail(WEFT_DATA,
		       "%s: is packed with %s, which is not read; gzip and zstd are: pack it anew, "
		       "with %s FILE | zstd > NEW.zst",
		       input->path, packer->name, packer->unpack);
}

const struct wf_input_ops wf_input_other_ops = {
	.name = "other",
	.recognises = other_recognises,
	.ratio_max = 1,
	.open = other_open,
};
