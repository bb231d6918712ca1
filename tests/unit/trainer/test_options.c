/* SPDX-License-Identifier: Apache-2.0 */
/* What a session refuses before there is a network, and that it gives all memory back. */
#include <math.h>

#include "tests/unit/trainer/fabric.h"
#include "tests/support/failing_env.h"
#include "trainer/session/session.h"
#include "base/settings.h"

static struct weft_session_opts
good_opts(void)
{
	struct weft_session_opts opts;
	weft_session_opts_init(&opts);
	return opts;
}

/* Opening with these is refused, and the text has each of the parts (thing, value, remedy). */
static void
refuses(const struct weft_session_opts *opts, const char *thing, const char *value,
	const char *remedy)
{
	struct weft_session *session = NULL;
	assert_refused(weft_session_open(opts, &session), WEFT_INVALID, thing);
	assert_text(weft_last_error(), value);
	assert_text(weft_last_error(), remedy);
	assert_null(session); /* written on WEFT_OK only */
}

static void
version_is_that_of_the_header(void **state)
{
	char text[32];
	(void)state;
	(void)snprintf(text, sizeof(text), "%d.%d.%d", WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR,
		       WEFT_VERSION_PATCH);
	assert_string_equal(weft_version(), text);
}

static void
defaults_are_those_of_the_header(void **state)
{
	struct weft_session_opts opts = good_opts();
	(void)state;
	assert_int_equal(opts.struct_bytes, sizeof(opts));
	assert_int_equal(opts.port, 7164);
	assert_int_equal(opts.ports_num, 1);
	assert_int_equal(opts.ports_num_for_sparse, 0);
	assert_int_equal(opts.num_gradient_servers, 1);
	assert_int_equal(opts.grad_reduce, WEFT_REDUCE_SUM);
	assert_int_equal(opts.slice_bytes, 262144);
	assert_string_equal(opts.transport, "auto");
	assert_string_equal(opts.pin, "off");
	assert_string_equal(opts.compared, "");
	assert_true(opts.connect_timeout_ns == 300 * WF_NS_PER_S);
	assert_true(opts.reconnect_timeout_ns == 3 * WF_NS_PER_S);
	assert_true(opts.peer_timeout_ns == 10 * WF_NS_PER_S);
	assert_true(opts.stall_timeout_ns == 0); /* as step_timeout_ns */
	assert_true(opts.step_timeout_ns == 1800 * WF_NS_PER_S);
	assert_true(opts.spin_ns == WEFT_SPIN_AUTO);
	assert_true(opts.stats_period_ns == 0);
}

/* A session of a caller whose struct has `bytes` bytes; its options are `*opts`. */
static enum weft_status
open_sized(struct weft_session_opts *opts, size_t bytes, struct weft_session **session)
{
	opts->struct_bytes = bytes;
	return weft_session_open(opts, session);
}

/* What the caller's header did not have keeps its default, whatever is in memory behind. */
static void
options_of_an_older_header_are_accepted(void **state)
{
	struct weft_session_opts opts = good_opts();
	struct weft_session *session;
	(void)state;
	opts.trainer_id = 3;
	opts.num_gradient_servers = 4;
	opts.transport = "tcp";
	opts.progress = WEFT_PROGRESS_CALLER;
	const size_t bytes = offsetof(struct weft_session_opts, progress);
	memset((char *)&opts + bytes, 0x5a, sizeof(opts) - bytes);
	assert_ok(open_sized(&opts, bytes, &session));
	const struct weft_session_opts *own = &session->core.opts;
	assert_int_equal(own->struct_bytes, sizeof(*own));
	assert_int_equal(own->trainer_id, 3);
	assert_int_equal(own->num_gradient_servers, 4);
	assert_string_equal(own->transport, "tcp");
	assert_int_equal(own->progress, WEFT_PROGRESS_THREAD);
	assert_string_equal(own->pin, "off");
	assert_true(own->step_timeout_ns == 1800 * WF_NS_PER_S);
	assert_null(own->log);
	assert_null(own->interrupted);
	assert_null(own->settings);
	assert_ok(weft_session_close(session));
	/* The least that is of use. */
	opts = good_opts();
	opts.pservers = "elsewhere:99";
	const size_t least = offsetof(struct weft_session_opts, port);
	memset((char *)&opts + least, 0x5a, sizeof(opts) - least);
	assert_ok(open_sized(&opts, least, &session));
	assert_string_equal(session->core.opts.pservers, "elsewhere:99");
	assert_int_equal(session->core.opts.port, 7164);
	assert_ok(weft_session_close(session));
}

static void
options_of_a_newer_header_may_say_nothing_new(void **state)
{
	struct {
		struct weft_session_opts opts;
		unsigned char behind[64];
	} room = {.opts = good_opts()};
	struct weft_session *session;
	(void)state;
	room.opts.port = 4711;
	assert_ok(open_sized(&room.opts, sizeof(room), &session));
	assert_int_equal(session->core.opts.port, 4711);
	assert_int_equal(session->core.opts.struct_bytes, sizeof(room.opts));
	assert_ok(weft_session_close(session));
	room.behind[63] = 1;
	room.opts.struct_bytes = sizeof(room);
	char at[32];
	(void)snprintf(at, sizeof(at), "byte %zu", sizeof(room) - 1);
	refuses(&room.opts, "weft_session_opts", at, "a newer library");
}

static void
options_without_a_size_are_refused(void **state)
{
	static const size_t bytes[] = {0, 1, offsetof(struct weft_session_opts, port) - 1, 4097,
				       SIZE_MAX};
	struct weft_session_opts opts = good_opts();
	(void)state;
	for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
		opts.struct_bytes = bytes[i];
		refuses(&opts, "weft_session_opts", "struct_bytes", "weft_session_opts_init");
	}
}

/* A program that was built with an older header has a smaller struct, and a newer one a larger. */
static void
defaults_stay_within_the_callers_struct(void **state)
{
	struct {
		struct weft_session_opts opts;
		unsigned char behind[64];
	} room;
	const size_t bytes[] = {0, 4, offsetof(struct weft_session_opts, interrupted),
				sizeof(room.opts), sizeof(room) - 8};
	(void)state;
	for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
		const unsigned char *byte = (const unsigned char *)&room;
		memset(&room, 0x5a, sizeof(room));
		weft_session_opts_init_sized(&room.opts, bytes[i]);
		for (size_t at = bytes[i]; at < sizeof(room); at++) {
			assert_int_equal(byte[at], 0x5a);
		}
		if (bytes[i] > offsetof(struct weft_session_opts, port)) {
			struct weft_session *session;
			assert_int_equal(room.opts.struct_bytes, bytes[i]);
			assert_int_equal(room.opts.port, 7164);
			assert_ok(weft_session_open(&room.opts, &session));
			assert_ok(weft_session_close(session));
		}
	}
}

/* They win over the struct, and may be gone, or others, as soon as the session is open. */
static void
settings_by_name_win_over_the_struct(void **state)
{
	struct weft_session_opts opts = good_opts();
	struct weft_settings *settings;
	struct weft_session *session;
	(void)state;
	assert_ok(weft_settings_create(WEFT_SETTINGS_SESSION, &settings));
	assert_ok(weft_settings_set(settings, "pservers", "10.0.0.1,10.0.0.2"));
	assert_ok(weft_settings_set(settings, "spin", "20us"));
	assert_ok(weft_settings_set(settings, "adam_beta1", "0.5"));
	assert_ok(weft_settings_set(settings, "transport", "tcp"));
	assert_ok(weft_settings_set(settings, "transport", NULL));
	opts.settings = settings;
	opts.pservers = "elsewhere";
	opts.transport = "shm";
	opts.port = 99;
	assert_ok(weft_session_open(&opts, &session));
	weft_settings_destroy(settings);
	const struct weft_session_opts *own = &session->core.opts;
	assert_string_equal(own->pservers, "10.0.0.1,10.0.0.2");
	assert_string_equal(own->transport, "shm");
	assert_int_equal(own->port, 99);
	assert_int_equal(own->spin_ns, 20000);
	assert_true(own->optimizer.beta1 >= 0.5 && own->optimizer.beta1 <= 0.5);
	assert_ok(weft_session_close(session));
}

static void
bad_job_options_are_refused_with_value_and_remedy(void **state)
{
	struct weft_session_opts opts = good_opts();
	(void)state;
	opts.num_gradient_servers = 0;
	refuses(&opts, "num_gradient_servers", "0", "1 to 65536");
	opts.num_gradient_servers = 70000;
	refuses(&opts, "num_gradient_servers", "70000", "1 to 65536");
	opts = good_opts();
	opts.ports_num = 0;
	refuses(&opts, "ports_num", "0", "1 to 256");
	opts.ports_num = 257;
	refuses(&opts, "ports_num", "257", "1 to 256");
	opts = good_opts();
	opts.ports_num_for_sparse = 256;
	refuses(&opts, "ports_num_for_sparse", "256", "from 0 to 255");
	opts = good_opts();
	opts.grad_reduce = (enum weft_grad_reduce)7;
	refuses(&opts, "grad_reduce", "7", "sum|mean");
	opts = good_opts();
	char words[257] = {0};
	memset(words, 'w', 256);
	opts.compared = words;
	refuses(&opts, "compared", "256 characters", "a digest of what is long");
	opts.compared = "seed=1\nbatch=2";
	refuses(&opts, "compared", "byte 6 is 0x0a", "printable ASCII");
	opts.compared = "seed=\xc3\xa4";
	refuses(&opts, "compared", "byte 5 is 0xc3", "printable ASCII");
	opts.compared = "seed=1  batch=2";
	refuses(&opts, "compared", "byte 6 is 0x20", "one blank between words");
	opts.compared = " seed=1";
	refuses(&opts, "compared", "byte 0 is 0x20", "none around them");
	opts.compared = "seed=1 ";
	refuses(&opts, "compared", "byte 6 is 0x20", "none around them");
	opts = good_opts();
	for (uint64_t bad = 0; bad <= 100; bad += 100) {
		opts.slice_bytes = bad;
		refuses(&opts, "slice_bytes", bad == 0 ? "0" : "100", "multiple of 64");
	}
	opts.slice_bytes = 128u << 20;
	refuses(&opts, "slice_bytes", "128MiB", "from 64 to 64MiB");
}

static void
bad_modes_are_refused_with_value_and_remedy(void **state)
{
	struct weft_session_opts opts = good_opts();
	(void)state;
	opts.dense_mode = (enum weft_dense_mode)5;
	refuses(&opts, "dense_mode", "5", "sync|async|bounded|local|elastic");
	opts = good_opts();
	opts.dense_staleness = 3;
	refuses(&opts, "dense_staleness=3", "dense_mode=sync", "dense_mode=bounded");
	opts.dense_mode = WEFT_DENSE_ASYNC;
	refuses(&opts, "dense_staleness=3", "dense_mode=async", "dense_mode=bounded");
	opts = good_opts();
	opts.dense_discard_ratio = 1.5;
	refuses(&opts, "dense_discard_ratio=1.5", "dense_mode=sync", "dense_mode=async");
	opts.dense_mode = WEFT_DENSE_ASYNC;
	opts.dense_discard_ratio = -1;
	refuses(&opts, "dense_discard_ratio", "-1", "from 0 to 1e+06");
	opts.dense_discard_ratio = (double)NAN;
	refuses(&opts, "dense_discard_ratio", "nan", "from 0 to 1e+06");
	opts = good_opts();
	opts.local_steps = 2;
	refuses(&opts, "local_steps=2", "dense_mode=sync", "dense_mode=local");
	opts.dense_mode = WEFT_DENSE_LOCAL;
	opts.elastic_rate = 0.5;
	refuses(&opts, "elastic_rate=0.5", "dense_mode=local", "dense_mode=elastic");
	opts.dense_mode = WEFT_DENSE_ELASTIC;
	opts.elastic_rate = 1.5;
	refuses(&opts, "elastic_rate", "1.5", "from 0 to 1");
	opts.elastic_rate = 0.5;
	opts.local_steps = 0;
	refuses(&opts, "local_steps=0", "dense_mode=elastic", "1 or more");
	opts = good_opts();
	opts.dense_mode = WEFT_DENSE_ASYNC;
	opts.optimizer.average_window = 0.5;
	refuses(&opts, "average_window=0.5", "dense_mode=async", "synchronous");
}

static void
bad_wires_are_refused_with_value_and_remedy(void **state)
{
	struct weft_session_opts opts = good_opts();
	(void)state;
	opts.dense_wire = (enum weft_dense_wire)3;
	refuses(&opts, "dense_wire", "3", "f32|bf16|f16");
	opts.dense_wire = WEFT_WIRE_F16;
	opts.dense_rounding = (enum weft_rounding)2;
	refuses(&opts, "dense_rounding", "2", "nearest|stochastic");
	opts.dense_wire = WEFT_WIRE_F32;
	opts.dense_rounding = WEFT_ROUND_STOCHASTIC;
	refuses(&opts, "dense_rounding=stochastic", "f32 is not rounded", "dense_wire=bf16");
}

static void
bad_own_options_are_refused_with_value_and_remedy(void **state)
{
	struct weft_session_opts opts = good_opts();
	(void)state;
	opts.num_gradient_servers = 2;
	opts.trainer_id = 2;
	refuses(&opts, "trainer_id=2", "must be less than", "num_gradient_servers=2");
	opts = good_opts();
	opts.progress = (enum weft_progress)5;
	refuses(&opts, "progress", "5", "thread|caller");
	opts = good_opts();
	opts.connect_timeout_ns = 0;
	refuses(&opts, "connect_timeout", "0s", "at least 1us");
	opts = good_opts();
	opts.reconnect_timeout_ns = 0;
	refuses(&opts, "reconnect_timeout", "0s", "at least 1us");
	opts = good_opts();
	opts.peer_timeout_ns = WF_NS_PER_MS - 1;
	refuses(&opts, "peer_timeout", "999.999us", "at least 1ms");
	opts = good_opts();
	opts.spin_ns = WF_NS_PER_S + 1;
	refuses(&opts, "spin", "1000000.001us", "from 0s to 1s");
	opts = good_opts();
	opts.pin = "0-";
	refuses(&opts, "pin", "0-", "");
	opts = good_opts();
	opts.verbs = "mtu=1024,retry=9";
	refuses(&opts, "verbs", "retry=9", "from 0 to 6");
	opts.verbs = "retries=3";
	refuses(&opts, "verbs", "\"retries\"", "there are: device");
}

static void
bad_lists_of_pservers_are_refused(void **state)
{
	struct weft_session_opts opts = good_opts();
	(void)state;
	opts.pservers = "";
	refuses(&opts, "the address list", "empty", "host:port");
	opts.pservers = "a,,b";
	refuses(&opts, "a,,b", "empty", "");
	opts.pservers = "a:99999";
	refuses(&opts, "a:99999", "", "65535");
	opts.pservers = "a,b:65535";
	opts.ports_num = 2;
	refuses(&opts, "pserver 1", "65535", "another port");
}

static void
bad_optimizers_are_refused_with_value_and_remedy(void **state)
{
	struct weft_session_opts opts = good_opts();
	(void)state;
	opts.optimizer.method = "rprop";
	refuses(&opts, "rprop", "torch_momentum", "adamax");
	opts = good_opts();
	opts.optimizer.schedule = "cosine";
	refuses(&opts, "cosine", "linear", "warmup");
	opts = good_opts();
	opts.optimizer.learning_rate = -1;
	refuses(&opts, "learning_rate", "-1", "");
	opts = good_opts();
	opts.optimizer.learning_rate = (double)NAN;
	refuses(&opts, "learning_rate", "nan", "");
	opts = good_opts();
	opts.optimizer.method = "momentum";
	opts.optimizer.momentum = 1;
	refuses(&opts, "momentum", "1", "");
	opts = good_opts();
	opts.optimizer.method = "adam";
	opts.optimizer.epsilon = 0;
	refuses(&opts, "epsilon", "0", "");
	opts = good_opts();
	opts.optimizer.rho = 1;
	refuses(&opts, "rho", "1", "give a number from 0");
	opts = good_opts();
	opts.optimizer.l1 = -1;
	refuses(&opts, "l1", "-1", "from 0 to 1e+30");
	opts = good_opts();
	opts.optimizer.schedule = "manual";
	refuses(&opts, "schedule manual", "0 segments", "until:factor");
	opts.optimizer.schedule_args = "100:1,50:2";
	refuses(&opts, "until 50", "until 100", "in order");
	opts.optimizer.schedule_args = "100=1";
	refuses(&opts, "100=1", "up to 32", "until:factor");
	opts = good_opts();
	opts.optimizer.schedule = "exp";
	opts.optimizer.schedule_a = 2;
	refuses(&opts, "schedule_a", "2", "at most 1");
	opts = good_opts();
	opts.optimizer.decay = -0.5;
	refuses(&opts, "decay", "-0.5", "");
	opts = good_opts();
	opts.optimizer.clip = -2;
	refuses(&opts, "clip", "-2", "");
}

static void
refuses_tensor(struct weft_session *session, const struct weft_tensor_opts *opts, const char *thing,
	       const char *remedy)
{
	struct weft_tensor *tensor = NULL;
	assert_refused(weft_tensor_add(session, opts, &tensor), WEFT_INVALID, thing);
	assert_text(weft_last_error(), remedy);
	assert_null(tensor);
}

static void
bad_tensors_are_refused_and_the_session_goes_on(void **state)
{
	struct weft_session_opts opts = good_opts();
	struct weft_session *session;
	struct weft_tensor *tensor;
	char name[129];
	(void)state;
	assert_ok(weft_session_open(&opts, &session));
	struct weft_tensor_opts bad = {.rows = 1};
	refuses_tensor(session, &bad, "name", "1 to 127");
	bad.name = "";
	refuses_tensor(session, &bad, "name", "1 to 127");
	memset(name, 'n', 128);
	name[128] = '\0';
	bad.name = name;
	refuses_tensor(session, &bad, "128", "1 to 127");
	bad.name = "two words";
	refuses_tensor(session, &bad, "two words", "without spaces");
	bad.name = "tab\t";
	refuses_tensor(session, &bad, "0x09", "printable");
	bad.name = "\xc3\xa4";
	refuses_tensor(session, &bad, "0xc3", "printable");
	bad.name = "w";
	bad.rows = 0;
	refuses_tensor(session, &bad, "tensor w", "0 x 1");
	bad.rows = UINT64_MAX;
	bad.cols = 3;
	refuses_tensor(session, &bad, "18446744073709551615 x 3", "1 to 1099511627776");
	bad = (struct weft_tensor_opts){.name = "w", .rows = 1, .decay = (double)NAN};
	refuses_tensor(session, &bad, "decay", "finite");
	bad = (struct weft_tensor_opts){.name = "w", .rows = 1, .clip = (double)INFINITY};
	refuses_tensor(session, &bad, "clip", "finite");
	bad = (struct weft_tensor_opts){.name = "w", .rows = 1, .rate_multiplier = (double)NAN};
	refuses_tensor(session, &bad, "rate_multiplier", "finite");

	name[127] = '\0'; /* the longest there may be */
	bad = (struct weft_tensor_opts){.name = name, .rows = 2, .cols = 3};
	assert_ok(weft_tensor_add(session, &bad, &tensor));
	assert_string_equal(weft_tensor_name(tensor), name);
	assert_int_equal(weft_tensor_count(tensor), 6);
	refuses_tensor(session, &bad, "declared twice", name);
	assert_ok(weft_session_seal(session));
	assert_ok(weft_session_close(session));
}

static void
refuses_mode(const struct weft_session_opts *opts, struct weft_tensor_opts tensor,
	     const char *thing)
{
	struct weft_session *session;
	tensor.name = "embedding";
	tensor.rows = 3;
	assert_ok(weft_session_open(opts, &session));
	refuses_tensor(session, &tensor, "tensor embedding", thing);
	assert_ok(weft_session_close(session));
}

static void
a_mode_that_a_tensor_cannot_have_is_refused_with_its_name(void **state)
{
	const struct weft_tensor_opts async = {.mode = WEFT_TENSOR_ASYNC};
	struct weft_session_opts opts = good_opts();
	(void)state;
	refuses_mode(&opts, (struct weft_tensor_opts){.mode = (enum weft_tensor_mode)4}, "mode 4");
	refuses_mode(&opts, (struct weft_tensor_opts){.staleness = 2},
		     "with the mode bounded; leave it 0");
	refuses_mode(&opts, (struct weft_tensor_opts){.discard_ratio = 1},
		     "with the modes async and bounded");
	refuses_mode(
		&opts,
		(struct weft_tensor_opts){.mode = WEFT_TENSOR_ASYNC, .discard_ratio = (double)NAN},
		"discard_ratio nan: must be a number, from 0 to 1e+06");
	refuses_mode(&opts, (struct weft_tensor_opts){.mode = WEFT_TENSOR_ASYNC, .is_static = 1},
		     "it is static");
	opts.optimizer.clip_norm = 1;
	refuses_mode(&opts, async, "clip_norm");
	opts = good_opts();
	opts.optimizer.average_window = 0.5;
	refuses_mode(&opts, async, "average_window");
	opts = good_opts();
	opts.dense_mode = WEFT_DENSE_LOCAL;
	opts.local_steps = 2;
	refuses_mode(&opts, async, "mode async: with dense_mode=local");
	refuses_mode(&opts, (struct weft_tensor_opts){.mode = WEFT_TENSOR_SYNC},
		     "mode sync: with dense_mode=local");
}

static void
what_a_reduced_tensor_cannot_have_is_refused_with_its_name(void **state)
{
	const struct weft_tensor_opts reduced = {.is_reduced = 1};
	struct weft_session_opts opts = good_opts();
	struct weft_tensor_opts bad[5] = {{.rate_multiplier = 2},
					  {.decay = -1},
					  {.clip = 1},
					  {.l1 = 0.5},
					  {.rate_multiplier = -1}};
	(void)state;
	for (size_t i = 0; i < 5; i++) {
		bad[i].is_reduced = 1;
		refuses_mode(&opts, bad[i], "nothing is applied to it");
	}
	refuses_mode(&opts, (struct weft_tensor_opts){.is_reduced = 1, .is_static = 1},
		     "is_reduced: it is static");
	refuses_mode(&opts, (struct weft_tensor_opts){.is_reduced = 1, .mode = WEFT_TENSOR_SYNC},
		     "in any mode; leave mode 0");
	opts.optimizer.clip_norm = 1;
	refuses_mode(&opts, reduced, "in one step; leave is_reduced 0");
	opts = good_opts();
	opts.dense_wire = WEFT_WIRE_BF16;
	refuses_mode(&opts, reduced, "use dense_wire=f32");
	for (unsigned i = 0; i < 2; i++) {
		opts = good_opts();
		opts.dense_mode = i == 0 ? WEFT_DENSE_LOCAL : WEFT_DENSE_ELASTIC;
		opts.local_steps = 2;
		refuses_mode(&opts, reduced, "use dense_mode=sync");
	}
}

static void
calls_out_of_order_are_refused(void **state)
{
	struct weft_session_opts opts = good_opts();
	const struct weft_tensor_opts w = {.name = "w", .rows = 3};
	struct weft_session *session;
	struct weft_tensor *tensor, *late = NULL;
	uint64_t digest;
	(void)state;
	assert_ok(weft_session_open(&opts, &session));
	assert_refused(weft_session_start(session), WEFT_INVALID, "before weft_session_seal");
	assert_refused(weft_session_seal(session), WEFT_INVALID, "no tensor");
	assert_refused(weft_digest(session, &digest), WEFT_INVALID, "weft_session_seal");
	assert_ok(weft_tensor_add(session, &w, &tensor));
	assert_null(weft_tensor_param(tensor));
	assert_null(weft_tensor_grad(tensor));
	assert_refused(weft_push(tensor), WEFT_INVALID, "not started");
	assert_ok(weft_wait(tensor)); /* nothing is under way */
	assert_ok(weft_session_seal(session));
	assert_refused(weft_session_seal(session), WEFT_INVALID, "sealed already");
	refuses_tensor(session, &(struct weft_tensor_opts){.name = "late", .rows = 1}, "late",
		       "after weft_session_seal");
	assert_null(late);
	assert_refused(weft_step(session, 1, 0), WEFT_INVALID, "not started");
	assert_refused(weft_push(tensor), WEFT_INVALID, "not started");
	assert_refused(weft_pull(tensor), WEFT_INVALID, "not started");
	assert_refused(weft_pull_all(session), WEFT_INVALID, "not started");
	assert_refused(weft_exchange(session, 1, 0), WEFT_INVALID, "not started");
	assert_refused(weft_pass_end(session), WEFT_INVALID, "not started");
	assert_refused(weft_barrier(session), WEFT_INVALID, "not started");
	assert_ok(weft_wait_all(session));
	assert_ok(weft_poll(session));
	assert_int_equal(weft_steps(session), 0);
	assert_ok(weft_session_close(session));
}

static void
a_wait_before_the_start_waits_for_nothing(void **state)
{
	struct weft_session_opts opts = good_opts();
	const struct weft_tensor_opts w = {.name = "w", .rows = 3};
	struct weft_session *session;
	struct weft_tensor *tensor;
	(void)state;
	opts.optimizer.clip_norm = 1;
	assert_ok(weft_session_open(&opts, &session));
	assert_ok(weft_tensor_add(session, &w, &tensor));
	assert_ok(weft_wait_all(session));
	assert_ok(weft_session_seal(session));
	assert_ok(weft_wait(tensor));
	assert_ok(weft_wait_all(session));
	assert_ok(weft_session_close(session));
}

static void
arrays_are_aligned_zeroed_and_apart(void **state)
{
	struct weft_session_opts opts = good_opts();
	struct weft_session *session;
	struct weft_tensor *tensor[5];
	char name[8];
	(void)state;
	assert_ok(weft_session_open(&opts, &session));
	for (unsigned i = 0; i < 5; i++) {
		(void)snprintf(name, sizeof(name), "t%u", i);
		assert_ok(weft_tensor_add(
			session,
			&(struct weft_tensor_opts){
				.name = name, .rows = i + 1, .cols = 7, .is_static = i == 4},
			&tensor[i]));
	}
	assert_ok(weft_session_seal(session));
	for (unsigned i = 0; i < 5; i++) {
		float *param = weft_tensor_param(tensor[i]);
		float *grad = weft_tensor_grad(tensor[i]);
		assert_int_equal((uintptr_t)param % 64, 0);
		assert_int_equal((uintptr_t)grad % 64, 0);
		assert_true((grad == NULL) == (i == 4)); /* static: none */
		for (uint64_t at = 0; at < weft_tensor_count(tensor[i]); at++) {
			assert_true(param[at] == 0 && (grad == NULL || grad[at] == 0));
			param[at] = (float)(i + 1);
		}
	}
	for (unsigned i = 0; i < 5; i++) {
		uint64_t last = weft_tensor_count(tensor[i]) - 1;
		assert_true(weft_tensor_param(tensor[i])[0] == (float)(i + 1));
		assert_true(weft_tensor_param(tensor[i])[last] == (float)(i + 1));
	}
	assert_ok(weft_session_close(session));
}

/* Declare `names` in this order, "x" in each filled with its letter. */
static uint64_t
digest_of(const char *letters, float salt)
{
	struct weft_session_opts opts = good_opts();
	struct weft_session *session;
	struct weft_tensor *tensor[4];
	uint64_t digest = 0;
	assert_ok(weft_session_open(&opts, &session));
	for (unsigned i = 0; letters[i] != '\0'; i++) {
		char name[2] = {letters[i], '\0'};
		struct weft_tensor_opts declared = {.name = name, .rows = 3};
		assert_ok(weft_tensor_add(session, &declared, &tensor[i]));
	}
	assert_ok(weft_session_seal(session));
	for (unsigned i = 0; letters[i] != '\0'; i++) {
		weft_tensor_param(tensor[i])[2] = (float)letters[i] + salt;
	}
	assert_ok(weft_digest(session, &digest));
	assert_ok(weft_session_close(session));
	return digest;
}

static void
digest_goes_by_name_and_covers_every_value(void **state)
{
	(void)state;
	uint64_t digest = digest_of("abc", 0);
	assert_true(digest == digest_of("cba", 0));
	assert_true(digest != digest_of("abc", 0.25f));
	assert_true(digest != digest_of("abd", 0));
	assert_true(digest != digest_of("ab", 0));
}

static void
many_tensors_keep_their_places(void **state)
{
	struct weft_session_opts opts = good_opts();
	struct weft_session *session;
	struct weft_tensor *tensor[100];
	char name[8];
	(void)state;
	assert_ok(weft_session_open(&opts, &session));
	for (unsigned i = 0; i < 100; i++) { /* grows more than once */
		(void)snprintf(name, sizeof(name), "t%u", i);
		struct weft_tensor_opts declared = {.name = name, .rows = i + 1};
		assert_ok(weft_tensor_add(session, &declared, &tensor[i]));
	}
	assert_ok(weft_session_seal(session));
	for (unsigned i = 0; i < 100; i++) {
		(void)snprintf(name, sizeof(name), "t%u", i);
		assert_string_equal(weft_tensor_name(tensor[i]), name);
		assert_int_equal(weft_tensor_count(tensor[i]), i + 1);
	}
	assert_ok(weft_session_close(session));
}

static void
as_many_tensors_as_are_allowed_cost_the_same_each(void **state)
{
	struct weft_session_opts opts = good_opts();
	struct weft_session *session;
	struct weft_tensor *tensor;
	char name[32];
	(void)state;
	assert_ok(weft_session_open(&opts, &session));
	for (unsigned i = 0; i < WF_TENSOR_COUNT_MAX; i++) {
		(void)snprintf(name, sizeof(name), "layer.%u.weight", i);
		struct weft_tensor_opts declared = {.name = name, .rows = 1};
		assert_ok(weft_tensor_add(session, &declared, &tensor));
	}
	/* Those looked for and added, and added again to the last, largest set. */
	assert_true(session->names.looks >= WF_TENSOR_COUNT_MAX);
	assert_true(session->names.looks <= 8ull * WF_TENSOR_COUNT_MAX);
	assert_refused(weft_tensor_add(session,
				       &(struct weft_tensor_opts){.name = "layer.7.weight"},
				       &tensor),
		       WEFT_INVALID, "tensor layer.7.weight is declared twice");
	assert_refused(weft_tensor_add(session,
				       &(struct weft_tensor_opts){.name = "more", .rows = 1},
				       &tensor),
		       WEFT_INVALID, "tensor more: more than 65536 tensors");
	assert_ok(weft_session_close(session));
}

static void
a_session_that_never_started_ends_without_network(void **state)
{
	struct weft_session_opts opts = good_opts();
	struct weft_session *session;
	(void)state;
	opts.pservers = "nobody.invalid";
	assert_ok(weft_session_close(NULL));
	weft_session_abort(NULL, WEFT_INTERNAL, "nothing");
	assert_ok(weft_session_open(&opts, &session));
	weft_session_abort(session, WEFT_INTERNAL, "never started");
	assert_ok(weft_session_open(&opts, &session));
	assert_ok(weft_session_close(session));
}

/* Open, declare, seal, close, with this env. */
static enum weft_status
build(struct wf_env *env, bool seal_again)
{
	struct weft_session_opts opts = good_opts();
	struct weft_session *session = NULL;
	struct weft_tensor *tensor;
	enum weft_status st = wf_session_open_in(env, &opts, &session);
	for (unsigned i = 0; i < 20 && st == WEFT_OK; i++) {
		char name[8];
		(void)snprintf(name, sizeof(name), "t%u", i);
		struct weft_tensor_opts declared = {.name = name, .rows = 40};
		st = weft_tensor_add(session, &declared, &tensor);
	}
	if (st == WEFT_OK) {
		st = weft_session_seal(session);
		if (st == WEFT_NOMEM && seal_again) {
			st = weft_session_seal(session); /* nothing of the first try is left */
		}
	}
	if (session != NULL) {
		assert_ok(weft_session_close(session));
	}
	return st;
}

static void
running_out_of_memory_is_refused_and_leaks_nothing(void **state)
{
	struct wf_env *env;
	struct wf_failing_env failing;
	unsigned refused = 0;
	(void)state;
	assert_ok(wf_env_system_create(WF_LOG_WARN, -1, &env));
	wf_failing_env_init(&failing, env);
	for (uint64_t nth = 1;; nth++) {
		wf_failing_env_fail(&failing, nth, false);
		enum weft_status st = build(&failing.env, nth % 2 == 0);
		assert_true(wf_failing_env_is_clean(&failing));
		if (failing.failed == 0) {
			assert_ok(st);
			break;
		}
		assert_true(st == WEFT_NOMEM || (st == WEFT_OK && nth % 2 == 0));
		refused++;
	}
	assert_true(refused > 20);
	wf_env_system_destroy(env);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(version_is_that_of_the_header),
		cmocka_unit_test(defaults_are_those_of_the_header),
		cmocka_unit_test(options_of_an_older_header_are_accepted),
		cmocka_unit_test(options_of_a_newer_header_may_say_nothing_new),
		cmocka_unit_test(options_without_a_size_are_refused),
		cmocka_unit_test(settings_by_name_win_over_the_struct),
		cmocka_unit_test(defaults_stay_within_the_callers_struct),
		cmocka_unit_test(bad_job_options_are_refused_with_value_and_remedy),
		cmocka_unit_test(bad_modes_are_refused_with_value_and_remedy),
		cmocka_unit_test(bad_wires_are_refused_with_value_and_remedy),
		cmocka_unit_test(bad_own_options_are_refused_with_value_and_remedy),
		cmocka_unit_test(bad_lists_of_pservers_are_refused),
		cmocka_unit_test(bad_optimizers_are_refused_with_value_and_remedy),
		cmocka_unit_test(bad_tensors_are_refused_and_the_session_goes_on),
		cmocka_unit_test(a_mode_that_a_tensor_cannot_have_is_refused_with_its_name),
		cmocka_unit_test(what_a_reduced_tensor_cannot_have_is_refused_with_its_name),
		cmocka_unit_test(calls_out_of_order_are_refused),
		cmocka_unit_test(a_wait_before_the_start_waits_for_nothing),
		cmocka_unit_test(arrays_are_aligned_zeroed_and_apart),
		cmocka_unit_test(digest_goes_by_name_and_covers_every_value),
		cmocka_unit_test(many_tensors_keep_their_places),
		cmocka_unit_test(as_many_tensors_as_are_allowed_cost_the_same_each),
		cmocka_unit_test(a_session_that_never_started_ends_without_network),
		cmocka_unit_test(running_out_of_memory_is_refused_and_leaks_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
