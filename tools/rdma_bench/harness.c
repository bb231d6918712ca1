/* SPDX-License-Identifier: Apache-2.0 */
/* harness: see harness.h. */
#include "tools/rdma_bench/harness.h"

enum weft_status
wf_seat_follow(struct wf_bench_seat *seat, const struct wf_duty *duty)
{
	struct wf_meter meter;
	struct wf_work_order order;
	enum weft_status st = wf_meter_init(&meter, seat->env);
	if (st != WEFT_OK) {
		return st;
	}
	wf_seat_ready(seat, 0);
	while (st == WEFT_OK && wf_seat_order(seat, &order)) {
		struct wf_figures figures;
		meter.slow = order.slow != 0;
		wf_meter_begin(&meter, duty->batch);
		st = duty->run(duty->work, &order, &meter);
		wf_meter_figures(&meter, order.count, &figures);
		if (st == WEFT_OK) {
			wf_seat_report(seat, &figures);
		}
	}
	wf_meter_fini(&meter);
	return st;
}
