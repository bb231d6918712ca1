/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_caps: the capabilities of a device, and which of its addresses to use. Thread: the
 * transport's owner.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "transport/rdma.h"
#include "transport/verbs/verbs_internal.h"

/* rxe uses receive buffers only of the queue pair's own domain, whatever the queue's is, checks a
 * WRITE through a window only against the region behind the window, and does not report when a
 * queue pair uses no more buffers of a shared queue (Linux 6.1). */
#define VENDOR_RXE 0xffffffu
/* siw accepts a requested address for a region, and does not use it. Its library (rdma-core 44)
 * mistakes a queue that is mapped at offset 16 MiB for one that could not be created. */
#define VENDOR_SIW 0x626d74u
#define MESSAGE_BYTES_MAX (1ull << 30)
#define GIDS_MAX 256u

static uint32_t
min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static bool
has_windows(const struct ibv_device_attr *attr)
{
	const unsigned type_2 = IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
	return ((unsigned)attr->device_cap_flags & type_2) != 0 && attr->max_mw > 0;
}

/* Whether a receive queue may be shared: a connection that floods it only delays others if a sender
 * that finds no buffer retries; on iWARP it would end their connections. */
static bool
may_share(const struct wf_verbs_caps *caps, const struct ibv_device_attr *attr)
{
	return attr->max_srq > 0 && !caps->iwarp && (caps->window || attr->vendor_id != VENDOR_RXE);
}

static void
read_sizes(struct wf_verbs_device *dev, const struct ibv_device_attr *attr)
{
	struct wf_verbs_caps *caps = &dev->caps;
	const struct wf_verbs_settings *s = &dev->t->settings;
	uint32_t cqe = (uint32_t)attr->max_cqe;
	caps->send_queue = min_u32(s->send_queue, (uint32_t)attr->max_qp_wr);
	caps->rx_share = s->credits + WF_VERBS_CONTROL_MAX;
	caps->conn_max = min_u32(wf_places_table(&dev->t->medium.places), (uint32_t)attr->max_qp);
	uint32_t share = min_u32(caps->conn_max, WF_VERBS_QUEUES_CONNS);
	share = min_u32(share, cqe / caps->send_queue);
	share = min_u32(share, cqe / caps->rx_share);
	if (caps->shared_queue) {
		share = min_u32(share, (uint32_t)attr->max_srq_wr / caps->rx_share);
	}
	caps->queues_share = share;
}

enum weft_status
wf_verbs_caps_read(struct wf_verbs_device *dev)
{
	const struct wf_verbs_lib *lib = dev->t->lib;
	const struct wf_verbs_settings *s = &dev->t->settings;
	struct wf_verbs_caps *caps = &dev->caps;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	memset(&attr, 0, sizeof(attr));
	memset(&port, 0, sizeof(port));
	/* This is the older of two forms of the call, which writes only the beginning of the
	 * struct. */
	int err = lib->query_device(dev->context, &attr);
	if (err == 0) {
		err = lib->query_port(dev->context, 1, (struct _compat_ibv_port_attr *)&port);
	}
	if (err != 0) {
		return wf_fail_errno(WEFT_IO, err, "%s: its capabilities cannot be read",
				     dev->name);
	}
	caps->iwarp = dev->context->device->transport_type == IBV_TRANSPORT_IWARP;
	caps->window_is_loose = attr.vendor_id == VENDOR_RXE && s->window != WF_VERBS_ON;
	caps->query_is_true = !caps->iwarp;
	caps->own_addresses = attr.vendor_id != VENDOR_SIW;
	caps->odd_offsets = attr.vendor_id == VENDOR_SIW;
	caps->immediate = !caps->iwarp && s->immediate != WF_VERBS_OFF;
	caps->window = has_windows(&attr) && s->window != WF_VERBS_OFF;
	caps->shared_queue = may_share(caps, &attr) && s->shared_queue != WF_VERBS_OFF;
	caps->says_last = caps->shared_queue && attr.vendor_id != VENDOR_RXE;
	caps->message_max = port.max_msg_sz == 0 || port.max_msg_sz > MESSAGE_BYTES_MAX
				    ? MESSAGE_BYTES_MAX
				    : port.max_msg_sz;
	read_sizes(dev, &attr);
	WF_STATIC_ASSERT(WF_VERBS_SEND_QUEUE_MIN >= 2 * WF_VERBS_BATCH, "one fills, one is sent");
	if (caps->queues_share == 0 || caps->send_queue < WF_VERBS_SEND_QUEUE_MIN) {
		return wf_fail(WEFT_UNSUPPORTED,
			       "%s: queues of %d and %d entries are too small for %u work requests "
			       "and %u receive buffers a connection",
			       dev->name, attr.max_qp_wr, attr.max_cqe, s->send_queue,
			       caps->rx_share);
	}
	return WEFT_OK;
}

static bool
is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	return memcmp(gid->raw, mapped, sizeof(mapped)) == 0;
}

static bool
is_link_local(const union ibv_gid *gid)
{
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

static bool
is_zero(const union ibv_gid *gid)
{
	static const union ibv_gid zero;
	return memcmp(gid, &zero, sizeof(zero)) == 0;
}

int
wf_verbs_gid_pick(const struct ibv_gid_entry *entries, unsigned count, int family)
{
	for (unsigned i = 0; i < count; i++) {
		const union ibv_gid *gid = &entries[i].gid;
		if (entries[i].gid_type == IBV_GID_TYPE_ROCE_V2 && !is_link_local(gid) &&
		    !is_zero(gid) && is_ipv4(gid) == (family == AF_INET)) {
			return (int)i;
		}
	}
	return -1;
}

static struct ibv_context *
open_named(const struct wf_verbs_lib *lib, const char *name)
{
	int count = 0;
	struct ibv_context *context = NULL;
	struct ibv_device **list = lib->get_device_list(&count);
	for (int i = 0; list != NULL && i < count && context == NULL; i++) {
		if (strcmp(lib->get_device_name(list[i]), name) == 0) {
			context = lib->open_device(list[i]);
		}
	}
	if (list != NULL) {
		lib->free_device_list(list);
	}
	return context;
}

/* Reads the entries of the device's table for the port or, if the settings name one, that one
 * alone. */
static unsigned
read_gids(const struct wf_verbs *t, struct ibv_context *context, struct ibv_gid_entry *out)
{
	ssize_t count = t->lib->query_gid_table(context, out, GIDS_MAX, 0, sizeof(*out));
	unsigned kept = 0;
	for (ssize_t i = 0; i < count; i++) {
		bool port = t->settings.port == 0 || out[i].port_num == t->settings.port;
		bool index = t->settings.gid < 0 || out[i].gid_index == (uint32_t)t->settings.gid;
		if (port && index) {
			out[kept++] = out[i];
		}
	}
	return kept;
}

static void
gid_address(const union ibv_gid *gid, int family, struct sockaddr_storage *out)
{
	memset(out, 0, sizeof(*out));
	if (family == AF_INET) {
		struct sockaddr_in *v4 = (struct sockaddr_in *)out;
		v4->sin_family = AF_INET;
		memcpy(&v4->sin_addr, gid->raw + 12, 4);
	} else {
		struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
		v6->sin6_family = AF_INET6;
		memcpy(&v6->sin6_addr, gid->raw, 16);
	}
}

/* On InfiniBand and iWARP the table has no addresses: those of the device's interfaces are used. */
static enum weft_status
address_of_interface(const char *device, int family, struct sockaddr_storage *out)
{
	struct wf_rdma_addresses found;
	char settings[WF_VERBS_DEVICE_BYTES + 16];
	snprintf(settings, sizeof(settings), "device=%s", device);
	enum weft_status st = wf_rdma_addresses(settings, &found);
	for (unsigned i = 0; st == WEFT_OK && i < found.count; i++) {
		struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
		struct sockaddr_in *v4 = (struct sockaddr_in *)out;
		memset(out, 0, sizeof(*out));
		out->ss_family = (sa_family_t)family;
		void *at = family == AF_INET ? (void *)&v4->sin_addr : (void *)&v6->sin6_addr;
		if (inet_pton(family, found.at[i].text, at) == 1) {
			return WEFT_OK;
		}
	}
	return st != WEFT_OK
		       ? st
		       : wf_fail(WEFT_UNAVAILABLE, "device=%s: none of its %u addresses is %s",
				 device, found.count, family == AF_INET ? "IPv4" : "IPv6");
}

enum weft_status
wf_verbs_source_address(struct wf_verbs *t, const char *device, int family,
			struct sockaddr_storage *out)
{
	struct ibv_context *context = open_named(t->lib, device);
	if (context == NULL) {
		enum weft_status st = wf_verbs_rights(&t->settings);
		return st != WEFT_OK ? st
				     : wf_fail(WEFT_UNAVAILABLE,
					       "device=%s: there is no such RDMA device; rdma link "
					       "show lists them",
					       device);
	}
	struct ibv_gid_entry entries[GIDS_MAX];
	bool iwarp = context->device->transport_type == IBV_TRANSPORT_IWARP;
	unsigned count = iwarp ? 0 : read_gids(t, context, entries);
	(void)t->lib->close_device(context);
	int at = wf_verbs_gid_pick(entries, count, family);
	if (at >= 0) {
		gid_address(&entries[at].gid, family, out);
		return WEFT_OK;
	}
	if (t->settings.gid >= 0) {
		return wf_fail(WEFT_UNAVAILABLE, "device=%s: its address %d is not RoCE v2 %s",
			       device, t->settings.gid,
			       family == AF_INET ? "over IPv4" : "over IPv6");
	}
	return address_of_interface(device, family, out);
}

unsigned
wf_rdma_mtu(const char *device, unsigned port)
{
	const struct wf_verbs_lib *lib = NULL;
	struct ibv_port_attr attr;
	memset(&attr, 0, sizeof(attr));
	if (wf_verbs_lib_get(&lib) != WEFT_OK || port == 0 || port > UINT8_MAX) {
		return 0;
	}
	struct ibv_context *context = open_named(lib, device);
	if (context == NULL) {
		return 0;
	}
	int err = lib->query_port(context, (uint8_t)port, (struct _compat_ibv_port_attr *)&attr);
	(void)lib->close_device(context);
	bool is_known =
		err == 0 && attr.active_mtu >= IBV_MTU_256 && attr.active_mtu <= IBV_MTU_4096;
	return is_known ? 128u << attr.active_mtu : 0;
}
