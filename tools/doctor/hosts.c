/* SPDX-License-Identifier: Apache-2.0 */
/* hosts: see hosts.h. A host that is lost is a finding; the others are examined all the same. */
#include "tools/doctor/hosts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "tools/launch/remote_internal.h"

#define ANSWER_NS (60 * WF_NS_PER_S)
#define EXAMINED_NS (600 * WF_NS_PER_S) /* every check may take its time */
#define FINDINGS_MAX 256u               /* of one host */
#define CLOCK_TRIES 5u
#define CLOCK_OFF_NS 100000000ll /* lines of two logs in the wrong order */
#define HEAD_BYTES_MAX 100u      /* of a packet of TCP over IPv6 with options */
#define LOOPBACK_MTU 16384u      /* above it TCP does not fill a packet */

struct examination {
	const struct wf_doctor_hosts *hosts;
	struct wf_remote remote;
	struct wf_plan_opts plan;
	bool lost[WF_HOSTS_MAX];   /* ssh or the agent */
	bool placed[WF_HOSTS_MAX]; /* its agent listens on the ports of its pserver */
	char cpu[WF_HOSTS_MAX][WF_DOCTOR_TEXT_BYTES];
};

/* ---- findings ---- */

static void
add(struct examination *ex, unsigned node, const struct wf_doctor_finding *finding)
{
	ex->hosts->report->host = ex->remote.node[node].name;
	wf_doctor_report_add(ex->hosts->report, finding);
	ex->hosts->report->host = "";
}

/* What was found about a host, or about its way to another one. */
struct about {
	const char *check;
	enum wf_doctor_level level;
	const char *subject, *remedy;
};

static void __attribute__((format(printf, 4, 5)))
say(struct examination *ex, unsigned node, const struct about *about, const char *format, ...)
{
	struct wf_doctor_finding finding = {.level = about->level};
	va_list args;
	va_start(args, format);
	(void)vsnprintf(finding.text, sizeof(finding.text), format, args);
	va_end(args);
	(void)snprintf(finding.check, sizeof(finding.check), "%s", about->check);
	(void)snprintf(finding.subject, sizeof(finding.subject), "%s",
		       about->subject != NULL ? about->subject : "");
	(void)snprintf(finding.remedy, sizeof(finding.remedy), "%s",
		       about->remedy != NULL ? about->remedy : "");
	add(ex, node, &finding);
}

/* ---- the line of a finding ---- */

/* "LEVEL CHECK BYTES BYTES SUBJECT TEXT REMEDY": the bytes of subject and of text, which follow
 * without blanks between them. */
static void
write_line(const struct wf_doctor_finding *finding, char *out, size_t bytes)
{
	(void)snprintf(out, bytes, "%u %s %zu %zu %s%s%s", finding->level, finding->check,
		       strlen(finding->subject), strlen(finding->text), finding->subject,
		       finding->text, finding->remedy);
}

bool
wf_doctor_parse_line(const char *line, struct wf_doctor_finding *out)
{
	unsigned level = 0;
	unsigned subject = 0;
	unsigned text = 0;
	int used = 0;
	memset(out, 0, sizeof(*out));
	if (sscanf(line, "%4u %31s %4u %4u%n", &level, out->check, &subject, &text, &used) != 4 ||
	    line[used] != ' ' || level >= WF_DOCTOR_LEVELS) {
		return false;
	}
	const char *at = line + used + 1;
	if (subject >= sizeof(out->subject) || text >= sizeof(out->text) ||
	    strlen(at) < (size_t)subject + text) {
		return false;
	}
	out->level = (enum wf_doctor_level)level;
	(void)snprintf(out->subject, sizeof(out->subject), "%.*s", (int)subject, at);
	(void)snprintf(out->text, sizeof(out->text), "%.*s", (int)text, at + subject);
	(void)snprintf(out->remedy, sizeof(out->remedy), "%s", at + subject + text);
	return true;
}

/* ---- in the agent ---- */

struct kept {
	unsigned count;
	struct wf_doctor_finding finding[FINDINGS_MAX];
};

static void
keep(void *arg, const struct wf_doctor_finding *finding)
{
	struct kept *kept = arg;
	if (kept->count < FINDINGS_MAX) {
		kept->finding[kept->count++] = *finding;
	}
}

/* Results of members that compute with different forms of OpenBLAS differ in their last bits. */
static void
keep_processor(struct kept *kept)
{
	struct wf_doctor_finding finding = {.check = "processor", .level = WF_DOCTOR_OK};
	char line[512];
	FILE *file = fopen("/proc/cpuinfo", "re");
	(void)snprintf(finding.text, sizeof(finding.text), "unknown");
	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		const char *colon = strchr(line, ':');
		if (strncmp(line, "model name", 10) == 0 && colon != NULL) {
			(void)snprintf(finding.text, sizeof(finding.text), "%.*s",
				       (int)strcspn(colon + 2, "\n"), colon + 2);
			break;
		}
	}
	if (file != NULL) {
		(void)fclose(file);
	}
	keep(kept, &finding);
}

void
wf_doctor_examine(uint32_t idx, const char *transport, uint32_t memory_mib, char *out, size_t bytes)
{
	static struct kept kept; /* of a program with one thread that uses it */
	if (idx == 0) {
		/* The ports are tried by the launcher's own request, on the right address. */
		const struct wf_doctor_ask ask = {
			.root = "",
			.transport = transport,
			.listen = "0.0.0.0",
			.secret_file = NULL,
			.trainers = 1,
			.memory_bytes = (uint64_t)memory_mib << 20,
			.has_secret = true,
		};
		kept.count = 0;
		keep_processor(&kept);
		wf_doctor_run(&ask, keep, &kept);
	}
	out[0] = '\0';
	if (idx < kept.count) {
		write_line(&kept.finding[idx], out, bytes);
	}
}

/* ---- each host ---- */

static enum weft_status
request(struct examination *ex, unsigned node, uint64_t timeout_ns)
{
	struct wf_link *link = &ex->remote.node[node].link;
	enum weft_status st = wf_link_send(link);
	return st == WEFT_OK ? wf_link_await(link, wf_now_ns(ex->hosts->env) + timeout_ns) : st;
}

/* A request failed: the connection is lost, or `check` is. */
static void
report_failure(struct examination *ex, unsigned node, const struct about *about)
{
	ex->lost[node] |= ex->remote.node[node].link.lost;
	say(ex, node, about, "%s", wf_error_record()->text);
}

static void
connect_one(struct examination *ex, unsigned idx, uint64_t deadline_ns)
{
	static const struct about lost = {
		"hosts_connect", WF_DOCTOR_FAILS, NULL,
		"make ssh HOST weft version work without a password, with the same weft on all "
		"hosts (--remote_weft=PATH if it is not in the PATH there)"};
	struct wf_link *link = &ex->remote.node[idx].link;
	if (!ex->lost[idx] &&
	    wf_link_await_hello(link, ex->hosts->remote->version, deadline_ns) == WEFT_OK) {
		wf_frame_begin(&link->writer, WF_FRAME_WORKSPACE);
		wf_frame_add_number(&link->writer, WF_WORKSPACE_NONE);
		wf_frame_add_text(&link->writer, "");
		wf_frame_add_number(&link->writer, idx);
		wf_frame_add_number(&link->writer, 0);
		if (request(ex, idx, ANSWER_NS) == WEFT_OK) {
			say(ex, idx, &(struct about){"hosts_connect", WF_DOCTOR_OK, NULL, NULL},
			    "ssh reaches it: weft %s, %u CPUs", link->hello.version,
			    link->hello.cpu_count);
			return;
		}
	}
	ex->lost[idx] = true;
	say(ex, idx, &lost, "%s", wf_error_record()->text);
}

static void
connect_all(struct examination *ex)
{
	struct wf_args ssh;
	uint64_t deadline_ns = wf_now_ns(ex->hosts->env) + ANSWER_NS;
	for (unsigned i = 0; i < ex->remote.count; i++) {
		struct wf_remote *remote = &ex->remote;
		enum weft_status st =
			wf_remote_plan_ssh(remote, &remote->opts->hosts->host[i], &ssh);
		st = st == WEFT_OK ? wf_link_open(&remote->node[i].link, &ssh) : st;
		ex->lost[i] = st != WEFT_OK;
	}
	for (unsigned i = 0; i < ex->remote.count; i++) {
		connect_one(ex, i, deadline_ns);
	}
}

/* Returns whether there may be another one. */
static bool
examine_finding(struct examination *ex, unsigned node, uint32_t idx)
{
	static const struct about broken = {"hosts_connect", WF_DOCTOR_FAILS, NULL, NULL};
	struct wf_link *link = &ex->remote.node[node].link;
	struct wf_doctor_finding finding;
	wf_frame_begin(&link->writer, WF_FRAME_EXAMINE);
	wf_frame_add_number(&link->writer, idx);
	wf_frame_add_text(&link->writer, ex->hosts->ask->transport);
	wf_frame_add_number(&link->writer, (uint32_t)(ex->hosts->ask->memory_bytes >> 20));
	if (request(ex, node, EXAMINED_NS) != WEFT_OK) {
		report_failure(ex, node, &broken);
		return false;
	}
	if (link->reply.text[0] == '\0') {
		return false;
	}
	if (!wf_doctor_parse_line(link->reply.text, &finding)) {
		say(ex, node, &broken, "its agent sent nonsense");
		return false;
	}
	if (strcmp(finding.check, "processor") == 0) {
		(void)snprintf(ex->cpu[node], sizeof(ex->cpu[node]), "%s", finding.text);
	}
	add(ex, node, &finding);
	return true;
}

static void
examine_all(struct examination *ex)
{
	for (unsigned i = 0; i < ex->remote.count; i++) {
		for (uint32_t idx = 0; !ex->lost[i] && idx < FINDINGS_MAX; idx++) {
			if (!examine_finding(ex, i, idx)) {
				break;
			}
		}
	}
}

/* ---- between them ---- */

static int64_t
now_ns(void)
{
	struct timespec now = {0};
	(void)clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

/* The clock there, minus the one here, with half of the shortest round trip as its error. */
static bool
measure_clock(struct examination *ex, unsigned node, int64_t *offset_ns, int64_t *error_ns)
{
	struct wf_link *link = &ex->remote.node[node].link;
	*error_ns = INT64_MAX;
	for (unsigned i = 0; i < CLOCK_TRIES; i++) {
		char *end = NULL;
		wf_frame_begin(&link->writer, WF_FRAME_CLOCK);
		int64_t before = now_ns();
		if (request(ex, node, ANSWER_NS) != WEFT_OK) {
			return false;
		}
		int64_t half = (now_ns() - before) / 2;
		int64_t there = strtoll(link->reply.text, &end, 10);
		if (end == link->reply.text || *end != '\0' || there < 0) {
			(void)wf_fail(WEFT_PROTOCOL, "its agent sent no time");
			return false;
		}
		if (half < *error_ns) {
			*error_ns = half;
			*offset_ns = there - (before + half);
		}
	}
	return true;
}

static void
compare_clocks(struct examination *ex)
{
	for (unsigned i = 0; i < ex->remote.count; i++) {
		struct about about = {"hosts_clock", WF_DOCTOR_OK, NULL, NULL};
		int64_t offset = 0;
		int64_t error = 0;
		if (ex->lost[i]) {
			continue;
		}
		if (!measure_clock(ex, i, &offset, &error)) {
			about.level = WF_DOCTOR_FAILS;
			report_failure(ex, i, &about);
			continue;
		}
		if (llabs(offset) - error > CLOCK_OFF_NS) {
			about.level = WF_DOCTOR_FINDING;
			about.remedy = "run chrony or systemd-timesyncd on all hosts";
		}
		say(ex, i, &about,
		    "its clock is %.3f ms %s that of this host, with an error of at most %.3f ms",
		    (double)llabs(offset) / 1e6, offset < 0 ? "behind" : "before",
		    (double)error / 1e6);
	}
}

static void
compare_processors(struct examination *ex)
{
	unsigned first = 0;
	while (first < ex->remote.count && ex->cpu[first][0] == '\0') {
		first++;
	}
	for (unsigned i = first + 1; i < ex->remote.count; i++) {
		if (ex->cpu[i][0] != '\0' && strcmp(ex->cpu[i], ex->cpu[first]) != 0) {
			say(ex, i,
			    &(struct about){"hosts_numerics", WF_DOCTOR_FINDING, NULL,
					    "set OPENBLAS_CORETYPE to the same value on all hosts"},
			    "it has another processor than %s, for which OpenBLAS may compute "
			    "other last bits: a job warns when its members differ",
			    ex->remote.node[first].name);
		} else if (ex->cpu[i][0] != '\0') {
			say(ex, i, &(struct about){"hosts_numerics", WF_DOCTOR_OK, NULL, NULL},
			    "it has the processor of %s", ex->remote.node[first].name);
		}
	}
}

static void
place_all(struct examination *ex)
{
	static const struct about failed = {
		"hosts_listen", WF_DOCTOR_FAILS, NULL,
		"stop the program that has the port, choose others with --port, or list the host "
		"by an address of its own"};
	for (unsigned i = 0; i < ex->remote.count; i++) {
		if (ex->lost[i]) {
			continue;
		}
		ex->placed[i] = wf_remote_place(&ex->remote, i) == WEFT_OK;
		if (!ex->placed[i]) {
			report_failure(ex, i, &failed);
		}
	}
}

/* The path from one host to a port of another one that it reaches. */
static void
measure_path(struct examination *ex, unsigned from, unsigned to, const struct wf_host *at)
{
	struct wf_link *link = &ex->remote.node[from].link;
	const char *name = ex->remote.node[to].name;
	struct about about = {"hosts_mtu", WF_DOCTOR_OK, name, NULL};
	unsigned mtu = 0;
	unsigned segment = 0;
	unsigned acknowledged = 0;
	wf_frame_begin(&link->writer, WF_FRAME_PATH);
	wf_frame_add_text(&link->writer, at->name);
	wf_frame_add_number(&link->writer, at->port);
	if (request(ex, from, ANSWER_NS) != WEFT_OK) {
		about.level = WF_DOCTOR_FINDING;
		report_failure(ex, from, &about);
		return;
	}
	if (sscanf(link->reply.text, "%7u %7u %1u", &mtu, &segment, &acknowledged) != 3) {
		about.level = WF_DOCTOR_FINDING;
		say(ex, from, &about, "its agent sent nonsense");
	} else if (acknowledged == 0) {
		about.level = WF_DOCTOR_FAILS;
		about.remedy = "give all interfaces and switches between them the MTU of the hosts "
			       "(ip link set DEV mtu N), or let ICMP through";
		say(ex, from, &about,
		    "packets with %u bytes of data do not arrive at %s, though it can be connected "
		    "to: a link between them has a smaller MTU than %u",
		    segment, name, mtu);
	} else if (mtu < LOOPBACK_MTU && mtu > segment + HEAD_BYTES_MAX) {
		about.level = WF_DOCTOR_FINDING;
		about.remedy = "give all interfaces and switches of this network the same MTU (ip "
			       "link set DEV mtu N)";
		say(ex, from, &about,
		    "its MTU is %u, but packets to %s have %u bytes of data: the other end or a "
		    "link between them has a smaller MTU, at which RDMA loses packets",
		    mtu, name, segment);
	} else {
		say(ex, from, &about, "packets to %s have %u bytes of data, MTU %u", name, segment,
		    mtu);
	}
}

static void
reach(struct examination *ex, unsigned from, unsigned to, const struct wf_host *first)
{
	struct wf_link *link = &ex->remote.node[from].link;
	const char *name = ex->remote.node[to].name;
	unsigned lanes = ex->plan.ports_num + ex->plan.ports_num_for_sparse;
	struct about about = {"hosts_reach", WF_DOCTOR_OK, name, NULL};
	char text[WF_REMOTE_NAME_BYTES];
	struct wf_host at = *first;
	wf_frame_begin(&link->writer, WF_FRAME_REACH);
	wf_frame_add_number(&link->writer, lanes);
	for (unsigned i = 0; i < lanes; i++) {
		wf_frame_add_text(&link->writer, first->name);
		wf_frame_add_number(&link->writer, first->port + i);
	}
	if (request(ex, from, ANSWER_NS) != WEFT_OK) {
		about.level = WF_DOCTOR_FAILS;
		report_failure(ex, from, &about);
		return;
	}
	if (link->reply.text[0] == '\0') {
		wf_host_format(first, text, sizeof(text));
		say(ex, from, &about, "it reaches %u port%s of %s from %s on", lanes,
		    lanes == 1 ? "" : "s", name, text);
		measure_path(ex, from, to, first);
		return;
	}
	char *why = NULL;
	unsigned long idx = strtoul(link->reply.text, &why, 10);
	at.port = (uint16_t)(first->port + (idx < lanes ? idx : 0));
	wf_host_format(&at, text, sizeof(text));
	about.level = WF_DOCTOR_FAILS;
	about.remedy = "let the ports through (firewall of the host or between them), or choose "
		       "others with --port";
	say(ex, from, &about, "it does not reach %s at %s:%.100s", name, text, why);
}

static void
reach_all(struct examination *ex)
{
	for (unsigned to = 0; to < ex->remote.count; to++) {
		for (unsigned from = 0; from < ex->remote.count && ex->placed[to]; from++) {
			if (from != to && !ex->lost[from] && !ex->lost[to]) {
				/* Entry i of the hosts is host i: see wf_doctor_hosts_run. */
				reach(ex, from, to, &ex->remote.pserver_at[to]);
			}
		}
	}
}

static void
report_protection(struct examination *ex)
{
	const struct wf_doctor_finding finding = {
		.check = "hosts_protection",
		.level = WF_DOCTOR_NOTE,
		.text = "weft launch gives each job on several hosts a secret, over ssh, so "
			"strangers are refused on all paths; parameters travel between hosts in "
			"clear"};
	wf_doctor_report_add(ex->hosts->report, &finding);
}

enum weft_status
wf_doctor_hosts_run(const struct wf_doctor_hosts *hosts)
{
	struct examination *ex = wf_zalloc(hosts->env, sizeof(*ex));
	if (ex == NULL) {
		return wf_fail(WEFT_NOMEM, "no memory for the hosts");
	}
	ex->hosts = hosts;
	ex->plan.pservers = hosts->remote->hosts->count;
	ex->plan.ports_num = hosts->ports_num;
	ex->plan.ports_num_for_sparse = hosts->ports_num_for_sparse;
	ex->plan.listen.port = hosts->ask->port;
	ex->remote = (struct wf_remote){.opts = hosts->remote,
					.plan = &ex->plan,
					.env = hosts->env,
					.program = "weft doctor",
					.count = hosts->remote->hosts->count,
					.spec_count = hosts->remote->hosts->count};
	enum weft_status st = wf_remote_open(&ex->remote);
	if (st == WEFT_OK) {
		connect_all(ex);
		examine_all(ex);
		compare_clocks(ex);
		compare_processors(ex);
		place_all(ex);
		reach_all(ex);
		report_protection(ex);
	}
	wf_remote_close(&ex->remote);
	wf_free(hosts->env, ex, sizeof(*ex));
	return st;
}
