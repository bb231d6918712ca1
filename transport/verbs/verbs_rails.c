/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_rails: see the header, and transport/rdma.h. The node of a device, and whether it is up,
 * are read from /sys. Thread: any. */
#include "transport/verbs/verbs_rails.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "transport/verbs/verbs_settings.h"

#define PATH_BYTES 160
#define FAR 20u /* distance between nodes, if the firmware reports none */

WF_STATIC_ASSERT(WF_RDMA_DEVICE_BYTES == WF_VERBS_DEVICE_BYTES, "names of the same length");

/* ---- order ---- */

struct rail {
	unsigned first; /* index of its first candidate */
	unsigned count; /* they follow each other */
	unsigned distance;
	uint32_t mbps;
};

static int
compare(const void *left, const void *right)
{
	const struct wf_verbs_candidate *a = left;
	const struct wf_verbs_candidate *b = right;
	if (a->distance != b->distance) {
		return a->distance < b->distance ? -1 : 1;
	}
	if (a->place != b->place) {
		return a->place < b->place ? -1 : 1;
	}
	if (a->mbps != b->mbps) {
		return a->mbps > b->mbps ? -1 : 1;
	}
	int by_name = strcmp(a->address.device, b->address.device);
	if (by_name != 0) {
		return by_name;
	}
	return (a->address.port > b->address.port) - (a->address.port < b->address.port);
}

/* Insertion sort: in place, and stable. */
static void
sort(struct wf_verbs_candidate *list, unsigned count)
{
	for (unsigned i = 1; i < count; i++) {
		struct wf_verbs_candidate moved = list[i];
		unsigned at = i;
		for (; at > 0 && compare(&list[at - 1], &moved) > 0; at--) {
			list[at] = list[at - 1];
		}
		list[at] = moved;
	}
}

static unsigned
find_rails(const struct wf_verbs_candidate *list, unsigned count, struct rail *rail)
{
	unsigned rails = 0;
	for (unsigned i = 0; i < count; i++) {
		if (i > 0 && compare(&list[i - 1], &list[i]) == 0) {
			rail[rails - 1].count++;
		} else {
			rail[rails++] = (struct rail){i, 1, list[i].distance, list[i].mbps};
		}
	}
	return rails;
}

/* Rotates devices that are equally far and fast. */
static void
rotate(const struct rail *rail, unsigned count, unsigned lane, struct rail *out)
{
	for (unsigned first = 0; first < count;) {
		unsigned size = 1;
		while (first + size < count &&
		       rail[first + size].distance == rail[first].distance &&
		       rail[first + size].mbps == rail[first].mbps) {
			size++;
		}
		for (unsigned i = 0; i < size; i++) {
			out[first + i] = rail[first + (i + lane) % size];
		}
		first += size;
	}
}

uint32_t
wf_verbs_rails_mbps(unsigned speed, unsigned width)
{
	static const uint32_t lane_mbps[] = {2500, 5000, 10000, 10000, 14000, 25000, 50000, 100000};
	static const uint32_t lanes[] = {1, 4, 8, 12, 2};
	unsigned by_speed = speed == 0 ? 32 : (unsigned)__builtin_ctz(speed);
	unsigned by_width = width == 0 ? 32 : (unsigned)__builtin_ctz(width);
	bool known = by_speed < WF_ARRAY_COUNT(lane_mbps) && by_width < WF_ARRAY_COUNT(lanes);
	return known ? lane_mbps[by_speed] * lanes[by_width] : 0;
}

/* Devices that would delay evenly divided data are moved behind the others; returns how many others
 * there are. */
static unsigned
set_slow_apart(struct wf_verbs_candidate *list, unsigned count, char text[WF_RDMA_SLOW_BYTES])
{
	struct wf_verbs_candidate slow[WF_VERBS_CANDIDATES_MAX];
	const struct wf_verbs_candidate *best = NULL;
	unsigned kept = 0;
	for (unsigned i = 0; i < count; i++) {
		if (list[i].active && (best == NULL || list[i].mbps > best->mbps)) {
			best = &list[i];
		}
	}
	uint32_t best_mbps = best == NULL ? 0 : best->mbps;
	text[0] = '\0';
	for (unsigned i = 0; i < count; i++) {
		/* The speed of a port without link is a placeholder. */
		if (list[i].active && list[i].mbps > 0 &&
		    list[i].mbps < best_mbps / WF_SEAT_SLOWER) {
			slow[i - kept] = list[i];
			(void)snprintf(text, WF_RDMA_SLOW_BYTES,
				       "%.48s port %u has %u Mb/s, the fastest one %u",
				       list[i].address.device, list[i].address.port, list[i].mbps,
				       best_mbps);
		} else {
			list[kept++] = list[i];
		}
	}
	memcpy(&list[kept], slow, (count - kept) * sizeof(slow[0]));
	return kept;
}

void
wf_verbs_rails_order(struct wf_verbs_candidate *list, unsigned count, unsigned lane,
		     struct wf_rdma_addresses *out)
{
	struct rail found[WF_VERBS_CANDIDATES_MAX];
	struct rail rail[WF_VERBS_CANDIDATES_MAX];
	WF_ASSERT(count <= WF_VERBS_CANDIDATES_MAX);
	unsigned all = count;
	count = set_slow_apart(list, all, out->slow);
	sort(list, count);
	unsigned rails = find_rails(list, count, found);
	rotate(found, rails, lane, rail);
	out->count = 0;
	out->slow_count = 0;
	for (unsigned round = 0; round < count; round++) {
		for (unsigned i = 0; i < rails && out->count < WF_RDMA_ADDRESSES_MAX; i++) {
			if (round < rail[i].count) {
				out->at[out->count++] = list[rail[i].first + round].address;
			}
		}
	}
	for (unsigned i = count; i < all && out->count + out->slow_count < WF_RDMA_ADDRESSES_MAX;
	     i++) {
		out->at[out->count + out->slow_count++] = list[i].address;
	}
}

/* ---- /sys ---- */

static bool
read_line(const char *path, char *out, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, bytes - 1);
	if (fd >= 0) {
		(void)close(fd);
	}
	out[n > 0 ? n : 0] = '\0';
	return n > 0;
}

unsigned
wf_verbs_rails_distance(const char *device, int node)
{
	char path[PATH_BYTES];
	char line[4096];
	(void)snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/numa_node", device);
	long of_device = read_line(path, line, sizeof(line)) ? strtol(line, NULL, 10) : -1;
	if (node < 0 || of_device < 0) {
		return WF_VERBS_NEAR;
	}
	(void)snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/distance", node);
	unsigned unknown = of_device == node ? WF_VERBS_NEAR : FAR;
	if (!read_line(path, line, sizeof(line))) {
		return unknown;
	}
	char *at = line;
	unsigned long distance = 0;
	for (long i = 0; i <= of_device; i++) {
		char *end = at;
		distance = strtoul(at, &end, 10);
		if (end == at) {
			return unknown;
		}
		at = end;
	}
	return distance > 255 ? 255 : (unsigned)distance;
}

bool
wf_rdma_is_up(const char *device, unsigned port)
{
	char path[PATH_BYTES];
	char line[32];
	(void)snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%u/state", device, port);
	return read_line(path, line, sizeof(line)) && strtoul(line, NULL, 10) != 1; /* 1: down */
}

enum weft_status
wf_rdma_device_for(const char *settings, unsigned rail, char out[WF_RDMA_DEVICE_BYTES])
{
	struct wf_verbs_settings s;
	enum weft_status st = wf_verbs_settings_parse(settings, &s);
	if (st != WEFT_OK) {
		return st;
	}
	unsigned count = wf_verbs_settings_device_count(&s);
	out[0] = '\0';
	if (count == 0) {
		return WEFT_OK;
	}
	wf_verbs_settings_device(&s, rail % count, out);
	if (!wf_rdma_is_up(out, s.port == 0 ? 1 : s.port)) {
		return wf_fail(WEFT_UNAVAILABLE, "%s is down or missing (see: rdma link show)",
			       out);
	}
	return WEFT_OK;
}

enum weft_status
wf_rdma_settings_for_lane(const char *settings, unsigned lane, int node,
			  char out[WF_RDMA_SETTINGS_BYTES])
{
	char where[32] = "";
	if (node >= 0) {
		(void)snprintf(where, sizeof(where), ",node=%d", node);
	}
	/* If a key occurs twice the last one counts. */
	bool any = settings != NULL && settings[0] != '\0';
	int bytes = snprintf(out, WF_RDMA_SETTINGS_BYTES, "lane=%u%s%s%s", lane, where,
			     any ? "," : "", any ? settings : "");
	if (bytes >= WF_RDMA_SETTINGS_BYTES) {
		return wf_fail(WEFT_INVALID,
			       "verbs: the settings take %d bytes with those of lane %u; %d are "
			       "the most",
			       bytes, lane, WF_RDMA_SETTINGS_BYTES - 1);
	}
	return WEFT_OK;
}
