/* SPDX-License-Identifier: MIT */
/* Any bytes as a picture: nothing is read beyond them, and more bytes never make it another one. */
#include <assert.h>
#include <stdint.h>

#include "http/api/mcp/picture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (size_t n = 0; n < size && n < 64; n++)
        if (picture_can_be_shown(data, n))
            assert(picture_can_be_shown(data, size));
    (void)!picture_can_be_shown(data, size);
    return 0;
}
