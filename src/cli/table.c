/* SPDX-License-Identifier: MIT */
#include "cli/table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/utf8.h"

enum { TABLE_BYTES_MAX = 16 << 20, CELL_COLUMNS_MAX = 60, MINUTE = 60, HOUR = 3600, DAY = 86400 };

bool is_colourful(FILE *f)
{
    const char *term = getenv("TERM"), *no = getenv("NO_COLOR");

    return isatty(fileno(f)) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

/* Length of the next character, and whether a terminal may see it: no control character of ASCII
 * or of ISO 6429. */
static size_t next_safe(const char *p, size_t n, bool *ret_safe)
{
    bool whole = true;
    size_t k = utf8_next(p, n, &whole);
    uint32_t c = whole ? utf8_decode(p, k) : 0;

    *ret_safe = c >= 0x20 && !(c >= 0x7f && c < 0xa0);
    return k;
}

static void put_safe(struct buf *out, const char *text, size_t columns)
{
    size_t n = strlen(text), at = 0, safe_n;
    bool safe;

    for (size_t i = 0; at < n && i < columns; i++, at += safe_n) {
        safe_n = next_safe(text + at, n - at, &safe);
        (void)buf_put(out, safe ? text + at : "?", safe ? safe_n : 1);
    }
    if (at < n)
        (void)buf_puts(out, "…");
}

void print_safe(const char *text, FILE *out)
{
    struct buf line = BUF_INIT(TABLE_BYTES_MAX);

    put_safe(&line, text, TABLE_BYTES_MAX);
    (void)fwrite(line.p ? line.p : "", 1, line.n, out);
    buf_done(&line);
}

void table_init(struct table *t, const char *const head[])
{
    *t = (struct table){.text = BUF_INIT(TABLE_BYTES_MAX)};
    for (; head[t->columns] && t->columns < TABLE_COLUMNS_MAX; t->columns++)
        table_cell(t, head[t->columns]);
}

void table_done(struct table *t)
{
    buf_done(&t->text);
}

void table_cell(struct table *t, const char *text)
{
    put_safe(&t->text, text && *text ? text : "-", CELL_COLUMNS_MAX);
    if (buf_putc(&t->text, '\0') == 0)
        t->cells++;
}

void table_number(struct table *t, int64_t n)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%" PRId64, n);
    table_cell(t, text);
}

const char *size_text(int64_t n, char out[SIZE_TEXT_MAX])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double v = (double)n;
    size_t i = 0;

    for (; v >= 1024 && i + 1 < sizeof units / sizeof units[0]; i++)
        v /= 1024;
    (void)snprintf(out, SIZE_TEXT_MAX, i && v < 10 ? "%.1f %s" : "%.0f %s", v, units[i]);
    return out;
}

void table_bytes(struct table *t, int64_t n)
{
    char text[SIZE_TEXT_MAX];

    table_cell(t, size_text(n, text));
}

void table_age(struct table *t, const char *since)
{
    struct tm at = {0};
    char text[32];
    long s;

    if (!since || !strptime(since, "%Y-%m-%dT%H:%M:%S", &at)) {
        table_cell(t, NULL);
        return;
    }
    s = (long)(time(NULL) - timegm(&at));
    s = s > 0 ? s : 0;
    if (s < MINUTE)
        (void)snprintf(text, sizeof text, "%ld s", s);
    else if (s < HOUR)
        (void)snprintf(text, sizeof text, "%ld min", s / MINUTE);
    else if (s < 2 * DAY)
        (void)snprintf(text, sizeof text, "%ld h", s / HOUR);
    else
        (void)snprintf(text, sizeof text, "%ld days", s / DAY);
    table_cell(t, text);
}

/* Columns that it takes, where each character takes one. */
static size_t width(const char *text)
{
    size_t n = 0;

    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

void table_print(const struct table *t, FILE *out)
{
    size_t widest[TABLE_COLUMNS_MAX] = {0}, column = 0;
    bool bold = is_colourful(out);
    const char *p = t->text.p;

    for (size_t i = 0; i < t->cells; i++, p += strlen(p) + 1) {
        size_t n = width(p);

        widest[i % t->columns] = n > widest[i % t->columns] ? n : widest[i % t->columns];
    }
    p = t->text.p;
    for (size_t i = 0; i < t->cells; i++, p += strlen(p) + 1) {
        bool last = column + 1 == t->columns;

        if (bold && i == 0)
            (void)fputs("\033[1m", out);
        (void)fprintf(out, "%s%*s", p, last ? 0 : (int)(widest[column] + 2 - width(p)), "");
        if (bold && i + 1 == t->columns)
            (void)fputs("\033[0m", out);
        if (last)
            (void)fputc('\n', out);
        column = last ? 0 : column + 1;
    }
}
