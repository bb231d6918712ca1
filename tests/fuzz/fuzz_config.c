/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of the file of --config: accepted values keep the table's limits and know their
 * lines, a refusal names its line. */
#include <string.h>

#include "base/assert.h"
#include "base/options_internal.h"
#include "tests/fuzz/fuzz_target.h"

struct values {
	bool once;
	uint64_t ports_num;
	uint64_t slice_bytes;
	uint64_t timeout_ns;
	double rate;
	const char *listen;
	const char *transport;
};

static const struct wf_option table[] = {
	{.name = "once", .type = WF_OPTION_BOOL, .offset = offsetof(struct values, once)},
	{.name = "ports_num",
	 .type = WF_OPTION_U64,
	 .offset = offsetof(struct values, ports_num),
	 .initial = "1",
	 .min = 1,
	 .max = 64},
	{.name = "slice_bytes",
	 .type = WF_OPTION_BYTES,
	 .offset = offsetof(struct values, slice_bytes),
	 .initial = "64",
	 .min = 64,
	 .max = 1 << 20},
	{.name = "timeout",
	 .type = WF_OPTION_DURATION,
	 .offset = offsetof(struct values, timeout_ns),
	 .initial = "1s",
	 .min = 1000000},
	{.name = "rate",
	 .type = WF_OPTION_F64,
	 .offset = offsetof(struct values, rate),
	 .initial = "1",
	 .fmin = 0.5,
	 .fmax = 2},
	{.name = "listen", .type = WF_OPTION_STRING, .offset = offsetof(struct values, listen)},
	{.name = "transport",
	 .type = WF_OPTION_CHOICE,
	 .offset = offsetof(struct values, transport),
	 .initial = "auto",
	 .choices = "auto|tcp"},
};

#define COUNT WF_ARRAY_COUNT(table)

static struct wf_option_file file;

static void
check_values(const struct values *values)
{
	WF_ASSERT(values->ports_num >= 1 && values->ports_num <= 64);
	WF_ASSERT(values->slice_bytes >= 64 && values->slice_bytes <= 1 << 20);
	WF_ASSERT(values->timeout_ns >= 1000000);
	WF_ASSERT(values->rate >= 0.5 && values->rate <= 2);
	WF_ASSERT(strcmp(values->transport, "auto") == 0 || strcmp(values->transport, "tcp") == 0);
	if (values->listen != NULL) {
		WF_ASSERT(values->listen >= file.text);
		WF_ASSERT(values->listen + strlen(values->listen) <= file.text + file.bytes);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct values values = {0};
	enum wf_option_origin origin[COUNT];
	const char *env_name[COUNT];
	struct wf_options options = {
		.table = table,
		.option_count = COUNT,
		.program = "weft pserver",
		.target = &values,
		.origin = origin,
		.env_name = env_name,
	};
	static char name[] = "weft";
	char *argv[] = {name, NULL};
	enum weft_status st = wf_options_parse(&options, 1, argv); /* defaults */
	WF_ASSERT(st == WEFT_OK);
	options.file = &file;
	memset(&file, 0, sizeof(file));
	file.path = "input";
	file.bytes = bytes < WF_OPTION_FILE_BYTES ? bytes : WF_OPTION_FILE_BYTES;
	memcpy(file.text, data, file.bytes);
	st = wf_option_file_parse(&options);
	WF_ASSERT(st == WEFT_OK || st == WEFT_INVALID);
	if (st == WEFT_INVALID) {
		WF_ASSERT(strncmp(weft_last_error(), "weft pserver: input:", 20) == 0);
		WF_ASSERT(weft_last_error()[20] >= '1' && weft_last_error()[20] <= '9');
	}
	for (unsigned i = 0; i < COUNT; i++) {
		WF_ASSERT((origin[i] == WF_ORIGIN_FILE) == (file.line[i] != 0));
		WF_ASSERT(file.line[i] <= WF_OPTION_FILE_BYTES);
	}
	check_values(&values);
	return 0;
}
