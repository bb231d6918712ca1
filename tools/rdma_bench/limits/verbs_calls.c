/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_calls: see verbs_calls.h. */
#include "tools/rdma_bench/limits/verbs_calls.h"

#include <dlfcn.h>
#include <string.h>

#define IBV_CALL(call) {"ibv_" #call, offsetof(struct wf_verbs_calls, call), 0},
#define CM_CALL(call) {"rdma_" #call, offsetof(struct wf_verbs_calls, call), 1},
static const struct {
	const char *symbol;
	size_t at;
	unsigned library;
} calls[] = {WF_VERBS_CALLS(IBV_CALL, CM_CALL)};

enum weft_status
wf_verbs_calls_get(const struct wf_verbs_calls **out)
{
	static const char *const library[] = {"libibverbs.so.1", "librdmacm.so.1"};
	static struct wf_verbs_calls found;
	void *handle[2];
	for (unsigned i = 0; i < 2; i++) {
		handle[i] = dlopen(library[i], RTLD_NOW | RTLD_LOCAL);
		if (handle[i] == NULL) {
			return wf_fail(WEFT_UNSUPPORTED, "raw verbs: %s", dlerror());
		}
	}
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		void *call = dlsym(handle[calls[i].library], calls[i].symbol);
		if (call == NULL) {
			return wf_fail(WEFT_UNSUPPORTED, "raw verbs: %s has no %s",
				       library[calls[i].library], calls[i].symbol);
		}
		memcpy((char *)&found + calls[i].at, &call, sizeof(call));
	}
	*out = &found;
	return WEFT_OK;
}
