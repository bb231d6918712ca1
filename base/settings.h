/* SPDX-License-Identifier: Apache-2.0 */
/* settings: each setting of a session, declared once: name, type, default, limits, help. From here
 * come the defaults of weft_session_opts, what is allowed in it, and which of its fields are texts.
 * Thread: any; the table is constant. */
#pragma once

#include "base/options.h"
#include "weft/weft.h"

#define WF_SETTING_TEXTS_MAX 16u /* settings that are texts */

/* The settings, with offsets in struct weft_session_opts. `*count`: how many. */
const struct wf_option *wf_session_settings(unsigned *count);

/* Every setting at its default, in a struct of the library's size; the rest of it is 0. */
void wf_session_defaults(struct weft_session_opts *out);

/* Whether each setting has an allowed value by itself; what two of them rule together is for others
 * to say. WEFT_INVALID: names setting, value and what is allowed. */
enum weft_status wf_session_settings_check(const struct weft_session_opts *opts) WEFT_MUST_CHECK;

/* Where the texts stand in `opts`; NULL where the caller left one out. `text` has
 * WF_SETTING_TEXTS_MAX places. Returns how many there are. */
unsigned wf_session_texts(struct weft_session_opts *opts, const char **text[]);
