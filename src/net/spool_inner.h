/* SPDX-License-Identifier: MIT */
/* What the files of the spool share: spool.c (the loop's side), spool_disk.c (the worker's side)
 * and spool_find.c (what is there at the start). */
#pragma once

#include "net/spool.h"

enum { SPOOL_BUCKETS = 1024 };

enum op_kind { OP_PUT, OP_READ, OP_DROP, OP_REJECT, OP_FORGET };

/* One thing to do on disk. While in a batch it belongs to the worker. */
struct op {
    enum op_kind kind;
    char id[SPOOL_ID_MAX + 1];
    uint64_t number;       /* name of the half-written file */
    struct bytes body;     /* PUT: borrowed. READ: what was found */
    struct buf head, tail; /* PUT: owned */
    struct buf file;       /* READ: owned */
    size_t file_max;
    int fd;     /* owned: PUT, between writing and syncing */
    int failed; /* -errno */
    bool hasty; /* PUT: not synced */
    struct spool_entry *entry;
    union {
        spool_put_fn *put;
        spool_read_fn *read;
    } done;
    void *user;
    STAILQ_ENTRY(op) link;
};
STAILQ_HEAD(op_list, op);

struct spool {
    struct work work;       /* first */
    struct work_pool *pool; /* borrowed */
    int dir, rejected_dir;  /* owned */
    char *told;             /* owned */
    uint64_t bytes_max, age_max_s;
    uint64_t bytes, rejected_bytes;
    size_t files_n, rejected_n;
    uint64_t last;        /* number of the last half-written file */
    struct op_list queue; /* the loop's */
    struct op_list batch; /* the worker's while busy */
    bool busy;
    struct spool_list waiting, rejected; /* oldest first */
    SLIST_HEAD(spool_bucket, spool_entry) buckets[SPOOL_BUCKETS];
};

/* [A-Za-z0-9._-]{1,128}, not starting with a dot: may be a file name. */
bool spool_id_is_safe(const char *id);

/*
 * The result in the text of a file: a view into it. What we wrote ourselves is checked all the
 * same, because disks and people change files. 0 or -EBADMSG.
 */
must_check int spool_file_body(const char *id, const char *text, size_t n, struct bytes *ret);

/* Carries out s->batch. On the worker. */
void spool_batch_run(struct work *w);

/* Adds one to the index. NULL: no memory. */
struct spool_entry *spool_entry_add(struct spool *s, const char *id, uint64_t bytes,
                                    int64_t born_s);
/* Opens and locks the directories of a new spool, and fills the index. */
must_check int spool_find(struct spool *s, const struct spool_conf *conf, struct err *e);
