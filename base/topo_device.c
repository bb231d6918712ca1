/* SPDX-License-Identifier: Apache-2.0 */
/* topo_device: network and RDMA devices, from hwloc and, for what it leaves out, from /sys: devices
 * without hardware, and whether a link is up. Thread: any, one at a time. */
#include "base/topo_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/rdma_rights.h"

#define SOFT_ROOM 64u /* the most RDMA devices without hardware that are listed */
#define RDMA_PATH "/sys/class/infiniband"

/* Reads the first word of a small file. Returns false if there is none. */
static bool
read_word(const char *path, char *out, size_t bytes)
{
	char text[32];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		return false;
	}
	ssize_t n = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	if (n <= 0) {
		return false;
	}
	text[n] = '\0';
	text[strcspn(text, " :\n")] = '\0';
	(void)snprintf(out, bytes, "%s", text);
	return true;
}

enum wf_topo_state
wf_topo_net_state(const char *name)
{
	char path[128];
	char word[32];
	(void)snprintf(path, sizeof(path), "/sys/class/net/%s/operstate", name);
	if (strchr(name, '/') != NULL || !read_word(path, word, sizeof(word))) {
		return WF_TOPO_UNKNOWN;
	}
	if (strcmp(word, "up") == 0) {
		return WF_TOPO_ACTIVE;
	}
	return strcmp(word, "unknown") == 0 ? WF_TOPO_UNKNOWN : WF_TOPO_DOWN;
}

/* Parses InfiniBand's number of a port's state; 4 is active. */
static enum wf_topo_state
port_state(const char *text)
{
	if (text == NULL || text[0] < '0' || text[0] > '9') {
		return WF_TOPO_UNKNOWN;
	}
	return text[0] == '4' ? WF_TOPO_ACTIVE : WF_TOPO_DOWN;
}

/* "100 Gb/sec (4X EDR)", "2.5 Gb/sec (1X SDR)" */
static uint32_t
port_mbps(const char *text)
{
	char *end = NULL;
	unsigned long whole = strtoul(text, &end, 10);
	unsigned long tenths =
		*end == '.' && end[1] >= '0' && end[1] <= '9' ? (unsigned long)(end[1] - '0') : 0;
	return end == text || whole > 1000000 ? 0 : (uint32_t)(whole * 1000 + tenths * 100);
}

/* Reads speeds of this machine's ports from /sys; hwloc does not report them. */
static void
read_speeds(struct wf_topo_device *device)
{
	for (unsigned i = 0; i < device->port_count; i++) {
		char path[192];
		char word[32] = "";
		(void)snprintf(path, sizeof(path), RDMA_PATH "/%s/ports/%u/rate", device->name,
			       i + 1);
		if (read_word(path, word, sizeof(word))) {
			device->port_mbps[i] = port_mbps(word);
		}
	}
}

/* hwloc has the state of each port that it could query; for devices in an old file it is unknown.
 */
static void
read_rdma_ports(struct wf_topo_device *device, hwloc_obj_t obj)
{
	for (unsigned i = 0; i < WF_TOPO_PORTS_MAX; i++) {
		char key[32];
		(void)snprintf(key, sizeof(key), "Port%uState", i + 1);
		const char *state = hwloc_obj_get_info_by_name(obj, key);
		device->port[i] = port_state(state);
		if (state != NULL) {
			device->port_count = i + 1;
		}
	}
	if (device->port_count == 0) {
		device->port_count = 1;
	}
}

/* The node of a device, or -1 if it is equally near to several. */
static int
node_of_device(hwloc_topology_t machine, hwloc_obj_t obj)
{
	hwloc_obj_t at = hwloc_get_non_io_ancestor_obj(machine, obj);
	if (at == NULL || at->nodeset == NULL || hwloc_bitmap_weight(at->nodeset) != 1) {
		return -1;
	}
	return hwloc_bitmap_first(at->nodeset);
}

static void
read_pci(struct wf_topo_device *device, hwloc_obj_t obj)
{
	hwloc_obj_t at = obj->parent;
	while (at != NULL && at->type != HWLOC_OBJ_PCI_DEVICE) {
		at = at->type == HWLOC_OBJ_OS_DEVICE ? at->parent : NULL;
	}
	if (at == NULL) {
		return;
	}
	const struct hwloc_pcidev_attr_s *pci = &at->attr->pcidev;
	(void)snprintf(device->pci, sizeof(device->pci), "%04x:%02x:%02x.%01x",
		       (unsigned)pci->domain & 0xffffu, pci->bus, pci->dev, pci->func & 7u);
	const char *vendor = hwloc_obj_get_info_by_name(at, "PCIVendor");
	if (vendor != NULL) {
		(void)snprintf(device->vendor, sizeof(device->vendor), "%s", vendor);
	}
}

static bool
is_wanted(hwloc_obj_t obj, enum wf_topo_device_kind kind)
{
	hwloc_obj_osdev_type_t type = obj->attr->osdev.type;
	return obj->name != NULL && type == (kind == WF_TOPO_RDMA ? HWLOC_OBJ_OSDEV_OPENFABRICS
								  : HWLOC_OBJ_OSDEV_NETWORK);
}

static void
add_device(struct wf_topo *topo, hwloc_topology_t machine, hwloc_obj_t obj,
	   enum wf_topo_device_kind kind)
{
	WF_ASSERT(topo->device_count < topo->device_room);
	struct wf_topo_device *device = &topo->device[topo->device_count++];
	*device = (struct wf_topo_device){
		.kind = kind,
		.numa_node = node_of_device(machine, obj),
	};
	(void)snprintf(device->name, sizeof(device->name), "%s", obj->name);
	read_pci(device, obj);
	if (kind == WF_TOPO_RDMA) {
		read_rdma_ports(device, obj);
		if (topo->is_here) {
			read_speeds(device);
		}
	} else {
		device->port_count = 1;
		device->port[0] = topo->is_here ? wf_topo_net_state(obj->name) : WF_TOPO_UNKNOWN;
	}
}

/* Checks which devices this process can open: not every device that exists is usable. */
static void
look_whether_they_open(struct wf_topo *topo)
{
	for (uint32_t i = 0; i < topo->device_count; i++) {
		struct wf_topo_device *device = &topo->device[i];
		if (device->kind == WF_TOPO_RDMA && wf_rdma_rights(device->name) != WEFT_OK) {
			(void)snprintf(device->closed, sizeof(device->closed), "%.*s",
				       (int)sizeof(device->closed) - 1, weft_last_error());
		}
	}
}

static void
add_devices(struct wf_topo *topo, hwloc_topology_t machine, enum wf_topo_device_kind kind)
{
	hwloc_obj_t obj = NULL;
	while ((obj = hwloc_get_next_osdev(machine, obj)) != NULL) {
		if (is_wanted(obj, kind)) {
			add_device(topo, machine, obj, kind);
		}
	}
}

enum weft_status
wf_topo_read_devices(struct wf_topo *topo, hwloc_topology_t machine)
{
	uint32_t room = SOFT_ROOM;
	hwloc_obj_t obj = NULL;
	while ((obj = hwloc_get_next_osdev(machine, obj)) != NULL) {
		room++;
	}
	topo->device_room = room;
	topo->device = wf_zalloc_array(topo->env, room, sizeof(*topo->device));
	if (topo->device == NULL) {
		return wf_fail(WEFT_NOMEM, "topo: %u devices", room);
	}
	add_devices(topo, machine, WF_TOPO_RDMA);
	if (topo->is_here) {
		topo->device_count = wf_topo_add_soft_rdma(topo->device, topo->device_count,
							   topo->device_count + SOFT_ROOM);
		look_whether_they_open(topo);
	}
	add_devices(topo, machine, WF_TOPO_NET);
	return WEFT_OK;
}

static bool
is_known(const struct wf_topo_device *device, uint32_t count, const char *name)
{
	for (uint32_t i = 0; i < count; i++) {
		if (strcmp(device[i].name, name) == 0) {
			return true;
		}
	}
	return false;
}

static void
read_soft_ports(struct wf_topo_device *device)
{
	for (unsigned i = 0; i < WF_TOPO_PORTS_MAX; i++) {
		char path[192];
		char word[32] = "";
		(void)snprintf(path, sizeof(path), RDMA_PATH "/%s/ports/%u/state", device->name,
			       i + 1);
		if (read_word(path, word, sizeof(word))) {
			device->port[i] = port_state(word);
			device->port_count = i + 1;
		}
	}
	if (device->port_count == 0) {
		device->port_count = 1;
	}
	read_speeds(device);
}

static int
by_name(const void *a, const void *b)
{
	const struct wf_topo_device *left = a;
	const struct wf_topo_device *right = b;
	return strcmp(left->name, right->name);
}

uint32_t
wf_topo_add_soft_rdma(struct wf_topo_device *device, uint32_t count, uint32_t room)
{
	uint32_t first = count;
	DIR *folder = opendir(RDMA_PATH);
	if (folder == NULL) {
		return count;
	}
	for (struct dirent *entry; count < room && (entry = readdir(folder)) != NULL;) {
		size_t name_bytes = strlen(entry->d_name);
		if (entry->d_name[0] == '.' || name_bytes >= WF_TOPO_NAME_BYTES ||
		    is_known(device, count, entry->d_name)) {
			continue;
		}
		struct wf_topo_device *soft = &device[count++];
		*soft = (struct wf_topo_device){.kind = WF_TOPO_RDMA, .numa_node = -1};
		memcpy(soft->name, entry->d_name, name_bytes + 1);
		read_soft_ports(soft);
	}
	(void)closedir(folder);
	/* Directory entries have no order, but a plan needs one. */
	qsort(&device[first], count - first, sizeof(*device), by_name);
	return count;
}
