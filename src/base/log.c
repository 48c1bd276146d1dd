/* SPDX-License-Identifier: MIT */
/*
 * A record is put together in memory and leaves in a single write, so that records of several
 * threads and processes on the same pipe do not mix. Long texts are cut, never refused: a log line
 * must not fail because something went wrong in an unusual way.
 */
#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/jw.h"
#include "base/utf8.h"

enum {
    LOG_RECORD_MAX = 32 * 1024, /* one line */
    LOG_TEXT_MAX = 4 * 1024,    /* one text field, before escaping */
};

/* clang-format off */
static const char *const level_names[] = {
    [LOG_TRACE] = "trace",
    [LOG_DEBUG] = "debug",
    [LOG_INFO]  = "info",
    [LOG_WARN]  = "warn",
    [LOG_ERROR] = "error",
};
/* clang-format on */
_Static_assert(ARRAY_LEN(level_names) == LOG_LEVEL_COUNT, "every level has a name");

bool log_level_parse(const char *name, enum log_level *ret)
{
    for (size_t i = 0; i < LOG_LEVEL_COUNT; i++) {
        if (strcasecmp(name, level_names[i]) != 0)
            continue;
        *ret = (enum log_level)i;
        return true;
    }
    return false;
}

static void put_text(struct jw *w, const char *s)
{
    size_t n = strnlen(s, LOG_TEXT_MAX + 1);

    jw_bytes(w, s, utf8_truncate(s, n, LOG_TEXT_MAX));
}

static void put_json_field(struct jw *w, const struct log_field *f)
{
    jw_key(w, f->key);
    if (f->text)
        put_text(w, f->text);
    else
        jw_int(w, f->number);
}

static void put_json_head(struct jw *w, const struct log *l, enum log_level level,
                          const char *event)
{
    char now[CLOCK_ISO_MAX];

    jw_object(w);
    jw_kv_string(w, "timestamp", clock_iso(now));
    jw_kv_string(w, "level", level_names[level]);
    jw_kv_string(w, "event_type", event);
    jw_kv_string(w, "container_id", l->container_id);
}

/* A field that no longer fits is left out together with all that follow, and the record says so. */
static void put_json(struct buf *out, const struct log *l, enum log_level level, const char *event,
                     const struct log_field *fields, size_t n)
{
    static const char tail[] = ",\"truncated\":true}";
    struct jw w = JW(out);

    out->max -= sizeof tail;
    put_json_head(&w, l, level, event);
    for (size_t i = 0; i < n; i++) {
        size_t before = out->n;

        put_json_field(&w, &fields[i]);
        if (!out->failed)
            continue;
        out->failed = false;
        out->n = before;
        out->max += sizeof tail;
        (void)buf_puts(out, tail);
        return;
    }
    out->max += sizeof tail;
    jw_object_end(&w);
}

static bool is_bare(const char *s)
{
    for (const char *p = s; *p; p++)
        if (*p <= ' ' || *p == '"' || *p == '=' || *p == '\\' || *p == 0x7f)
            return false;
    return *s != '\0';
}

static void put_text_field(struct buf *out, const struct log_field *f)
{
    struct jw w = {.out = out, .ascii = true};

    (void)buf_printf(out, " %s=", f->key);
    if (!f->text)
        (void)buf_printf(out, "%" PRId64, f->number);
    else if (is_bare(f->text) && strlen(f->text) <= LOG_TEXT_MAX)
        (void)buf_puts(out, f->text);
    else
        put_text(&w, f->text);
}

static void put_plain(struct buf *out, enum log_level level, const char *event,
                      const struct log_field *fields, size_t n)
{
    char now[CLOCK_ISO_MAX];

    (void)buf_printf(out, "%s %-5s %s", clock_iso(now), level_names[level], event);
    for (size_t i = 0; i < n && !out->failed; i++) {
        size_t before = out->n;

        put_text_field(out, &fields[i]);
        if (out->failed)
            out->n = before;
    }
    out->failed = false;
}

void log_write(const struct log *l, enum log_level level, const char *event,
               const struct log_field *fields, size_t n)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(LOG_RECORD_MAX);
    ssize_t written;

    if (level < l->level)
        return;
    if (l->json)
        put_json(&out, l, level, event, fields, n);
    else
        put_plain(&out, level, event, fields, n);
    out.max++; /* the line feed fits always */
    if (buf_putc(&out, '\n') < 0)
        return;
    do
        written = write(l->fd, out.p, out.n);
    while (written < 0 && errno == EINTR); /* any other failure: nobody to tell */
}
