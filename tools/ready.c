/* SPDX-License-Identifier: Apache-2.0 */
/* ready: see ready.h. */
#include "tools/ready.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/own_file.h"

#define PATH_BYTES 4096
#define NOTIFY_SECONDS 2 /* how long a service manager that reads nothing is waited for */

static enum weft_status
write_text(int fd, const char *path, const char *text)
{
	char line[512];
	int bytes = snprintf(line, sizeof(line), "%s\n", text);
	ssize_t written = write(fd, line, (size_t)bytes);
	if (written != bytes) {
		return wf_fail_errno(WEFT_IO, written < 0 ? errno : ENOSPC, "--ready_file: %s",
				     path);
	}
	return WEFT_OK;
}

/* Under another name first: who sees the file sees all of it. */
static enum weft_status
write_file(const char *path, const char *text)
{
	char partial[PATH_BYTES];
	int fd = -1;
	int wanted = snprintf(partial, sizeof(partial), "%s.partial", path);
	if (wanted < 0 || (size_t)wanted >= sizeof(partial)) {
		return wf_fail(WEFT_INVALID, "--ready_file: the path is longer than %d bytes",
			       PATH_BYTES - 16);
	}
	enum weft_status st = wf_own_file_open(partial, 0, &fd);
	if (st != WEFT_OK) {
		const struct wf_error why = *wf_error_record();
		return wf_fail(st, "--ready_file=%.150s: %.350s", path, why.text);
	}
	st = write_text(fd, partial, text);
	close(fd);
	if (st == WEFT_OK && rename(partial, path) != 0) {
		st = wf_fail_errno(WEFT_IO, errno, "--ready_file: cannot rename %s to %s", partial,
				   path);
	}
	if (st != WEFT_OK) {
		(void)unlink(partial);
	}
	return st;
}

/* To the socket of the service manager: a path, or with '@' in front an abstract name. False: it
 * could not be sent, and errno says why. */
static bool
notify(const char *name, const char *message)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const struct timeval patience = {.tv_sec = NOTIFY_SECONDS};
	size_t bytes = strlen(name);

	if ((name[0] != '/' && name[0] != '@') || bytes >= sizeof(address.sun_path)) {
		errno = EAFNOSUPPORT;
		return false;
	}
	memcpy(address.sun_path, name, bytes);
	if (name[0] == '@') {
		address.sun_path[0] = '\0';
	}
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		return false;
	}
	socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes);
	bool sent = setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) == 0 &&
		    sendto(fd, message, strlen(message), MSG_NOSIGNAL,
			   (const struct sockaddr *)&address, length) >= 0;
	int err = errno;
	close(fd);
	errno = err;
	return sent;
}

static const char *
manager_socket(void)
{
	const char *name = getenv("NOTIFY_SOCKET");
	return name != NULL && name[0] != '\0' ? name : NULL;
}

enum weft_status
wf_ready_announce(struct wf_ready *ready, struct wf_env *env, const char *path, const char *text)
{
	const char *manager = manager_socket();
	char message[512];

	wf_env_system_flush_log(env);
	if (path != NULL) {
		enum weft_status st = write_file(path, text);
		if (st != WEFT_OK) {
			return st;
		}
		ready->path = path;
	}
	if (manager == NULL) {
		return WEFT_OK;
	}
	(void)snprintf(message, sizeof(message), "READY=1\nSTATUS=listens on %s", text);
	ready->is_managed = notify(manager, message);
	if (!ready->is_managed) {
		wf_log(env, WF_LOG_WARN,
		       "NOTIFY_SOCKET=%.120s: cannot tell the service manager: %s", manager,
		       strerror(errno));
	}
	return WEFT_OK;
}

void
wf_ready_withdraw(struct wf_ready *ready, struct wf_env *env)
{
	const char *manager = manager_socket();

	if (ready->path != NULL && unlink(ready->path) != 0 && errno != ENOENT) {
		wf_log(env, WF_LOG_WARN, "--ready_file: cannot remove %.200s: %s", ready->path,
		       strerror(errno));
	}
	if (ready->is_managed && manager != NULL) {
		(void)notify(manager, "STOPPING=1");
	}
	*ready = (struct wf_ready){0};
}
