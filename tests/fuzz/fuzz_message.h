/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_message: one message of a service: 64 bytes of head, then the body. Magic, version, service,
 * length and CRC of the head are mended first, for a transport has checked them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

void fuzz_message(uint8_t service, const uint8_t *data, size_t bytes);
