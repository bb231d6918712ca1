/* SPDX-License-Identifier: Apache-2.0 */
/* hostile: see hostile.h. Thread: the test's. */
#include "tests/unit/shm/hostile.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

int
hostile_memfd(size_t bytes, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	if (seals != 0) {
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	}
	return fd;
}

void
hostile_dial(struct hostile *h)
{
	h->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_true(h->fd >= 0);
	struct sockaddr_un address;
	socklen_t bytes = wf_shm_address(h->rig.at.port, &address);
	assert_int_equal(connect(h->fd, (const struct sockaddr *)&address, bytes), 0);
}

void
hostile_hello(struct hostile *h, int memfd)
{
	struct wf_shm_packet hello = {.type = WF_SHM_HELLO, .bytes = sizeof(struct wf_shm_segment)};
	assert_int_equal(wf_shm_send(h->fd, &hello, memfd), 0);
}

void
hostile_join(struct hostile *h, const struct wf_transport_opts *opts)
{
	memset(h, 0, sizeof(*h));
	shm_rig_open(&h->rig, true, opts);
	memset(h->rig.slab.base, 0xa5, 65536);
	hostile_dial(h);
	int memfd = hostile_memfd(sizeof(*h->segment), F_SEAL_SHRINK);
	h->segment = mmap(NULL, sizeof(*h->segment), PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	assert_true(h->segment != MAP_FAILED);
	h->way = &h->segment->way[0];
	hostile_hello(h, memfd);
	close(memfd);
	shm_rig_accept(&h->rig);
}

void
hostile_fill(struct hostile *h, const union wf_shm_note *note)
{
	struct wf_shm_cell *cell = &h->way->cell[h->filled % WF_SHM_CELLS];
	cell->note = *note;
	h->filled++;
	atomic_store_explicit(&cell->seq, h->filled, memory_order_release); /* S1 */
}

void
hostile_region(struct hostile *h, uint32_t id, uint64_t bytes, int memfd)
{
	struct wf_shm_packet packet = {.type = WF_SHM_REGION, .region = id, .bytes = bytes};
	assert_int_equal(wf_shm_send(h->fd, &packet, memfd), 0);
}

void
hostile_close(struct hostile *h)
{
	const uint8_t *memory = h->rig.slab.base;
	for (size_t i = 0; i < 65536; i++) {
		bool granted = i >= HOSTILE_GRANT_AT && i < HOSTILE_GRANT_AT + HOSTILE_GRANT_BYTES;
		assert_true(granted || memory[i] == 0xa5);
	}
	close(h->fd);
	munmap(h->segment, sizeof(*h->segment));
	shm_rig_close(&h->rig);
}
