/* SPDX-License-Identifier: Apache-2.0 */
/* weft version: name, version and what is compiled in, in the form that scripts of the original
 * read: four spaces, key, colon, ON or OFF. The values come from the build. Thread: main. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "kernels/kernels.h"
#include "tools/command.h"
#include "transport/transport.h"

static const struct wf_help help = {
	.usage = "weft version",
	.about = "Prints the version and what is compiled in: the features as ON or OFF, the "
		 "transports, whether the RDMA libraries are installed here, and which form of the "
		 "arithmetic kernels this processor uses.",
};

static enum weft_status
work(const struct wf_options *options)
{
	static const struct {
		const char *key;
		const char *value;
	} rows[] = {
		{"with_avx", WEFT_WITH_AVX},
		{"with_gpu", "OFF"},
		{"with_double", "OFF"},
		{"with_python", "OFF"},
		{"with_rdma", WEFT_WITH_RDMA},
		{"with_timer", "OFF"},
		{"with_openblas", WEFT_WITH_OPENBLAS},
		{"with_hwloc", "ON"},
		{"with_status", WEFT_WITH_STATUS},
		{"transports", WEFT_TRANSPORTS},
	};

	(void)options;
	printf("weft %s, compiled with\n", WEFT_PROJECT_VERSION);
	for (size_t i = 0; i < WF_ARRAY_COUNT(rows); i++) {
		printf("    %s: %s\n", rows[i].key, rows[i].value);
	}
	printf("    rdma_libraries: %s\n",
	       wf_rdma_probe() == WEFT_OK ? "found" : weft_last_error());
	printf("    kernels: %s\n", wf_kernels_best()->name);
	return fflush(stdout) == 0 ? WEFT_OK
				   : wf_fail(WEFT_IO, "standard output: cannot be written");
}

int
wf_cmd_version(int argc, char **argv)
{
	struct wf_options options = {.program = "weft version", .help = &help};

	return wf_command_run(work, &options, argc, argv);
}
