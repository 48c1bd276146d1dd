/* SPDX-License-Identifier: MIT */
/*
 * Port: one request about files, ports or usage of a persistent sandbox, carried out inside it by a
 * helper.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "core/plan.h"

struct admission;
struct event_base;
struct filework;
struct jail;

/* The sandbox of a request. All borrowed. */
struct file_home {
    struct event_base *base;
    struct jail *inside;         /* jail/inner.h */
    struct admission *admission; /* of its file requests */
    unsigned wait_ms;            /* how long a request waits for its turn */
    unsigned answer_ms;          /* how long a helper may be silent: a tenant can stop helpers */
};

enum { FILE_PATH_MAX = 32 * 1024 }; /* the kernel takes no longer ones */

enum file_verb {
    FILE_READ,       /* fd of an ordinary file, else its bytes */
    FILE_WRITE,      /* filework_feed() … filework_feed_end() bring the content */
    FILE_MKDIR,      /* with parents */
    FILE_REMOVE,     /* a file or an empty directory */
    FILE_REMOVE_ALL, /* a tree */
    FILE_LIST,       /* names, each with its NUL, in `bytes` */
    FILE_STAT,
    FILE_CONNECT, /* to a port of the loopback: fd */
    FILE_UNPACK,  /* a tar archive into a directory; the archive comes like content */
    FILE_PACK,    /* a directory as a tar archive: filework_on_data() */
    FILE_USAGE,
    FILE_VERB_COUNT,
};

struct file_order {
    enum file_verb verb;
    struct bytes path;    /* must not contain NUL; kept by the caller until the work is done */
    size_t bytes_max;     /* READ, LIST: more than that is EFBIG; UNPACK, PACK: of the archive */
    uint16_t port;        /* CONNECT */
    bool parents;         /* WRITE: make them */
    uint64_t entries_max; /* UNPACK, PACK */
    uint32_t depth_max;
};

/* Why nothing was done. */
enum file_fault {
    FILE_ENDED = -1, /* the sandbox ended */
    FILE_BUSY = -2,  /* it has no process or no place in its queue left */
};

/* The outcome. Borrowed for the length of the callback, except what is taken. */
struct file_result {
    int sys;          /* errno, 0: success; or an enum file_fault */
    const char *op;   /* "open", "mkdir", ...: what failed */
    const char *path; /* where it failed; "" when unknown */
    int fd;           /* owned by the work; set to -1 to take it */
    bool is_file;     /* READ: fd or, with fd == -1, bytes */
    uint64_t size;
    uint32_t mode;
    int64_t mtime_s, mtime_ns;
    uint64_t inode;
    struct buf *bytes; /* may be emptied by buf_take() */
    uint64_t entries;  /* UNPACK, PACK; `size`: bytes of files, or of the archive */
    unsigned fault;    /* the same: an enum tar_fault, found at byte `size`; 0: none */
    int processes;     /* USAGE */
    uint64_t memory, disk;
};

/* Exactly once unless freed before, never from inside filework_start(); the work is freed when it
 * returns. */
typedef void filework_fn(void *user, struct file_result *r);
/* What was fed has been taken: more is welcome. */
typedef void filework_drain_fn(void *user);

/* PACK: some of the archive, from the loop. False: wait for filework_resume(). */
typedef bool filework_data_fn(void *user, const char *p, size_t n);

/* It begins at once, or when its turn comes among the brief requests of this sandbox. ERR_BUSY when
 * too many wait already. */
must_check int filework_start(const struct file_home *h, const struct file_order *o,
                              filework_fn *done, void *user, struct filework **ret, struct err *e);
/* WRITE, UNPACK: false when the content comes faster than it is written: wait for drain. */
bool filework_feed(struct filework *w, const char *p, size_t n);
/* The same for a buffer that is handed over. */
bool filework_feed_take(struct filework *w, struct buf *b);
void filework_feed_end(struct filework *w);
void filework_on_drain(struct filework *w, filework_drain_fn *fn);
void filework_on_data(struct filework *w, filework_data_fn *fn);
void filework_resume(struct filework *w);
/* The outcome is not wanted any more; a write ends where it is. NULL is fine. */
void filework_free(struct filework *w);
