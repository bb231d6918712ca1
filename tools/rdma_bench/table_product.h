/* SPDX-License-Identifier: Apache-2.0 */
/* table_product: the part of a trainer of product.h that has a table. It uses nothing but the
 * public library. Thread: main of its worker. */
#pragma once

#include "tools/rdma_bench/product.h"

/* Declares a table, starts the job, creates all its rows, and carries out commands, whose modes are
 * those of batches.h. The session stays open. */
enum weft_status wf_table_product_run(struct wf_bench_seat *seat, struct weft_session *session,
				      const struct wf_product_opts *opts) WEFT_MUST_CHECK;
