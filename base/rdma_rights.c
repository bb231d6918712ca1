/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_rights: see the header. The files are opened, because neither their mode nor access()
 * reflects the device list of a container. Thread: any. */
#include "base/rdma_rights.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES 512
#define NODE_BYTES 256 /* a file name */

/* Whether /sys/class/infiniband_verbs/`node` belongs to `device`. */
static bool
is_node_of(const char *root, const char *node, const char *device)
{
	char path[PATH_BYTES];
	char name[128];
	(void)snprintf(path, sizeof(path), "%s/sys/class/infiniband_verbs/%s/ibdev", root, node);
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, name, sizeof(name) - 1);
	if (fd >= 0) {
		(void)close(fd);
	}
	name[n > 0 ? n : 0] = '\0';
	name[strcspn(name, "\n")] = '\0';
	return n > 0 && strcmp(name, device) == 0;
}

/* Finds the name, such as "uverbs0". Returns false if the kernel has no file for this device. */
static bool
find_node(const char *root, const char *device, char out[NODE_BYTES])
{
	char path[PATH_BYTES];
	bool found = false;
	(void)snprintf(path, sizeof(path), "%s/sys/class/infiniband_verbs", root);
	DIR *folder = opendir(path);
	if (folder == NULL) {
		return false;
	}
	for (const struct dirent *entry; !found && (entry = readdir(folder)) != NULL;) {
		found = strncmp(entry->d_name, "uverbs", 6) == 0 &&
			is_node_of(root, entry->d_name, device);
		if (found) {
			(void)snprintf(out, NODE_BYTES, "%s", entry->d_name);
		}
	}
	(void)closedir(folder);
	return found;
}

static enum weft_status
check_file(const char *root, const char *device, const char *file, const char *module)
{
	char path[PATH_BYTES];
	(void)snprintf(path, sizeof(path), "%s/dev/infiniband/%s", root, file);
	int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0) {
		(void)close(fd);
		return WEFT_OK;
	}
	int err = errno;
	if (err == EACCES || err == EPERM) {
		return wf_fail(WEFT_UNAVAILABLE,
			       "%s: this user may not open %s (%s); its mode or group must allow "
			       "reading and writing (a container: --device=/dev/infiniband)",
			       device, path, strerror(err));
	}
	if (err == ENOENT) {
		return wf_fail(WEFT_UNAVAILABLE,
			       "%s: there is no %s (modprobe %s; a container: "
			       "--device=/dev/infiniband)",
			       device, path, module);
	}
	return wf_fail_errno(WEFT_UNAVAILABLE, err, "%s: %s cannot be opened", device, path);
}

enum weft_status
wf_rdma_rights_below(const char *root, const char *device)
{
	char node[NODE_BYTES];
	if (!find_node(root, device, node)) {
		return wf_fail(WEFT_UNAVAILABLE,
			       "%s: the kernel has no file for programs that use it (modprobe "
			       "ib_uverbs)",
			       device);
	}
	enum weft_status st = check_file(root, device, node, "ib_uverbs");
	return st == WEFT_OK ? check_file(root, device, "rdma_cm", "rdma_ucm") : st;
}

enum weft_status
wf_rdma_rights(const char *device)
{
	return wf_rdma_rights_below("", device);
}
