/* SPDX-License-Identifier: MIT */
#include "jail/ends.h"

#include <sys/socket.h>

#include "base/fd.h"

int ends_open(struct sandbox *s, int theirs[LAUNCH_FDS_PREPARE], size_t first, size_t end)
{
    int *ours[LAUNCH_FDS_PREPARE] = {&s->ctl, &s->job, &s->in, &s->out, &s->err};
    int r = 0;

    for (size_t i = first; i < end && r == 0; i++) {
        int pair[2];

        r = i == 0   ? fd_message_pair(pair)
            : i == 1 ? fd_socketpair(SOCK_STREAM, pair)
                     : fd_pipe(pair);
        if (r < 0)
            break;
        *ours[i] = pair[i == 2 ? 1 : 0]; /* standard input flows the other way */
        theirs[i] = pair[i == 2 ? 0 : 1];
        r = fd_nonblock_new(*ours[i]);
    }
    return r;
}

void ends_close(struct sandbox *s)
{
    int *all[] = {&s->ctl, &s->job, &s->in, &s->out, &s->err};

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        fd_close_all(all[i], 1);
}
