/* SPDX-License-Identifier: Apache-2.0 */
/* peer_address: which address the RDMA device of this end has. */
#include <arpa/inet.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/rdma_bench/peer.h"
#include "transport/rdma.h"

#define DEVICES "/sys/class/infiniband"
#define GID_BYTES 16

static void
list_devices(char *out, size_t bytes)
{
	DIR *folder = opendir(DEVICES);
	const struct dirent *entry = NULL;
	size_t used = 0;
	(void)snprintf(out, bytes, "none");
	while (folder != NULL && (entry = readdir(folder)) != NULL) {
		if (entry->d_name[0] == '.' || used + 2 >= bytes) {
			continue;
		}
		int n = snprintf(out + used, bytes - used, "%s%.40s", used > 0 ? " " : "",
				 entry->d_name);
		used += n > 0 ? (size_t)n : 0;
	}
	if (folder != NULL) {
		(void)closedir(folder);
	}
}

static enum weft_status
check_device(const char *device)
{
	char path[256], there[256];
	(void)snprintf(path, sizeof(path), DEVICES "/%.100s", device);
	if (device[0] != '\0' && strchr(device, '/') == NULL && access(path, F_OK) == 0) {
		return WEFT_OK;
	}
	list_devices(there, sizeof(there));
	return wf_fail(WEFT_INVALID, "-d %.100s: there is no such RDMA device here; there are: %s",
		       device, there);
}

static bool
read_gid(const struct wf_peer_settings *set, uint8_t out[GID_BYTES])
{
	char path[256], text[64] = "";
	(void)snprintf(path, sizeof(path), DEVICES "/%.100s/ports/%" PRIu64 "/gids/%" PRIu64,
		       set->device, set->ib_port_given ? set->ib_port : 1, set->gid_index);
	FILE *file = fopen(path, "re");
	if (file == NULL) {
		return false;
	}
	bool read = fgets(text, sizeof(text), file) != NULL;
	fclose(file);
	text[strcspn(text, "\n")] = '\0';
	return read && inet_pton(AF_INET6, text, out) == 1;
}

/* The address that the GID represents, on RoCE and iWARP. */
static enum weft_status
address_of_gid(const struct wf_peer_settings *set, char *out)
{
	static const uint8_t zero[GID_BYTES];
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	uint8_t gid[GID_BYTES];
	if (!read_gid(set, gid) || memcmp(gid, zero, sizeof(zero)) == 0) {
		return wf_fail(WEFT_INVALID,
			       "-x %" PRIu64 ": %s has no such GID (ls " DEVICES
			       "/%s/ports/1/gids)",
			       set->gid_index, set->device, set->device);
	}
	if (gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80) {
		return wf_fail(WEFT_INVALID,
			       "-x %" PRIu64
			       ": that GID is an address of the link only; choose one "
			       "that is an IP address of the device",
			       set->gid_index);
	}
	bool v4 = memcmp(gid, mapped, sizeof(mapped)) == 0;
	if (inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? gid + 12 : gid, out, WF_PEER_ADDRESS_BYTES) ==
	    NULL) {
		out[0] = '\0';
	}
	return WEFT_OK;
}

/* Among those that lead to the device: the one by which the two ends have met, else one of its
 * family. */
static const char *
choose(const struct wf_rdma_addresses *all, const char *hint)
{
	bool v6 = strchr(hint, ':') != NULL;
	for (unsigned i = 0; i < all->count; i++) {
		if (strcmp(all->at[i].text, hint) == 0) {
			return all->at[i].text;
		}
	}
	for (unsigned i = 0; i < all->count; i++) {
		if ((strchr(all->at[i].text, ':') != NULL) == v6) {
			return all->at[i].text;
		}
	}
	return all->at[0].text;
}

enum weft_status
wf_peer_address_find(struct wf_peer_end *end)
{
	const struct wf_peer_settings *set = end->set;
	struct wf_rdma_addresses all;
	enum weft_status st = wf_rdma_present();
	if (set->device != NULL) {
		st = check_device(set->device); /* the message says more */
	}
	if (st == WEFT_OK) {
		st = wf_peer_verbs_settings(set, end->verbs);
	}
	if (st != WEFT_OK) {
		return st;
	}
	if (set->gid_given) {
		return address_of_gid(set, end->local);
	}
	if (end->client && set->device == NULL) {
		return WEFT_OK; /* the route decides */
	}
	st = wf_rdma_addresses(end->verbs, &all);
	if (st == WEFT_OK) {
		(void)snprintf(end->local, sizeof(end->local), "%s", choose(&all, end->address));
	}
	return st;
}
