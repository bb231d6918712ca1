/* SPDX-License-Identifier: Apache-2.0 */
/* rig: see rig.h. Thread: one. */
#include "rig.h"

#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_NS (30 * WF_NS_PER_S) /* an emulated machine that is busy is slow */

extern char **environ;

bool
rig_has(const char *device)
{
	char path[64];
	(void)snprintf(path, sizeof(path), "/sys/class/infiniband/%s", device);
	return access(path, F_OK) == 0;
}

bool
rig_run(bool (*body)(struct conf *t))
{
	static struct conf conf;
	conf = (struct conf){.transport = "verbs", .seed = 1, .poll_max = 64};
	if (wf_env_system_create(WF_LOG_ERROR, 2, &conf.env) != WEFT_OK) {
		fprintf(stderr, "env: %s\n", weft_last_error());
		return false;
	}
	wf_rng_init(&conf.rng, conf.seed, 0);
	bool passed = body(&conf) && !conf.failed;
	while (conf.node_count > 0) {
		conf_node_close(&conf, &conf.node[--conf.node_count]);
	}
	wf_env_system_destroy(conf.env);
	return passed;
}

struct node *
rig_node(struct conf *t, const char *settings, const char *host,
	 const struct wf_transport_opts *opts)
{
	struct wf_transport_opts patient = opts == NULL ? (struct wf_transport_opts){0} : *opts;
	if (patient.connect_timeout_ns == 0) {
		patient.connect_timeout_ns = PATIENCE_NS;
	}
	if (patient.handshake_timeout_ns == 0) {
		patient.handshake_timeout_ns = PATIENCE_NS;
	}
	t->verbs = settings;
	t->host = host;
	return host == NULL ? conf_node(t, &patient) : conf_server(t, &patient);
}

static pid_t
start(const char *const *words, int output)
{
	posix_spawn_file_actions_t actions;
	pid_t pid = -1;
	(void)posix_spawn_file_actions_init(&actions);
	if (output >= 0) {
		(void)posix_spawn_file_actions_adddup2(&actions, output, 1);
	}
	/* The words are only read; the parameter's type is older than const. */
	int err = posix_spawnp(&pid, words[0], &actions, NULL, (char *const *)(uintptr_t)words,
			       environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	return err == 0 ? pid : -1;
}

static int
status_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int
rig_command_output(const char *const *words, int fd)
{
	int status = 0;
	pid_t pid = start(words, fd);
	return pid > 0 && waitpid(pid, &status, 0) == pid ? status_of(status) : -1;
}

int
rig_command(const char *const *words)
{
	return rig_command_output(words, -1);
}

pid_t
rig_command_start(const char *const *words)
{
	return start(words, -1);
}

int
rig_command_wait(struct conf *t, pid_t pid)
{
	int status = 0;
	pid_t done = 0;
	for (int i = 0; i < 60000 && done == 0; i++) { /* half a minute at least */
		done = waitpid(pid, &status, WNOHANG);
		conf_pump(t);
	}
	return done == pid ? status_of(status) : -1;
}

bool
rig_join(struct conf *t, struct node *server, struct node *client, struct pair *out)
{
	t->host = server->at.name;
	return conf_join(t, server, client, out);
}

static bool
put(struct conf *t, struct node *from, struct wf_conn *fc, struct node *to, struct wf_conn *tc)
{
	struct wf_grant_key key;
	CHECK(conf_grant_place(to, tc, NODE_REGION_BYTES - 64, 64, &key));
	struct wf_op op = conf_put_op(from, &key, 0, 64, 1u << 20);
	CHECK(conf_post_all(t, fc, &op));
	CHECK(conf_await(t, to, tc, WF_EVENT_PUT) != NULL);
	return conf_await(t, from, fc, WF_EVENT_DONE) != NULL;
}

bool
rig_warm(struct conf *t, const struct pair *p)
{
	return put(t, p->client, p->cc, p->server, p->sc) &&
	       put(t, p->server, p->sc, p->client, p->cc);
}

enum weft_status
rig_down(struct conf *t, struct node *n, const struct wf_conn *conn)
{
	const struct seen *down = conf_await(t, n, conn, WF_EVENT_DOWN);
	if (down != NULL) {
		fprintf(stderr, "down: %s, %s\n", weft_status_name(down->status), down->why);
	}
	return down == NULL ? WEFT_OK : down->status;
}
