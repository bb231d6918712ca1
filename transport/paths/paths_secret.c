/* SPDX-License-Identifier: Apache-2.0 */
/* paths_secret: what connections prove to each other where the job has a secret.
 *
 * The connecting end knocks with its nonce, on a connection of its own, and is refused with the
 * nonce of the accepting end. Both derive a key for the connection from the secret and the two
 * nonces. Under it everything that follows is sealed: hello, verdict, ticket, and the verdict on a
 * path, each with its own word, so that none can stand for another.
 *
 * The accepting end remembers nobody who knocks. Its nonce is the same for all who come within a
 * period, and holds to the end of the next one; the nonces of those that were admitted under it are
 * kept as long, so that a hello is good once. Thread: the transport's owner. */
#include "transport/paths/paths_internal.h"

#include <string.h>

#include "base/secret.h"

#define SPENT_MIN 1024u

/* A nonce of the accepting end, and who was admitted under it. */
struct given {
	uint8_t nonce[WF_PATH_AUTH_BYTES];
	/* [2 * spent_max]: of the nonces of connecting ends, the first 8 bytes. */
	uint64_t *spent;
	unsigned spent_count;
};

struct wf_paths_guard {
	struct wf_secret *secret;
	/* Hellos after which a nonce is given out no more; as many may have been challenged with it
	 * before that. At least conn_max. */
	unsigned spent_max;
	struct given given[2]; /* the present one at `now`, the one before at the other place */
	unsigned now;
	uint64_t end_ns; /* of the present one */
};

static void
make_nonce(struct wf_env *env, uint8_t out[WF_PATH_AUTH_BYTES])
{
	for (size_t i = 0; i < WF_PATH_AUTH_BYTES; i += sizeof(uint64_t)) {
		uint64_t chance = wf_random(env);
		memcpy(out + i, &chance, sizeof(chance));
	}
}

enum weft_status
wf_paths_guard_open(struct wf_paths *t, const char *secret_file)
{
	if (secret_file == NULL || secret_file[0] == '\0') {
		return WEFT_OK;
	}
	struct wf_env *env = t->transport.env;
	t->guard = wf_zalloc(env, sizeof(*t->guard));
	if (t->guard == NULL) {
		return wf_fail(WEFT_NOMEM, "paths: %zu bytes", sizeof(*t->guard));
	}
	t->guard->spent_max = t->opts.conn_max > SPENT_MIN ? t->opts.conn_max : SPENT_MIN;
	const size_t count = 2 * (size_t)t->guard->spent_max;
	for (unsigned i = 0; i < 2; i++) {
		struct given *given = &t->guard->given[i];
		given->spent = wf_zalloc_array(env, count, sizeof(*given->spent));
		if (given->spent == NULL) {
			return wf_fail(WEFT_NOMEM, "paths: %zu nonces", count);
		}
		make_nonce(env, given->nonce);
	}
	return wf_secret_open(secret_file, &t->guard->secret);
}

void
wf_paths_guard_close(struct wf_paths *t)
{
	struct wf_paths_guard *guard = t->guard;
	if (guard == NULL) {
		return;
	}
	for (unsigned i = 0; i < 2; i++) {
		wf_free(t->transport.env, guard->given[i].spent,
			2 * (size_t)guard->spent_max * sizeof(*guard->given[i].spent));
	}
	wf_secret_close(guard->secret);
	wf_free(t->transport.env, guard, sizeof(*guard));
	t->guard = NULL;
}

enum weft_status
wf_paths_proof_open(const struct wf_paths *t, struct wf_paths_proof **out)
{
	if (t->guard == NULL) {
		*out = NULL;
		return WEFT_OK;
	}
	struct wf_paths_proof *proof = wf_zalloc(t->transport.env, sizeof(*proof));
	if (proof == NULL) {
		return wf_fail(WEFT_NOMEM, "paths: %zu bytes", sizeof(*proof));
	}
	*out = proof;
	return WEFT_OK;
}

void
wf_paths_proof_clear(struct wf_paths_proof *proof)
{
	if (proof != NULL) {
		explicit_bzero(proof, sizeof(*proof));
	}
}

void
wf_paths_proof_close(const struct wf_paths *t, struct wf_paths_proof *proof)
{
	wf_paths_proof_clear(proof);
	if (proof != NULL) {
		wf_free(t->transport.env, proof, sizeof(*proof));
	}
}

/* ---- codes ---- */

static void
derive(const struct wf_paths_guard *guard, const uint8_t *knocker, const uint8_t *challenger,
       uint8_t out[WF_MAC_BYTES])
{
	static const char purpose[] = "connection";
	const struct wf_mac_part parts[] = {
		{purpose, sizeof(purpose) - 1},
		{knocker, WF_PATH_AUTH_BYTES},
		{challenger, WF_PATH_AUTH_BYTES},
	};
	wf_secret_derive(guard->secret, parts, WF_ARRAY_COUNT(parts), out);
}

/* The code of a head and what follows it: the word, then all bytes, with `auth` as zeros. */
static void
code_of(const uint8_t key[WF_MAC_BYTES], enum wf_paths_word word, const uint8_t *blob, size_t bytes,
	uint8_t out[WF_MAC_BYTES])
{
	static const uint8_t zeros[WF_PATH_AUTH_BYTES];
	static const char *const words[] = {
		[WF_PATHS_WORD_HELLO] = "hello",
		[WF_PATHS_WORD_VERDICT] = "verdict",
		[WF_PATHS_WORD_TICKET] = "ticket",
		[WF_PATHS_WORD_PATH_VERDICT] = "path verdict",
	};
	const size_t behind = WF_PATH_AUTH_AT + WF_PATH_AUTH_BYTES;
	const struct wf_mac_part parts[] = {
		{words[word], strlen(words[word]) + 1},
		{blob, WF_PATH_AUTH_AT},
		{zeros, sizeof(zeros)},
		{blob + behind, bytes - behind},
	};
	wf_mac(key, WF_MAC_BYTES, parts, WF_ARRAY_COUNT(parts), out);
}

static bool
has_key(const struct wf_paths_conn *m)
{
	return m->proof != NULL && m->proof->has_key;
}

uint8_t
wf_paths_seal_flag(const struct wf_paths_conn *m)
{
	return has_key(m) ? WF_PATH_SEALED : 0;
}

void
wf_paths_seal(const struct wf_paths_conn *m, enum wf_paths_word word, uint8_t *blob, size_t bytes)
{
	if (has_key(m)) {
		code_of(m->proof->key, word, blob, bytes, blob + WF_PATH_AUTH_AT);
	}
}

bool
wf_paths_is_sealed(const struct wf_paths_conn *m, enum wf_paths_word word,
		   const struct wf_path_head *head, const uint8_t *blob, size_t bytes)
{
	bool says_so = (head->flags & WF_PATH_SEALED) != 0;
	if (m->t->guard == NULL || !says_so || !has_key(m)) {
		return m->t->guard == NULL && !says_so;
	}
	uint8_t code[WF_MAC_BYTES];
	code_of(m->proof->key, word, blob, bytes, code);
	return wf_mac_is_equal(code, head->auth);
}

/* ---- the connecting end ---- */

void
wf_paths_copy_nonce(const struct wf_paths_conn *m, uint8_t out[WF_PATH_AUTH_BYTES])
{
	if (m->proof == NULL) {
		memset(out, 0, WF_PATH_AUTH_BYTES);
	} else {
		memcpy(out, m->proof->nonce, WF_PATH_AUTH_BYTES);
	}
}

size_t
wf_paths_knock(struct wf_paths_conn *m, uint8_t *out)
{
	struct wf_path_head knock = {.kind = WF_PATH_KNOCK};
	make_nonce(m->t->transport.env, m->proof->nonce);
	m->proof->has_key = false;
	memcpy(knock.auth, m->proof->nonce, sizeof(knock.auth));
	return wf_path_encode(&knock, out);
}

bool
wf_paths_accept_challenge(struct wf_paths_conn *m, const struct wf_path_head *head)
{
	if (m->proof == NULL || m->proof->has_key || head->kind != WF_PATH_CHALLENGE) {
		return false;
	}
	derive(m->t->guard, m->proof->nonce, head->auth, m->proof->key);
	m->proof->has_key = true;
	return true;
}

/* ---- the accepting end ---- */

/* A nonce that was given out for a period, or often enough, becomes the one before. */
static void
turn_over(struct wf_paths *t)
{
	struct wf_paths_guard *guard = t->guard;
	uint64_t period_ns = t->opts.handshake_timeout_ns + t->opts.connect_timeout_ns;
	uint64_t now_ns = wf_now_ns(t->transport.env);
	bool over = now_ns >= guard->end_ns;
	/* Nobody came for a whole period: the present one is as old as the one before may be. */
	unsigned turns = over && now_ns - guard->end_ns >= period_ns ? 2 : 1;
	if (!over && guard->given[guard->now].spent_count < guard->spent_max) {
		return;
	}
	for (unsigned i = 0; i < turns; i++) {
		guard->now ^= 1;
		guard->given[guard->now].spent_count = 0;
		make_nonce(t->transport.env, guard->given[guard->now].nonce);
	}
	guard->end_ns = now_ns + period_ns;
}

bool
wf_paths_challenge(struct wf_paths *t, const struct wf_event *event)
{
	struct wf_path_head head;
	size_t used = 0;
	if (t->guard == NULL ||
	    wf_path_decode(event->up.blob, event->up.blob_bytes, &head, &used) != WEFT_OK ||
	    head.kind != WF_PATH_KNOCK) {
		return false;
	}
	uint8_t blob[WF_BLOB_ROOM];
	struct wf_path_head challenge = {.kind = WF_PATH_CHALLENGE};
	turn_over(t);
	memcpy(challenge.auth, t->guard->given[t->guard->now].nonce, sizeof(challenge.auth));
	size_t bytes = wf_path_encode(&challenge, blob);
	event->conn->user = NULL;
	if (wf_transport_answer(event->conn, false, blob, bytes) != WEFT_OK) {
		wf_transport_disconnect(event->conn, WF_DISCONNECT_NOW);
	}
	return true;
}

static uint64_t
first_of(const uint8_t *nonce)
{
	uint64_t first;
	memcpy(&first, nonce, sizeof(first));
	return first;
}

/* Adds the nonce of a connecting end. Returns false if it is there already, or there is no room. */
static bool
spend(const struct wf_paths_guard *guard, struct given *given, const uint8_t *nonce)
{
	uint64_t first = first_of(nonce);
	bool is_new = given->spent_count < 2 * guard->spent_max;
	for (unsigned i = 0; i < given->spent_count; i++) {
		is_new = is_new && given->spent[i] != first;
	}
	if (is_new) {
		given->spent[given->spent_count++] = first;
	}
	return is_new;
}

/* Both nonces are tried, whichever fits, so that the time says nothing. */
bool
wf_paths_admits(struct wf_paths_conn *m, const struct wf_path_head *hello, const uint8_t *blob,
		size_t bytes)
{
	struct wf_paths_guard *guard = m->t->guard;
	struct given *under = NULL;
	if ((hello->flags & WF_PATH_SEALED) == 0) {
		return false;
	}
	turn_over(m->t);
	for (unsigned i = 0; i < 2; i++) {
		uint8_t key[WF_MAC_BYTES];
		uint8_t code[WF_MAC_BYTES];
		derive(guard, hello->nonce, guard->given[i].nonce, key);
		code_of(key, WF_PATHS_WORD_HELLO, blob, bytes, code);
		if (wf_mac_is_equal(code, hello->auth)) {
			under = &guard->given[i];
			memcpy(m->proof->key, key, sizeof(m->proof->key));
		}
		explicit_bzero(key, sizeof(key));
	}
	m->proof->has_key = under != NULL && spend(guard, under, hello->nonce);
	return m->proof->has_key;
}
