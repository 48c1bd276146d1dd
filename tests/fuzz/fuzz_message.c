/* SPDX-License-Identifier: MIT */
/* Any bytes on a socket of messages: what is taken for one has the length it says, nothing is
 * written behind the room there is, and it comes to an end. Linked with base/message_posix.c. */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { ROOM = 100, WRITTEN_MAX = 32768 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *room = malloc(ROOM); /* exactly: one byte too far is seen */
    int pair[2], r = fd_message_pair(pair);
    size_t at = 0;
    ssize_t got;

    assert(room && r == 0);
    n = n < WRITTEN_MAX ? n : WRITTEN_MAX;
    assert(write(pair[0], data, n) == (ssize_t)n);
    (void)close(pair[0]);
    while ((got = fd_recv(pair[1], room, ROOM, NULL, NULL)) != 0) {
        uint32_t head;

        assert(at + sizeof head <= n || got < 0);
        if (at + sizeof head > n)
            break;
        memcpy(&head, data + at, sizeof head);
        assert(got == -EPROTO || (got == (ssize_t)head && got <= ROOM));
        if (got < 0)
            break; /* whoever meets that closes: nothing tells where the next one begins */
        at += sizeof head + head;
        assert(memcmp(room, data + at - head, head) == 0);
    }
    (void)close(pair[1]);
    free(room);
    return 0;
}
