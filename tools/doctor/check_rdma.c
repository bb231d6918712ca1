/* SPDX-License-Identifier: Apache-2.0 */
/* check_rdma: from the libraries to an address that leads to a device. The files of /sys say most
 * of it; only the last checks open a device. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/rdma_rights.h"
#include "tools/doctor/doctor_internal.h"
#include "transport/rdma.h"
#include "transport/transport.h"

#define DEVICES "/sys/class/infiniband"
#define GIDS_MAX 256u
#define ROCE_HEAD_BYTES 96u /* of the largest packet, beside its payload */
#define NAME_BYTES 64u
#define WORD_BYTES 64u
#define MTU_WANTED 4096u
#define OK (&(struct wf_doctor_about){.level = WF_DOCTOR_OK})
#define NOTE (&(struct wf_doctor_about){.level = WF_DOCTOR_NOTE})

static bool
is_used(const struct wf_doctor *doctor)
{
	return wf_doctor_may_use(doctor, "verbs") && wf_doctor_has_devices(doctor);
}

bool
wf_doctor_has_devices(const struct wf_doctor *doctor)
{
	return wf_doctor_each(doctor, DEVICES, NULL, NULL) > 0;
}

void
wf_doctor_check_libraries(const struct wf_doctor *doctor)
{
	if (!wf_doctor_may_use(doctor, "verbs") || !wf_doctor_is_here(doctor)) {
		return;
	}
	if (wf_rdma_probe() == WEFT_OK) {
		wf_doctor_add(doctor, OK, "libibverbs and librdmacm can be loaded");
		return;
	}
	bool has_devices = wf_doctor_has_devices(doctor);
	wf_doctor_add(
		doctor,
		&(struct wf_doctor_about){
			.level = wf_doctor_grade(doctor, "verbs",
						 has_devices ? WF_DOCTOR_FINDING : WF_DOCTOR_NOTE),
			.remedy = "apt-get install libibverbs1 librdmacm1 ibverbs-providers"},
		"%s", wf_error_record()->text);
}

/* ---- devices ---- */

static void
look_at_rights(const struct wf_doctor *doctor, const char *name, void *arg)
{
	unsigned *usable = arg;
	if (wf_rdma_rights_below(doctor->ask->root, name) == WEFT_OK) {
		++*usable;
		wf_doctor_add(doctor,
			      &(struct wf_doctor_about){.level = WF_DOCTOR_OK, .subject = name},
			      "%s: this user may open its files", name);
		return;
	}
	wf_doctor_add(doctor,
		      &(struct wf_doctor_about){
			      .level = WF_DOCTOR_FINDING,
			      .subject = name,
			      .remedy = "give this user the group of /dev/infiniband, or the "
					"container --device=/dev/infiniband; modprobe ib_uverbs "
					"rdma_ucm if a file is missing"},
		      "%s", wf_error_record()->text);
}

void
wf_doctor_check_devices(const struct wf_doctor *doctor)
{
	static const char remedy[] = "use --transport=tcp; or add a soft device: modprobe rdma_rxe "
				     "and rdma link add rxe0 type rxe netdev eth0";
	unsigned usable = 0;
	if (!wf_doctor_may_use(doctor, "verbs")) {
		return;
	}
	if (!wf_doctor_has_devices(doctor)) {
		bool wants = wf_doctor_wants(doctor, "verbs");
		wf_doctor_add(
			doctor,
			&(struct wf_doctor_about){.level = wants ? WF_DOCTOR_FAILS : WF_DOCTOR_NOTE,
						  .remedy = wants ? remedy : NULL},
			"there is no RDMA device on this host%s",
			wants ? "" : ": TCP and shared memory are used");
		return;
	}
	(void)wf_doctor_each(doctor, DEVICES, look_at_rights, &usable);
	if (usable == 0 && wf_doctor_wants(doctor, "verbs")) {
		wf_doctor_add(doctor, &(struct wf_doctor_about){.level = WF_DOCTOR_FAILS},
			      "this user may open none of the RDMA devices");
	}
}

/* ---- providers ---- */

static bool
is_iwarp(const struct wf_doctor *doctor, const char *device)
{
	char text[64];
	return wf_doctor_line(doctor, text, sizeof(text), DEVICES "/%s/node_type", device) &&
	       strstr(text, "RNIC") != NULL;
}

/* The name that libibverbs knows the driver by; "": unknown. */
static void
find_provider(const struct wf_doctor *doctor, const char *device, char out[NAME_BYTES])
{
	static const struct {
		const char *driver, *provider;
	} known[] = {
		{"mlx5_core", "mlx5"},    {"mlx4_core", "mlx4"},
		{"bnxt_en", "bnxt_re"},   {"cxgb4", "cxgb4"},
		{"efa", "efa"},           {"ice", "irdma"},
		{"i40e", "irdma"},        {"irdma", "irdma"},
		{"hns3", "hns"},          {"hfi1", "hfi1verbs"},
		{"ib_qib", "ipathverbs"}, {"qede", "qedr"},
		{"be2net", "ocrdma"},     {"vmw_pvrdma", "vmw_pvrdma"},
		{"mana", "mana"},         {"erdma", "erdma"},
		{"ib_mthca", "mthca"},
	};
	char path[WF_DOCTOR_PATH_BYTES];
	char target[PATH_MAX];
	(void)snprintf(path, sizeof(path), "%.300s" DEVICES "/%.100s/device/driver",
		       doctor->ask->root, device);
	ssize_t bytes = readlink(path, target, sizeof(target) - 1);
	out[0] = '\0';
	if (bytes <= 0) {
		/* A device without hardware behind it. */
		if (!wf_doctor_exists(doctor, DEVICES "/%s/device", device)) {
			(void)snprintf(out, NAME_BYTES, "%s",
				       is_iwarp(doctor, device) ? "siw" : "rxe");
		}
		return;
	}
	target[bytes] = '\0';
	const char *slash = strrchr(target, '/');
	const char *driver = slash == NULL ? target : slash + 1;
	for (size_t i = 0; i < WF_ARRAY_COUNT(known); i++) {
		if (strcmp(driver, known[i].driver) == 0) {
			(void)snprintf(out, NAME_BYTES, "%s", known[i].provider);
		}
	}
}

static void
look_at_provider(const struct wf_doctor *doctor, const char *device, void *arg)
{
	char provider[NAME_BYTES];
	char subject[NAME_BYTES];
	(void)arg;
	(void)snprintf(subject, sizeof(subject), "%.60s", device);
	struct wf_doctor_about about = {.level = WF_DOCTOR_OK, .subject = subject};
	find_provider(doctor, device, provider);
	if (provider[0] == '\0') {
		about.level = WF_DOCTOR_NOTE;
		wf_doctor_add(doctor, &about, "%s: its user space driver is unknown", device);
	} else if (!wf_doctor_exists(doctor, "/etc/libibverbs.d")) {
		about.level = WF_DOCTOR_NOTE;
		wf_doctor_add(doctor, &about,
			      "%s needs the user space driver %s; where it is installed is unknown",
			      device, provider);
	} else if (!wf_doctor_exists(doctor, "/etc/libibverbs.d/%s.driver", provider)) {
		about.level = WF_DOCTOR_FINDING;
		about.remedy = "apt-get install ibverbs-providers (in the container, too)";
		wf_doctor_add(doctor, &about,
			      "%s: libibverbs has no driver %s, so it does not see the device",
			      device, provider);
	} else {
		wf_doctor_add(doctor, &about, "%s: libibverbs has the driver %s", device, provider);
	}
}

void
wf_doctor_check_providers(const struct wf_doctor *doctor)
{
	if (is_used(doctor)) {
		(void)wf_doctor_each(doctor, DEVICES, look_at_provider, NULL);
	}
}

/* ---- ports ---- */

struct port {
	const char *device;
	unsigned number;
	char subject[NAME_BYTES + 16];
};

struct each_port {
	void (*look)(const struct wf_doctor *doctor, const struct port *port, void *arg);
	void *arg;
	const char *device;
};

static void
look_at_port_name(const struct wf_doctor *doctor, const char *name, void *arg)
{
	const struct each_port *each = arg;
	char *end = NULL;
	struct port port = {.device = each->device};
	unsigned long number = strtoul(name, &end, 10);
	if (end == name || *end != '\0' || number == 0 || number > 255) {
		return;
	}
	port.number = (unsigned)number;
	(void)snprintf(port.subject, sizeof(port.subject), "%.60s port %u", port.device,
		       port.number);
	each->look(doctor, &port, each->arg);
}

static void
look_at_ports(const struct wf_doctor *doctor, const char *device, void *arg)
{
	struct each_port each = *(const struct each_port *)arg;
	char folder[WF_DOCTOR_PATH_BYTES];
	each.device = device;
	(void)snprintf(folder, sizeof(folder), DEVICES "/%.60s/ports", device);
	(void)wf_doctor_each(doctor, folder, look_at_port_name, &each);
}

static void
each_port(const struct wf_doctor *doctor,
	  void (*look)(const struct wf_doctor *doctor, const struct port *port, void *arg),
	  void *arg)
{
	struct each_port each = {.look = look, .arg = arg};
	if (is_used(doctor)) {
		(void)wf_doctor_each(doctor, DEVICES, look_at_ports, &each);
	}
}

/* A line of a file of the port, without the number before it: "4: ACTIVE". */
static void
port_line(const struct wf_doctor *doctor, const struct port *port, const char *file,
	  char out[WORD_BYTES])
{
	char text[128];
	if (!wf_doctor_line(doctor, text, sizeof(text), DEVICES "/%s/ports/%u/%s", port->device,
			    port->number, file)) {
		(void)snprintf(out, WORD_BYTES, "unknown");
		return;
	}
	const char *colon = strstr(text, ": ");
	(void)snprintf(out, WORD_BYTES, "%.63s", colon == NULL ? text : colon + 2);
}

static void
look_at_link(const struct wf_doctor *doctor, const struct port *port, void *arg)
{
	unsigned *active = arg;
	char state[WORD_BYTES];
	char physical[WORD_BYTES];
	char rate[WORD_BYTES];
	char layer[WORD_BYTES];
	port_line(doctor, port, "state", state);
	port_line(doctor, port, "phys_state", physical);
	port_line(doctor, port, "rate", rate);
	port_line(doctor, port, "link_layer", layer);
	if (strcmp(state, "ACTIVE") == 0) {
		++*active;
		wf_doctor_add(
			doctor,
			&(struct wf_doctor_about){.level = WF_DOCTOR_OK, .subject = port->subject},
			"%s is active: %s, %s", port->subject, rate, layer);
		return;
	}
	bool is_ethernet = strcmp(layer, "Ethernet") == 0;
	wf_doctor_add(doctor,
		      &(struct wf_doctor_about){
			      .level = WF_DOCTOR_FINDING,
			      .subject = port->subject,
			      .remedy = is_ethernet
						? "ip link set its interface up (rdma link show "
						  "names it), and look at the cable"
						: "look at the cable; if the link is up and the "
						  "state INIT, start a subnet manager (opensm)"},
		      "%s is %s (link %s), so no lane uses it", port->subject, state, physical);
}

void
wf_doctor_check_links(const struct wf_doctor *doctor)
{
	unsigned active = 0;
	each_port(doctor, look_at_link, &active);
	if (active == 0 && is_used(doctor) && wf_doctor_wants(doctor, "verbs")) {
		wf_doctor_add(doctor, &(struct wf_doctor_about){.level = WF_DOCTOR_FAILS},
			      "no port of an RDMA device is active");
	}
}

/* ---- addresses of RoCE ---- */

/* Whether a GID in its text form may be used: neither zero nor link-local. */
static bool
is_global(const char *text, bool *is_v4)
{
	struct in6_addr gid;
	if (inet_pton(AF_INET6, text, &gid) != 1) {
		return false;
	}
	*is_v4 = IN6_IS_ADDR_V4MAPPED(&gid);
	return !IN6_IS_ADDR_UNSPECIFIED(&gid) && !IN6_IS_ADDR_LINKLOCAL(&gid);
}

struct gids {
	unsigned v2;      /* entries of RoCE v2 */
	int index;        /* the first of them that can be used; -1: none */
	bool v4;          /* it is an IPv4 address */
	char address[64]; /* it, as the file has it */
};

static void
read_gids(const struct wf_doctor *doctor, const struct port *port, struct gids *out)
{
	*out = (struct gids){.index = -1};
	for (unsigned i = 0; i < GIDS_MAX; i++) {
		char type[32];
		char text[64];
		bool v4 = false;
		if (!wf_doctor_exists(doctor, DEVICES "/%s/ports/%u/gid_attrs/types/%u",
				      port->device, port->number, i)) {
			break; /* an empty entry has a file, which cannot be read */
		}
		if (!wf_doctor_line(doctor, type, sizeof(type),
				    DEVICES "/%s/ports/%u/gid_attrs/types/%u", port->device,
				    port->number, i) ||
		    strcmp(type, "RoCE v2") != 0) {
			continue;
		}
		out->v2++;
		if (wf_doctor_line(doctor, text, sizeof(text), DEVICES "/%s/ports/%u/gids/%u",
				   port->device, port->number, i) &&
		    is_global(text, &v4) && (out->index < 0 || (v4 && !out->v4))) {
			out->index = (int)i;
			out->v4 = v4;
			(void)snprintf(out->address, sizeof(out->address), "%s", text);
		}
	}
}

/* The network interface of a port, by its first address; "": unknown. iWARP has no such table, and
 * a device without hardware says it in `parent`. */
static void
find_interface(const struct wf_doctor *doctor, const struct port *port, char out[NAME_BYTES])
{
	out[0] = '\0';
	for (unsigned i = 0; i < GIDS_MAX && out[0] == '\0'; i++) {
		if (!wf_doctor_exists(doctor, DEVICES "/%s/ports/%u/gid_attrs/ndevs/%u",
				      port->device, port->number, i)) {
			break;
		}
		(void)wf_doctor_line(doctor, out, NAME_BYTES,
				     DEVICES "/%s/ports/%u/gid_attrs/ndevs/%u", port->device,
				     port->number, i);
	}
	if (out[0] == '\0') {
		(void)wf_doctor_line(doctor, out, NAME_BYTES, DEVICES "/%s/parent", port->device);
	}
	if (strchr(out, '/') != NULL || strstr(out, "..") != NULL) {
		out[0] = '\0';
	}
}

static bool
is_roce(const struct wf_doctor *doctor, const struct port *port)
{
	char layer[WORD_BYTES];
	port_line(doctor, port, "link_layer", layer);
	return strcmp(layer, "Ethernet") == 0 && !is_iwarp(doctor, port->device);
}

static void
look_at_gids(const struct wf_doctor *doctor, const struct port *port, void *arg)
{
	struct gids gids;
	struct wf_doctor_about about = {.level = WF_DOCTOR_OK, .subject = port->subject};
	(void)arg;
	if (!is_roce(doctor, port)) {
		about.level = WF_DOCTOR_NOTE;
		wf_doctor_add(doctor, &about,
			      "%s is not RoCE: the addresses of its interface are used",
			      port->subject);
		return;
	}
	read_gids(doctor, port, &gids);
	if (gids.index >= 0) {
		wf_doctor_add(doctor, &about,
			      "%s: GID %d is RoCE v2, %s (%s); it has %u of RoCE v2", port->subject,
			      gids.index, gids.v4 ? "IPv4" : "IPv6", gids.address, gids.v2);
		return;
	}
	about.level = WF_DOCTOR_FINDING;
	about.remedy = gids.v2 > 0 ? "ip address add an IPv4 address to its interface (rdma link "
				     "show names it)"
				   : "enable RoCE v2 of the device, and give its interface an IPv4 "
				     "address";
	wf_doctor_add(doctor, &about,
		      "%s has no GID of RoCE v2 that other hosts reach (%u of RoCE v2, all "
		      "link-local)",
		      port->subject, gids.v2);
}

void
wf_doctor_check_gids(const struct wf_doctor *doctor)
{
	each_port(doctor, look_at_gids, NULL);
}

/* ---- MTU ---- */

/* The largest payload of a RoCE packet that an interface lets through. */
static unsigned
payload_for(uint64_t mtu)
{
	unsigned payload = 256;
	if (mtu < payload + ROCE_HEAD_BYTES) {
		return 0;
	}
	while (payload < MTU_WANTED && (uint64_t)payload * 2 + ROCE_HEAD_BYTES <= mtu) {
		payload *= 2;
	}
	return payload;
}

static void
look_at_mtu(const struct wf_doctor *doctor, const struct port *port, void *arg)
{
	char interface[NAME_BYTES];
	char remedy[128];
	uint64_t mtu = 0;
	struct wf_doctor_about about = {.level = WF_DOCTOR_OK, .subject = port->subject};
	(void)arg;
	find_interface(doctor, port, interface);
	unsigned active = wf_doctor_is_here(doctor) ? wf_rdma_mtu(port->device, port->number) : 0;
	if (interface[0] == '\0' ||
	    !wf_doctor_number(doctor, &mtu, "/sys/class/net/%s/mtu", interface)) {
		about.level = WF_DOCTOR_NOTE;
		wf_doctor_add(doctor, &about, "%s: packets of %u bytes; its interface is unknown",
			      port->subject, active);
		return;
	}
	if (!is_roce(doctor, port)) {
		wf_doctor_add(doctor, &about, "%s: its interface %s has MTU %" PRIu64,
			      port->subject, interface, mtu);
		return;
	}
	unsigned payload = payload_for(mtu);
	if (active > 0 && active < payload) {
		payload = active;
	}
	if (payload >= MTU_WANTED) {
		wf_doctor_add(doctor, &about,
			      "%s: packets of %u bytes; its interface %s has MTU %" PRIu64,
			      port->subject, payload, interface, mtu);
		return;
	}
	about.level = WF_DOCTOR_FINDING;
	about.remedy = remedy;
	(void)snprintf(remedy, sizeof(remedy),
		       "ip link set %.15s mtu 9000 on all hosts and switches of this network",
		       interface);
	wf_doctor_add(doctor, &about,
		      "%s sends packets of %u bytes, because its interface %s has MTU %" PRIu64
		      "; 4096 bytes need MTU 4192",
		      port->subject, payload, interface, mtu);
}

void
wf_doctor_check_mtus(const struct wf_doctor *doctor)
{
	each_port(doctor, look_at_mtu, NULL);
}

/* ---- the whole way ---- */

void
wf_doctor_check_addresses(const struct wf_doctor *doctor)
{
	struct wf_rdma_addresses found;
	if (!wf_doctor_is_here(doctor) || !is_used(doctor)) {
		return;
	}
	const char *settings = doctor->ask->verbs != NULL ? doctor->ask->verbs : "";
	enum weft_status st = wf_rdma_addresses(settings, &found);
	if (st != WEFT_OK || found.count == 0) {
		wf_doctor_add(doctor,
			      &(struct wf_doctor_about){
				      .level = wf_doctor_grade(doctor, "verbs", WF_DOCTOR_FINDING),
				      .remedy =
					      "ip address add gives the interface of the device an "
					      "address"},
			      "%s",
			      st != WEFT_OK ? wf_error_record()->text
					    : "no address of this host leads to an RDMA device");
		return;
	}
	for (unsigned i = 0; i < found.count; i++) {
		wf_doctor_add(doctor,
			      &(struct wf_doctor_about){.level = WF_DOCTOR_OK,
							.subject = found.at[i].text},
			      "%s leads to %s port %u", found.at[i].text, found.at[i].device,
			      found.at[i].port);
	}
}
