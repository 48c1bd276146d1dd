/* SPDX-License-Identifier: MIT */
/*
 * Results on disk until somebody has taken them: one file each, <directory>/<execution id>.json.
 *
 * A result is on disk (its bytes, its name and the directory, all synced) before anybody is told.
 * All disk work is done by a worker, one batch after the other, in the order it was asked for.
 * Files that were refused for good are moved to <directory>/rejected, for people to look at.
 * Everything is bounded: bytes of all files together, and their age.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "core/plan.h"
#include "core/port_work.h"

enum { SPOOL_ID_MAX = 128 };

struct spool;

/* One file. The spool's; valid until dropped, rejected or expired. */
struct spool_entry {
    char id[SPOOL_ID_MAX + 1];
    uint64_t bytes;
    int64_t born_s; /* of the monotonic clock: one that is set makes nothing old */
    bool on_disk;
    bool replaced; /* a newer one has the name: the file is not ours any more */
    void *user;    /* what works on it; NULL: nothing */
    TAILQ_ENTRY(spool_entry) link;
    SLIST_ENTRY(spool_entry) chain;
};
TAILQ_HEAD(spool_list, spool_entry);

struct spool_conf {
    const char *path;   /* absolute; made if missing */
    const char *option; /* that names it, for messages */
    const char *told;   /* address that is noted in the files, for people; "": none */
    uint64_t bytes_max;
    uint64_t age_max_s;
};

/*
 * Makes the directory (0700) while there is still the privilege to give it away. One that exists
 * must belong to uid or to us and be writable by nobody else: a planted file would be a forged
 * result.
 */
must_check int spool_prepare(const char *path, const char *option, uid_t uid, gid_t gid,
                             struct err *e);

/* Locks the directory, removes half-written files and learns what is there. */
must_check int spool_open(const struct spool_conf *conf, struct work_pool *pool, struct spool **ret,
                          struct err *e);
/* No work may be under way: close the pool first. NULL is fine. */
void spool_close(struct spool *s);

/* On the loop, once: e->on_disk, or not and `why` has the words; then e must be dropped. */
typedef void spool_put_fn(void *user, struct spool_entry *e, const char *why);
struct spool_order {
    const char *id;
    const char *members; /* others of the file, in front of the body: "" or "name": value, with a
                            comma behind */
    struct bytes body;   /* a JSON object; borrowed until done() */
    bool hasty;          /* not synced: it outlives this process, but perhaps not the machine */
    spool_put_fn *done;
    void *user;
};
/* Writes one result. NULL when it would exceed the bytes, or there is no memory: done() will not
 * come. */
struct spool_entry *spool_put(struct spool *s, const struct spool_order *order);

/* On the loop, once. `file` has the text and is taken or freed; `body` is a view into it, p == NULL
 * when the file is gone or is not what we wrote. What is in front of the body ends with its key. */
typedef void spool_read_fn(void *user, struct buf *file, struct bytes body);
must_check int spool_read(struct spool *s, const struct spool_entry *e, spool_read_fn *done,
                          void *user);

void spool_drop(struct spool *s, struct spool_entry *e);
void spool_reject(struct spool *s, struct spool_entry *e);
/* Tried in vain: others first. */
void spool_postpone(struct spool *s, struct spool_entry *e);
/* The oldest one on disk nobody works on; NULL: none. */
struct spool_entry *spool_next(const struct spool *s);
/* Drops what is too old and nobody works on. How many results were lost by that. */
size_t spool_expire(struct spool *s, int64_t now_s);
/* What spool_expire() wants to be told. */
int64_t spool_now_s(void);

struct spool_counts {
    uint64_t files, bytes, rejected; /* bytes: of both */
};
void spool_counts(const struct spool *s, struct spool_counts *ret);
