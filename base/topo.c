/* SPDX-License-Identifier: Apache-2.0 */
/* topo: see topo.h. hwloc's tree is converted to flat arrays and freed, so no other file depends on
 * hwloc. Thread: any, one at a time. */
#include "base/topo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/env_slab.h"
#include "base/own_file.h"
#include "base/quota.h"
#include "base/topo_internal.h"

/* Plug-ins that would open devices, or a display, to count GPUs; and "pci", which reads the names
 * of all vendors and never frees them: /sys has the location of devices. */
static const char *const unwanted[] = {"cuda", "gl", "levelzero", "nvml", "opencl", "pci", "rsmi"};

/* hwloc's two parsers, libxml2 in a plug-in and its own, detect this at different times. */
static enum weft_status
fail_xml(const struct wf_topo_source *source)
{
	return wf_fail_errno(WEFT_INVALID, errno,
			     "topo: %s cannot be read as XML of hwloc; make one with: weft topo "
			     "--save=FILE, or lstopo FILE",
			     source->xml);
}

static enum weft_status
choose_source(hwloc_topology_t machine, const struct wf_topo_source *source)
{
	if (source->xml != NULL && hwloc_topology_set_xml(machine, source->xml_copy) != 0) {
		return fail_xml(source);
	}
	if (source->synthetic != NULL &&
	    hwloc_topology_set_synthetic(machine, source->synthetic) != 0) {
		return wf_fail(
			WEFT_INVALID,
			"topo: \"%s\" does not describe a machine; an example is: node:2 core:4 "
			"pu:2",
			source->synthetic);
	}
	return WEFT_OK;
}

static enum weft_status
load(hwloc_topology_t machine, const struct wf_topo_source *source)
{
	for (size_t i = 0; i < WF_ARRAY_COUNT(unwanted); i++) {
		(void)hwloc_topology_set_components(
			machine, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, unwanted[i]);
	}
	(void)hwloc_topology_set_io_types_filter(machine, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
	enum weft_status st = choose_source(machine, source);
	if (st != WEFT_OK) {
		return st;
	}
	if (hwloc_topology_load(machine) == 0) {
		return WEFT_OK;
	}
	if (source->xml != NULL) {
		return fail_xml(source);
	}
	return wf_fail_errno(WEFT_UNSUPPORTED, errno, "topo: hwloc cannot read this machine");
}

static enum weft_status
open_machine(const struct wf_topo_source *source, hwloc_topology_t *out)
{
	hwloc_topology_t machine = NULL;
	const char *other = getenv("HWLOC_XMLFILE");
	if (source->xml == NULL && other != NULL && other[0] != '\0') {
		/* hwloc would read that file in this process, and crash it if the file is damaged.
		 */
		return wf_fail(WEFT_INVALID,
			       "topo: HWLOC_XMLFILE=%.200s names a file in place of this machine, "
			       "which weft does not use; unset it, or see: weft topo --xml=FILE",
			       other);
	}
	if (hwloc_topology_init(&machine) != 0) {
		return wf_fail_errno(WEFT_NOMEM, errno, "topo: hwloc");
	}
	enum weft_status st = load(machine, source);
	if (st != WEFT_OK) {
		hwloc_topology_destroy(machine);
		return st;
	}
	*out = machine;
	return WEFT_OK;
}

/* The CPUs that this process may use: the cpuset and, for this machine, its affinity mask. */
static enum weft_status
read_usable(const struct wf_topo *topo, hwloc_topology_t machine, hwloc_bitmap_t usable)
{
	if (topo->is_here && hwloc_get_cpubind(machine, usable, HWLOC_CPUBIND_THREAD) != 0) {
		return wf_fail_errno(WEFT_UNSUPPORTED, errno,
				     "topo: the CPUs of this process cannot be read");
	}
	if (!topo->is_here) {
		hwloc_bitmap_fill(usable);
	}
	hwloc_const_bitmap_t allowed = hwloc_topology_get_allowed_cpuset(machine);
	(void)hwloc_bitmap_and(usable, usable, allowed);
	return hwloc_bitmap_iszero(usable)
		       ? wf_fail(WEFT_INVALID, "topo: there is no CPU to run on")
		       : WEFT_OK;
}

static uint32_t
count_of(hwloc_topology_t machine, hwloc_obj_type_t type)
{
	int count = hwloc_get_nbobjs_by_type(machine, type);
	return count > 0 ? (uint32_t)count : 0;
}

/* The first node of a CPU set: if there are several (two kinds of memory), the ordinary one has the
 * lowest number. */
static int
node_of(hwloc_topology_t machine, hwloc_obj_t obj)
{
	if (obj->nodeset == NULL) {
		return -1;
	}
	int os_idx = hwloc_bitmap_first(obj->nodeset);
	bool is_there = os_idx >= 0 &&
			hwloc_get_numanode_obj_by_os_index(machine, (unsigned)os_idx) != NULL;
	return is_there ? os_idx : -1;
}

static void
add_core(struct wf_topo *topo, hwloc_topology_t machine, hwloc_obj_t obj,
	 hwloc_const_bitmap_t usable)
{
	hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(machine, HWLOC_OBJ_PACKAGE, obj);
	struct wf_topo_core core = {
		.cpu_first = topo->cpu_count,
		.package = package != NULL ? package->logical_index : 0,
		.numa_node = node_of(machine, obj),
	};
	for (int cpu = hwloc_bitmap_first(obj->cpuset); cpu >= 0;
	     cpu = hwloc_bitmap_next(obj->cpuset, cpu)) {
		if (hwloc_bitmap_isset(usable, (unsigned)cpu)) {
			topo->cpu[topo->cpu_count++] = (uint32_t)cpu;
			core.cpu_count++;
		}
	}
	if (core.cpu_count > 0) {
		topo->core[topo->core_count++] = core;
	}
}

/* hwloc numbers cores along the tree of the machine, so those of one node are adjacent. */
static enum weft_status
read_cores(struct wf_topo *topo, hwloc_topology_t machine, hwloc_const_bitmap_t usable)
{
	hwloc_obj_type_t type = HWLOC_OBJ_CORE;
	if (count_of(machine, type) == 0) {
		type = HWLOC_OBJ_PU; /* some virtual machines report no cores */
	}
	uint32_t cores = count_of(machine, type);
	uint32_t cpus = count_of(machine, HWLOC_OBJ_PU);
	topo->core_room = cores + 1;
	topo->cpu_room = cpus + 1;
	topo->core = wf_zalloc_array(topo->env, topo->core_room, sizeof(*topo->core));
	topo->cpu = wf_zalloc_array(topo->env, topo->cpu_room, sizeof(*topo->cpu));
	if (topo->core == NULL || topo->cpu == NULL) {
		return wf_fail(WEFT_NOMEM, "topo: %u cores", cores);
	}
	hwloc_obj_t obj = NULL;
	while ((obj = hwloc_get_next_obj_by_type(machine, type, obj)) != NULL) {
		add_core(topo, machine, obj, usable);
	}
	uint32_t packages = count_of(machine, HWLOC_OBJ_PACKAGE);
	topo->package_count = packages > 0 ? packages : 1;
	return topo->core_count > 0 ? WEFT_OK
				    : wf_fail(WEFT_INVALID, "topo: there is no core to run on");
}

static void
add_node(struct wf_topo *topo, hwloc_obj_t obj)
{
	const struct hwloc_numanode_attr_s *attr = &obj->attr->numanode;
	struct wf_topo_node node = {
		.numa_node = (int)obj->os_index,
		.memory_bytes = attr->local_memory,
	};
	for (unsigned i = 0; i < attr->page_types_len; i++) {
		bool is_huge = attr->page_types[i].size == (uint64_t)2 << 20;
		if (is_huge && attr->page_types[i].count > 0) {
			node.huge_page_bytes = attr->page_types[i].size;
			node.huge_page_count = attr->page_types[i].count;
		}
	}
	if (topo->is_here) {
		node.available_bytes = wf_numa_available_bytes(node.numa_node);
		node.rule = wf_numa_rule(node.numa_node, 0);
	}
	for (uint32_t i = 0; i < topo->core_count; i++) {
		if (topo->core[i].numa_node == node.numa_node) {
			node.core_count++;
			node.cpu_count += topo->core[i].cpu_count;
		}
	}
	topo->node[topo->node_count++] = node;
}

static enum weft_status
read_nodes(struct wf_topo *topo, hwloc_topology_t machine)
{
	uint32_t nodes = count_of(machine, HWLOC_OBJ_NUMANODE);
	topo->node_room = nodes + 1;
	topo->node = wf_zalloc_array(topo->env, topo->node_room, sizeof(*topo->node));
	if (topo->node == NULL) {
		return wf_fail(WEFT_NOMEM, "topo: %u nodes", nodes);
	}
	hwloc_obj_t obj = NULL;
	while ((obj = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_NUMANODE, obj)) != NULL) {
		add_node(topo, obj);
	}
	return WEFT_OK;
}

static char
cache_kind(hwloc_obj_cache_type_t type)
{
	switch (type) {
	case HWLOC_OBJ_CACHE_DATA:
		return 'd';
	case HWLOC_OBJ_CACHE_INSTRUCTION:
		return 'i';
	case HWLOC_OBJ_CACHE_UNIFIED:
		return 'u';
	}
	return 'u';
}

static void
add_cache(struct wf_topo *topo, hwloc_topology_t machine, hwloc_obj_type_t type)
{
	hwloc_obj_t first = hwloc_get_next_obj_by_type(machine, type, NULL);
	if (first == NULL) {
		return;
	}
	int cores = hwloc_get_nbobjs_inside_cpuset_by_type(machine, first->cpuset, HWLOC_OBJ_CORE);
	topo->cache[topo->cache_count++] = (struct wf_topo_cache){
		.level = first->attr->cache.depth,
		.kind = cache_kind(first->attr->cache.type),
		.bytes = first->attr->cache.size,
		.count = count_of(machine, type),
		.core_count = cores > 0 ? (uint32_t)cores : 1,
	};
}

static enum weft_status
read_caches(struct wf_topo *topo, hwloc_topology_t machine)
{
	static const hwloc_obj_type_t types[] = {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE,
						 HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L4CACHE,
						 HWLOC_OBJ_L5CACHE};
	topo->cache_room = (uint32_t)WF_ARRAY_COUNT(types);
	topo->cache = wf_zalloc_array(topo->env, topo->cache_room, sizeof(*topo->cache));
	if (topo->cache == NULL) {
		return wf_fail(WEFT_NOMEM, "topo: caches");
	}
	for (size_t i = 0; i < WF_ARRAY_COUNT(types); i++) {
		add_cache(topo, machine, types[i]);
	}
	return WEFT_OK;
}

static enum weft_status
read_machine(struct wf_topo *topo, hwloc_topology_t machine)
{
	topo->is_here = hwloc_topology_is_thissystem(machine) != 0;
	if (topo->is_here) {
		topo->quota_cpus = wf_quota_cpus();
		topo->huge_pages.are_shared =
			wf_env_slab_is_huge(topo->huge_pages.word, sizeof(topo->huge_pages.word));
	}
	hwloc_bitmap_t usable = hwloc_bitmap_alloc();
	if (usable == NULL) {
		return wf_fail(WEFT_NOMEM, "topo: a CPU set");
	}
	enum weft_status st = read_usable(topo, machine, usable);
	if (st == WEFT_OK) {
		st = read_cores(topo, machine, usable);
	}
	hwloc_bitmap_free(usable);
	if (st == WEFT_OK) {
		st = read_nodes(topo, machine);
	}
	if (st == WEFT_OK) {
		st = read_caches(topo, machine);
	}
	return st == WEFT_OK ? wf_topo_read_devices(topo, machine) : st;
}

enum weft_status
wf_topo_read(struct wf_env *env, const struct wf_topo_source *source, struct wf_topo **out)
{
	hwloc_topology_t machine = NULL;
	enum weft_status st = open_machine(source, &machine);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_topo *topo = wf_zalloc(env, sizeof(*topo));
	if (topo == NULL) {
		st = wf_fail(WEFT_NOMEM, "topo: %zu bytes", sizeof(*topo));
	} else {
		topo->env = env;
		st = read_machine(topo, machine);
	}
	hwloc_topology_destroy(machine);
	if (st != WEFT_OK) {
		wf_topo_close(topo);
		return st;
	}
	*out = topo;
	return WEFT_OK;
}

void
wf_topo_close(struct wf_topo *topo)
{
	if (topo == NULL) {
		return;
	}
	struct wf_env *env = topo->env;
	wf_free(env, topo->cpu, topo->cpu_room * sizeof(*topo->cpu));
	wf_free(env, topo->core, topo->core_room * sizeof(*topo->core));
	wf_free(env, topo->node, topo->node_room * sizeof(*topo->node));
	wf_free(env, topo->cache, topo->cache_room * sizeof(*topo->cache));
	wf_free(env, topo->device, topo->device_room * sizeof(*topo->device));
	wf_free(env, topo, sizeof(*topo));
}

static enum weft_status
save_text(const char *path, const char *text, size_t bytes)
{
	int fd = -1;
	enum weft_status st = wf_own_file_open(path, 0, &fd);
	if (st != WEFT_OK) {
		return st;
	}
	for (size_t done = 0; st == WEFT_OK && done < bytes;) {
		ssize_t n = write(fd, text + done, bytes - done);
		if (n < 0 && errno != EINTR) {
			st = wf_fail_errno(WEFT_IO, errno, "topo: %s cannot be written", path);
		}
		done += n > 0 ? (size_t)n : 0;
	}
	if (close(fd) != 0 && st == WEFT_OK) {
		st = wf_fail_errno(WEFT_IO, errno, "topo: %s cannot be written", path);
	}
	return st;
}

enum weft_status
wf_topo_save(const char *path)
{
	hwloc_topology_t machine = NULL;
	enum weft_status st = open_machine(&(struct wf_topo_source){0}, &machine);
	if (st != WEFT_OK) {
		return st;
	}
	char *text = NULL;
	int bytes = 0;
	if (hwloc_topology_export_xmlbuffer(machine, &text, &bytes, 0) != 0) {
		st = wf_fail_errno(WEFT_NOMEM, errno, "topo: this machine as XML");
	} else {
		st = save_text(path, text, strlen(text));
		hwloc_free_xmlbuffer(machine, text);
	}
	hwloc_topology_destroy(machine);
	return st;
}

const struct wf_topo_core *
wf_topo_core_of(const struct wf_topo *topo, uint32_t cpu)
{
	for (uint32_t i = 0; i < topo->core_count; i++) {
		const struct wf_topo_core *core = &topo->core[i];
		for (uint32_t j = 0; j < core->cpu_count; j++) {
			if (topo->cpu[core->cpu_first + j] == cpu) {
				return core;
			}
		}
	}
	return NULL;
}

void
wf_topo_cpu_list(const struct wf_topo *topo, int numa_node, char *out, size_t bytes)
{
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	if (set == NULL) {
		(void)snprintf(out, bytes, "?");
		return;
	}
	for (uint32_t i = 0; i < topo->core_count; i++) {
		const struct wf_topo_core *core = &topo->core[i];
		for (uint32_t j = 0; j < core->cpu_count; j++) {
			if (numa_node < 0 || core->numa_node == numa_node) {
				(void)hwloc_bitmap_set(set, topo->cpu[core->cpu_first + j]);
			}
		}
	}
	(void)hwloc_bitmap_list_snprintf(out, bytes, set);
	hwloc_bitmap_free(set);
}
