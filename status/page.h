/* SPDX-License-Identifier: Apache-2.0 */
/* page: the page, as embed.py makes it of page.html, page.css and page.js. */
#pragma once

#include <stddef.h>

extern const char wf_status_page[];
extern const size_t wf_status_page_bytes;
/* Its Content-Security-Policy, with the digests of its script and its styles. */
extern const char wf_status_page_policy[];
