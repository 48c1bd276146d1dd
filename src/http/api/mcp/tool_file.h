/* SPDX-License-Identifier: MIT */
/*
 * One file of a sandbox read or written for a tool, inside the sandbox. What is read is looked at
 * on a worker thread.
 */
#pragma once

#include <stddef.h>

#include "app/sandbox/sandboxes.h"
#include "base/buf.h"

struct tool_file;

struct tool_file_end {
    int sys;           /* errno, or an enum file_fault; 0: success */
    uint64_t size;     /* of the file */
    struct buf *bytes; /* what was read; may be taken */
    void *plan;        /* of the reader, until done() returns */
};
/* From the loop, once, unless it was left before. The work is gone when it returns. */
typedef void tool_file_fn(void *user, struct tool_file_end *end);
/* On a worker thread, with what was read; it may touch nothing but the two. */
typedef void tool_file_look_fn(void *plan, struct buf *bytes);

enum { TOOL_FILE_MAX = 16 << 20 }; /* bytes of a file that is read whole */

/* "notes.txt" is "/workspace/notes.txt". NULL: too long, or out of memory; to be freed. */
char *tool_path(const struct persistent *home, struct bytes path);

/* What is to be done with what is read. */
struct tool_file_reader {
    size_t max;                    /* a larger file is EFBIG */
    tool_file_look_fn *look;       /* may be NULL */
    void *plan;                    /* for look() */
    void (*plan_free)(void *plan); /* after done(), also when it was left or never began */
    tool_file_fn *done;
    void *user;
};
/* The path is the caller's until the end. NULL: it could not begin; done() is not called. */
struct tool_file *tool_file_read(struct persistent *home, const char *path,
                                 const struct tool_file_reader *r);
/* The same for a file of ours that is open already; `fd` is taken. */
struct tool_file *tool_file_take(struct app *a, int fd, uint64_t size,
                                 const struct tool_file_reader *r);
/* The whole file, its parents made; `content` is taken. */
struct tool_file *tool_file_write(struct persistent *home, const char *path, struct buf *content,
                                  tool_file_fn *done, void *user);
/* done() is not called. NULL is fine. */
void tool_file_leave(struct tool_file *f);

/* What went wrong, in words. */
const char *tool_file_words(int sys);
