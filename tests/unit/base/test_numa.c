/* SPDX-License-Identifier: Apache-2.0 */
/* When memory is bound to a node, and when the node is only preferred. Where it really is,
 * tests/numa checks on a machine with two nodes. Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/numa.h"

static void
free_memory_and_what_caches_files_can_be_had(void **state)
{
	static const char meminfo[] = "Node 1 MemTotal:       2048000 kB\n"
				      "Node 1 MemFree:           1000 kB\n"
				      "Node 1 Active:             900 kB\n"
				      "Node 1 Active(anon):       600 kB\n"
				      "Node 1 Inactive(anon):      70 kB\n"
				      "Node 1 Active(file):       300 kB\n"
				      "Node 1 Inactive(file):      40 kB\n";
	assert_int_equal(wf_numa_available_in(meminfo), 1340 * 1024);
	assert_int_equal(wf_numa_available_in(""), 0);
	assert_int_equal(wf_numa_available_in("Node 1 MemFree:"), 0);
}

static void
memory_is_bound_up_to_half_of_what_can_be_had(void **state)
{
	assert_int_equal(wf_numa_rule_for(0, 1), WF_NUMA_BOUND);
	assert_int_equal(wf_numa_rule_for(500, 1000), WF_NUMA_BOUND);
	assert_int_equal(wf_numa_rule_for(501, 1000), WF_NUMA_PREFERRED);
	assert_int_equal(wf_numa_rule_for(0, 0), WF_NUMA_PREFERRED); /* not known */
	assert_int_equal(wf_numa_rule_for(UINT64_MAX, UINT64_MAX), WF_NUMA_PREFERRED);
}

static void
nodes_that_are_not_there_have_no_memory(void **state)
{
	assert_int_equal(wf_numa_available_bytes(-1), 0);
	assert_int_equal(wf_numa_available_bytes(WF_NUMA_NODE_MAX - 1), 0);
	assert_int_equal(wf_numa_rule(-1, 0), WF_NUMA_ANYWHERE);
	assert_int_equal(wf_numa_rule(WF_NUMA_NODE_MAX, 0), WF_NUMA_ANYWHERE);
	assert_int_equal(wf_numa_rule(WF_NUMA_NODE_MAX - 1, 0), WF_NUMA_ANYWHERE);
}

static void
rules_have_names(void **state)
{
	assert_string_equal(wf_numa_rule_name(WF_NUMA_BOUND), "bound");
	assert_string_equal(wf_numa_rule_name(WF_NUMA_PREFERRED), "preferred");
	assert_string_equal(wf_numa_rule_name(WF_NUMA_ANYWHERE), "anywhere");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(free_memory_and_what_caches_files_can_be_had),
		cmocka_unit_test(memory_is_bound_up_to_half_of_what_can_be_had),
		cmocka_unit_test(nodes_that_are_not_there_have_no_memory),
		cmocka_unit_test(rules_have_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
