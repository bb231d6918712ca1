/* SPDX-License-Identifier: Apache-2.0 */
/* scan: see scan.h. The partition of each row is found once and kept in 16 bits; row numbers are
 * then dealt to partitions by counting, and a partition's keys are sorted when it is asked for.
 * Whether a row is still what it was is seen at that moment, so rows may come and go meanwhile.
 *
 * Rows of a fixed vocabulary lie in order of their keys within a partition: nothing is sorted.
 * Thread: the lane's. */
#include "sparse/table/scan.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/assert.h"
#include "sparse/table/table_internal.h"

#define NO_PARTITION UINT16_MAX

WF_STATIC_ASSERT(WF_PARTITION_COUNT < NO_PARTITION, "a partition has 16 bits");

struct place {
	uint64_t key;
	uint32_t row;
};

struct wf_scan {
	struct wf_table *table;
	struct wf_env *env;
	uint32_t step;      /* of the table: it must not change */
	uint32_t row_count; /* that there were at first */
	uint32_t seen;      /* rows whose partition is known */
	uint32_t dealt;     /* rows that are in `row` */

	uint16_t *partition_of; /* [row_count] */
	uint32_t *row;          /* [row_count] by partition */
	/* Where each partition begins in `row`; while dealing: where its next row goes. */
	uint32_t first[WF_PARTITION_COUNT + 2];

	struct place *sorted; /* [sorted_capacity] of the partition in work */
	uint32_t sorted_capacity;
	uint32_t sorted_count;
	uint32_t at; /* of sorted; of a fixed vocabulary: rank in the partition */
	uint32_t partition;
};

enum weft_status
wf_scan_create(struct wf_table *t, struct wf_scan **out)
{
	struct wf_scan *scan = wf_zalloc(t->env, sizeof(*scan));

	if (scan == NULL) {
		goto fail;
	}
	scan->table = t;
	scan->env = t->env;
	scan->step = t->step;
	scan->row_count = wf_table_is_fixed(t) ? 0 : t->rows.used_count;
	/* One more: no array is of nothing. */
	scan->partition_of = wf_zalloc_array(t->env, (size_t)scan->row_count + 1, sizeof(uint16_t));
	scan->row = wf_zalloc_array(t->env, (size_t)scan->row_count + 1, sizeof(uint32_t));
	if (scan->partition_of == NULL || scan->row == NULL) {
		goto fail;
	}
	*out = scan;
	return WEFT_OK;
fail:
	wf_scan_destroy(scan);
	return wf_fail(WEFT_NOMEM,
		       "table %" PRIu32 ": no memory to list %" PRIu32 " rows for a save",
		       t->opts.init.table, t->rows.used_count);
}

void
wf_scan_destroy(struct wf_scan *scan)
{
	if (scan == NULL) {
		return;
	}
	const size_t count = (size_t)scan->row_count + 1;
	wf_free(scan->env, scan->sorted, scan->sorted_capacity * sizeof(*scan->sorted));
	wf_free(scan->env, scan->row, count * sizeof(uint32_t));
	wf_free(scan->env, scan->partition_of, count * sizeof(uint16_t));
	wf_free(scan->env, scan, sizeof(*scan));
}

/* Counts the rows of each partition, two places further on: after summing up, first[p + 1] is where
 * the first row of p goes, and after dealing where p ends. */
static void
see_rows(struct wf_scan *scan, uint32_t end)
{
	const struct wf_table *t = scan->table;

	for (; scan->seen < end; scan->seen++) {
		uint32_t number = wf_rows_nth(&t->rows, scan->seen);
		const struct wf_row_head *head = wf_row_at(&t->rows, number);
		uint32_t partition = NO_PARTITION;
		if (head->born != 0) {
			partition = wf_partition_of(head->key);
			scan->first[partition + 2]++;
		}
		scan->partition_of[scan->seen] = (uint16_t)partition;
	}
}

static uint32_t
sum_up(struct wf_scan *scan)
{
	uint32_t most = 0;

	for (uint32_t p = 2; p < WF_PARTITION_COUNT + 2; p++) {
		most = scan->first[p] > most ? scan->first[p] : most;
		scan->first[p] += scan->first[p - 1];
	}
	return most;
}

static void
deal_rows(struct wf_scan *scan, uint32_t end)
{
	for (; scan->dealt < end; scan->dealt++) {
		uint32_t partition = scan->partition_of[scan->dealt];
		if (partition != NO_PARTITION) {
			scan->row[scan->first[partition + 1]++] =
				wf_rows_nth(&scan->table->rows, scan->dealt);
		}
	}
}

static uint32_t
up_to(uint32_t from, uint32_t rows, uint32_t all)
{
	return rows < all - from ? from + rows : all;
}

enum weft_status
wf_scan_prepare(struct wf_scan *scan, uint32_t rows, bool *done)
{
	const uint32_t all = scan->row_count;

	WF_ASSERT(rows > 0);
	if (scan->seen < all) {
		see_rows(scan, up_to(scan->seen, rows, all));
		*done = false;
		return WEFT_OK;
	}
	if (scan->sorted == NULL) {
		uint32_t most = sum_up(scan) + 1;
		scan->sorted = wf_zalloc_array(scan->env, most, sizeof(*scan->sorted));
		if (scan->sorted == NULL) {
			return wf_fail(WEFT_NOMEM,
				       "table %" PRIu32 ": no memory to sort %" PRIu32
				       " rows for a save",
				       scan->table->opts.init.table, most);
		}
		scan->sorted_capacity = most;
	}
	deal_rows(scan, up_to(scan->dealt, rows, all));
	*done = scan->dealt == all;
	return WEFT_OK;
}

static int
compare_places(const void *a, const void *b)
{
	const struct place *x = a;
	const struct place *y = b;
	return (x->key > y->key) - (x->key < y->key);
}

static bool
is_live(const struct wf_table *t, struct wf_row_head *head)
{
	return head->born != 0 && !(t->evict.can_expire && wf_table_is_expired(t, head));
}

/* Existing rows of a fixed vocabulary, from rank `at` on; *rank advances to the first. */
static struct wf_row_head *
next_fixed(const struct wf_scan *scan, uint32_t *rank)
{
	const struct wf_table *t = scan->table;
	const uint32_t lanes = t->opts.partition_count;
	const uint32_t ours = scan->partition - t->opts.partition_first;

	for (; (uint64_t)*rank * lanes + ours < t->rows.used_count; (*rank)++) {
		struct wf_row_head *head = wf_row_at(&t->rows, *rank * lanes + ours);
		if (head->born != 0) {
			return head;
		}
	}
	return NULL;
}

static uint32_t
count_fixed(const struct wf_scan *scan)
{
	uint32_t count = 0;

	for (uint32_t rank = 0; next_fixed(scan, &rank) != NULL; rank++) {
		count++;
	}
	return count;
}

uint32_t
wf_scan_partition(struct wf_scan *scan, uint32_t partition)
{
	struct wf_table *t = scan->table;

	WF_ASSERT(scan->dealt == scan->row_count && scan->sorted != NULL);
	WF_ASSERT(partition - t->opts.partition_first < t->opts.partition_count);
	WF_ASSERT(scan->step == t->step); /* no step was applied meanwhile */
	scan->partition = partition;
	scan->at = 0;
	scan->sorted_count = 0;
	if (wf_table_is_fixed(t)) {
		scan->sorted_count = count_fixed(scan);
		return scan->sorted_count;
	}
	for (uint32_t i = scan->first[partition]; i < scan->first[partition + 1]; i++) {
		struct wf_row_head *head = wf_row_at(&t->rows, scan->row[i]);
		if (is_live(t, head) && wf_partition_of(head->key) == partition) {
			scan->sorted[scan->sorted_count++] =
				(struct place){.key = head->key, .row = scan->row[i]};
		}
	}
	qsort(scan->sorted, scan->sorted_count, sizeof(*scan->sorted), compare_places);
	return scan->sorted_count;
}

bool
wf_scan_next(struct wf_scan *scan, struct wf_row_record *out)
{
	const struct wf_table *t = scan->table;
	struct wf_row_head *head = NULL;

	if (wf_table_is_fixed(t)) {
		head = next_fixed(scan, &scan->at);
	} else if (scan->at < scan->sorted_count) {
		head = wf_row_at(&t->rows, scan->sorted[scan->at].row);
		WF_ASSERT(head->born != 0 && head->key == scan->sorted[scan->at].key);
	}
	if (head == NULL) {
		return false;
	}
	struct wf_table_row row;
	wf_table_read(t, head, &row);
	*out = (struct wf_row_record){.key = row.key,
				      .stamp = row.stamp,
				      .born = row.born,
				      .show = row.show,
				      .click = row.click,
				      .floats = row.floats};
	scan->at++;
	return true;
}

static struct wf_table_row
row_of(const struct wf_row_record *record)
{
	return (struct wf_table_row){.key = record->key,
				     .stamp = record->stamp,
				     .born = record->born,
				     .show = record->show,
				     .click = record->click,
				     .floats = record->floats};
}

enum weft_status
wf_table_put_record(struct wf_table *t, const struct wf_row_record *record)
{
	const struct wf_table_row row = row_of(record);

	return wf_table_put(t, &row);
}

enum weft_status
wf_table_put_later_record(struct wf_table *t, const struct wf_row_record *record, uint32_t border)
{
	const struct wf_table_row row = row_of(record);

	return wf_table_put_later(t, &row, border);
}
