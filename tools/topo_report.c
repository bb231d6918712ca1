/* SPDX-License-Identifier: Apache-2.0 */
/* topo_report: see topo_report.h. */
#include "tools/topo_report.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/json.h"

#define LIST_BYTES 1024
#define GIB ((double)(1ull << 30))

static const char *
state_name(enum wf_topo_state state)
{
	switch (state) {
	case WF_TOPO_UNKNOWN:
		return "unknown";
	case WF_TOPO_ACTIVE:
		return "active";
	case WF_TOPO_DOWN:
		return "down";
	}
	return "?";
}

static const char *
kind_name(enum wf_topo_device_kind kind)
{
	return kind == WF_TOPO_RDMA ? "rdma" : "net";
}

static const char *
share_name(enum wf_seat_share share)
{
	switch (share) {
	case WF_SEAT_CORES:
		return "cores";
	case WF_SEAT_CPUS:
		return "cpus";
	case WF_SEAT_NOTHING:
		return "nothing";
	}
	return "?";
}

static const char *
plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

static bool
is_lane(const struct wf_seat *seat)
{
	return seat->role == WF_SEAT_DENSE || seat->role == WF_SEAT_SPARSE;
}

/* The TCP port that a lane listens on, as weft launch numbers them. */
static uint32_t
tcp_port(const struct wf_topo_report *report, const struct wf_seat *seat)
{
	const struct wf_seating_job *job = report->job;
	WF_ASSERT(is_lane(seat));
	return report->port + seat->process * (job->dense + job->sparse) + seat->idx +
	       (seat->role == WF_SEAT_SPARSE ? job->dense : 0);
}

static uint32_t
member(const struct wf_topo_report *report, const struct wf_seat *seat)
{
	return seat->process - (is_lane(seat) ? 0 : report->job->pservers);
}

/* ---- text ---- */

static void
number_or_dash(int number, char *out, size_t bytes)
{
	if (number < 0) {
		(void)snprintf(out, bytes, "-");
	} else {
		(void)snprintf(out, bytes, "%d", number);
	}
}

static void
text_nodes(const struct wf_topo *topo, FILE *out)
{
	for (uint32_t i = 0; i < topo->node_count; i++) {
		const struct wf_topo_node *node = &topo->node[i];
		char list[LIST_BYTES];
		char huge[64] = "none reserved";
		wf_topo_cpu_list(topo, node->numa_node, list, sizeof(list));
		if (node->huge_page_count > 0) {
			(void)snprintf(huge, sizeof(huge), "%" PRIu64 " of %" PRIu64 " MiB",
				       node->huge_page_count, node->huge_page_bytes >> 20);
		}
		fprintf(out, "  node %-3d %.1f GiB, %u core%s, cpus %s, huge pages %s",
			node->numa_node, (double)node->memory_bytes / GIB, node->core_count,
			plural(node->core_count), list[0] != '\0' ? list : "none", huge);
		if (topo->is_here) {
			fprintf(out, ", %.1f GiB available, slabs are %s%s",
				(double)node->available_bytes / GIB,
				node->rule == WF_NUMA_ANYWHERE ? "" : "here, ",
				wf_numa_rule_name(node->rule));
		}
		fputs("\n", out);
	}
}

static void
text_caches(const struct wf_topo *topo, FILE *out)
{
	for (uint32_t i = 0; i < topo->cache_count; i++) {
		const struct wf_topo_cache *cache = &topo->cache[i];
		char kind[2] = {cache->kind == 'u' ? '\0' : cache->kind, '\0'};
		fprintf(out, "  cache L%u%s: %u of %" PRIu64 " KiB, each for %u core%s\n",
			cache->level, kind, cache->count, cache->bytes >> 10, cache->core_count,
			plural(cache->core_count));
	}
}

static void
text_speed(uint32_t mbps, FILE *out)
{
	if (mbps > 0) {
		fprintf(out, " %u.%u Gb/s", mbps / 1000, mbps % 1000 / 100);
	}
}

static void
text_devices(const struct wf_topo *topo, FILE *out)
{
	for (uint32_t i = 0; i < topo->device_count; i++) {
		const struct wf_topo_device *device = &topo->device[i];
		char node[16];
		number_or_dash(device->numa_node, node, sizeof(node));
		fprintf(out, "  %-4s %s, node %s, pci %s", kind_name(device->kind), device->name,
			node, device->pci[0] != '\0' ? device->pci : "-");
		for (uint32_t p = 0; p < device->port_count; p++) {
			if (device->kind == WF_TOPO_RDMA) {
				fprintf(out, ", port %u %s", p + 1, state_name(device->port[p]));
				text_speed(device->port_mbps[p], out);
			} else {
				fprintf(out, ", %s", state_name(device->port[p]));
			}
		}
		fprintf(out, "%s%s\n", device->vendor[0] != '\0' ? ", " : "", device->vendor);
		if (device->closed[0] != '\0') {
			fprintf(out, "       no lane can use it: %s\n", device->closed);
		}
	}
}

static void
text_pages(const struct wf_topo *topo, FILE *out)
{
	if (topo->is_here) {
		fprintf(out, "  huge pages for shared memory: %s%s\n",
			topo->huge_pages.word[0] != '\0' ? topo->huge_pages.word : "unknown",
			topo->huge_pages.are_shared ? "" : ", so slabs have none");
	}
}

static void
text_machine(const struct wf_topo_report *report, FILE *out)
{
	const struct wf_topo *topo = report->topo;
	fprintf(out, "%s: %u core%s, %u cpu%s, %u package%s, %u NUMA node%s\n", report->name,
		topo->core_count, plural(topo->core_count), topo->cpu_count,
		plural(topo->cpu_count), topo->package_count, plural(topo->package_count),
		topo->node_count, plural(topo->node_count));
	if (topo->quota_cpus > 0) {
		fprintf(out, "  quota of this container: the time of %u cpu%s\n", topo->quota_cpus,
			plural(topo->quota_cpus));
	}
	text_nodes(topo, out);
	text_pages(topo, out);
	text_caches(topo, out);
	text_devices(topo, out);
}

static void
text_seat(const struct wf_topo_report *report, const struct wf_seat *seat, FILE *out)
{
	char process[32];
	char thread[32];
	char port[16] = "-";
	char cpu[16];
	char node[16];
	char device[WF_TOPO_NAME_BYTES + 16] = "-";
	(void)snprintf(process, sizeof(process), "%s %u", is_lane(seat) ? "pserver" : "trainer",
		       member(report, seat));
	(void)snprintf(thread, sizeof(thread), "%s %u", wf_seat_role_name(seat->role), seat->idx);
	if (is_lane(seat)) {
		(void)snprintf(port, sizeof(port), "%u", tcp_port(report, seat));
	}
	number_or_dash(seat->cpu, cpu, sizeof(cpu));
	number_or_dash(seat->numa_node, node, sizeof(node));
	if (seat->device >= 0) {
		(void)snprintf(device, sizeof(device), "%s port %u",
			       report->topo->device[seat->device].name, seat->port);
	}
	fprintf(out, "  %-12s %-18s %5s %5s %5s  %s\n", process, thread, port, cpu, node, device);
}

static void
text_share(const struct wf_topo_report *report, FILE *out)
{
	const struct wf_topo *topo = report->topo;
	uint32_t threads = report->seating->seat_count;
	switch (report->seating->share) {
	case WF_SEAT_CORES:
		fprintf(out, "each of %u thread%s has a core of its own, of %u\n", threads,
			plural(threads), topo->core_count);
		return;
	case WF_SEAT_CPUS:
		fprintf(out, "%u threads on %u cores: each has a cpu of its own, of %u\n", threads,
			topo->core_count, topo->cpu_count);
		return;
	case WF_SEAT_NOTHING:
		fprintf(out,
			"%u threads on %u CPUs: no thread is pinned; use fewer lanes or threads "
			"here\n",
			threads, topo->cpu_count);
		return;
	}
}

void
wf_topo_report_text(const struct wf_topo_report *report, FILE *out)
{
	const struct wf_seating *seating = report->seating;
	text_machine(report, out);
	if (seating->seat_count == 0) {
		return;
	}
	fprintf(out, "\n  %-12s %-18s %5s %5s %5s  %s\n", "process", "thread", "port", "cpu",
		"node", "device");
	for (uint32_t i = 0; i < seating->seat_count; i++) {
		text_seat(report, &seating->seat[i], out);
	}
	text_share(report, out);
}

/* ---- JSON ---- */

static void
json_node(int number, FILE *out)
{
	if (number < 0) {
		fputs("null", out);
	} else {
		fprintf(out, "%d", number);
	}
}

/* After each element but the last. */
static const char *
comma(uint32_t idx, uint32_t count)
{
	return idx + 1 < count ? "," : "";
}

static void
json_cores(const struct wf_topo *topo, FILE *out)
{
	fputs("    \"cores\": [\n", out);
	for (uint32_t i = 0; i < topo->core_count; i++) {
		const struct wf_topo_core *core = &topo->core[i];
		fprintf(out, "      {\"package\": %u, \"node\": ", core->package);
		json_node(core->numa_node, out);
		fputs(", \"cpus\": [", out);
		for (uint32_t j = 0; j < core->cpu_count; j++) {
			fprintf(out, "%u%s", topo->cpu[core->cpu_first + j],
				j + 1 < core->cpu_count ? ", " : "");
		}
		fprintf(out, "]}%s\n", comma(i, topo->core_count));
	}
	fputs("    ],\n", out);
}

static void
json_nodes(const struct wf_topo *topo, FILE *out)
{
	fputs("    \"nodes\": [\n", out);
	for (uint32_t i = 0; i < topo->node_count; i++) {
		const struct wf_topo_node *node = &topo->node[i];
		fprintf(out,
			"      {\"node\": %d, \"memory_bytes\": %" PRIu64
			", \"huge_page_bytes\": %" PRIu64 ", \"huge_page_count\": %" PRIu64
			", \"available_bytes\": %" PRIu64
			", \"slabs\": \"%s\", \"cores\": %u, \"cpus\": %u}%s\n",
			node->numa_node, node->memory_bytes, node->huge_page_bytes,
			node->huge_page_count, node->available_bytes,
			topo->is_here ? wf_numa_rule_name(node->rule) : "", node->core_count,
			node->cpu_count, comma(i, topo->node_count));
	}
	fputs("    ],\n    \"caches\": [\n", out);
	for (uint32_t i = 0; i < topo->cache_count; i++) {
		const struct wf_topo_cache *cache = &topo->cache[i];
		fprintf(out,
			"      {\"level\": %u, \"kind\": \"%c\", \"bytes\": %" PRIu64
			", \"count\": %u, \"cores\": %u}%s\n",
			cache->level, cache->kind, cache->bytes, cache->count, cache->core_count,
			comma(i, topo->cache_count));
	}
	fputs("    ],\n", out);
}

static void
json_devices(const struct wf_topo *topo, FILE *out)
{
	fputs("    \"devices\": [\n", out);
	for (uint32_t i = 0; i < topo->device_count; i++) {
		const struct wf_topo_device *device = &topo->device[i];
		fputs("      {\"name\": ", out);
		wf_json_print_text(out, device->name);
		fprintf(out, ", \"kind\": \"%s\", \"node\": ", kind_name(device->kind));
		json_node(device->numa_node, out);
		fprintf(out, ", \"pci\": \"%s\", \"vendor\": ", device->pci);
		wf_json_print_text(out, device->vendor);
		fputs(", \"ports\": [", out);
		for (uint32_t p = 0; p < device->port_count; p++) {
			fprintf(out, "\"%s\"%s", state_name(device->port[p]),
				p + 1 < device->port_count ? ", " : "");
		}
		fputs("], \"port_mbps\": [", out);
		for (uint32_t p = 0; p < device->port_count; p++) {
			fprintf(out, "%u%s", device->port_mbps[p],
				p + 1 < device->port_count ? ", " : "");
		}
		fputs("], \"closed\": ", out);
		wf_json_print_text(out, device->closed);
		fprintf(out, "}%s\n", comma(i, topo->device_count));
	}
	fputs("    ]\n  },\n", out);
}

static void
json_seat(const struct wf_topo_report *report, const struct wf_seat *seat, FILE *out)
{
	fprintf(out, "      {\"process\": \"%s %u\", \"thread\": \"%s\", \"idx\": %u, ",
		is_lane(seat) ? "pserver" : "trainer", member(report, seat),
		wf_seat_role_name(seat->role), seat->idx);
	if (is_lane(seat)) {
		fprintf(out, "\"port\": %u, ", tcp_port(report, seat));
	}
	fputs("\"cpu\": ", out);
	json_node(seat->cpu, out);
	fputs(", \"node\": ", out);
	json_node(seat->numa_node, out);
	fputs(", \"device\": ", out);
	if (seat->device < 0) {
		fputs("null", out);
	} else {
		wf_json_print_text(out, report->topo->device[seat->device].name);
		fprintf(out, ", \"device_port\": %u", seat->port);
	}
	fputs("}", out);
}

void
wf_topo_report_json(const struct wf_topo_report *report, FILE *out)
{
	const struct wf_topo *topo = report->topo;
	const struct wf_seating *seating = report->seating;
	fputs("{\n  \"machine\": {\n    \"name\": ", out);
	wf_json_print_text(out, report->name);
	fprintf(out, ",\n    \"here\": %s,\n    \"packages\": %u,\n",
		topo->is_here ? "true" : "false", topo->package_count);
	fprintf(out, "    \"quota_cpus\": %u,\n    \"shared_huge_pages\": \"%s\",\n",
		topo->quota_cpus, topo->huge_pages.word);
	json_cores(topo, out);
	json_nodes(topo, out);
	json_devices(topo, out);
	fprintf(out, "  \"plan\": {\n    \"share\": \"%s\",\n    \"seats\": [\n",
		share_name(seating->share));
	for (uint32_t i = 0; i < seating->seat_count; i++) {
		json_seat(report, &seating->seat[i], out);
		fprintf(out, "%s\n", comma(i, seating->seat_count));
	}
	fputs("    ]\n  }\n}\n", out);
}
