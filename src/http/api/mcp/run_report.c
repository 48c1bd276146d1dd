/* SPDX-License-Identifier: MIT */
#include "http/api/mcp/run_report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "app/daemon/app.h"
#include "base/clock.h"
#include "base/mime.h"
#include "base/os.h"
#include "base/random.h"
#include "base/utf8.h"
#include "core/denial.h"
#include "http/api/mcp/picture.h"
#include "http/api/mcp/resources.h"
#include "http/api/mcp/shown_text.h"
#include "http/api/mcp/tool_file.h"

enum {
    FILES_SEEN = 20000,
    FILES_DEPTH = 8,
    FILES_TOLD = 20, /* named in the text */
    LINKS_MAX = 10,
    WRITE_INLINE = 256 << 10, /* bytes; the result of more is written on a worker thread */
    US_PER_MS = 1000,
    US_PER_S = 1000000,
    WORDS_MAX = 256,
};

#define WORKSPACE "/workspace/"

static const char *const stream_names[] = {[RUN_OUT] = "stdout", [RUN_ERR] = "stderr"};
static const char *const status_names[] = {
    [REPORT_SUCCESS] = "success", [REPORT_FAILED] = "failed",   [REPORT_TIMEOUT] = "timeout",
    [REPORT_ERROR] = "error",     [REPORT_RUNNING] = "running",
};

/* ---- life ---- */

struct run_report *report_new(struct tool_call *t, struct persistent *home)
{
    struct run_report *r = calloc(1, sizeof *r);
    char hex[17];

    if (!r) {
        tool_refuse(t, "try again in a second", "out of memory");
        return NULL;
    }
    random_hex(hex, 8);
    (void)snprintf(r->id, sizeof r->id, "run_%s", hex);
    (void)snprintf(t->run, sizeof t->run, "%s", r->id);
    r->t = t;
    r->home = home;
    r->owner = t->x->call ? mcp_owner(t->x->app->mcp_side.sessions, mcp_token(t->x->call)) : 0;
    r->text_alone = strcmp(t->x->app->config.mcp_structured, "never") == 0;
    r->output.shown_max = t->x->app->config.mcp_output_chars;
    (void)snprintf(r->ran.place, sizeof r->ran.place, "%s", home->id);
    r->ran.began_us = clock_us();
    r->ran.began_at = os_file_clock();
    r->ran.exit_code = -1;
    r->value = BUF_INIT(MCP_ANSWER_MAX);
    r->text = r->tool_calls = BUF_INIT(REPORT_STREAM_MAX);
    r->error.type = r->error.message = r->error.stack = BUF_INIT(REPORT_STREAM_MAX);
    for (size_t i = 0; i < RUN_STREAMS; i++)
        r->output.out[i] = BUF_INIT(REPORT_STREAM_MAX);
    r->result = TOOL_RESULT;
    return r;
}

void report_free(struct run_report *r)
{
    if (r->writing) {
        r->left = true;
        work_forget(&r->work);
        return;
    }
    tool_file_leave(r->file);
    filework_free(r->walk);
    for (size_t i = 0; i < RUN_STREAMS; i++)
        buf_done(&r->output.out[i]);
    for (size_t i = 0; i < r->found.n; i++)
        free(r->found.all[i].path);
    buf_done(&r->value);
    buf_done(&r->text);
    buf_done(&r->tool_calls);
    buf_done(&r->error.type);
    buf_done(&r->error.message);
    buf_done(&r->error.stack);
    tool_result_done(&r->result);
    free(r->path);
    free(r);
}

void report_output(struct run_report *r, enum run_stream s, const char *p, size_t n)
{
    size_t room = r->output.out[s].max - r->output.out[s].n;

    r->output.lost[s] = r->output.lost[s] || n > room;
    (void)buf_put(&r->output.out[s], p, n < room ? n : room);
}

const char *report_line(struct run_report *r)
{
    const struct buf *b =
        r->output.out[RUN_OUT].n > 0 ? &r->output.out[RUN_OUT] : &r->output.out[RUN_ERR];
    size_t end = b->n, at;

    while (end > 0 && (b->p[end - 1] == '\n' || b->p[end - 1] == '\r'))
        end--;
    for (at = end; at > 0 && b->p[at - 1] != '\n' && end - at < REPORT_LINE_MAX;)
        at--;
    if (end == 0)
        return NULL;
    (void)snprintf(r->line, sizeof r->line, "%.*s", (int)(end - at), b->p + at);
    return r->line;
}

void report_hint(struct run_report *r, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(r->hint, sizeof r->hint, fmt, args);
    va_end(args);
}

void report_advise(struct run_report *r)
{
    const struct denial_facts facts = {
        .said = {&r->output.out[RUN_ERR], &r->error.stack}
    };
    unsigned set = r->hint[0] ? 0 : denials_find(&facts);

    if (set & BIT(DENIAL_MODULE))
        report_hint(r, "the package is not available; read the resource sbx://guide, or use the "
                       "standard library");
    else if (set & BIT(DENIAL_NETWORK))
        report_hint(r, "sandboxes have no network; bring the data as a file (write_file)");
    else if (set)
        report_hint(r, "%s", denials_hint(set, DENIAL_PERSISTENT));
}

/* ---- output that is too long ---- */

static bool is_cut(const struct run_report *r, enum run_stream s)
{
    return r->output.out[s].n > r->output.shown_max;
}

static void kept_path(const struct run_report *r, enum run_stream s, char out[WORDS_MAX])
{
    (void)snprintf(out, WORDS_MAX, "/tmp/sbx/%s.%s", r->id, stream_names[s]);
}

/* The head and the tail. */
static void put_stream(const struct run_report *r, enum run_stream s, struct buf *out)
{
    cleanup_with(buf_done) struct buf plain = BUF_INIT(r->output.out[s].n + 1);
    struct shown_cut cut;
    char path[WORDS_MAX];

    shown_plain(&plain, r->output.out[s].p ? r->output.out[s].p : "", r->output.out[s].n);
    if (!shown_cut(plain.p, plain.n, r->output.shown_max, &cut)) {
        (void)buf_put(out, plain.p ? plain.p : "", plain.n);
        return;
    }
    kept_path(r, s, path);
    (void)buf_put(out, plain.p, cut.head);
    (void)buf_printf(out,
                     "\n… [%zu characters cut; all of it is in %s: use read_file with offset, or "
                     "grep it with run_command] …\n",
                     cut.tail - cut.head, path);
    (void)buf_put(out, plain.p + cut.tail, plain.n - cut.tail);
}

/* ---- the answer ---- */

static void put_buf(struct buf *text, const char *label, const struct buf *b)
{
    shown_part(text, label, b->p ? b->p : "", b->n);
}

static void put_value(struct run_report *r, struct buf *text)
{
    const struct buf *v = r->text.n > 0 && r->value.n == 0 ? &r->text : &r->value;
    size_t n = v->n > REPORT_VALUE_MAX ? utf8_truncate(v->p, v->n, REPORT_VALUE_MAX) : v->n;

    shown_part(text, "[result] ", v->p ? v->p : "", n);
    if (n < v->n)
        (void)buf_printf(text, "… [%zu characters cut]", v->n - n);
}

static void put_files(const struct run_report *r, struct buf *text)
{
    size_t told = r->found.n < FILES_TOLD ? r->found.n : FILES_TOLD;

    if (told == 0)
        return;
    (void)buf_puts(text, text->n > 0 ? "\n[files] " : "[files] ");
    for (size_t i = 0; i < told; i++)
        (void)buf_printf(text, "%s%s (%llu bytes)", i > 0 ? ", " : "", r->found.all[i].path,
                         (unsigned long long)r->found.all[i].size);
    if (r->found.n + r->found.more > told)
        (void)buf_printf(text, ", and %zu more", r->found.n + r->found.more - told);
}

static void put_text(struct run_report *r)
{
    struct buf *text = &r->result.text;

    for (size_t s = 0; s < RUN_STREAMS; s++) {
        cleanup_with(buf_done) struct buf shown = BUF_INIT(REPORT_STREAM_MAX);

        put_stream(r, (enum run_stream)s, &shown);
        put_buf(text, s == RUN_ERR ? "[stderr]\n" : "", &shown);
    }
    put_value(r, text);
    if (r->error.stack.n > 0)
        put_buf(text, "[error] ", &r->error.stack);
    else if (r->error.type.n > 0)
        (void)buf_printf(text, "%s[error] %s: %s", text->n > 0 ? "\n" : "", r->error.type.p,
                         r->error.message.p ? r->error.message.p : "");
    if (r->hint[0])
        (void)buf_printf(text, "%s[hint] %s", text->n > 0 ? "\n" : "", r->hint);
    put_files(r, text);
    (void)buf_printf(text, "%s[%s", text->n > 0 ? "\n" : "", status_names[r->ran.status]);
    if (r->ran.exited && r->ran.exit_code != 0)
        (void)buf_printf(text, ", exit code %d", r->ran.exit_code);
    (void)buf_printf(text, " after %.2f s; ", (double)r->ran.took_us / US_PER_S);
    if (r->ran.process[0])
        (void)buf_printf(text, "process_id: %s; ", r->ran.process);
    (void)buf_printf(text, "sandbox: %s]", r->ran.place);
}

static void file_uri(const struct run_report *r, const char *path, struct buf *out)
{
    char whole[FILE_PATH_MAX + sizeof WORKSPACE];

    (void)snprintf(whole, sizeof whole, WORKSPACE "%s", path);
    mcp_file_uri(out, r->ran.place, whole);
}

static void write_files(const struct run_report *r, struct jw *w)
{
    if (r->found.n == 0)
        return;
    jw_key(w, "files");
    jw_array(w);
    for (size_t i = 0; i < r->found.n; i++) {
        cleanup_with(buf_done) struct buf uri = BUF_INIT(4 * FILE_PATH_MAX);

        file_uri(r, r->found.all[i].path, &uri);
        jw_object(w);
        jw_kv_string(w, "path", r->found.all[i].path);
        jw_kv_int(w, "size", (int64_t)r->found.all[i].size);
        jw_kv_string(w, "mime", mime_of(r->found.all[i].path));
        jw_kv_string(w, "uri", uri.p);
        jw_object_end(w);
    }
    jw_array_end(w);
}

static void write_cuts(const struct run_report *r, struct jw *w)
{
    char path[WORDS_MAX];

    if (!is_cut(r, RUN_OUT) && !is_cut(r, RUN_ERR))
        return;
    jw_key(w, "truncated");
    jw_array(w);
    for (size_t s = 0; s < RUN_STREAMS; s++) {
        if (!is_cut(r, (enum run_stream)s))
            continue;
        kept_path(r, (enum run_stream)s, path);
        jw_object(w);
        jw_kv_string(w, "stream", stream_names[s]);
        jw_kv_int(w, "characters", (int64_t)r->output.out[s].n);
        jw_kv_string(w, "file", path);
        jw_object_end(w);
    }
    jw_array_end(w);
}

static void write_value(const struct run_report *r, struct jw *w)
{
    if (r->value.n == 0 && r->text.n == 0)
        return;
    jw_key(w, "result");
    if (r->value.n > REPORT_VALUE_MAX)
        jw_null(w);
    else if (r->value.n > 0)
        jw_raw(w, r->value.p, r->value.n);
    else
        jw_bytes(w, r->text.p, utf8_truncate(r->text.p, r->text.n, REPORT_VALUE_MAX));
}

static void write_error(const struct run_report *r, struct jw *w)
{
    if (r->error.type.n == 0)
        return;
    jw_key(w, "error");
    jw_object(w);
    jw_kv_bytes(w, "type", r->error.type.p, r->error.type.n);
    jw_kv_bytes(w, "message", r->error.message.p ? r->error.message.p : "", r->error.message.n);
    jw_kv_bytes(w, "stack", r->error.stack.p ? r->error.stack.p : "", r->error.stack.n);
    jw_object_end(w);
}

static void put_data(struct run_report *r)
{
    struct jw w = JW(&r->result.data);

    jw_object(&w);
    jw_kv_string(&w, "status", status_names[r->ran.status]);
    for (size_t s = 0; s < RUN_STREAMS; s++) {
        cleanup_with(buf_done) struct buf shown = BUF_INIT(REPORT_STREAM_MAX);

        put_stream(r, (enum run_stream)s, &shown);
        jw_kv_bytes(&w, stream_names[s], shown.p ? shown.p : "", shown.n);
    }
    if (r->ran.exited)
        jw_kv_int(&w, "exit_code", r->ran.exit_code);
    write_value(r, &w);
    write_error(r, &w);
    if (r->hint[0])
        jw_kv_string(&w, "hint", r->hint);
    jw_kv_string(&w, "sandbox", r->ran.place);
    if (r->ran.process[0])
        jw_kv_string(&w, "process_id", r->ran.process);
    write_files(r, &w);
    write_cuts(r, &w);
    if (r->tool_calls.n > 0) {
        jw_key(&w, "tool_calls");
        jw_raw(&w, r->tool_calls.p, r->tool_calls.n);
    }
    jw_kv_int(&w, "duration_ms", (int64_t)(r->ran.took_us / US_PER_MS));
    jw_object_end(&w);
}

static bool is_image(const char *path)
{
    const char *type = mime_of(path);

    return strcmp(type, "image/png") == 0 || strcmp(type, "image/jpeg") == 0 ||
           strcmp(type, "image/gif") == 0 || strcmp(type, "image/webp") == 0;
}

/* Beside pictures the other files are links. */
static void put_links(struct run_report *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->found.n && n < LINKS_MAX && r->result.rich; i++) {
        cleanup_with(buf_done) struct buf uri = BUF_INIT(4 * FILE_PATH_MAX);

        if (is_image(r->found.all[i].path))
            continue;
        file_uri(r, r->found.all[i].path, &uri);
        if (uri.failed)
            continue;
        tool_add_link(&r->result, uri.p, r->found.all[i].path, mime_of(r->found.all[i].path));
        n++;
    }
}

/* On a worker thread, or for a little output in the loop. */
static void write_all(struct work *work)
{
    struct run_report *r = (struct run_report *)work;

    put_links(r);
    put_text(r);
    if (!r->text_alone)
        put_data(r);
    (void)buf_printf(&r->result.meta, "\"io.sandbox-executor/run\":\"%s\"", r->id);
    r->result.is_error = r->is_error;
}

static void on_all_written(struct work *work)
{
    struct run_report *r = (struct run_report *)work;
    struct tool_call *t = r->t;
    struct tool_result result;

    r->writing = false;
    if (r->left) {
        report_free(r);
        return;
    }
    result = r->result;
    r->result = TOOL_RESULT;
    report_free(r);
    tool_answer(t, &result);
}

static void finish(struct run_report *r)
{
    size_t n = r->output.out[RUN_OUT].n + r->output.out[RUN_ERR].n + r->value.n + r->text.n +
               r->error.stack.n + r->error.message.n;

    r->ran.took_us = clock_us() - r->ran.began_us;
    r->work.run = write_all;
    r->work.done = on_all_written;
    r->work.lane = work_lane_of(n);
    if (n > WRITE_INLINE) {
        r->writing = true;
        work_submit(r->t->x->app->work, &r->work);
        return;
    }
    write_all(&r->work);
    on_all_written(&r->work);
}

/* ---- pictures ---- */

static void next_image(struct run_report *r);

static void on_image(void *user, struct tool_file_end *end)
{
    struct run_report *r = user;

    r->file = NULL;
    if (end->sys == 0 && picture_can_be_shown(end->bytes->p, end->bytes->n)) {
        tool_add_image(&r->result, mime_of(r->path), end->bytes->p, end->bytes->n);
        r->found.images_n++;
    }
    next_image(r);
}

static void next_image(struct run_report *r)
{
    struct tool_file_reader reader = {.max = TOOL_IMAGE_MAX, .done = on_image, .user = r};

    while (r->found.image_at < r->found.n && r->found.images_n < REPORT_IMAGES_MAX) {
        const struct report_file *f = &r->found.all[r->found.image_at++];

        if (!is_image(f->path) || f->size > TOOL_IMAGE_MAX)
            continue;
        free(take_ptr(&r->path));
        if (asprintf(&r->path, "/workspace/%s", f->path) < 0) {
            r->path = NULL;
            break;
        }
        r->file = tool_file_read(r->home, r->path, &reader);
        if (r->file)
            return;
    }
    finish(r);
}

/* ---- new files ---- */

static bool is_new(const struct run_report *r, const struct file_entry *e)
{
    const struct timespec *began = &r->ran.began_at;

    return e->modified.s > began->tv_sec ||
           (e->modified.s == began->tv_sec && (int64_t)e->modified.ns >= began->tv_nsec);
}

static bool on_entry(void *user, const struct file_entry *e)
{
    struct run_report *r = user;

    if (!S_ISREG(e->mode) || !is_new(r, e) || e->path.n == 0 || e->path.p[0] == '.' ||
        memmem(e->path.p, e->path.n, "/.", 2) || memmem(e->path.p, e->path.n, "__pycache__", 11))
        return true;
    if (r->found.n < REPORT_FILES_MAX) {
        r->found.all[r->found.n].path = strndup(e->path.p, e->path.n);
        r->found.all[r->found.n].size = e->size;
        r->found.n += r->found.all[r->found.n].path != NULL;
    } else {
        r->found.more++;
    }
    return true;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct report_file *)a)->path, ((const struct report_file *)b)->path);
}

static void note_files(struct run_report *r)
{
    char path[FILE_PATH_MAX + sizeof WORKSPACE];

    for (size_t i = 0; i < r->found.n; i++) {
        (void)snprintf(path, sizeof path, WORKSPACE "%s", r->found.all[i].path);
        left_files_note(&r->t->x->app->mcp_side.sessions->left, r->owner, r->home->id, path,
                        r->found.all[i].size);
    }
}

static void on_walked(void *user, struct file_result *result)
{
    struct run_report *r = user;

    (void)result;
    r->walk = NULL;
    if (r->found.n > 0)
        qsort(r->found.all, r->found.n, sizeof *r->found.all, by_path);
    note_files(r);
    next_image(r);
}

static void find_files(struct run_report *r)
{
    static const char workspace[] = "/workspace";
    const struct file_order o = {
        .verb = FILE_WALK,
        .path = {workspace, sizeof workspace - 1},
        .entries_max = FILES_SEEN,
        .depth_max = FILES_DEPTH
    };
    struct err e;

    if (filework_start(&r->home->inside.files, &o, on_walked, r, &r->walk, &e) < 0)
        finish(r);
    else
        filework_on_entry(r->walk, on_entry);
}

/* ---- the whole output ---- */

static void keep_next(struct run_report *r);

static void on_kept(void *user, struct tool_file_end *end)
{
    struct run_report *r = user;

    (void)end;
    r->file = NULL;
    r->output.keeping++;
    keep_next(r);
}

static void keep_next(struct run_report *r)
{
    char path[WORDS_MAX];

    for (; r->output.keeping < RUN_STREAMS; r->output.keeping++) {
        struct buf copy = BUF_INIT(REPORT_STREAM_MAX);

        if (!is_cut(r, r->output.keeping))
            continue;
        kept_path(r, r->output.keeping, path);
        free(r->path);
        r->path = strdup(path);
        (void)buf_put(&copy, r->output.out[r->output.keeping].p,
                      r->output.out[r->output.keeping].n);
        r->file =
            r->path && !copy.failed ? tool_file_write(r->home, r->path, &copy, on_kept, r) : NULL;
        buf_done(&copy);
        if (r->file)
            return;
    }
    find_files(r);
}

void report_answer(struct run_report *r)
{
    if (r->home->state == PERSISTENT_ENDING)
        finish(r);
    else
        keep_next(r);
}
