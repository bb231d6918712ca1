/* SPDX-License-Identifier: Apache-2.0 */
/* backends: the backends that are built in, in the order in which they are named to users.
 * Thread: any; constant. */
#include "transport/ops.h"

const struct wf_backend *const wf_backends[] = {
	&wf_backend_tcp,
	&wf_backend_shm,
	&wf_backend_mux,
#if WF_HAVE_SIM
	&wf_backend_sim,
	&wf_backend_sim2,
#endif
	NULL,
};
