/* SPDX-License-Identifier: MIT */
#include "proc/job.h"

#include <string.h>

#include "wire/wire.h"

enum { NPROC_SLACK = 16 }; /* the second line of defence stands a little behind the first */

static size_t strings_count(const char *const *v)
{
    size_t n = 0;

    while (v && v[n])
        n++;
    return n;
}

static void strings_put(struct buf *out, const char *const *v, size_t n, const char *without)
{
    for (size_t i = 0; i < n; i++) {
        const char *s = v[i] == without ? "" : v[i];

        (void)buf_put(out, s, strlen(s) + 1);
    }
}

static uint64_t files_put(struct buf *out, const struct plan *p)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < p->files_n; i++) {
        struct job_file f = {
            .size = p->files[i].content.n, .mode = p->files[i].mode, .rights = p->files[i].rights};

        (void)buf_put(out, &f, sizeof f);
        bytes += f.size;
    }
    return bytes;
}

static int encode(const struct plan *p, const struct job_for *f, struct job_head *h,
                  struct buf *out, struct err *e)
{
    size_t begin = out->n;

    (void)buf_put(out, h, sizeof *h);
    (void)buf_put(out, p->cwd, strlen(p->cwd) + 1);
    strings_put(out, p->argv, h->argc, f->warmed ? p->carried : NULL);
    strings_put(out, p->envp, h->envc, NULL);
    for (size_t i = 0; i < p->files_n; i++)
        (void)buf_put(out, p->files[i].path, strlen(p->files[i].path) + 1);
    h->strings_n = out->n - begin - sizeof *h;
    h->files_n = files_put(out, p);
    if (out->failed || h->strings_n > JOB_STRINGS_MAX)
        return err_set(e, ERR_CALLER, "arguments and environment exceed %d bytes", JOB_STRINGS_MAX);
    memcpy(out->p + begin, h, sizeof *h);
    return 0;
}

/* Counted by user: where a sandbox has none of its own, the number would be everybody's. */
static uint32_t nproc(const struct plan *p, unsigned traits)
{
    if (!(traits & JAIL_USER))
        return 0;
    return p->limits.pids_max + (traits & JAIL_PIDS ? NPROC_SLACK : 0);
}

int job_encode(const struct plan *p, const struct job_for *f, struct buf *out, struct err *e)
{
    struct job_head h = {
        .magic = JOB_MAGIC,
        .cpu_s = (p->limits.cpu_ms + 999) / 1000,
        .flags = (p->frames.n > 0 ? JOB_CHANNEL : 0) | (p->named ? JOB_NAMED : 0) |
                 (p->fenced ? JOB_FENCED : 0) | (p->scan_all && p->files_n > 0 ? JOB_TELLS : 0) |
                 (f->leaves ? JOB_LEAVES : 0) | (f->leaves && f->calm ? JOB_STAYS : 0),
        .nofile = p->limits.files_max,
        .nproc = nproc(p, f->traits),
    };
    size_t argc = strings_count(p->argv), envc = strings_count(p->envp);

    if (argc > JOB_ITEMS_MAX || envc > JOB_ITEMS_MAX || p->files_n > JOB_ITEMS_MAX)
        return err_set(e, ERR_CALLER, "more than %d arguments, variables or files", JOB_ITEMS_MAX);
    h.argc = (uint32_t)argc;
    h.envc = (uint32_t)envc;
    h.filec = (uint32_t)p->files_n;
    return encode(p, f, &h, out, e);
}
