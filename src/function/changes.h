/* SPDX-License-Identifier: MIT */
/*
 * What a run did to the files: those that were there before, those that are there now. Pure.
 *
 * A file that we wrote is known by its content; one that the scan does not show any more was
 * deleted. Unchanged files are told apart by their size where that is enough, by what the kernel
 * says of them where that was seen before (stamps), else by content.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "function/request.h"

enum {
    CHANGES_MAX = 10000,            /* reported */
    CHANGES_CONTENT_MAX = 64 << 20, /* bytes of all new contents together */
};

/* What the kernel says of a file that we have looked at. */
struct file_stamp {
    uint64_t inode; /* 0: never looked at */
    uint64_t size;
    int64_t mtime_s, mtime_ns, ctime_s, ctime_ns;
    bool settled; /* it was old enough then: every later change shows */
};

enum change_type { CHANGE_CREATED, CHANGE_MODIFIED, CHANGE_DELETED, CHANGE_TYPES };

struct change {
    enum change_type type;
    char *path;                     /* owned */
    const struct call_file *before; /* borrowed; NULL: it was not there */
    struct buf content;             /* owned */
    bool has_content;
    bool denied;
    bool ignored;   /* denied, and not reported */
    bool attempted; /* denied when it was tried: the file is as it was */
    bool unjudged;  /* denied because the rules took too many steps */
    uint64_t size;
    int64_t mtime_s, mtime_ns;
    struct file_stamp stamp;
};

struct changes {
    const struct call_file *before; /* borrowed */
    size_t before_n;
    const struct call_file **by_path; /* owned: they in the order of their paths */
    bool *seen;                       /* owned: which of them are still there */
    const struct file_stamp *stamps;  /* borrowed: of each of them; NULL: not known */
    struct file_stamp *now;           /* owned: of those that are still there */
    struct change *v;                 /* owned */
    size_t n, cap;
    uint64_t content_left;
    int64_t left_out;
    bool incomplete; /* not all files were shown: what was not seen is not missed */
};

must_check int changes_init(struct changes *c, const struct call_file *before, size_t n);
void changes_done(struct changes *c);

/* What was there at a path; the last one where there were several. -1: nothing. */
ssize_t changes_find(const struct changes *c, const char *path);
/* A file is there now: marks it, and tells what it was. -1: it was not there. */
ssize_t changes_saw(struct changes *c, const char *path);
/* A new entry, or NULL when there are too many. The path is copied. */
struct change *changes_add(struct changes *c, enum change_type type, const char *path,
                           ssize_t before);
/* The scan is complete: what was not seen is deleted. Sorts. */
void changes_complete(struct changes *c);

/* Bytes of their paths and contents, old ones included. */
size_t changes_bytes(const struct changes *c);

/* What was created where a deleted file stands in the way: below it, or in the place of one of its
 * directories. NULL: nothing. Of complete changes only. */
const struct change *changes_heir(const struct changes *c, const struct change *deleted);
/* Can only one of them be there? */
bool change_excludes(const char *path, const char *other);

const char *change_operation(enum change_type t); /* "create", "modify", "delete" */
