/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_addresses: which addresses of this host lead to RDMA devices. The connection manager knows:
 * who binds to such an address gets its device, on InfiniBand, RoCE and iWARP alike. Thread: any.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>

#include "transport/rdma.h"
#include "transport/verbs/verbs_lib.h"
#include "transport/verbs/verbs_settings.h"

#define DEVICES_FOLDER "/sys/class/infiniband"
#define BINDS_MAX 256u /* of a host with very many addresses, the first ones are looked at */

struct search {
	const struct wf_verbs_lib *lib;
	struct rdma_event_channel *channel;
	struct wf_verbs_settings settings;
};

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

static bool
is_wanted(const struct search *search, struct sockaddr *address)
{
	const struct wf_verbs_settings *s = &search->settings;
	struct rdma_cm_id *id = NULL;
	if (search->lib->create_id(search->channel, &id, NULL, RDMA_PS_TCP) != 0) {
		return false;
	}
	bool wanted = search->lib->bind_addr(id, address) == 0 && id->verbs != NULL;
	if (wanted && s->device[0] != '\0') {
		wanted = strcmp(search->lib->get_device_name(id->verbs->device), s->device) == 0;
	}
	wanted = wanted && (s->port == 0 || s->port == id->port_num);
	(void)search->lib->destroy_id(id);
	return wanted;
}

/* The address as bytes; NULL: none that another host could go to. */
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

static void
look_at_all(const struct search *search, const struct ifaddrs *list, struct wf_rdma_addresses *out)
{
	unsigned binds = 0;
	for (const struct ifaddrs *entry = list; entry != NULL; entry = entry->ifa_next) {
		const void *bytes = address_of(entry);
		if (bytes == NULL || out->count == WF_RDMA_ADDRESSES_MAX || binds++ >= BINDS_MAX) {
			continue;
		}
		if (is_wanted(search, entry->ifa_addr)) {
			(void)inet_ntop(entry->ifa_addr->sa_family, bytes, out->text[out->count],
					WF_RDMA_ADDRESS_BYTES);
			out->count++;
		}
	}
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
		return wf_fail_errno(WEFT_UNAVAILABLE, errno,
				     "the connection manager of RDMA (/dev/infiniband/rdma_cm)");
	}
	if (getifaddrs(&list) == 0) {
		look_at_all(&search, list, out);
		freeifaddrs(list);
	}
	search.lib->destroy_event_channel(search.channel);
	if (out->count == 0) {
		return wf_fail(WEFT_UNAVAILABLE,
			       "no address of this host leads to an RDMA device%s%s (ip address "
			       "add gives its interface one)",
			       search.settings.device[0] == '\0' ? "" : " called ",
			       search.settings.device);
	}
	return WEFT_OK;
}
