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
    FILE_LOOK,  /* what a path is: one entry */
    FILE_WALK,  /* what is in a directory, and below: entries */
    FILE_MOVE,  /* to the path `to`, whose parents are made; then one entry: what is there */
    FILE_COPY,  /* the same, and the original stays */
    FILE_WATCH, /* what happens in a directory: events, until it is freed */
    FILE_VERB_COUNT,
};

enum { FILE_DEPTH_MAX = 256 }; /* of WALK, and of trees that are watched or copied */

struct file_order {
    enum file_verb verb;
    struct bytes path;    /* must not contain NUL; kept by the caller until the work is done */
    size_t bytes_max;     /* READ, LIST: more than that is EFBIG; UNPACK, PACK: of the archive */
    uint16_t port;        /* CONNECT */
    bool parents;         /* WRITE: make them */
    bool gzip;            /* WRITE: the content is to be inflated */
    bool told;            /* WRITE: with one entry: what it is then. MKDIR: that, too, and it is an
                             error when there is something already */
    bool replace;         /* MOVE, COPY: what is there */
    bool recursive;       /* WATCH: directories below, too */
    bool with_entries;    /* WATCH: with what has changed, if it is still there */
    uint64_t entries_max; /* UNPACK, PACK; WALK: of this part of the list */
    uint32_t depth_max;
    /* MOVE, COPY: the new path; WALK: the relative path of the entry that it begins behind; WRITE:
     * metadata, NAME NUL VALUE NUL … Kept by the caller like `path`. */
    struct bytes second;
};

/* What something in a file system is: of a link about the link itself. Views, valid while they are
 * told. Everything was said by a tenant's process. */
struct file_entry {
    struct bytes path;    /* as asked for; of WALK and WATCH relative to that */
    uint32_t mode;        /* as stat() has it, with the type */
    uint32_t target_mode; /* of what a link leads to; 0: it leads nowhere */
    uint32_t uid, gid;
    struct {
        int64_t s;
        uint32_t ns;
    } modified, accessed, changed;
    uint64_t size, inode;
    char owner[33], group[33]; /* names, or numbers as text */
    struct bytes link, target; /* of a link: its text, and where it leads, absolute */
    struct bytes metadata;     /* NAME NUL VALUE NUL … */
};

enum file_event_kind {
    FILE_EVENT_STANDS, /* first, and once: from now on everything is told */
    FILE_EVENT_CREATE,
    FILE_EVENT_WRITE,
    FILE_EVENT_REMOVE,
    FILE_EVENT_RENAME, /* it had this name */
    FILE_EVENT_CHMOD,
    FILE_EVENT_OVERFLOW, /* events were lost here */
};

struct file_event {
    enum file_event_kind kind;
    struct bytes name;              /* relative to what is watched; ".": that itself */
    const struct file_entry *entry; /* NULL: none */
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
    bool more;         /* WALK: there are entries behind the last one */
    uint64_t entries;  /* UNPACK, PACK, WALK; `size`: bytes of files, or of the archive */
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

/* LOOK, WALK, MOVE, COPY, and what is `told`: an entry, from the loop. False: the next ones wait
 * for filework_resume(). Some that came with this one may still follow. */
typedef bool filework_entry_fn(void *user, const struct file_entry *entry);
/* WATCH: the same for an event. */
typedef bool filework_event_fn(void *user, const struct file_event *event);

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
/* Set before the next turn of the loop. */
void filework_on_entry(struct filework *w, filework_entry_fn *fn);
void filework_on_event(struct filework *w, filework_event_fn *fn);
void filework_resume(struct filework *w);
/* The outcome is not wanted any more; a write ends where it is. NULL is fine. */
void filework_free(struct filework *w);
