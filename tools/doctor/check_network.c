/* SPDX-License-Identifier: Apache-2.0 */
/* check_network: what TCP finds here. */
#include <inttypes.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/secret.h"
#include "tools/doctor/doctor_internal.h"
#include "tools/launch/ports.h"
#include "transport/address.h"
#include "transport/congestion.h"

#define NET "/proc/sys/net"
#define LOOPBACK_MTU 16384u
#define BUFFER_BYTES (4ull << 20) /* what 10 Gb/s over 3 ms need; Linux's own default */
#define TCP_MEMORY_BYTES (64ull << 20)
#define BACKLOG 128u
#define SLOW_MBPS 1000u
#define OK (&(struct wf_doctor_about){.level = WF_DOCTOR_OK})
#define NOTE (&(struct wf_doctor_about){.level = WF_DOCTOR_NOTE})

static bool
listens_on_loopback(const struct wf_doctor_ask *ask)
{
	struct wf_host host = {0};
	struct wf_addresses at = {0};
	(void)snprintf(host.name, sizeof(host.name), "%.200s", ask->listen);
	return ask->listen[0] == '\0' ||
	       (wf_addresses_numeric(&host, &at) && wf_address_is_loopback(&at.at[0]));
}

/* Asks the kernel about an interface: /sys may show those of another network namespace. Returns
 * false if there is none of that name. */
static bool
ask_kernel(const char *name, unsigned long request, struct ifreq *out)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	memset(out, 0, sizeof(*out));
	(void)snprintf(out->ifr_name, sizeof(out->ifr_name), "%.15s", name);
	bool found = fd >= 0 && ioctl(fd, request, out) == 0;
	if (fd >= 0) {
		(void)close(fd);
	}
	return found;
}

static bool
is_up(const struct wf_doctor *doctor, const char *name)
{
	char text[32];
	char *end = NULL;
	struct ifreq asked;
	if (wf_doctor_is_here(doctor)) {
		return ask_kernel(name, SIOCGIFFLAGS, &asked) && (asked.ifr_flags & IFF_UP) != 0;
	}
	if (!wf_doctor_line(doctor, text, sizeof(text), "/sys/class/net/%s/flags", name)) {
		return false;
	}
	unsigned long flags = strtoul(text, &end, 16);
	return end != text && (flags & IFF_UP) != 0;
}

/* 0: unknown. */
static uint64_t
read_mtu(const struct wf_doctor *doctor, const char *name)
{
	struct ifreq asked;
	uint64_t mtu = 0;
	if (wf_doctor_is_here(doctor)) {
		return ask_kernel(name, SIOCGIFMTU, &asked) && asked.ifr_mtu > 0
			       ? (uint64_t)asked.ifr_mtu
			       : 0;
	}
	(void)wf_doctor_number(doctor, &mtu, "/sys/class/net/%s/mtu", name);
	return mtu;
}

void
wf_doctor_check_loopback(const struct wf_doctor *doctor)
{
	uint64_t mtu = read_mtu(doctor, "lo");
	if (!wf_doctor_is_here(doctor) && !wf_doctor_exists(doctor, "/sys/class/net/lo")) {
		wf_doctor_add(doctor, NOTE, "whether there is an interface lo is unknown");
	} else if (!is_up(doctor, "lo")) {
		const struct wf_doctor_about about = {.level = listens_on_loopback(doctor->ask)
								       ? WF_DOCTOR_FAILS
								       : WF_DOCTOR_FINDING,
						      .remedy = "ip link set lo up"};
		wf_doctor_add(doctor, &about,
			      "lo is down: processes of this host do not reach each other");
	} else if (mtu > 0 && mtu < LOOPBACK_MTU) {
		const struct wf_doctor_about about = {.level = WF_DOCTOR_FINDING,
						      .remedy = "ip link set lo mtu 65536"};
		wf_doctor_add(doctor, &about,
			      "the MTU of lo is %" PRIu64 ": TCP on this host is slower", mtu);
	} else {
		wf_doctor_add(doctor, OK, "lo is up, MTU %" PRIu64, mtu);
	}
}

static void
look_at_interface(const struct wf_doctor *doctor, const char *name, void *arg)
{
	unsigned *count = arg;
	char state[32] = "";
	uint64_t mtu = read_mtu(doctor, name);
	uint64_t mbps = 0;
	uint64_t carrier = 1;
	if (strcmp(name, "lo") == 0 || !is_up(doctor, name)) {
		return;
	}
	++*count;
	struct wf_doctor_about about = {.level = WF_DOCTOR_OK, .subject = name};
	(void)wf_doctor_line(doctor, state, sizeof(state), "/sys/class/net/%s/operstate", name);
	(void)wf_doctor_number(doctor, &mbps, "/sys/class/net/%s/speed", name);
	(void)wf_doctor_number(doctor, &carrier, "/sys/class/net/%s/carrier", name);
	if (carrier == 0) {
		about.level = WF_DOCTOR_NOTE;
		about.remedy = "look at its cable, or at the other end of the link";
		wf_doctor_add(doctor, &about, "%s has no carrier", name);
	} else if (mbps > 0 && mbps < SLOW_MBPS) {
		about.level = WF_DOCTOR_FINDING;
		about.remedy = "look at the cable and the port of the switch (ethtool), or use "
			       "another interface";
		wf_doctor_add(doctor, &about, "%s runs at %" PRIu64 " Mb/s, MTU %" PRIu64, name,
			      mbps, mtu);
	} else if (mbps > 0 && mbps <= 10000000) {
		wf_doctor_add(doctor, &about, "%s is up, MTU %" PRIu64 ", %" PRIu64 " Mb/s", name,
			      mtu, mbps);
	} else {
		wf_doctor_add(doctor, &about, "%s is %s, MTU %" PRIu64, name,
			      state[0] != '\0' ? state : "up", mtu);
	}
}

void
wf_doctor_check_interfaces(const struct wf_doctor *doctor)
{
	unsigned count = 0;
	(void)wf_doctor_each(doctor, "/sys/class/net", look_at_interface, &count);
	if (count == 0) {
		wf_doctor_add(doctor, NOTE,
			      "no interface but lo is up: other hosts are not reached");
	}
}

/* The third number of "4096 131072 6291456", which is the highest; false: it is none. */
static bool
read_third(const struct wf_doctor *doctor, const char *file, uint64_t *out)
{
	char text[128];
	uint64_t number[3];
	if (!wf_doctor_line(doctor, text, sizeof(text), NET "/ipv4/%s", file) ||
	    sscanf(text, "%19" SCNu64 " %19" SCNu64 " %19" SCNu64, &number[0], &number[1],
		   &number[2]) != 3) {
		return false;
	}
	*out = number[2];
	return true;
}

void
wf_doctor_check_buffers(const struct wf_doctor *doctor)
{
	static const char *const files[] = {"tcp_rmem", "tcp_wmem"};
	static const char *const remedies[] = {"sysctl -w net.ipv4.tcp_rmem='4096 131072 16777216'",
					       "sysctl -w net.ipv4.tcp_wmem='4096 16384 16777216'"};
	char size[32];
	unsigned fine = 0;
	for (size_t i = 0; i < WF_ARRAY_COUNT(files); i++) {
		uint64_t most = 0;
		if (!read_third(doctor, files[i], &most)) {
			wf_doctor_add(doctor, NOTE, "net.ipv4.%s is unknown", files[i]);
		} else if (most < BUFFER_BYTES) {
			wf_doctor_add(doctor,
				      &(struct wf_doctor_about){.level = WF_DOCTOR_FINDING,
								.subject = files[i],
								.remedy = remedies[i]},
				      "net.ipv4.%s lets a buffer grow to %s: a fast link with a "
				      "long way stays idle",
				      files[i], wf_doctor_size(most, size));
		} else {
			fine++;
		}
	}
	if (fine == WF_ARRAY_COUNT(files)) {
		wf_doctor_add(doctor, OK, "buffers of TCP may grow to %s and more",
			      wf_doctor_size(BUFFER_BYTES, size));
	}
}

void
wf_doctor_check_tcp_memory(const struct wf_doctor *doctor)
{
	uint64_t pages = 0;
	char size[32];
	if (!read_third(doctor, "tcp_mem", &pages) || pages > UINT64_MAX / 4096) {
		wf_doctor_add(doctor, NOTE, "net.ipv4.tcp_mem is unknown");
		return;
	}
	if (pages * 4096 < TCP_MEMORY_BYTES) {
		const struct wf_doctor_about about = {
			.level = WF_DOCTOR_FINDING,
			.remedy = "sysctl -w net.ipv4.tcp_mem='65536 131072 262144'"};
		wf_doctor_add(doctor, &about,
			      "all sockets of TCP together may use %s; above that the kernel "
			      "drops data",
			      wf_doctor_size(pages * 4096, size));
		return;
	}
	wf_doctor_add(doctor, OK, "all sockets of TCP together may use %s",
		      wf_doctor_size(pages * 4096, size));
}

void
wf_doctor_check_backlog(const struct wf_doctor *doctor)
{
	uint64_t most = 0;
	uint64_t needed = doctor->ask->trainers > BACKLOG ? doctor->ask->trainers : BACKLOG;
	if (!wf_doctor_number(doctor, &most, NET "/core/somaxconn")) {
		wf_doctor_add(doctor, NOTE, "net.core.somaxconn is unknown");
	} else if (most < needed) {
		const struct wf_doctor_about about = {
			.level = WF_DOCTOR_FINDING, .remedy = "sysctl -w net.core.somaxconn=4096"};
		wf_doctor_add(doctor, &about,
			      "%" PRIu64 " connections may wait for a lane (net.core.somaxconn): "
			      "when all trainers connect at once some try again",
			      most);
	} else {
		wf_doctor_add(doctor, OK, "%" PRIu64 " connections may wait for a lane", most);
	}
}

/* What a socket of this host uses when nothing is set. */
static bool
read_congestion(const struct wf_doctor *doctor, char *out, size_t bytes)
{
	return wf_doctor_line(doctor, out, bytes, NET "/ipv4/tcp_congestion_control");
}

static void
report_bbr(const struct wf_doctor *doctor)
{
	char list[256];
	bool is_local = listens_on_loopback(doctor->ask);
	struct wf_doctor_about about = {.level = WF_DOCTOR_NOTE};
	if (is_local && wf_doctor_wants(doctor, "tcp")) {
		about.level = WF_DOCTOR_FINDING;
	}
	bool has_cubic = wf_doctor_line(doctor, list, sizeof(list),
					NET "/ipv4/tcp_available_congestion_control") &&
			 strstr(list, "cubic") != NULL;
	about.remedy = has_cubic ? "--tcp_congestion=cubic" : "--tcp_congestion=reno";
	wf_doctor_add(doctor, &about,
		      "the congestion control of TCP is bbr, which limits the rate between "
		      "processes of one host to a fraction%s",
		      wf_doctor_wants(doctor, "auto") ? "; shared memory does not need it" : "");
}

void
wf_doctor_check_congestion(const struct wf_doctor *doctor)
{
	const char *asked = doctor->ask->tcp_congestion;
	char name[64];
	struct wf_congestion unused;
	if (asked != NULL && asked[0] != '\0') {
		if (wf_doctor_is_here(doctor) && wf_congestion_choose(asked, &unused) != WEFT_OK) {
			wf_doctor_add(doctor, &(struct wf_doctor_about){.level = WF_DOCTOR_FAILS},
				      "%s", wf_error_record()->text);
			return;
		}
		wf_doctor_add(doctor, OK, "the congestion control is %.32s, as asked for", asked);
	} else if (!read_congestion(doctor, name, sizeof(name))) {
		wf_doctor_add(doctor, NOTE, "the congestion control of TCP is unknown");
	} else if (strcmp(name, "bbr") == 0) {
		report_bbr(doctor);
	} else {
		wf_doctor_add(doctor, OK, "the congestion control of TCP is %s", name);
	}
}

/* Ports that the system gives to other programs may be in use when a pserver wants them. */
static void
compare_with_range(const struct wf_doctor *doctor)
{
	char text[64];
	unsigned low = 0;
	unsigned high = 0;
	const struct wf_doctor_ask *ask = doctor->ask;
	if (!wf_doctor_line(doctor, text, sizeof(text), NET "/ipv4/ip_local_port_range") ||
	    sscanf(text, "%6u %6u", &low, &high) != 2) {
		return;
	}
	if (ask->port + ask->lanes > low && ask->port <= high) {
		wf_doctor_add(doctor,
			      &(struct wf_doctor_about){
				      .level = WF_DOCTOR_FINDING,
				      .remedy = "choose a lower --port, or reserve them: sysctl -w "
						"net.ipv4.ip_local_reserved_ports=LOW-HIGH"},
			      "the ports from %u on are among those that the system gives to "
			      "connections (%u to %u), and may be in use when a pserver starts",
			      ask->port, low, high);
	}
}

void
wf_doctor_check_ports(const struct wf_doctor *doctor)
{
	const struct wf_doctor_ask *ask = doctor->ask;
	struct wf_host host = {.port = ask->port};
	if (ask->port == 0 || ask->lanes == 0) {
		return;
	}
	compare_with_range(doctor);
	if (!wf_doctor_is_here(doctor)) {
		return;
	}
	(void)snprintf(host.name, sizeof(host.name), "%.200s",
		       ask->listen[0] != '\0' ? ask->listen : wf_address_loopback());
	enum weft_status st = wf_ports_probe(&host, ask->lanes);
	if (st == WEFT_OK) {
		wf_doctor_add(doctor, OK, "%u port%s from %u on %s free on %.100s", ask->lanes,
			      ask->lanes == 1 ? "" : "s", ask->port, ask->lanes == 1 ? "is" : "are",
			      host.name);
		return;
	}
	wf_doctor_add(doctor,
		      &(struct wf_doctor_about){
			      .level = WF_DOCTOR_FAILS,
			      .remedy = "stop the program that has it (ss -ltnp shows it), or give "
					"another --port or --listen"},
		      "%s", wf_error_record()->text);
}

void
wf_doctor_check_secret(const struct wf_doctor *doctor)
{
	const struct wf_doctor_ask *ask = doctor->ask;
	struct wf_secret *secret = NULL;
	if (!wf_doctor_is_here(doctor) || ask->has_secret) {
		return;
	}
	if (ask->secret_file != NULL && ask->secret_file[0] != '\0') {
		if (wf_secret_open(ask->secret_file, &secret) != WEFT_OK) {
			wf_doctor_add(doctor, &(struct wf_doctor_about){.level = WF_DOCTOR_FAILS},
				      "%s", wf_error_record()->text);
			return;
		}
		wf_secret_close(secret);
		wf_doctor_add(doctor, OK,
			      "the secret can be read: strangers are refused; data travels in "
			      "clear");
	} else if (listens_on_loopback(ask)) {
		wf_doctor_add(doctor, OK, "only programs of this host reach the ports");
	} else {
		wf_doctor_add(doctor,
			      &(struct wf_doctor_about){
				      .level = WF_DOCTOR_FINDING,
				      .remedy = "give all members the same --secret_file "
						"(docs/security.md)"},
			      "whoever reaches %.100s may take part in the job: there is no secret",
			      ask->listen);
	}
}
