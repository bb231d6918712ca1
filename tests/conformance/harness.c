/* SPDX-License-Identifier: Apache-2.0 */
/* harness: the one place that knows on which backend a case runs. "tcp" and "tcp6" run in the
 * system's env over loopback, "shm" there too, "shm-copy" with memory that cannot be shared, "sim"
 * as a process of a simulated world, "toy" over pipes, in the program that has it; "paths" and
 * "paths-LIST" with the paths of LIST, on loopback or there; "fake-KIND" over simulated RDMA
 * devices, there, in the program that has them. "fault+X" is X wrapped in faults that the contract
 * allows for, "secret+X" X between members of a job with a secret. Thread: the main one; the
 * simulated process is a coroutine of it. */
#include "tests/conformance/conformance.h"

#include <stdlib.h>
#include <unistd.h>

#include "tests/double/sim/world.h"

#define SIM_HOST "alpha"
/* All that leaves every sentence of the contract true: no refusals, no cuts. */
#define FAULT_PREFIX "fault+"
#define SECRET_PREFIX "secret+"
#define FAULT_SPEC "delay=30%%:2ms,split=30%%,short=20%%,stall=1%%:3ms"
#define SIM_LIMIT_NS (3600 * WF_NS_PER_S) /* of virtual time */

const struct conf_extra *conf_extra;

struct job {
	struct conf conf;
	bool (*body)(struct conf *t);
	bool passed;
	char wrapped[256]; /* the name of a transport behind faults */
	char secret[64];   /* the file of the job's secret, if it has one */
	bool extra;        /* on the program's own device */
};

static int
run_in_env(struct wf_env *env, void *arg)
{
	struct job *job = arg;
	struct conf *t = &job->conf;
	t->env = env;
	t->poll_max = 64;
	wf_rng_init(&t->rng, t->seed, 0);
	job->passed = job->body(t) && !t->failed;
	while (t->node_count > 0) {
		conf_node_close(t, &t->node[--t->node_count]);
	}
	return 0;
}

static bool
run_on_system(struct job *job)
{
	struct wf_env *env = NULL;
	if (wf_env_system_create(WF_LOG_ERROR, 2, &env) != WEFT_OK) {
		fprintf(stderr, "env: %s\n", weft_last_error());
		return false;
	}
	run_in_env(env, job);
	wf_env_system_destroy(env);
	return job->passed;
}

static bool
run_in_world(struct job *job)
{
	struct wf_world_opts opts = {
		.seed = job->conf.seed,
		.delay_min_ns = 1 * WF_NS_PER_US,
		.delay_max_ns = 500 * WF_NS_PER_US,
		.split_per_mille = 500,
		.log_level = WF_LOG_ERROR,
		.log_fd = 2,
	};
	struct wf_world *world = NULL;
	struct wf_proc *proc = NULL;
	bool ran = wf_world_create(&opts, &world) == WEFT_OK;
	if (ran && job->extra) {
		conf_extra->enter(world);
	}
	ran = ran && wf_world_spawn(world, SIM_HOST, 0, run_in_env, job, &proc) == WEFT_OK &&
	      wf_world_run(world, SIM_LIMIT_NS) == WEFT_OK;
	if (!ran) {
		fprintf(stderr, "world: %s\n", weft_last_error());
	}
	const char *left = ran && job->extra ? conf_extra->end() : NULL;
	if (left != NULL) {
		fprintf(stderr, "%s\n", left);
	}
	wf_world_destroy(world);
	return ran && job->passed && left == NULL;
}

/* RDMA devices as tests/guest/devices makes them. */
static const struct rdma {
	const char *url, *host, *settings, *device;
	bool slow; /* more of the same: with WEFT_LONG only */
} rdmas[] = {
	{"verbs", "10.9.0.1", NULL, "rxe0", false},
	{"verbs6", "fd09::1", NULL, "rxe0", false},
	{"verbs-masked", "10.9.0.1", "imm=off", "rxe0", false},
	{"verbs-nomw", "10.9.0.1", "mw=off", "rxe0", false},
	{"verbs-windows", "10.9.0.1", "mw=on", "rxe0", false},
	{"verbs-nosrq", "10.9.0.1", "srq=off", "rxe0", true},
	{"verbs-bare", "10.9.0.1", "imm=off,mw=off,srq=off,inline=0", "rxe0", true},
	{"verbs-siw", "10.8.0.1", NULL, "siw0", false},
	{"paths-tcp,verbs", "10.9.0.1", NULL, "rxe0", false},
};

static const struct rdma *
find_rdma(const char *url)
{
	for (size_t i = 0; i < sizeof(rdmas) / sizeof(rdmas[0]); i++) {
		if (strcmp(url, rdmas[i].url) == 0) {
			return &rdmas[i];
		}
	}
	return NULL;
}

/* The kind of the program's own device; NULL: it is another backend. */
static const char *
extra_kind(const char *url)
{
	size_t bytes = conf_extra != NULL ? strlen(conf_extra->prefix) : 0;
	return bytes > 0 && strncmp(url, conf_extra->prefix, bytes) == 0 ? url + bytes : NULL;
}

/* The URL without that prefix, which it may have. */
static const char *
behind(const char *url, const char *prefix)
{
	size_t bytes = strlen(prefix);
	return strncmp(url, prefix, bytes) == 0 ? url + bytes : url;
}

bool
conf_can_run(const char *url)
{
	const struct rdma *rdma = find_rdma(behind(behind(url, SECRET_PREFIX), FAULT_PREFIX));
	char path[64];
	if (rdma == NULL) {
		return true;
	}
	if (rdma->slow && getenv("WEFT_LONG") == NULL) {
		fprintf(stderr, "%s: with WEFT_LONG set only\n", url);
		return false;
	}
	(void)snprintf(path, sizeof(path), "/sys/class/infiniband/%s", rdma->device);
	if (access(path, F_OK) != 0) {
		fprintf(stderr, "%s: this machine has no %s\n", url, rdma->device);
		return false;
	}
	return true;
}

/* What X of the URL stands for. */
static void
choose(struct conf *t, const char *url)
{
	const struct rdma *rdma = find_rdma(url);
	if (extra_kind(url) != NULL) {
		t->transport = conf_extra->transport;
		t->host = "127.0.0.1";
		t->hasty_ns = 50 * WF_NS_PER_MS;
		return;
	}
	t->transport = url;
	t->host = "127.0.0.1";
	t->says_bytes = rdma == NULL;
	/* iWARP: the stream that carries the reject may be reset before it is read. */
	t->loses_reasons = rdma != NULL && strcmp(rdma->device, "siw0") == 0;
	t->hasty_ns = (rdma != NULL ? 1500 : 50) * WF_NS_PER_MS; /* opens a device */
	if (strncmp(url, "paths", 5) == 0) {
		t->transport = "paths";
		t->paths = url[5] == '-' ? url + 6 : "auto";
		t->host = strstr(t->paths, "sim") != NULL ? SIM_HOST
			  : rdma != NULL                  ? rdma->host
							  : "127.0.0.1";
	} else if (strcmp(url, "sim") == 0) {
		t->host = SIM_HOST;
	} else if (rdma != NULL) {
		t->transport = "verbs";
		t->host = rdma->host;
		t->verbs = rdma->settings;
	} else {
		t->transport = strncmp(url, "shm", 3) == 0 ? "shm"
			       : strcmp(url, "toy") == 0   ? "toy"
							   : "tcp";
		t->private_memory = strcmp(url, "shm-copy") == 0;
		t->host = strcmp(url, "tcp6") == 0 ? "::1" : "127.0.0.1";
	}
}

static void
wrap(struct job *job)
{
	(void)snprintf(job->wrapped, sizeof(job->wrapped),
		       "fault(seed=%" PRIu64 "," FAULT_SPEC ")+%s", job->conf.seed,
		       job->conf.transport);
	job->conf.transport = job->wrapped;
}

/* A file for the time of the case. */
static bool
make_secret(struct job *job)
{
	static const char bytes[] = "a secret of at least 32 bytes, as it has to be";
	(void)snprintf(job->secret, sizeof(job->secret), "/tmp/weft_conf_secret_XXXXXX");
	int fd = mkstemp(job->secret); /* with mode 0600 */
	bool good = fd >= 0 && write(fd, bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes);
	if (fd >= 0) {
		(void)close(fd);
	}
	job->conf.secret_file = job->secret;
	return good;
}

static bool
run_job(struct job *job, const char *url)
{
	const char *inner = behind(url, FAULT_PREFIX);
	choose(&job->conf, inner);
	const char *kind = extra_kind(inner);
	job->extra = kind != NULL && conf_extra->begin(kind, job->conf.seed);
	if (kind != NULL && !job->extra) {
		fprintf(stderr, "%s: there is no such kind\n", url);
		return false;
	}
	bool simulated = job->extra || strcmp(job->conf.host, SIM_HOST) == 0;
	if (inner != url) {
		wrap(job);
	}
	return simulated ? run_in_world(job) : run_on_system(job);
}

bool
conf_run(const char *url, uint64_t seed, bool (*body)(struct conf *t))
{
	const char *inner = behind(url, SECRET_PREFIX);
	struct job *job = calloc(1, sizeof(*job));
	if (job == NULL) {
		return false;
	}
	job->conf.seed = seed;
	job->body = body;
	bool passed = (inner == url || make_secret(job)) && run_job(job, inner);
	if (inner != url) {
		(void)unlink(job->secret);
	}
	free(job);
	return passed;
}
