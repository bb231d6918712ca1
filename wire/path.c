/* SPDX-License-Identifier: Apache-2.0 */
/* path: the 64 bytes of the head, the text, and the offers of an upgrade. Thread: any; pure
 * functions. */
#include "wire/path.h"

#include <string.h>

#include "base/assert.h"
#include "wire/bytes.h"
#include "wire/shape.h"

#define PATH "path head"

/* Whether the sender's nonce stands behind the text. */
static bool
has_nonce(const struct wf_path_head *head)
{
	return head->kind == WF_PATH_HELLO && (head->flags & WF_PATH_SEALED) != 0;
}

size_t
wf_path_encode(const struct wf_path_head *head, uint8_t *out)
{
	struct wf_writer w = {.base = out, .capacity = WF_PATH_UPGRADE_MAX};

	WF_ASSERT(head->offer_count <= WF_PATH_OFFERS_MAX);
	wf_put_u32(&w, WF_PATH_MAGIC);
	wf_put_u16(&w, WF_PATH_VERSION);
	wf_put_u8(&w, head->kind);
	wf_put_u8(&w, head->flags);
	wf_put_u8(&w, head->path);
	wf_put_u8(&w, head->reason);
	wf_put_u8(&w, head->offer_count);
	wf_put_u8(&w, 0);
	wf_put_u32(&w, head->paths);
	wf_put_bytes(&w, head->id, sizeof(head->id));
	WF_ASSERT(w.used == WF_PATH_AUTH_AT);
	wf_put_bytes(&w, head->auth, sizeof(head->auth));
	WF_ASSERT(w.used == WF_PATH_HEAD_BYTES);
	wf_put_text(&w, head->text, sizeof(head->text));
	if (has_nonce(head)) {
		wf_put_bytes(&w, head->nonce, sizeof(head->nonce));
	}
	for (unsigned i = 0; i < head->offer_count; i++) {
		wf_put_u8(&w, head->offer[i].path);
		wf_put_u16(&w, head->offer[i].port);
		wf_put_text(&w, head->offer[i].host, sizeof(head->offer[i].host));
	}
	WF_ASSERT(!w.bad);
	return w.used;
}

/* Checks flags, and that `auth` is zero where it is neither a code nor a nonce. */
static enum weft_status
check_auth(const struct wf_path_head *head)
{
	bool is_nonce = head->kind == WF_PATH_KNOCK || head->kind == WF_PATH_CHALLENGE;
	unsigned known = is_nonce ? 0 : WF_PATH_SEALED;
	known |= head->kind == WF_PATH_HELLO ? WF_PATH_MUST : 0;
	if ((head->flags & ~known) != 0) {
		return wf_refuse(PATH, "flags", head->flags,
				 "1 (must, in a hello), 2 (sealed), or 0");
	}
	bool is_used = is_nonce || (head->flags & WF_PATH_SEALED) != 0;
	for (size_t i = 0; i < sizeof(head->auth) && !is_used; i++) {
		if (head->auth[i] != 0) {
			return wf_refuse(PATH, "a byte of auth", head->auth[i],
					 "0 in a head that is not sealed");
		}
	}
	return WEFT_OK;
}

/* Checks that the fields which a kind does not use are 0. */
static enum weft_status
check_use(const struct wf_path_head *head)
{
	bool hello = head->kind == WF_PATH_HELLO;
	bool here = head->kind == WF_PATH_HERE;
	bool explains = here || head->kind == WF_PATH_NO;
	bool upgrade = head->kind == WF_PATH_UPGRADE;

	if (head->path >= (here || head->kind == WF_PATH_TICKET ? WF_PATH_ID_COUNT : 1)) {
		return wf_refuse(PATH, "path", head->path, "one that this version knows, or 0");
	}
	if (head->reason >= (explains ? WF_PATH_REASON_COUNT : 1)) {
		return wf_refuse(PATH, "reason", head->reason, "one that this version knows, or 0");
	}
	if (head->paths != 0 && !hello) {
		return wf_refuse(PATH, "paths", head->paths, "0 where it is no hello");
	}
	bool identified = hello || upgrade || head->kind == WF_PATH_TICKET;
	for (size_t i = 0; i < sizeof(head->id) && !identified; i++) {
		if (head->id[i] != 0) {
			return wf_refuse(PATH, "a byte of id", head->id[i], "0 in this kind");
		}
	}
	bool counted = head->offer_count >= 1 && head->offer_count <= WF_PATH_OFFERS_MAX;
	if (upgrade ? !counted : head->offer_count != 0) {
		return wf_refuse(PATH, "offer_count", head->offer_count,
				 "1 to 8 in an upgrade, else 0");
	}
	return WEFT_OK;
}

static enum weft_status
get_fixed(struct wf_reader *r, struct wf_path_head *head)
{
	uint32_t magic = wf_get_u32(r);
	uint16_t version = wf_get_u16(r);
	head->kind = wf_get_u8(r);
	head->flags = wf_get_u8(r);
	head->path = wf_get_u8(r);
	head->reason = wf_get_u8(r);
	head->offer_count = wf_get_u8(r);
	uint8_t unused = wf_get_u8(r);
	head->paths = wf_get_u32(r);
	wf_get_bytes(r, head->id, sizeof(head->id));
	wf_get_bytes(r, head->auth, sizeof(head->auth));
	if (r->bad) {
		return wf_refuse_length(PATH, r);
	}
	if (magic != WF_PATH_MAGIC) {
		return wf_refuse(PATH, "magic", magic, "1213224023; is the peer a weft?");
	}
	if (version != WF_PATH_VERSION) {
		return wf_refuse(PATH, "version", version, "1; install the same weft on both");
	}
	if (head->kind < WF_PATH_HELLO || head->kind > WF_PATH_KIND_MAX) {
		return wf_refuse(PATH, "kind", head->kind, "1 to 7");
	}
	if (unused != 0) {
		return wf_refuse(PATH, "an unused byte", unused, "0");
	}
	enum weft_status st = check_auth(head);
	return st != WEFT_OK ? st : check_use(head);
}

static enum weft_status
get_offers(struct wf_reader *r, struct wf_path_head *head)
{
	for (unsigned i = 0; i < head->offer_count; i++) {
		struct wf_path_offer *offer = &head->offer[i];
		offer->path = wf_get_u8(r);
		offer->port = wf_get_u16(r);
		if (r->bad) {
			return wf_refuse_length(PATH, r);
		}
		wf_get_string(r, offer->host, sizeof(offer->host));
		if (r->bad) {
			return wf_refuse_text(PATH, "host of an offer", r, sizeof(offer->host));
		}
		/* A path that only a later version knows is skipped. */
		if (offer->path == WF_PATH_BOOTSTRAP) {
			return wf_refuse(PATH, "path of an offer", 0, "another than the bootstrap");
		}
		if (offer->port == 0 && offer->path != WF_PATH_VERBS) {
			return wf_refuse(PATH, "port of an offer", 0, "1 or more");
		}
	}
	return WEFT_OK;
}

enum weft_status
wf_path_decode(const uint8_t *in, size_t bytes, struct wf_path_head *out, size_t *used)
{
	struct wf_reader r = {.base = in, .bytes = bytes};
	struct wf_path_head head = {0};

	enum weft_status st = get_fixed(&r, &head);
	if (st != WEFT_OK) {
		return st;
	}
	wf_get_string(&r, head.text, sizeof(head.text));
	if (r.bad) {
		return wf_refuse_text(PATH, "text", &r, sizeof(head.text));
	}
	if (has_nonce(&head)) {
		wf_get_bytes(&r, head.nonce, sizeof(head.nonce));
	}
	if (r.bad) {
		return wf_refuse_length(PATH, &r);
	}
	st = get_offers(&r, &head);
	if (st != WEFT_OK) {
		return st;
	}
	bool user = head.kind == WF_PATH_HELLO || head.kind == WF_PATH_HERE;
	if (bytes - r.used > (user ? WF_PATH_USER_MAX : 0)) {
		return wf_refuse(PATH, "bytes behind it", bytes - r.used,
				 user ? "at most 1024" : "0");
	}
	*used = r.used;
	*out = head;
	return WEFT_OK;
}
