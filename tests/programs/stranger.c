/* SPDX-License-Identifier: Apache-2.0 */
/* stranger: comes to a port uninvited, says something that is no hello, and waits until it is shown
 * out. Usage: stranger PORT random|half|huge|silent|leave. Exit code 0: the peer closed the
 * connection (or it was ours to leave); 1: it did not. Chance from WEFT_SEED. Thread: main. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/rng.h"
#include "wire/head.h"

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

static size_t
make_words(const char *kind, uint8_t *out, size_t bytes)
{
	struct wf_head head = {.version = WF_WIRE_VERSION, .body_bytes = 1ull << 63};

	if (strcmp(kind, "random") == 0) {
		return make_random(out, bytes);
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

/* Until end of file or a reset. */
static int
wait_to_be_shown_out(int fd)
{
	uint8_t bytes[4096];
	struct pollfd ready = {.fd = fd, .events = POLLIN};

	while (poll(&ready, 1, PATIENCE_MS) == 1) {
		if (read(fd, bytes, sizeof(bytes)) <= 0) {
			return 0;
		}
	}
	fprintf(stderr, "the connection was not closed within %d ms\n", PATIENCE_MS);
	return 1;
}

int
main(int argc, char **argv)
{
	uint8_t words[8192];
	int code = 0;

	signal(SIGPIPE, SIG_IGN);
	if (argc != 3) {
		fprintf(stderr, "stranger PORT random|half|huge|silent|leave\n");
		return 64;
	}
	int fd = connect_to((uint16_t)strtoul(argv[1], NULL, 10));
	if (fd < 0) {
		return 1;
	}
	size_t bytes = make_words(argv[2], words, sizeof(words));
	if (bytes > 0 && write(fd, words, bytes) < 0) {
		fprintf(stderr, "shown out while speaking: %s\n", strerror(errno));
	} else if (strcmp(argv[2], "leave") != 0) {
		code = wait_to_be_shown_out(fd);
	}
	close(fd);
	return code;
}
