/* SPDX-License-Identifier: Apache-2.0 */
/* Assertions state what the programmer believes, and stay on in release builds. Input from the
 * network, a file or a user is never asserted: it is refused with a status. */
#pragma once

#include <stdbool.h>

/* Prints the condition and its place on stderr, then aborts. */
_Noreturn void wf_assert_failed(const char *condition, const char *file, int line);

#define WF_ASSERT(cond)                                                                            \
	do {                                                                                       \
		if (__builtin_expect(!(cond), 0)) {                                                \
			wf_assert_failed(#cond, __FILE__, __LINE__);                               \
		}                                                                                  \
	} while (0)

/* For checks that cost more than O(1); compiled in with -Dslow_asserts=true. */
#if WF_SLOW_ASSERTS
#define WF_SLOW_ASSERT(cond) WF_ASSERT(cond)
#else
#define WF_SLOW_ASSERT(cond) ((void)sizeof((cond) ? 1 : 0))
#endif

/* An object belongs to one thread, which the first call of wf_owner_claim records. Every function
 * of the object begins with WF_ASSERT_OWNER. After wf_owner_drop another thread may claim it, under
 * an order of its user's own. */
struct wf_owner {
	unsigned long thread; /* 0: nobody */
};

static inline bool
wf_owner_is_me(const struct wf_owner *owner)
{
	return owner->thread == (unsigned long)__builtin_thread_pointer();
}

static inline void
wf_owner_claim(struct wf_owner *owner)
{
	WF_ASSERT(owner->thread == 0 || wf_owner_is_me(owner));
	owner->thread = (unsigned long)__builtin_thread_pointer();
}

static inline void
wf_owner_drop(struct wf_owner *owner)
{
	owner->thread = 0;
}

#define WF_ASSERT_OWNER(obj) WF_SLOW_ASSERT(wf_owner_is_me(&(obj)->owner))

#define WF_STATIC_ASSERT(cond, text) _Static_assert(cond, text)
#define WF_ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))
