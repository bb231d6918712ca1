/* SPDX-License-Identifier: Apache-2.0 */
/* content: see content.h. Thread: the session's owner. */
#include "trainer/passes/content.h"

#include "kernels/rows.h"
#include "saved/records.h"
#include "sparse/client/session.h"

WF_STATIC_ASSERT(WF_STATE_MAX <= WF_SAVED_STATE_MAX, "every optimizer's state can be saved");

static struct wf_saved_tensor
list_tensor(struct weft_tensor *tensor, bool exact)
{
	const uint32_t states = weft_state_count(tensor->session);
	struct wf_saved_tensor out = {
		.name = weft_tensor_name(tensor),
		.rows = tensor->rows,
		.cols = tensor->cols,
		.value = exact ? weft_tensor_exact(tensor) : weft_tensor_param(tensor),
		.shape = tensor->shape,
	};

	/* Static and reduced tensors have none. */
	for (uint32_t s = 0; s < states && weft_tensor_state(tensor, s) != NULL; s++) {
		out.state[out.state_count++] = weft_tensor_state(tensor, s);
	}
	return out;
}

static enum weft_status
fill(const struct wf_saved_table *about, struct wf_rows_writer *to)
{
	struct weft_table_reader reader;

	wf_records_save(to, &reader);
	return weft_table_read(about->source, &reader);
}

static struct wf_saved_table
list_table(struct weft_table *table, const struct wf_table_desc *desc)
{
	const uint32_t dim = weft_table_dim(table);

	return (struct wf_saved_table){
		.name = weft_table_name(table),
		.optimizer = wf_row_optimizer_name((enum wf_row_optimizer)desc->optimizer),
		.head =
			{
				.shape = {.dim = dim,
					  .state_floats = weft_table_record_floats(table) - dim,
					  .has_score = wf_table_has_scores(desc)},
				.counter_count = weft_table_counter_count(table),
				.vocabulary = desc->set.vocabulary,
			},
		.fill = fill,
		.source = table,
	};
}

enum weft_status
wf_pass_content_init(struct weft_session *session, bool exact, struct wf_pass_content *out)
{
	struct wf_env *env = session->core.end.env;
	const struct wf_client *client = wf_client_of(session);

	*out = (struct wf_pass_content){
		.env = env,
		.tensor_count = wf_session_tensor_count(session),
		.table_count = client == NULL ? 0 : client->tables.count,
	};
	/* One more of each, so that none is empty. */
	out->tensor = wf_zalloc_array(env, out->tensor_count + 1, sizeof(*out->tensor));
	out->table = wf_zalloc_array(env, out->table_count + 1, sizeof(*out->table));
	if (out->tensor == NULL || out->table == NULL) {
		wf_pass_content_fini(out);
		return wf_fail(WEFT_NOMEM, "list of %u tensors and %u tables",
			       wf_session_tensor_count(session),
			       client == NULL ? 0 : client->tables.count);
	}
	for (uint32_t i = 0; i < out->tensor_count; i++) {
		out->tensor[i] = list_tensor(session->tensor[i], exact);
	}
	for (uint32_t i = 0; i < out->table_count; i++) {
		out->table[i] = list_table(client->tables.table[i], &client->tables.desc[i]);
	}
	return WEFT_OK;
}

void
wf_pass_content_fini(struct wf_pass_content *content)
{
	if (content->env != NULL) {
		wf_free(content->env, content->tensor,
			(content->tensor_count + 1) * sizeof(*content->tensor));
		wf_free(content->env, content->table,
			(content->table_count + 1) * sizeof(*content->table));
	}
	*content = (struct wf_pass_content){0};
}

enum weft_status
wf_pass_check_mode(const struct weft_session *session, const char *what)
{
	if (wf_local_is_on(&session->core)) {
		return wf_fail(WEFT_INVALID,
			       "%s: with local steps each trainer has its own state of the "
			       "optimizer, which pservers do not have",
			       what);
	}
	return WEFT_OK;
}

enum weft_status
wf_pass_check_first(const struct weft_session *session, const char *dir, const char *what)
{
	if (session->core.opts.keep_state == 0) {
		return wf_fail(WEFT_INVALID, "%s: set keep_state in the options", what);
	}
	return dir != NULL && dir[0] != '\0'
		       ? WEFT_OK
		       : wf_fail(WEFT_INVALID, "%s: the name of the folder is empty", what);
}
