/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_rights: whether this process may use an RDMA device that the kernel shows it. Programs reach
 * devices through files of /dev/infiniband: uverbsN of the device, and rdma_cm, the connection
 * manager. A container often has neither, and a host may reserve them for root: the libraries then
 * report only that there is no device. Thread: any. */
#pragma once

#include "base/status.h"

/* Opens both files, and closes them again. WEFT_UNAVAILABLE: one of them cannot be opened; the text
 * says which, why, and the remedy. `device` as in /sys/class/infiniband, "mlx5_0". */
enum weft_status wf_rdma_rights(const char *device) WEFT_MUST_CHECK;
/* The same on a machine whose /sys and /dev lie below `root` ("": this one): for tests. */
enum weft_status wf_rdma_rights_below(const char *root, const char *device) WEFT_MUST_CHECK;
