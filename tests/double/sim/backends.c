/* SPDX-License-Identifier: Apache-2.0 */
/* backends: the lists of transport/backends.c, and the networks of simulated worlds. Programs that
 * are linked with sim have these lists instead. Thread: any; constant. */
#include "tests/double/sim/sim.h"

const struct wf_backend *const wf_backends[] = {
	&wf_backend_tcp,
	&wf_backend_shm,
	&wf_backend_verbs,
	&wf_backend_paths,
	&wf_backend_sim,
	&wf_backend_sim2,
	NULL,
};

const struct wf_path_setting wf_path_settings[] = {
	{"auto", "tcp,shm,verbs", false}, {"tcp", "tcp", false},           {"shm", "tcp,shm", true},
	{"verbs", "tcp,verbs", true},     {"sim-auto", "sim,sim2", false}, {NULL, NULL, false},
};
