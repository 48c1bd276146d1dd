/* SPDX-License-Identifier: MIT */
/*
 * The program around it:
 *
 *   sandbox-inspect LANGUAGE      frames on descriptor 3 (core/frame.h): code and go in, result or
 *                                 error out
 *   sandbox-inspect LANGUAGE -    text on standard input, the answer on standard output
 *
 * Exit status 0: there is an answer. 1: there is an error instead. 3: memory ran out.
 */
#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tree_sitter/api.h>
#include <unistd.h>

#include "base/jw.h"
#include "base/os.h"
#include "core/frame.h"
#include "inspect/inspect.h"

enum { FRAMES_FD = 3, READ_PART = 256 * 1024, HEX = 16, EXIT_USAGE = 2, EXIT_MEMORY = 3 };
enum { BLOCK_ALIGN = 16, ROOM_FIRST = 256 * 1024, ROOM_MORE = 4 << 20, TAKE_MAX = 1 << 30 };

/* ---- memory ---- */

/*
 * The library counts the children of a node in 16 bits when it takes trees apart: from a node with
 * more of them (unbalanced braces by the ten thousand) it frees a pointer that was never given to
 * it. This process parses one text and ends, so what the library frees is simply kept, and giving
 * memory out is no more than moving a pointer. It cannot live without memory, nor report that there
 * is none: the exit status does.
 *
 * The library tells its allocator nothing but sizes, so where the memory of a thread goes on is the
 * one writable object of this program.
 */
struct block {
    size_t size; /* of what follows */
    _Alignas(BLOCK_ALIGN) char bytes[];
};

static _Thread_local struct {
    char *next, *end;
    bool begun;
} room;

static void out_of_memory(void)
{
    _exit(EXIT_MEMORY);
}

/* The first piece is small, for most texts are. What is left of the last one is lost. */
static void room_add(size_t n)
{
    size_t size = room.begun ? ROOM_MORE : ROOM_FIRST;

    if (size < n)
        size = n;
    room.next = os_memory(size);
    if (!room.next)
        out_of_memory();
    room.end = room.next + size;
    room.begun = true;
}

static void *take(size_t n)
{
    struct block *b;

    if (n > TAKE_MAX)
        out_of_memory();
    n = (n + sizeof *b + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
    if ((size_t)(room.end - room.next) < n)
        room_add(n);
    b = (void *)room.next;
    room.next += n;
    b->size = n - sizeof *b;
    return b->bytes;
}

/* Nothing is given out twice, so everything is zero. */
static void *take_zeroed(size_t count, size_t n)
{
    if (n > 0 && count > TAKE_MAX / n)
        out_of_memory();
    return take(count * n);
}

static void *take_again(void *p, size_t n)
{
    struct block *b = p ? (struct block *)((char *)p - offsetof(struct block, bytes)) : NULL;
    void *grown;

    if (b && n <= b->size)
        return p;
    grown = take(n);
    if (b)
        memcpy(grown, p, b->size);
    return grown;
}

static void keep(void *p)
{
    (void)p;
}

/* ---- in and out ---- */

/* 0, or -1 when the peer closed or failed too early. */
static int read_exactly(int fd, char *p, size_t n)
{
    while (n > 0) {
        ssize_t got = read(fd, p, n);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return -1;
        p += got;
        n -= (size_t)got;
    }
    return 0;
}

static int write_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t put = write(fd, p, n);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -1;
        p += put;
        n -= (size_t)put;
    }
    return 0;
}

static int fail(struct inspect_error *e, const char *type, const char *message)
{
    *e = (struct inspect_error){.type = type, .message = message};
    return -1;
}

/* Standard input to its end. */
static int read_plain(struct buf *text, struct inspect_error *e)
{
    for (;;) {
        ssize_t got;

        if (buf_reserve(text, READ_PART) < 0)
            return fail(e, "SourceTooLong", "the source is longer than 8 MiB");
        got = read(STDIN_FILENO, text->p + text->n, READ_PART);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail(e, "ProtocolError", "standard input cannot be read");
        if (got == 0)
            return 0;
        text->n += (size_t)got;
    }
}

static size_t digit_value(char c)
{
    return (size_t)(c <= '9' ? c - '0' : tolower(c) - 'a' + 10);
}

static int frame_length(const char head[FRAME_HEAD], size_t *ret)
{
    size_t n = 0;

    for (size_t i = 1; i < FRAME_HEAD; i++) {
        if (!isxdigit((unsigned char)head[i]))
            return -1;
        n = n * HEX + digit_value(head[i]);
    }
    *ret = n;
    return 0;
}

/* Frames up to the one that says go. */
static int read_frames(struct buf *text, struct inspect_error *e)
{
    char head[FRAME_HEAD];
    size_t n;

    for (;;) {
        if (read_exactly(FRAMES_FD, head, sizeof head) < 0 || frame_length(head, &n) < 0)
            return fail(e, "ProtocolError", "a frame is broken");
        if (head[0] == FRAME_GO)
            return n == 0 ? 0 : fail(e, "ProtocolError", "a frame is broken");
        buf_clear(text);
        if (n > INSPECT_SOURCE_MAX)
            return fail(e, "SourceTooLong", "the source is longer than 8 MiB");
        if (head[0] != FRAME_CODE)
            return fail(e, "ProtocolError", "only code and go are understood");
        if (buf_reserve(text, n + 1) < 0)
            return fail(e, "OutOfMemory", "no memory for the source");
        if (read_exactly(FRAMES_FD, text->p, n) < 0)
            return fail(e, "ProtocolError", "a frame is broken");
        text->n = n;
    }
}

static void error_json(const struct inspect_error *e, struct buf *out)
{
    struct jw w = JW(out);

    buf_clear(out);
    jw_object(&w);
    jw_kv_string(&w, "type", e->type);
    jw_kv_string(&w, "message", e->message);
    jw_object_end(&w);
}

static int answer(bool plain, bool ok, struct buf *json)
{
    char head[FRAME_HEAD + 1];

    if (plain) {
        (void)buf_putc(json, '\n');
        return write_all(ok ? STDOUT_FILENO : STDERR_FILENO, json->p, json->n);
    }
    (void)snprintf(head, sizeof head, "%c%08zx", ok ? FRAME_RESULT : FRAME_ERROR, json->n);
    if (write_all(FRAMES_FD, head, FRAME_HEAD) < 0)
        return -1;
    return write_all(FRAMES_FD, json->p, json->n);
}

int main(int argc, char **argv)
{
    bool plain = argc == 3 && strcmp(argv[2], "-") == 0;
    cleanup_with(buf_done) struct buf text = BUF_INIT(INSPECT_SOURCE_MAX + 2 * READ_PART);
    cleanup_with(buf_done) struct buf json = BUF_INIT(INSPECT_OUTPUT_MAX);
    struct inspect_error e;
    bool ok;

    if (argc != 2 && !plain) {
        static const char usage[] = "usage: sandbox-inspect LANGUAGE [-]\n";

        (void)write_all(STDERR_FILENO, usage, sizeof usage - 1);
        return EXIT_USAGE;
    }
    ts_set_allocator(take, take_zeroed, take_again, keep);
    ok = (plain ? read_plain(&text, &e) : read_frames(&text, &e)) == 0 &&
         inspect_source(argv[1], text.p ? text.p : "", text.n, true, &json, &e) == 0;
    if (!ok)
        error_json(&e, &json);
    return answer(plain, ok, &json) == 0 && ok ? 0 : 1;
}
