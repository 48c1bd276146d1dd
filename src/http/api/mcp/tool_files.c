/* SPDX-License-Identifier: MIT */
/* read_file, write_file, edit_file, list_files. */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "app/daemon/app.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/mime.h"
#include "base/utf8.h"
#include "http/api/mcp/tool_file.h"
#include "http/api/mcp/tools.h"

enum {
    READ_CHARACTERS = 60000, /* of a text in one result */
    READ_LINES = 1000,
    READ_LINES_MAX = 5000,
    BINARY_SHOWN = 16, /* first bytes of a file that is no text */
    AROUND = 3,        /* lines shown around a change */
    LIST_SHOWN = 500,  /* entries of a list */
    LIST_SEEN = 20000, /* entries looked at */
    LIST_DEPTH_MAX = 10,
    FACT_MAX = 256,
};

static const char list_hint[] = "list_files shows what is there";

/* clang-format off */
#define AT(member) offsetof(struct tool_read_file, member)
static const struct shape_field read_fields[] = {
    {"path", SHAPE_STRING, SHAPE_REQUIRED, AT(path)},
    {"sandbox", SHAPE_STRING, 0, AT(sandbox)},
    {"offset", SHAPE_INT, 0, AT(offset), 1, INT64_MAX},
    {"limit", SHAPE_INT, 0, AT(limit), 1, READ_LINES_MAX},
};
#undef AT
const struct shape tool_read_file_shape = {read_fields, ARRAY_LEN(read_fields), 0, NULL};

static const char *const encodings[] = {"utf-8", "base64", NULL};
#define AT(member) offsetof(struct tool_write_file, member)
static const struct shape_field write_fields[] = {
    {"path", SHAPE_STRING, SHAPE_REQUIRED, AT(path)},
    {"content", SHAPE_STRING, SHAPE_REQUIRED, AT(content)},
    {"encoding", SHAPE_CHOICE, 0, AT(encoding), .words = encodings},
    {"sandbox", SHAPE_STRING, 0, AT(sandbox)},
};
#undef AT
const struct shape tool_write_file_shape = {write_fields, ARRAY_LEN(write_fields), 0, NULL};

#define AT(member) offsetof(struct tool_edit_file, member)
static const struct shape_field edit_fields[] = {
    {"path", SHAPE_STRING, SHAPE_REQUIRED, AT(path)},
    {"old_text", SHAPE_STRING, SHAPE_REQUIRED, AT(old_text)},
    {"new_text", SHAPE_STRING, SHAPE_REQUIRED, AT(new_text)},
    {"replace_all", SHAPE_BOOL, 0, AT(replace_all)},
    {"sandbox", SHAPE_STRING, 0, AT(sandbox)},
};
#undef AT
const struct shape tool_edit_file_shape = {edit_fields, ARRAY_LEN(edit_fields), 0, NULL};

#define AT(member) offsetof(struct tool_list_files, member)
static const struct shape_field list_fields[] = {
    {"path", SHAPE_STRING, 0, AT(path)},
    {"sandbox", SHAPE_STRING, 0, AT(sandbox)},
    {"depth", SHAPE_INT, 0, AT(depth), 1, LIST_DEPTH_MAX},
    {"pattern", SHAPE_STRING, 0, AT(pattern)},
};
#undef AT
const struct shape tool_list_files_shape = {list_fields, ARRAY_LEN(list_fields), 0, NULL};
/* clang-format on */

/* ---- one tool at work on one path ---- */

struct job {
    struct tool_call *t;
    struct persistent *home; /* borrowed: the call is an activity in it */
    char *path;              /* owned: absolute */
    struct tool_file *file;  /* what is read or written */
    struct filework *work;   /* owned: what is listed or looked at */
    struct buf content;      /* to be written */
    struct tool_result result;
    bool created;
    struct found *found; /* owned: of list_files */
    size_t found_n, found_room, seen;
};

struct found {
    char *path; /* owned */
    char type;
    uint64_t size;
    char modified[CLOCK_ISO_MAX];
};

static void job_done(struct job *j)
{
    tool_file_leave(j->file);
    filework_free(j->work);
    tool_result_done(&j->result);
    buf_done(&j->content);
    for (size_t i = 0; i < j->found_n; i++)
        free(j->found[i].path);
    free(j->found);
    free(j->path);
    free(j);
}

static void on_stop(void *user)
{
    struct job *j = user;
    struct tool_call *t = j->t;

    job_done(j);
    tool_free(t);
}

static void answer(struct job *j)
{
    struct tool_call *t = j->t;
    struct tool_result r = j->result;

    j->result = TOOL_RESULT;
    job_done(j);
    tool_answer(t, &r);
}

static void refuse(struct job *j, const char *hint, const char *words)
{
    struct tool_call *t = j->t;
    char path[FACT_MAX];

    (void)snprintf(path, sizeof path, "%.200s", j->path);
    job_done(j);
    tool_refuse(t, hint, "%s: %s", path, words);
}

static void refuse_sys(struct job *j, int sys)
{
    if (sys == EISDIR)
        refuse(j, "use list_files", "it is a directory");
    else if (sys == ENOTDIR)
        refuse(j, "use read_file", "it is a file, or one of its parents is");
    else if (sys == EFBIG)
        refuse(j, "read a part of it with run_command (head, tail, sed, grep)",
               "the file is too large to be read whole");
    else
        refuse(j, sys == ENOENT ? list_hint : NULL, tool_file_words(sys));
}

/* NULL: answered. */
static struct job *job_new(struct tool_call *t, struct bytes path, struct bytes sandbox,
                           enum tool_need need)
{
    const struct mcp_worker stop = {.stop = on_stop};
    struct persistent *home = tool_sandbox(t, sandbox, need);
    struct job *j = home ? calloc(1, sizeof *j) : NULL;
    struct mcp_worker w = stop;

    if (!home)
        return NULL;
    if (j)
        j->path = tool_path(home, path);
    if (!j || !j->path) {
        free(j);
        tool_refuse(t, list_hint, "path: it is too long, or has a NUL byte");
        return NULL;
    }
    j->t = t;
    j->home = home;
    j->result = TOOL_RESULT;
    w.user = j;
    tool_wait_in(t, home, &w);
    return j;
}

static void refuse_busy(struct job *j)
{
    refuse(j, "try again in a second", "the sandbox is busy");
}

/* ---- read_file ---- */

struct read_plan {
    uint64_t offset, limit;
    char place[PERSISTENT_ID_MAX + 1];
    bool is_text;
    struct tool_result result; /* made on a worker thread */
};

static const char *image_type(const char *path)
{
    const char *type = mime_of(path);

    return strcmp(type, "image/png") == 0 || strcmp(type, "image/jpeg") == 0 ||
                   strcmp(type, "image/gif") == 0 || strcmp(type, "image/webp") == 0
               ? type
               : NULL;
}

struct span {
    size_t at, n;
    uint64_t first, last, all; /* lines */
};

/* The lines that were asked for, at most READ_CHARACTERS bytes of them. */
static struct span choose_lines(const struct buf *b, uint64_t offset, uint64_t limit)
{
    struct span s = {.first = offset, .last = offset - 1};
    uint64_t line = 0;

    for (size_t at = 0; at < b->n;) {
        const char *end = memchr(b->p + at, '\n', b->n - at);
        size_t n = end ? (size_t)(end - (b->p + at)) + 1 : b->n - at;

        line++;
        if (line == offset)
            s.at = at;
        if (line >= offset && line < offset + limit && s.n + n <= READ_CHARACTERS &&
            s.last + 1 == line) {
            s.n += n;
            s.last = line;
        }
        at += n;
    }
    s.all = line;
    return s;
}

static void look_text(struct read_plan *p, const struct buf *b)
{
    struct span s = choose_lines(b, p->offset, p->limit);
    char fact[FACT_MAX];
    size_t n = s.n;
    int k;

    if (s.last < s.first && s.first <= s.all) { /* one line that is too long */
        n = utf8_truncate(b->p + s.at, b->n - s.at, READ_CHARACTERS);
        s.last = s.first;
        (void)buf_put(&p->result.text, b->p + s.at, n);
        (void)buf_puts(&p->result.text, "\n… [cut in this line]");
    } else {
        if (n > 0 && b->p[s.at + n - 1] == '\n')
            n--;
        (void)buf_put(&p->result.text, b->n > 0 ? b->p + s.at : "", n);
    }
    if (s.first == 1 && s.last == s.all)
        return;
    k = snprintf(fact, sizeof fact, "[lines %llu to %llu of %llu", (unsigned long long)s.first,
                 (unsigned long long)s.last, (unsigned long long)s.all);
    if (s.last < s.all)
        k += snprintf(fact + k, sizeof fact - (size_t)k, "; go on with offset: %llu",
                      (unsigned long long)s.last + 1);
    k += snprintf(fact + k, sizeof fact - (size_t)k, "; sandbox: %s]", p->place);
    tool_add_text(&p->result, fact, (size_t)k);
}

static void on_look(void *plan, struct buf *b)
{
    struct read_plan *p = plan;

    p->is_text =
        utf8_is_valid(b->n > 0 ? b->p : "", b->n) && !(b->n > 0 && memchr(b->p, '\0', b->n));
    if (p->is_text)
        look_text(p, b);
}

static void describe_binary(struct job *j, const struct buf *b)
{
    struct buf *text = &j->result.text;

    (void)buf_printf(text, "%s: binary file of %zu bytes, begins with ", j->path, b->n);
    for (size_t i = 0; i < b->n && i < BINARY_SHOWN; i++)
        (void)buf_printf(text, "%02x", (unsigned char)b->p[i]);
    (void)buf_printf(text, "; look at it with run_command (od, file) [sandbox: %s]", j->home->id);
}

static void on_read(void *user, struct tool_file_end *end)
{
    struct job *j = user;
    struct read_plan *p = end->plan;
    const char *image = image_type(j->path);

    j->file = NULL;
    if (end->sys) {
        refuse_sys(j, end->sys);
        return;
    }
    if (image && end->bytes->n <= TOOL_IMAGE_MAX) {
        (void)buf_printf(&j->result.text, "%s (%zu bytes) [sandbox: %s]", j->path, end->bytes->n,
                         j->home->id);
        tool_add_image(&j->result, image, end->bytes->p, end->bytes->n);
    } else if (image) {
        (void)buf_printf(&j->result.text,
                         "%s: a picture of %zu bytes, too large to be shown; make it smaller first",
                         j->path, end->bytes->n);
        j->result.is_error = true;
    } else if (p->is_text) {
        tool_result_done(&j->result);
        j->result = p->result;
        p->result = TOOL_RESULT;
    } else {
        describe_binary(j, end->bytes);
    }
    answer(j);
}

static void read_plan_free(void *plan)
{
    struct read_plan *p = plan;

    tool_result_done(&p->result);
    free(p);
}

void tool_read_file(struct tool_call *t)
{
    const struct tool_read_file *a = t->arguments;
    struct job *j = job_new(t, a->path, a->sandbox, TOOL_READS);
    struct tool_file_reader r = {.max = TOOL_FILE_MAX,
                                 .look = on_look,
                                 .plan_free = read_plan_free,
                                 .done = on_read,
                                 .user = j};
    struct read_plan *p;

    if (!j)
        return;
    p = calloc(1, sizeof *p);
    if (p) {
        p->offset = a->offset > 0 ? (uint64_t)a->offset : 1;
        p->limit = a->limit > 0 ? (uint64_t)a->limit : READ_LINES;
        p->result = TOOL_RESULT;
        (void)snprintf(p->place, sizeof p->place, "%s", j->home->id);
        r.plan = p;
        j->file = tool_file_read(j->home, j->path, &r);
    }
    if (!j->file)
        refuse_busy(j);
}

/* ---- write_file ---- */

static void on_written(void *user, struct tool_file_end *end)
{
    struct job *j = user;
    struct jw w = JW(&j->result.data);

    j->file = NULL;
    if (end->sys) {
        refuse_sys(j, end->sys);
        return;
    }
    jw_object(&w);
    jw_kv_string(&w, "path", j->path);
    jw_kv_int(&w, "size", (int64_t)end->size);
    jw_kv_bool(&w, "created", j->created);
    jw_kv_string(&w, "sandbox", j->home->id);
    jw_object_end(&w);
    (void)buf_put(&j->result.text, j->result.data.p, j->result.data.n);
    answer(j);
}

static void write_now(struct job *j, tool_file_fn *done)
{
    j->file = tool_file_write(j->home, j->path, &j->content, done, j);
    if (!j->file)
        refuse_busy(j);
}

static void on_looked(void *user, struct file_result *r)
{
    struct job *j = user;

    j->work = NULL;
    j->created = r->sys == ENOENT;
    write_now(j, on_written);
}

void tool_write_file(struct tool_call *t)
{
    const struct tool_write_file *a = t->arguments;
    struct job *j = job_new(t, a->path, a->sandbox, TOOL_MAKES);
    struct file_order look = {.verb = FILE_STAT};
    struct err e;

    if (!j)
        return;
    j->content = BUF_INIT(a->content.n + 1);
    if (a->encoding == 1 && base64_decode(a->content.p, a->content.n, &j->content) < 0) {
        refuse(j, "encode the bytes with Base64, or leave out encoding for text",
               "content is not valid Base64");
        return;
    }
    if (a->encoding == 0)
        (void)buf_put(&j->content, a->content.p, a->content.n);
    look.path = (struct bytes){j->path, strlen(j->path)};
    if (filework_start(&j->home->inside.files, &look, on_looked, j, &j->work, &e) < 0)
        refuse_busy(j);
}

/* ---- edit_file ---- */

struct edit_plan {
    char *old_text, *new_text; /* owned */
    size_t old_n, new_n;
    bool all;
    size_t found;
    uint64_t line;    /* of the first place */
    struct buf after; /* the new content */
    struct buf shown; /* the changed lines with some around */
};

static void edit_plan_free(void *plan)
{
    struct edit_plan *p = plan;

    free(p->old_text);
    free(p->new_text);
    buf_done(&p->after);
    buf_done(&p->shown);
    free(p);
}

/* The lines around [from, to) of the new content. */
static void show_around(struct edit_plan *p, size_t from, size_t to)
{
    const struct buf *b = &p->after;
    uint64_t line = p->line;
    size_t end = to;

    while (from > 0 && b->p[from - 1] != '\n')
        from--;
    for (int i = 0; i < AROUND && from > 0; i++) {
        from--;
        while (from > 0 && b->p[from - 1] != '\n')
            from--;
        line--;
    }
    for (int i = 0; i <= AROUND && end < b->n; i++) {
        const char *nl = memchr(b->p + end, '\n', b->n - end);

        end = nl ? (size_t)(nl - b->p) + 1 : b->n;
    }
    while (from < end && p->shown.n < READ_CHARACTERS) {
        const char *nl = memchr(b->p + from, '\n', end - from);
        size_t n = nl ? (size_t)(nl - (b->p + from)) : end - from;

        (void)buf_printf(&p->shown, "%6llu\t", (unsigned long long)line++);
        (void)buf_put(&p->shown, b->p + from, n);
        (void)buf_putc(&p->shown, '\n');
        from += n + 1;
    }
}

static void on_edit(void *plan, struct buf *b)
{
    struct edit_plan *p = plan;
    size_t at = 0, first = 0;
    const char *hit;

    p->after = BUF_INIT(2 * (size_t)TOOL_FILE_MAX);
    p->shown = BUF_INIT(2 * READ_CHARACTERS);
    while (p->old_n > 0 && b->n > at &&
           (hit = memmem(b->p + at, b->n - at, p->old_text, p->old_n))) {
        if (p->found++ == 0) {
            first = (size_t)(hit - b->p);
            p->line = 1;
            for (size_t i = 0; i < first; i++)
                p->line += b->p[i] == '\n';
        }
        (void)buf_put(&p->after, b->p + at, (size_t)(hit - (b->p + at)));
        (void)buf_put(&p->after, p->new_text, p->new_n);
        at = (size_t)(hit - b->p) + p->old_n;
    }
    (void)buf_put(&p->after, b->n > at ? b->p + at : "", b->n - at);
    if (p->found > 0 && !p->after.failed)
        show_around(p, first, first + p->new_n);
}

static void on_edited(void *user, struct tool_file_end *end)
{
    struct job *j = user;

    j->file = NULL;
    if (end->sys)
        refuse_sys(j, end->sys);
    else
        answer(j);
}

static void describe_edit(struct job *j, const struct edit_plan *p)
{
    struct jw w = JW(&j->result.data);

    jw_object(&w);
    jw_kv_string(&w, "path", j->path);
    jw_kv_int(&w, "replaced", (int64_t)p->found);
    jw_kv_int(&w, "line", (int64_t)p->line);
    jw_kv_string(&w, "sandbox", j->home->id);
    jw_object_end(&w);
    (void)buf_put(&j->result.text, p->shown.p ? p->shown.p : "", p->shown.n);
    (void)buf_printf(&j->result.text, "[%s: %zu replaced, the first in line %llu; sandbox: %s]",
                     j->path, p->found, (unsigned long long)p->line, j->home->id);
}

static void on_read_for_edit(void *user, struct tool_file_end *end)
{
    struct job *j = user;
    struct edit_plan *p = end->plan;
    char words[FACT_MAX];

    j->file = NULL;
    if (end->sys) {
        refuse_sys(j, end->sys);
    } else if (p->found == 0) {
        refuse(j, "read_file shows the exact text, with its indentation",
               "old_text was not found; nothing was changed");
    } else if (p->found > 1 && !p->all) {
        (void)snprintf(words, sizeof words, "old_text occurs %zu times; nothing was changed",
                       p->found);
        refuse(j, "give more lines around the place, or set replace_all", words);
    } else if (p->after.failed) {
        refuse_sys(j, EFBIG);
    } else {
        describe_edit(j, p);
        j->content = p->after;
        p->after = BUF_INIT(0);
        write_now(j, on_edited);
    }
}

void tool_edit_file(struct tool_call *t)
{
    const struct tool_edit_file *a = t->arguments;
    struct job *j = job_new(t, a->path, a->sandbox, TOOL_READS);
    struct edit_plan *p = j ? calloc(1, sizeof *p) : NULL;
    struct tool_file_reader r = {.max = TOOL_FILE_MAX,
                                 .look = on_edit,
                                 .plan = p,
                                 .plan_free = edit_plan_free,
                                 .done = on_read_for_edit,
                                 .user = j};

    if (!j)
        return;
    if (p) {
        p->old_text = malloc(a->old_text.n + 1);
        p->new_text = malloc(a->new_text.n + 1);
        p->old_n = a->old_text.n;
        p->new_n = a->new_text.n;
        p->all = a->replace_all;
    }
    if (!p || !p->old_text || !p->new_text) {
        if (p)
            edit_plan_free(p);
        refuse_busy(j);
        return;
    }
    memcpy(p->old_text, a->old_text.p, a->old_text.n);
    memcpy(p->new_text, a->new_text.p, a->new_text.n);
    j->file = tool_file_read(j->home, j->path, &r);
    if (!j->file)
        refuse_busy(j);
}

/* ---- list_files ---- */

static bool is_hidden(struct bytes path)
{
    return path.n > 0 && (path.p[0] == '.' || memmem(path.p, path.n, "/.", 2));
}

static bool matches(const struct tool_list_files *a, const char *path)
{
    const char *name = strrchr(path, '/');

    return !a->pattern.p || fnmatch(a->pattern.p, name ? name + 1 : path, FNM_PERIOD) == 0;
}

static bool keep_found(struct job *j, const struct file_entry *e)
{
    struct found *f;

    if (j->found_n == j->found_room) {
        size_t room = j->found_room ? 2 * j->found_room : 64;

        f = reallocarray(j->found, room, sizeof *f);
        if (!f)
            return false;
        j->found = f;
        j->found_room = room;
    }
    f = &j->found[j->found_n];
    f->path = strndup(e->path.p, e->path.n);
    if (!f->path)
        return false;
    f->type = S_ISDIR(e->mode) ? 'd' : S_ISLNK(e->mode) ? 'l' : 'f';
    f->size = e->size;
    (void)clock_iso_at(e->modified.s, e->modified.ns, f->modified);
    j->found_n++;
    return true;
}

static bool on_entry(void *user, const struct file_entry *e)
{
    struct job *j = user;
    char path[FILE_PATH_MAX + 1];

    if (is_hidden(e->path) || e->path.n >= sizeof path)
        return true;
    (void)snprintf(path, sizeof path, "%.*s", (int)e->path.n, e->path.p);
    if (!matches(j->t->arguments, path))
        return true;
    j->seen++;
    (void)keep_found(j, e);
    return true;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct found *)a)->path, ((const struct found *)b)->path);
}

static const char *type_name(char type)
{
    return type == 'd' ? "directory" : type == 'l' ? "link" : "file";
}

static void describe_list(struct job *j, bool more)
{
    size_t shown = j->found_n < LIST_SHOWN ? j->found_n : LIST_SHOWN, left = j->seen - shown;
    struct buf *text = &j->result.text;
    struct jw w = JW(&j->result.data);

    jw_object(&w);
    jw_kv_string(&w, "path", j->path);
    jw_key(&w, "entries");
    jw_array(&w);
    for (size_t i = 0; i < shown; i++) {
        const struct found *f = &j->found[i];

        jw_object(&w);
        jw_kv_string(&w, "path", f->path);
        jw_kv_string(&w, "type", type_name(f->type));
        jw_kv_int(&w, "size", (int64_t)f->size);
        jw_kv_string(&w, "modified", f->modified);
        jw_object_end(&w);
        (void)buf_puts(text, f->path);
        if (f->type == 'd')
            (void)buf_puts(text, "/\n");
        else
            (void)buf_printf(text, "  %llu\n", (unsigned long long)f->size);
    }
    jw_array_end(&w);
    jw_kv_int(&w, "left_out", (int64_t)left);
    jw_kv_string(&w, "sandbox", j->home->id);
    jw_object_end(&w);
    if (shown == 0)
        (void)buf_puts(text, "(empty)\n");
    if (left > 0)
        (void)buf_printf(text, "[%s%zu more are left out: narrow the path, or give a pattern]\n",
                         more ? "at least " : "", left);
    (void)buf_printf(text, "[%s; sandbox: %s]", j->path, j->home->id);
}

static void on_listed(void *user, struct file_result *r)
{
    struct job *j = user;

    j->work = NULL;
    if (r->sys) {
        refuse_sys(j, r->sys);
        return;
    }
    if (j->found_n > 0)
        qsort(j->found, j->found_n, sizeof *j->found, by_path);
    describe_list(j, r->more);
    answer(j);
}

void tool_list_files(struct tool_call *t)
{
    const struct tool_list_files *a = t->arguments;
    struct bytes path = a->path.p ? a->path : (struct bytes){"/workspace", 10};
    struct job *j = job_new(t, path, a->sandbox, TOOL_READS);
    struct file_order o = {.verb = FILE_WALK, .entries_max = LIST_SEEN};
    struct err e;

    if (!j)
        return;
    o.path = (struct bytes){j->path, strlen(j->path)};
    o.depth_max = a->depth > 0 ? (uint32_t)a->depth : 1;
    if (filework_start(&j->home->inside.files, &o, on_listed, j, &j->work, &e) < 0)
        refuse_busy(j);
    else
        filework_on_entry(j->work, on_entry);
}
