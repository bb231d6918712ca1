/* SPDX-License-Identifier: Apache-2.0 */
/* backends: the backends that are built in, in the order in which they are named to users. A test
 * program that brings backends of its own links a list of its own in the place of this file, which
 * therefore holds nothing else. Thread: any; constant. */
#include "transport/ops.h"

const struct wf_backend *const wf_backends[] = {
	&wf_backend_tcp,   &wf_backend_shm,
#if WF_HAVE_VERBS
	&wf_backend_verbs,
#endif
	&wf_backend_mux,   NULL,
};
