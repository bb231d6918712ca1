/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_lib: finding the symbols. The libraries are never unloaded: they start threads and keep
 * devices open. Thread: any; the first callers load under a lock. */
#include "transport/verbs/verbs_lib.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/assert.h"

struct symbol {
	const char *name;
	size_t offset; /* of the pointer in the table */
};

#define SYMBOL(prefix, field)                                                                      \
	{                                                                                          \
		prefix #field, offsetof(struct wf_verbs_lib, field)                                \
	}
#define VERBS(field) SYMBOL("ibv_", field)
#define RDMACM(field) SYMBOL("rdma_", field)

static const struct symbol verbs_symbols[] = {
	VERBS(fork_init),
	VERBS(get_device_list),
	VERBS(free_device_list),
	VERBS(get_device_name),
	VERBS(open_device),
	VERBS(close_device),
	VERBS(query_device),
	VERBS(query_port),
	{"_ibv_query_gid_table", offsetof(struct wf_verbs_lib, query_gid_table)},
	VERBS(alloc_pd),
	VERBS(dealloc_pd),
	VERBS(reg_mr_iova2),
	VERBS(dereg_mr),
	VERBS(create_comp_channel),
	VERBS(destroy_comp_channel),
	VERBS(create_cq),
	VERBS(destroy_cq),
	VERBS(get_cq_event),
	VERBS(ack_cq_events),
	VERBS(create_srq),
	VERBS(destroy_srq),
	VERBS(create_qp),
	VERBS(modify_qp),
	VERBS(query_qp),
	VERBS(destroy_qp),
	VERBS(get_async_event),
	VERBS(ack_async_event),
	VERBS(wc_status_str),
	VERBS(event_type_str),
	{NULL, 0},
};

static const struct symbol rdmacm_symbols[] = {
	RDMACM(get_devices),
	RDMACM(free_devices),
	RDMACM(create_event_channel),
	RDMACM(destroy_event_channel),
	RDMACM(create_id),
	RDMACM(destroy_id),
	RDMACM(bind_addr),
	RDMACM(resolve_addr),
	RDMACM(resolve_route),
	RDMACM(connect),
	RDMACM(establish),
	RDMACM(listen),
	RDMACM(accept),
	RDMACM(reject),
	RDMACM(disconnect),
	RDMACM(get_cm_event),
	RDMACM(ack_cm_event),
	RDMACM(event_str),
	RDMACM(get_src_port),
	RDMACM(init_qp_attr),
	RDMACM(set_option),
	{NULL, 0},
};

static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;
static struct wf_verbs_lib loaded_lib; /* written once, under the lock */
static bool is_loaded;                 /* under the lock */

static enum weft_status
load_one(struct wf_verbs_lib *lib, const char *file, const struct symbol *symbols)
{
	void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (handle == NULL) {
		const char *why = dlerror();
		return wf_fail(WEFT_UNSUPPORTED,
			       "verbs: %s; install rdma-core (Debian: libibverbs1 librdmacm1 "
			       "ibverbs-providers)",
			       why == NULL ? file : why);
	}
	for (const struct symbol *s = symbols; s->name != NULL; s++) {
		void *at = dlsym(handle, s->name);
		if (at == NULL) {
			(void)dlclose(handle);
			return wf_fail(WEFT_UNSUPPORTED,
				       "verbs: %s has no %s; rdma-core 28 or newer is needed", file,
				       s->name);
		}
		memcpy((uint8_t *)lib + s->offset, &at, sizeof(at));
	}
	return WEFT_OK;
}

bool
wf_verbs_fork_needs_care(const char *release)
{
	char *end = NULL;
	unsigned long major = strtoul(release, &end, 10);
	unsigned long minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
	return major < 5 || (major == 5 && minor < 12);
}

/* Called before anything else of the library, as its manual requires. Memory registered from then
 * on is missing in children; the library itself recognises kernels to which the fix was backported.
 */
static enum weft_status
prepare_for_forks(const struct wf_verbs_lib *lib)
{
	struct utsname name;
	if (uname(&name) != 0 || !wf_verbs_fork_needs_care(name.release)) {
		return WEFT_OK;
	}
	int err = lib->fork_init();
	return err == 0 ? WEFT_OK
			: wf_fail_errno(WEFT_UNSUPPORTED, err,
					"verbs: ibv_fork_init, without which Linux %.40s takes "
					"memory from the device when a process forks",
					name.release);
}

static enum weft_status
load(struct wf_verbs_lib *lib)
{
	WF_STATIC_ASSERT(sizeof(void *) == sizeof(lib->open_device), "POSIX says so");
	enum weft_status st = load_one(lib, "libibverbs.so.1", verbs_symbols);
	if (st != WEFT_OK) {
		return st;
	}
	st = load_one(lib, "librdmacm.so.1", rdmacm_symbols);
	return st == WEFT_OK ? prepare_for_forks(lib) : st;
}

enum weft_status
wf_verbs_lib_get(const struct wf_verbs_lib **out)
{
	enum weft_status st = WEFT_OK;
	(void)pthread_mutex_lock(&load_lock);
	if (!is_loaded) {
		struct wf_verbs_lib lib;
		memset(&lib, 0, sizeof(lib));
		st = load(&lib);
		if (st == WEFT_OK) {
			loaded_lib = lib;
			is_loaded = true;
		}
	}
	(void)pthread_mutex_unlock(&load_lock);
	if (st == WEFT_OK) {
		*out = &loaded_lib;
	}
	return st;
}
