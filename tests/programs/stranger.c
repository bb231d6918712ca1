/* SPDX-License-Identifier: Apache-2.0 */
/* stranger: comes to a port uninvited, says something that is no hello, and waits until it is shown
 * out. Usage: stranger PORT random|half|huge|silent|leave|hello|crowd [TIMES]. Exit code 0: the
 * peer closed the connection (or it was ours to leave), each time; 1: it did not. `hello` is that
 * of a trainer of a larger job, which is refused. `crowd`: 1,100 connections that say nothing,
 * begun again where one is closed, until it is killed. Chance from WEFT_SEED. Thread: main. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/rng.h"
#include "tests/support/hello.h"
#include "wire/head.h"
#include "wire/path.h"

#define CROWD 1100
#define CROWD_ROUND_MS 100
#define CROWD_ROUND 110   /* connections begun again in a round at the most */
#define HELLO_FRAME 1     /* transport/tcp/README.md */
#define PATIENCE_MS 60000 /* bounds a failure; the handshake's own limit is 5 s */

static int
connect_to(uint16_t port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};

	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&at, sizeof(at)) != 0) {
		fprintf(stderr, "port %u: %s\n", port, strerror(errno));
		close(fd);
		return -1;
	}
	return fd;
}

static size_t
make_random(uint8_t *out, size_t bytes)
{
	const char *text = getenv("WEFT_SEED");
	uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : (uint64_t)getpid();
	struct wf_rng rng;

	fprintf(stderr, "WEFT_SEED=%llu\n", (unsigned long long)seed);
	wf_rng_init(&rng, seed, 0);
	for (size_t i = 0; i < bytes; i++) {
		out[i] = (uint8_t)wf_rng_u64(&rng);
	}
	return bytes;
}

/* A hello in order, of somebody else's job. */
static size_t
make_hello(uint8_t *out)
{
	struct wf_path_head path = {.kind = WF_PATH_HELLO, .paths = 1u << WF_PATH_BOOTSTRAP};
	struct wf_hello hello = hello_in_order();
	uint8_t *body = out + WF_HEAD_BYTES;
	size_t bytes = wf_path_encode(&path, body);

	hello.trainer_id = 59998;
	hello.trainer_count = 60000;
	hello.pid = 0;
	(void)snprintf(hello.host, sizeof(hello.host), "stranger");
	bytes += wf_hello_encode(&hello, body + bytes);
	wf_head_encode(&(struct wf_head){.type = HELLO_FRAME, .body_bytes = bytes}, out);
	return WF_HEAD_BYTES + bytes;
}

static size_t
make_words(const char *kind, uint8_t *out, size_t bytes)
{
	struct wf_head head = {.version = WF_WIRE_VERSION, .body_bytes = 1ull << 63};

	if (strcmp(kind, "random") == 0) {
		return make_random(out, bytes);
	}
	if (strcmp(kind, "hello") == 0) {
		return make_hello(out);
	}
	if (strcmp(kind, "half") == 0) {
		head.body_bytes = 256;
		wf_head_encode(&head, out);
		return WF_HEAD_BYTES / 2;
	}
	if (strcmp(kind, "huge") == 0) {
		wf_head_encode(&head, out);
		return WF_HEAD_BYTES;
	}
	return 0;
}

/* Print what is there to be read by people. */
static void
tell(const uint8_t *bytes, ssize_t count)
{
	for (ssize_t i = 0; i < count; i++) {
		putchar(bytes[i] >= 0x20 && bytes[i] < 0x7f ? bytes[i] : '.');
	}
	putchar('\n');
	fflush(stdout);
}

static int
gather_crowd(uint16_t port)
{
	static int fd[CROWD];
	struct rlimit files;
	uint8_t bytes[4096];
	bool told = false;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	for (int i = 0; i < CROWD; i++) {
		fd[i] = connect_to(port);
		if (fd[i] < 0) {
			return 1;
		}
	}
	printf("all are here\n");
	fflush(stdout);
	for (;;) {
		int begun = 0;
		for (int i = 0; i < CROWD && begun < CROWD_ROUND; i++) {
			ssize_t count = recv(fd[i], bytes, sizeof(bytes), MSG_DONTWAIT);
			if (count < 0 && errno == EAGAIN) {
				continue;
			}
			if (count > 0 && !told) {
				tell(bytes, count);
				told = true;
			}
			close(fd[i]);
			fd[i] = connect_to(port);
			if (fd[i] < 0) {
				return 0; /* the port is closed: its process has ended */
			}
			begun++;
		}
		(void)poll(NULL, 0, CROWD_ROUND_MS);
	}
}

/* Until end of file or a reset. */
static int
wait_to_be_shown_out(int fd)
{
	uint8_t bytes[4096];
	struct pollfd ready = {.fd = fd, .events = POLLIN};

	while (poll(&ready, 1, PATIENCE_MS) == 1) {
		ssize_t count = read(fd, bytes, sizeof(bytes));
		if (count <= 0) {
			return 0;
		}
		tell(bytes, count);
	}
	fprintf(stderr, "the connection was not closed within %d ms\n", PATIENCE_MS);
	return 1;
}

static int
visit(uint16_t port, const char *kind)
{
	uint8_t words[8192];
	int code = 0;

	int fd = connect_to(port);
	if (fd < 0) {
		return 1;
	}
	size_t bytes = make_words(kind, words, sizeof(words));
	if (bytes > 0 && write(fd, words, bytes) < 0) {
		fprintf(stderr, "shown out while speaking: %s\n", strerror(errno));
	} else if (strcmp(kind, "leave") != 0) {
		code = wait_to_be_shown_out(fd);
	}
	close(fd);
	return code;
}

int
main(int argc, char **argv)
{
	int code = 0;

	signal(SIGPIPE, SIG_IGN);
	if (argc != 3 && argc != 4) {
		fprintf(stderr,
			"stranger PORT random|half|huge|silent|leave|hello|crowd [TIMES]\n");
		return 64;
	}
	if (strcmp(argv[2], "crowd") == 0) {
		return gather_crowd((uint16_t)strtoul(argv[1], NULL, 10));
	}
	unsigned long times = argc == 4 ? strtoul(argv[3], NULL, 10) : 1;
	for (unsigned long i = 0; i < times && code == 0; i++) {
		code = visit((uint16_t)strtoul(argv[1], NULL, 10), argv[2]);
	}
	return code;
}
