/* SPDX-License-Identifier: Apache-2.0 */
/* fake_lib: the fake instead of the libraries, as a table of functions. A shared library would have
 * their names. Thread: one. */
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fake_internal.h"

/* How much may be locked is the fake's word, too: the program is linked with --wrap=getrlimit64,
 * as that is what getrlimit is called where files are large. */
int __wrap_getrlimit64(int resource, struct rlimit *out);

int
__wrap_getrlimit64(int resource, struct rlimit *out)
{
	if (resource == RLIMIT_MEMLOCK) {
		rlim_t most = fake_device.memlock_bytes;
		*out = (struct rlimit){.rlim_cur = most == 0 ? RLIM_INFINITY : most,
				       .rlim_max = RLIM_INFINITY};
		return 0;
	}
	return (int)syscall(SYS_prlimit64, 0, resource, NULL, out);
}

/* Before the first test; a test that wants another beginning calls fake_reset. */
__attribute__((constructor)) static void
begin(void)
{
	fake_reset();
}

enum weft_status
wf_verbs_lib_get(const struct wf_verbs_lib **out)
{
	static struct wf_verbs_lib lib;
	fake_device_fill(&lib);
	fake_memory_fill(&lib, &fake_ops);
	fake_queues_fill(&lib, &fake_ops);
	fake_ops.post_send = fake_post_send;
	fake_cm_fill(&lib);
	*out = &lib;
	return WEFT_OK;
}
