/* SPDX-License-Identifier: MIT */
#include "egress/flow.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/os.h"

enum { MOST = 1 << 20, CHUNK_LOOK = 16 * 1024, TURNS = 8 };

void flow_init(struct flow *f)
{
    *f = (struct flow){
        .from = -1, .to = -1, .tube = {-1, -1},
                .said = BUF_INIT(FLOW_WORDS_MAX)
    };
}

void flow_done(struct flow *f)
{
    fd_close_all(f->tube, 2);
    buf_done(&f->said);
}

static bool is_later(void)
{
    return errno == EAGAIN || errno == EINTR;
}

/* -1: broken. */
static int push(struct flow *f)
{
    ssize_t n = 1;

    while (f->said.n > 0) {
        n = send(f->to, f->said.p, f->said.n, MSG_NOSIGNAL);
        if (n < 0)
            return is_later() ? 0 : -1;
        buf_consume(&f->said, (size_t)n);
    }
    while (f->held > 0) {
        n = os_move(f->tube[0], f->to, f->held);
        if (n <= 0)
            return n < 0 && is_later() ? 0 : -1;
        f->held -= (size_t)n;
    }
    if (f->ended && f->half && !f->shut) {
        f->shut = true;
        (void)shutdown(f->to, SHUT_WR);
    }
    return 0;
}

static int64_t pull_bytes(struct flow *f)
{
    uint64_t most = f->until == FLOW_LENGTH && f->left < MOST ? f->left : MOST;
    ssize_t n;

    if (f->tube[0] < 0 && os_tube(f->tube) < 0)
        return -1;
    n = os_move(f->from, f->tube[1], most);
    if (n < 0)
        return is_later() ? 0 : -1;
    f->held += (size_t)n;
    f->ended = n == 0;
    if (f->until == FLOW_LENGTH) {
        f->left -= (uint64_t)n;
        f->ended |= f->left == 0;
    }
    return n;
}

/* Only what belongs to the body is taken out of the socket. */
static int64_t pull_chunks(struct flow *f)
{
    char room[CHUNK_LOOK];
    ssize_t n = recv(f->from, room, sizeof room, MSG_PEEK);
    const char *data;
    size_t used = 0, data_n;

    if (n <= 0)
        return n < 0 && is_later() ? 0 : -1;
    while (used < (size_t)n && f->chunks.state != H1_CHUNK_DONE) {
        ssize_t k = h1_chunk(&f->chunks, room + used, (size_t)n - used, &data, &data_n);

        if (k < 0)
            return -1;
        used += (size_t)k;
    }
    f->ended = f->chunks.state == H1_CHUNK_DONE;
    if (buf_put(&f->said, room, used) < 0)
        return -1;
    return recv(f->from, room, used, 0) == (ssize_t)used ? (int64_t)used : -1;
}

int64_t flow_move(struct flow *f)
{
    int64_t total = 0, n = 1;

    for (int i = 0; i < TURNS && n > 0; i++) {
        if (f->to >= 0 && push(f) < 0)
            return -1;
        if (f->from < 0 || f->to < 0 || !flow_reads(f))
            break;
        n = f->until == FLOW_CHUNKS ? pull_chunks(f) : pull_bytes(f);
        if (n < 0)
            return -1;
        total += n;
    }
    return f->to >= 0 && push(f) < 0 ? -1 : total;
}

bool flow_is_over(const struct flow *f)
{
    return f->ended && !flow_writes(f);
}
