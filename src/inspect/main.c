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
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <tree_sitter/api.h>
#include <unistd.h>

#include "base/jw.h"
#include "base/os.h"
#include "core/frame.h"
#include "inspect/inspect.h"
#include "inspect/memory.h"

enum { FRAMES_FD = 3, READ_PART = 256 * 1024, EXIT_USAGE = 2 };

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

/* Frames up to the one that says go. */
static int read_frames(struct buf *text, struct inspect_error *e)
{
    char head[FRAME_HEAD];
    uint32_t n;

    for (;;) {
        if (read_exactly(FRAMES_FD, head, sizeof head) < 0 ||
            frame_length(head, sizeof head, &n) < 0)
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
    char head[FRAME_HEAD];

    if (plain) {
        (void)buf_putc(json, '\n');
        return write_all(ok ? STDOUT_FILENO : STDERR_FILENO, json->p, json->n);
    }
    frame_head(head, ok ? FRAME_RESULT : FRAME_ERROR, (uint32_t)json->n);
    if (write_all(FRAMES_FD, head, sizeof head) < 0)
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
    memory_install();
    ok = (plain ? read_plain(&text, &e) : read_frames(&text, &e)) == 0 &&
         inspect_source(argv[1], text.p ? text.p : "", text.n, &memory_marks, &json, &e) == 0;
    if (!ok)
        error_json(&e, &json);
    return answer(plain, ok, &json) == 0 && ok ? 0 : 1;
}
