/* SPDX-License-Identifier: MIT */
#include "zygote/rehearsal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "core/frame.h"
#include "init/runner.h"

static int put(struct rehearsal *r, const void *p, size_t n)
{
    if (n > sizeof r->bytes - r->n)
        return -E2BIG;
    memcpy(r->bytes + r->n, p, n);
    r->n += n;
    return 0;
}

static int put_string(struct rehearsal *r, const char *s)
{
    return put(r, s, strlen(s) + 1);
}

int rehearsal_make(struct rehearsal *r, const char *cwd, const char *program, char *const *envp)
{
    struct job_head h = {.magic = JOB_MAGIC, .argc = 1, .flags = JOB_CHANNEL};
    int e;

    r->n = sizeof h;
    e = put_string(r, cwd);
    if (e == 0)
        e = put_string(r, program);
    for (; e == 0 && envp[h.envc]; h.envc++)
        e = put_string(r, envp[h.envc]);
    h.strings_n = r->n - sizeof h;
    memcpy(r->bytes, &h, sizeof h);
    return e;
}

int rehearsal_frame(struct rehearsal *r, char kind, const char *payload, size_t n)
{
    char head[FRAME_HEAD];
    int e;

    frame_head(head, kind, (uint32_t)n);
    e = put(r, head, sizeof head);
    return e ? e : put(r, payload, n);
}

int rehearsal_begin(const struct rehearsal *r, struct rehearsal_ends *ret)
{
    cleanup_close int here = -1, there = -1, kept = -1;
    int sp[2], e = fd_socketpair(SOCK_STREAM, sp);

    if (e < 0)
        return e;
    here = sp[0], there = sp[1];
    e = fd_write_all(there, r->bytes, r->n);
    if (e < 0)
        return e;
    kept = fcntl(RUNNER_FD, F_DUPFD_CLOEXEC, RUNNER_FD + 1);
    if (kept < 0 || dup2(here, RUNNER_FD) < 0)
        return -errno;
    *ret = (struct rehearsal_ends){.kept = take_fd(&kept), .there = take_fd(&there)};
    return 0;
}

void rehearsal_end(struct rehearsal_ends *ends)
{
    (void)dup2(ends->kept, RUNNER_FD);
    closep(&ends->kept);
    closep(&ends->there);
}
