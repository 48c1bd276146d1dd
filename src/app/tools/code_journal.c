/* SPDX-License-Identifier: MIT */
#include "app/tools/code_journal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/jw.h"

enum { ROWS_MAX = 2 * CODE_BYTES_MAX, ROW_ROOM = 512, ID_MAX = 32, US_PER_MS = 1000 };

struct kept_journal {
    TAILQ_ENTRY(kept_journal) link;
    char id[ID_MAX + 1];
    struct buf rows; /* owned: a JSON array */
};
TAILQ_HEAD(kept_list, kept_journal);

struct code_journals {
    struct kept_list kept; /* the newest first */
    size_t n, bytes;
};

/* ---- one ---- */

void code_journal_init(struct code_journal *j)
{
    *j = (struct code_journal){.rows = BUF_INIT(ROWS_MAX),
                               .shown = BUF_INIT(CODE_SHOWN_MAX * ROW_ROOM)};
}

void code_journal_done(struct code_journal *j)
{
    buf_done(&j->rows);
    buf_done(&j->shown);
}

static void begin_row(struct jw *w, const struct code_note *n)
{
    (void)buf_putc(w->out, ',');
    jw_object(w);
    jw_kv_string(w, "tool", n->tool);
    jw_kv_double(w, "ms", (double)n->us / US_PER_MS, 3);
    jw_kv_bool(w, "ok", n->ok);
    jw_kv_int(w, "bytes_in", (int64_t)n->arguments.n);
    jw_kv_int(w, "bytes_out", (int64_t)n->bytes_out);
}

void code_journal_note(struct code_journal *j, const struct code_note *n)
{
    struct jw whole = JW(&j->rows), shown = JW(&j->shown);
    size_t before = j->rows.n;

    if (j->n++ < CODE_SHOWN_MAX) {
        begin_row(&shown, n);
        jw_object_end(&shown);
    }
    begin_row(&whole, n);
    if (n->arguments.n > 0 && n->arguments.n <= CODE_NOTED_MAX) {
        jw_key(&whole, "arguments");
        jw_raw(&whole, n->arguments.p, n->arguments.n);
    }
    if (n->answer.n > 0 && n->answer.n <= CODE_NOTED_MAX) {
        jw_key(&whole, "answer");
        (void)buf_putc(&j->rows, '{');
        (void)buf_put(&j->rows, n->answer.p, n->answer.n);
        (void)buf_putc(&j->rows, '}');
    }
    jw_object_end(&whole);
    if (j->rows.failed) { /* without what was not written whole */
        j->rows.failed = false;
        j->rows.n = before;
    }
}

static void write_rows(const struct buf *rows, struct buf *out)
{
    (void)buf_putc(out, '[');
    if (rows->n > 0)
        (void)buf_put(out, rows->p + 1, rows->n - 1);
    (void)buf_putc(out, ']');
}

void code_journal_write(const struct code_journal *j, struct buf *out)
{
    if (j->n > 0)
        write_rows(&j->shown, out);
}

/* ---- those that are kept ---- */

int code_journals_new(struct code_journals **ret, struct err *e)
{
    struct code_journals *all = calloc(1, sizeof *all);

    if (!all)
        return err_set(e, ERR_HOST, "no memory for journals");
    TAILQ_INIT(&all->kept);
    *ret = all;
    return 0;
}

static void forget(struct code_journals *all, struct kept_journal *k)
{
    TAILQ_REMOVE(&all->kept, k, link);
    all->n--;
    all->bytes -= k->rows.n;
    buf_done(&k->rows);
    free(k);
}

void code_journals_free(struct code_journals *all)
{
    if (!all)
        return;
    while (!TAILQ_EMPTY(&all->kept))
        forget(all, TAILQ_FIRST(&all->kept));
    free(all);
}

void code_journal_keep(struct code_journals *all, struct code_journal *j, const char *id)
{
    struct kept_journal *k = j->n > 0 ? calloc(1, sizeof *k) : NULL;

    if (!k)
        return;
    (void)snprintf(k->id, sizeof k->id, "%s", id);
    k->rows = j->rows;
    if (k->rows.p)
        k->rows.p[0] = '['; /* instead of the comma of the first row */
    (void)buf_putc(&k->rows, ']');
    j->rows = BUF_INIT(ROWS_MAX);
    TAILQ_INSERT_HEAD(&all->kept, k, link);
    all->n++;
    all->bytes += k->rows.n;
    while (all->n > CODE_JOURNALS_MAX || all->bytes > CODE_JOURNALS_BYTES)
        forget(all, TAILQ_LAST(&all->kept, kept_list));
}

struct bytes code_journal_find(const struct code_journals *all, const char *id)
{
    const struct kept_journal *k;

    TAILQ_FOREACH(k, &all->kept, link)
    if (strcmp(k->id, id) == 0)
        return (struct bytes){k->rows.p, k->rows.n};
    return (struct bytes){0};
}
