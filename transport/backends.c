/* SPDX-License-Identifier: Apache-2.0 */
/* backends: the backends that are built in, in the order in which they are named to users, and
 * which of them --transport makes paths of. A test program with backends of its own links lists of
 * its own in place of this file, which therefore holds nothing else. Thread: any; constant. */
#include "transport/ops.h"

const struct wf_backend *const wf_backends[] = {
	&wf_backend_tcp, &wf_backend_shm, &wf_backend_verbs, &wf_backend_paths, NULL,
};

const struct wf_path_setting wf_path_settings[] = {
	{"auto", "tcp,shm,verbs", false}, {"tcp", "tcp", false}, {"shm", "tcp,shm", true},
	{"verbs", "tcp,verbs", true},     {NULL, NULL, false},
};
