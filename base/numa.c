/* SPDX-License-Identifier: Apache-2.0 */
/* numa: see the header. The system calls are made directly: only libnuma wraps them, and nothing
 * else here needs it. Thread: any. */
#include "base/numa.h"

#include <fcntl.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.h"

#define MEMINFO_BYTES 4096 /* some 30 lines */
#define MASK_BITS (8 * sizeof(unsigned long))
#define MASK_WORDS (WF_NUMA_NODE_MAX / MASK_BITS)
/* The kernel reads maxnode - 1 bits. */
#define MASK_MAXNODE (WF_NUMA_NODE_MAX + 1ul)

/* "Node 1 MemFree:   1234 kB" */
static uint64_t
line_bytes(const char *meminfo, const char *name)
{
	const char *at = strstr(meminfo, name);
	return at == NULL ? 0 : strtoull(at + strlen(name), NULL, 10) << 10;
}

uint64_t
wf_numa_available_in(const char *meminfo)
{
	return line_bytes(meminfo, " MemFree:") + line_bytes(meminfo, " Active(file):") +
	       line_bytes(meminfo, " Inactive(file):");
}

uint64_t
wf_numa_available_bytes(int node)
{
	char path[64];
	char text[MEMINFO_BYTES];
	(void)snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/meminfo", node);
	int fd = node < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0) {
		(void)close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	return wf_numa_available_in(text);
}

enum wf_numa_rule
wf_numa_rule_for(uint64_t bytes, uint64_t available_bytes)
{
	return available_bytes > 0 && bytes <= available_bytes / 2 ? WF_NUMA_BOUND
								   : WF_NUMA_PREFERRED;
}

/* Whether the process may use the node: the cpuset of its cgroup may exclude nodes. Containers may
 * forbid the query. */
static bool
is_allowed(int node)
{
	unsigned long mask[MASK_WORDS] = {0};
	if (node < 0 || node >= WF_NUMA_NODE_MAX ||
	    syscall(SYS_get_mempolicy, NULL, mask, (unsigned long)WF_NUMA_NODE_MAX, NULL,
		    (unsigned long)MPOL_F_MEMS_ALLOWED) != 0) {
		return false;
	}
	return (mask[(size_t)node / MASK_BITS] >> ((size_t)node % MASK_BITS) & 1) != 0;
}

enum wf_numa_rule
wf_numa_rule(int node, uint64_t bytes)
{
	if (!is_allowed(node)) {
		return WF_NUMA_ANYWHERE;
	}
	return wf_numa_rule_for(bytes, wf_numa_available_bytes(node));
}

static bool
bind_pages(void *base, size_t bytes, int node, int mode)
{
	unsigned long mask[MASK_WORDS] = {0};
	mask[(size_t)node / MASK_BITS] |= 1ul << ((size_t)node % MASK_BITS);
	return syscall(SYS_mbind, base, bytes, mode, mask, MASK_MAXNODE, 0u) == 0;
}

enum wf_numa_rule
wf_numa_place(void *base, size_t bytes, int node, enum wf_numa_rule wanted)
{
	WF_ASSERT(node >= 0 && node < WF_NUMA_NODE_MAX);
	if (wanted == WF_NUMA_BOUND && bind_pages(base, bytes, node, MPOL_BIND)) {
		return WF_NUMA_BOUND;
	}
	return bind_pages(base, bytes, node, MPOL_PREFERRED) ? WF_NUMA_PREFERRED : WF_NUMA_ANYWHERE;
}

const char *
wf_numa_rule_name(enum wf_numa_rule rule)
{
	switch (rule) {
	case WF_NUMA_BOUND:
		return "bound";
	case WF_NUMA_PREFERRED:
		return "preferred";
	case WF_NUMA_ANYWHERE:
		break;
	}
	return "anywhere";
}
