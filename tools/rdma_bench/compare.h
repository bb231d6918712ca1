/* SPDX-License-Identifier: Apache-2.0 */
/* compare: rdma_bench compare: two results of rdma_bench, figure by figure. Thread: main. */
#pragma once

int wf_compare_command(int argc, char **argv);
