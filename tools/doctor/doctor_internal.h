/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_internal: what a check may use, and the checks. Thread: any one. */
#pragma once

#include "tools/doctor/doctor.h"

#define WF_DOCTOR_PATH_BYTES 512u

struct wf_doctor {
	const struct wf_doctor_ask *ask;
	const struct wf_doctor_check *check; /* the one that runs */
	wf_doctor_sink *sink;
	void *arg;
};

struct wf_doctor_check {
	const char *name;    /* stable: scripts read it */
	const char *purpose; /* what it looks at */
	void (*run)(const struct wf_doctor *doctor);
	bool at_start; /* it also runs when a pserver or trainer starts */
};

/* finding.c */
/* What a finding is about, beside its text. */
struct wf_doctor_about {
	enum wf_doctor_level level;
	const char *subject; /* NULL: "" */
	const char *remedy;  /* NULL: none */
};

void wf_doctor_add(const struct wf_doctor *doctor, const struct wf_doctor_about *about,
		   const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Whether it is this machine, rather than a copy of its files: only then are calls made. */
bool wf_doctor_is_here(const struct wf_doctor *doctor);
bool wf_doctor_wants(const struct wf_doctor *doctor, const char *transport);
/* Whether data may travel over this transport: it is asked for, or the choice is weft's. */
bool wf_doctor_may_use(const struct wf_doctor *doctor, const char *transport);
/* What it is if a transport does not work: a failure if it is asked for, otherwise `less`. */
enum wf_doctor_level wf_doctor_grade(const struct wf_doctor *doctor, const char *transport,
				     enum wf_doctor_level less);

/* tree.c */
/* Reads the beginning of a regular file below the root, at most `bytes` - 1 of it, and ends it with
 * a NUL. Returns false, with an empty text, if there is none, or nothing in it. */
bool wf_doctor_read(const struct wf_doctor *doctor, char *out, size_t bytes, const char *format,
		    ...) __attribute__((format(printf, 4, 5)));
/* The same for its first line. */
bool wf_doctor_line(const struct wf_doctor *doctor, char *out, size_t bytes, const char *format,
		    ...) __attribute__((format(printf, 4, 5)));
/* The same for a whole number of decimal digits; false: it is none, or too large. */
bool wf_doctor_number(const struct wf_doctor *doctor, uint64_t *out, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Calls `each` for the names in a folder below the root, sorted, at most 256 of them. Returns how
 * many there were. */
unsigned wf_doctor_each(const struct wf_doctor *doctor, const char *folder,
			void (*each)(const struct wf_doctor *doctor, const char *name, void *arg),
			void *arg);
bool wf_doctor_exists(const struct wf_doctor *doctor, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* A row of /proc/self/limits, soft or hard; UINT64_MAX: unlimited. false: unknown. */
bool wf_doctor_limit(const struct wf_doctor *doctor, const char *row, bool hard, uint64_t *out);
/* A number behind a key in a text of lines ("MemAvailable:"); false: the key is missing, or is
 * followed by none. */
bool wf_doctor_find(const char *text, const char *key, uint64_t *out);
/* "8.0 GiB", "64 KiB" */
const char *wf_doctor_size(uint64_t bytes, char out[32]);

/* check_machine.c */
void wf_doctor_check_kernel(const struct wf_doctor *doctor);
void wf_doctor_check_clock(const struct wf_doctor *doctor);
void wf_doctor_check_cpus(const struct wf_doctor *doctor);
void wf_doctor_check_governor(const struct wf_doctor *doctor);
void wf_doctor_check_isolated(const struct wf_doctor *doctor);
void wf_doctor_check_steal(const struct wf_doctor *doctor);
void wf_doctor_check_numa(const struct wf_doctor *doctor);

/* check_memory.c */
void wf_doctor_check_memory(const struct wf_doctor *doctor);
void wf_doctor_check_memlock(const struct wf_doctor *doctor);
void wf_doctor_check_huge_pages(const struct wf_doctor *doctor);
void wf_doctor_check_dev_shm(const struct wf_doctor *doctor);
void wf_doctor_check_file_size(const struct wf_doctor *doctor);
void wf_doctor_check_descriptors(const struct wf_doctor *doctor);
void wf_doctor_check_pids(const struct wf_doctor *doctor);
void wf_doctor_check_calls(const struct wf_doctor *doctor);
void wf_doctor_check_rights(const struct wf_doctor *doctor);

/* check_network.c */
void wf_doctor_check_loopback(const struct wf_doctor *doctor);
void wf_doctor_check_interfaces(const struct wf_doctor *doctor);
void wf_doctor_check_buffers(const struct wf_doctor *doctor);
void wf_doctor_check_tcp_memory(const struct wf_doctor *doctor);
void wf_doctor_check_backlog(const struct wf_doctor *doctor);
void wf_doctor_check_congestion(const struct wf_doctor *doctor);
void wf_doctor_check_ports(const struct wf_doctor *doctor);
void wf_doctor_check_secret(const struct wf_doctor *doctor);

/* check_rdma.c */
void wf_doctor_check_libraries(const struct wf_doctor *doctor);
void wf_doctor_check_devices(const struct wf_doctor *doctor);
void wf_doctor_check_providers(const struct wf_doctor *doctor);
void wf_doctor_check_links(const struct wf_doctor *doctor);
void wf_doctor_check_gids(const struct wf_doctor *doctor);
void wf_doctor_check_mtus(const struct wf_doctor *doctor);
void wf_doctor_check_addresses(const struct wf_doctor *doctor);
/* Whether the kernel shows an RDMA device. */
bool wf_doctor_has_devices(const struct wf_doctor *doctor);
