/* SPDX-License-Identifier: Apache-2.0 */
/* fiber: ucontext coroutines on guard-paged stacks. Thread: see fiber.h. */
#include "tests/double/sim/fiber.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "tests/double/sim/sanitizers.h"

/* Without optimisation a row kernel's frame takes 350 KiB: every unrolled value has a place of its
 * own, and the frame steps over a guard page. What is not touched costs nothing. */
#define STACK_BYTES (2048u * 1024u)

static void
switch_in_begins(struct wf_fiber *fiber)
{
#if defined(WF_ASAN)
	__sanitizer_start_switch_fiber(&fiber->fake_outside, fiber->stack, fiber->stack_bytes);
#endif
}

static void
switch_in_ended(struct wf_fiber *fiber)
{
#if defined(WF_ASAN)
	__sanitizer_finish_switch_fiber(fiber->fake_inside, &fiber->outside_stack,
					&fiber->outside_bytes);
#endif
}

static void
switch_out_begins(struct wf_fiber *fiber, bool for_good)
{
#if defined(WF_ASAN)
	__sanitizer_start_switch_fiber(for_good ? NULL : &fiber->fake_inside, fiber->outside_stack,
				       fiber->outside_bytes);
#endif
}

static void
switch_out_ended(struct wf_fiber *fiber)
{
#if defined(WF_ASAN)
	__sanitizer_finish_switch_fiber(fiber->fake_outside, NULL, NULL);
#endif
}

static void
switch_sides(struct wf_fiber_side *from, struct wf_fiber_side *to)
{
#if defined(WF_ASAN) || defined(WF_TSAN)
	int failed = swapcontext(&from->context, &to->context);
	WF_ASSERT(failed == 0);
#else
	from->has_place = true;
	if (_setjmp(from->place) != 0) {
		return;
	}
	if (to->has_place) {
		_longjmp(to->place, 1);
	}
	setcontext(&to->context);
	WF_ASSERT(!"the fiber has begun");
#endif
}

static void
swap(struct wf_fiber *fiber, bool inward)
{
#if defined(WF_TSAN)
	if (inward) {
		fiber->tsan_outside = __tsan_get_current_fiber();
	}
	__tsan_switch_to_fiber(inward ? fiber->tsan_inside : fiber->tsan_outside, 0);
#endif
	switch_sides(inward ? &fiber->outside : &fiber->inside,
		     inward ? &fiber->inside : &fiber->outside);
}

/* makecontext passes ints: the pointer comes in two halves. */
static void
start(unsigned high, unsigned low)
{
	struct wf_fiber *fiber = (struct wf_fiber *)(((uintptr_t)high << 32) | (uintptr_t)low);
	switch_in_ended(fiber);
	fiber->entry(fiber->arg);
	switch_out_begins(fiber, true);
	swap(fiber, false);
	WF_ASSERT(!"a fiber that has returned was entered");
}

enum weft_status
wf_fiber_init(struct wf_fiber *fiber, void (*entry)(void *arg), void *arg)
{
	*fiber = (struct wf_fiber){.entry = entry, .arg = arg, .stack_bytes = STACK_BYTES};
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	size_t map_bytes = STACK_BYTES + 2 * page_bytes;
	uint8_t *map = mmap(NULL, map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			    -1, 0);
	if (map == MAP_FAILED) {
		return wf_fail_errno(WEFT_NOMEM, errno, "fiber: stack of %zu bytes", map_bytes);
	}
	fiber->map = map;
	fiber->map_bytes = map_bytes;
	fiber->stack = map + page_bytes;
	if (mprotect(fiber->stack, STACK_BYTES, PROT_READ | PROT_WRITE) != 0) {
		int err = errno;
		wf_fiber_fini(fiber);
		return wf_fail_errno(WEFT_NOMEM, err, "fiber: stack of %zu bytes", map_bytes);
	}
	int failed = getcontext(&fiber->inside.context);
	WF_ASSERT(failed == 0);
	fiber->inside.context.uc_stack.ss_sp = fiber->stack;
	fiber->inside.context.uc_stack.ss_size = fiber->stack_bytes;
	uintptr_t self = (uintptr_t)fiber;
	makecontext(&fiber->inside.context, (void (*)(void))start, 2, (unsigned)(self >> 32),
		    (unsigned)self);
	/* Not needed any more, and AddressSanitizer would clear its shadow at each switch. */
	fiber->inside.context.uc_stack.ss_sp = NULL;
	fiber->inside.context.uc_stack.ss_size = 0;
#if defined(WF_TSAN)
	fiber->tsan_inside = __tsan_create_fiber(0);
#endif
	return WEFT_OK;
}

void
wf_fiber_fini(struct wf_fiber *fiber)
{
	if (fiber->map == NULL) {
		return;
	}
#if defined(WF_ASAN)
	/* A dropped stack leaves red zones; the next mapping at this place must not inherit them.
	 */
	__asan_unpoison_memory_region(fiber->stack, fiber->stack_bytes);
#endif
#if defined(WF_TSAN)
	if (fiber->tsan_inside != NULL) {
		__tsan_destroy_fiber(fiber->tsan_inside);
	}
#endif
	munmap(fiber->map, fiber->map_bytes);
	*fiber = (struct wf_fiber){0};
}

void
wf_fiber_enter(struct wf_fiber *fiber)
{
	WF_ASSERT(fiber->map != NULL);
	switch_in_begins(fiber);
	swap(fiber, true);
	switch_out_ended(fiber);
}

void
wf_fiber_leave(struct wf_fiber *fiber)
{
	switch_out_begins(fiber, false);
	swap(fiber, false);
	switch_in_ended(fiber);
}
