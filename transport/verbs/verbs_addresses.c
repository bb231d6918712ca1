/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_addresses: which addresses of this host lead to RDMA devices. The connection manager knows:
 * binding to such an address yields its device, on InfiniBand, RoCE and iWARP alike. Thread: any.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "base/rdma_rights.h"
#include "transport/rdma.h"
#include "transport/verbs/verbs_internal.h"
#include "transport/verbs/verbs_rails.h"
#include "transport/verbs/verbs_settings.h"

#define DEVICES_FOLDER "/sys/class/infiniband"
#define BINDS_MAX 256u /* on a host with very many addresses only the first ones are tried */

struct search {
	const struct wf_verbs_lib *lib;
	struct rdma_event_channel *channel;
	struct wf_verbs_settings settings;
	struct wf_verbs_candidate found[WF_VERBS_CANDIDATES_MAX];
	unsigned count;
};

enum weft_status
wf_rdma_probe(void)
{
	const struct wf_verbs_lib *lib = NULL;
	return wf_verbs_lib_get(&lib);
}

enum weft_status
wf_rdma_present(void)
{
	const struct wf_verbs_lib *lib = NULL;
	DIR *folder = opendir(DEVICES_FOLDER);
	const struct dirent *entry = NULL;
	do {
		entry = folder == NULL ? NULL : readdir(folder);
	} while (entry != NULL && entry->d_name[0] == '.');
	if (folder != NULL) {
		(void)closedir(folder);
	}
	if (entry == NULL) {
		return wf_fail(WEFT_UNAVAILABLE,
			       "no RDMA device on this host (rdma link show lists them)");
	}
	return wf_verbs_lib_get(&lib);
}

/* Reads the speed, unless the settings name devices: then the user has weighed them. */
static void
read_speed(const struct search *search, struct ibv_context *context, struct wf_verbs_candidate *out)
{
	struct ibv_port_attr port;
	memset(&port, 0, sizeof(port));
	out->mbps = 0;
	out->active = false;
	if (search->settings.device[0] == '\0' &&
	    search->lib->query_port(context, (uint8_t)out->address.port,
				    (struct _compat_ibv_port_attr *)&port) == 0) {
		out->mbps = wf_verbs_rails_mbps(port.active_speed, port.active_width);
		out->active = port.state == IBV_PORT_ACTIVE;
	}
}

/* Finds out where `address` leads. Returns false if not to a device that is wanted. */
static bool
ask(struct search *search, struct sockaddr *address, struct wf_verbs_candidate *out)
{
	const struct wf_verbs_settings *s = &search->settings;
	struct rdma_cm_id *id = NULL;
	int place = -1;
	if (search->lib->create_id(search->channel, &id, NULL, RDMA_PS_TCP) != 0) {
		return false;
	}
	if (search->lib->bind_addr(id, address) == 0 && id->verbs != NULL &&
	    (s->port == 0 || s->port == id->port_num)) {
		const char *name = search->lib->get_device_name(id->verbs->device);
		place = wf_verbs_settings_find_device(s, name);
		snprintf(out->address.device, sizeof(out->address.device), "%s", name);
		out->address.port = id->port_num;
		read_speed(search, id->verbs, out);
	}
	(void)search->lib->destroy_id(id);
	if (place < 0) {
		return false;
	}
	out->place = (unsigned)place;
	out->distance = wf_verbs_rails_distance(out->address.device, s->node);
	return true;
}

/* The address as bytes; NULL: none that other hosts could reach. */
static const void *
address_of(const struct ifaddrs *entry)
{
	const struct sockaddr *address = entry->ifa_addr;
	if (address == NULL || (entry->ifa_flags & IFF_UP) == 0 ||
	    (entry->ifa_flags & IFF_LOOPBACK) != 0) {
		return NULL;
	}
	if (address->sa_family == AF_INET) {
		return &((const struct sockaddr_in *)(const void *)address)->sin_addr;
	}
	if (address->sa_family == AF_INET6) {
		const struct in6_addr *v6 =
			&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
		return IN6_IS_ADDR_LINKLOCAL(v6) ? NULL : v6;
	}
	return NULL;
}

enum weft_status
wf_verbs_rights(const struct wf_verbs_settings *settings)
{
	enum weft_status st = WEFT_OK;
	DIR *folder = opendir(DEVICES_FOLDER);
	if (folder == NULL) {
		return WEFT_OK;
	}
	for (const struct dirent *entry; st == WEFT_OK && (entry = readdir(folder)) != NULL;) {
		if (entry->d_name[0] != '.' &&
		    wf_verbs_settings_find_device(settings, entry->d_name) >= 0) {
			st = wf_rdma_rights(entry->d_name);
		}
	}
	(void)closedir(folder);
	return st;
}

static void
look_at_all(struct search *search, const struct ifaddrs *list)
{
	unsigned binds = 0;
	for (const struct ifaddrs *entry = list; entry != NULL; entry = entry->ifa_next) {
		const void *bytes = address_of(entry);
		if (bytes == NULL || search->count == WF_VERBS_CANDIDATES_MAX ||
		    binds++ >= BINDS_MAX) {
			continue;
		}
		struct wf_verbs_candidate *found = &search->found[search->count];
		if (ask(search, entry->ifa_addr, found)) {
			(void)inet_ntop(entry->ifa_addr->sa_family, bytes, found->address.text,
					WF_RDMA_ADDRESS_BYTES);
			search->count++;
		}
	}
}

/* `err` of the connection manager; 0: it answered. */
static enum weft_status
fail_found_none(const struct search *search, int err)
{
	enum weft_status st = wf_verbs_rights(&search->settings);
	if (st != WEFT_OK) {
		return st;
	}
	if (err != 0) {
		return wf_fail_errno(WEFT_UNAVAILABLE, err,
				     "the connection manager of RDMA (/dev/infiniband/rdma_cm)");
	}
	return wf_fail(WEFT_UNAVAILABLE,
		       "no address of this host leads to an RDMA device%s%s (ip address add gives "
		       "its interface one)",
		       search->settings.device[0] == '\0' ? "" : " called ",
		       search->settings.device);
}

enum weft_status
wf_rdma_addresses(const char *settings, struct wf_rdma_addresses *out)
{
	struct search search = {0};
	struct ifaddrs *list = NULL;
	*out = (struct wf_rdma_addresses){0};
	enum weft_status st = wf_verbs_settings_parse(settings, &search.settings);
	if (st == WEFT_OK) {
		st = wf_verbs_lib_get(&search.lib);
	}
	if (st != WEFT_OK) {
		return st;
	}
	search.channel = search.lib->create_event_channel();
	if (search.channel == NULL) {
		return fail_found_none(&search, errno);
	}
	if (getifaddrs(&list) == 0) {
		look_at_all(&search, list);
		freeifaddrs(list);
	}
	search.lib->destroy_event_channel(search.channel);
	out->named = search.settings.device[0] != '\0';
	wf_verbs_rails_order(search.found, search.count, search.settings.lane, out);
	if (out->count == 0) {
		return fail_found_none(&search, 0);
	}
	return WEFT_OK;
}

/* Whether `a` and `b` are equal where `mask` has ones. */
static bool
agree(const void *a, const void *b, const void *mask, size_t bytes)
{
	const uint8_t *left = a;
	const uint8_t *right = b;
	const uint8_t *bits = mask;
	for (size_t i = 0; i < bytes; i++) {
		if (((left[i] ^ right[i]) & bits[i]) != 0) {
			return false;
		}
	}
	return true;
}

static const void *
bytes_of(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET) {
		return &((const struct sockaddr_in *)(const void *)address)->sin_addr;
	}
	return &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
}

bool
wf_rdma_is_on_link(const char *address)
{
	uint8_t wanted[16];
	int family = inet_pton(AF_INET, address, wanted) == 1 ? AF_INET : AF_INET6;
	struct ifaddrs *list = NULL;
	bool found = false;
	if ((family == AF_INET6 && inet_pton(AF_INET6, address, wanted) != 1) ||
	    getifaddrs(&list) != 0) {
		return false;
	}
	for (const struct ifaddrs *entry = list; entry != NULL && !found; entry = entry->ifa_next) {
		if (address_of(entry) != NULL && entry->ifa_netmask != NULL &&
		    entry->ifa_addr->sa_family == family) {
			found = agree(wanted, bytes_of(entry->ifa_addr),
				      bytes_of(entry->ifa_netmask), family == AF_INET ? 4 : 16);
		}
	}
	freeifaddrs(list);
	return found;
}
