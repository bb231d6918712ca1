/* SPDX-License-Identifier: Apache-2.0 */
/* backends: the lists of a program that is linked with toy, instead of those of
 * transport/backends.c. Thread: any; constant. */
#include "tests/double/toy/toy.h"

const struct wf_backend *const wf_backends[] = {
	&wf_backend_toy,
	&wf_backend_tcp,
	&wf_backend_paths,
	NULL,
};

const struct wf_path_setting wf_path_settings[] = {
	{"auto", "tcp,toy", false},
	{NULL, NULL, false},
};
