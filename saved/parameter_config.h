/* SPDX-License-Identifier: Apache-2.0 */
/* parameter_config: the ParameterConfig that the original keeps with each parameter of a tar, a
 * message of protocol buffers (proto2): name = 1, size = 2, dims = 9, and how it is trained, which
 * is passed over. Private to this folder. Thread: any; pure functions. */
#pragma once

#include "saved/import_internal.h"

#define WF_PARAMETER_CONFIG_ENDING ".protobuf"
#define WF_PARAMETER_CONFIG_ENDING_BYTES 9u
#define WF_PARAMETER_CONFIG_BYTES_MAX 4096u

struct wf_parameter_config {
	const char *name; /* points into the decoded bytes */
	size_t name_bytes;
	uint64_t count;
	struct wf_import_shape shape; /* of one row where the message has none */
};

/* A bias is a row to the original, and a column to us. Only its name shows that: it ends with
 * "_b", ".b" or "bias". */
bool wf_parameter_is_bias(const char *name);
/* In a folder of parameter files: the name of no parameter, but of what the original puts beside
 * them (`done`, path.txt, its configuration), or of a hidden file. */
bool wf_parameter_is_aside(const char *name);
/* false: it is no such message, lacks name or size, its size is not that of its shape, or it is of
 * sparse values. */
bool wf_parameter_config_decode(const uint8_t *bytes, size_t count,
				struct wf_parameter_config *out);
/* Of a tensor. `out` has room for WF_PARAMETER_CONFIG_BYTES_MAX. Returns its bytes. */
size_t wf_parameter_config_encode(const char *name, const struct wf_shape *shape, uint8_t *out);
