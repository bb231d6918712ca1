/* SPDX-License-Identifier: Apache-2.0 */
/* space: see space.h. */
#include "tools/drill/space.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"

enum weft_status
wf_drill_space_set_link(bool is_up)
{
	struct ifreq request = {.ifr_name = "lo"};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		return wf_fail_errno(WEFT_IO, errno, "no socket to change a link with");
	}
	bool done = ioctl(fd, SIOCGIFFLAGS, &request) == 0;
	const int flags = request.ifr_flags;
	request.ifr_flags = (short)(is_up ? flags | IFF_UP : flags & ~IFF_UP);
	done = done && ioctl(fd, SIOCSIFFLAGS, &request) == 0;
	const int err = errno;
	(void)close(fd); /* nothing was written through it */
	return done ? WEFT_OK
		    : wf_fail_errno(WEFT_IO, err, "the link cannot be %s",
				    is_up ? "mended" : "cut");
}

enum weft_status
wf_drill_space_enter(struct wf_drill_space *space)
{
	space->before_fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	if (space->before_fd < 0) {
		return wf_fail_errno(WEFT_UNSUPPORTED, errno, "there are no network namespaces");
	}
	if (unshare(CLONE_NEWNET) != 0) {
		const int err = errno;
		(void)close(space->before_fd);
		return wf_fail_errno(WEFT_UNSUPPORTED, err,
				     "no network namespace can be made, which needs root");
	}
	space->is_entered = true;
	enum weft_status st = wf_drill_space_set_link(true);
	if (st != WEFT_OK) {
		wf_drill_space_leave(space);
	}
	return st;
}

void
wf_drill_space_leave(struct wf_drill_space *space)
{
	if (!space->is_entered) {
		return;
	}
	const int done = setns(space->before_fd, CLONE_NEWNET);
	WF_ASSERT(done == 0); /* this thread has been there */
	(void)close(space->before_fd);
	*space = (struct wf_drill_space){0};
}
