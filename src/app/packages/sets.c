/* SPDX-License-Identifier: MIT */
#include "app/packages/sets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/daemon/app.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/jw.h"
#include "store/shelf.h"

enum {
    JSON_OVERHEAD = 4096,
    ESCAPE_FACTOR = 6,
    DIST_JSON_MAX = 1024,
    RECORD_MAX = 8 << 20, /* of a set that has a name, on disk */
    PATH_ROOM = 64,
    US_PER_MS = 1000,
};

const char *package_set_state_name(enum package_set_state s)
{
    static const char *const names[] = {"installing", "ready", "failed"};

    _Static_assert(ARRAY_LEN(names) == PACKAGE_SET_STATE_COUNT, "every state has a name");
    return names[s];
}

/* ---- lists ---- */

static void list_free(struct exec_var *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free((char *)v[i].value.p);
    free(v);
}

static int list_copy(const struct exec_var *from, size_t n, struct exec_var **ret, size_t *ret_n)
{
    *ret = calloc(n + 1, sizeof **ret);
    for (size_t i = 0; *ret && i < n; i++) {
        char *text = strndup(from[i].value.p, from[i].value.n);

        if (!text)
            return -1;
        (*ret)[(*ret_n)++].value = (struct bytes){text, strlen(text)};
    }
    return *ret ? 0 : -1;
}

static void list_views(const struct exec_var *v, size_t n, struct bytes *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = v[i].value;
}

static void list_json(struct jw *w, const char *key, const struct exec_var *v, size_t n)
{
    jw_key(w, key);
    jw_array(w);
    for (size_t i = 0; i < n; i++)
        jw_bytes(w, v[i].value.p, v[i].value.n);
    jw_array_end(w);
}

static size_t list_size(const struct exec_var *v, size_t n)
{
    size_t all = 0;

    for (size_t i = 0; i < n; i++)
        all += v[i].value.n * ESCAPE_FACTOR + 4;
    return all;
}

/* Both lists and where they come from: the same content is the same set. */
static int owner_of(const struct app *a, const struct package_want *w,
                    char out[PACKAGE_SET_OWNER_MAX], struct err *e)
{
    struct buf text =
        BUF_INIT(JSON_OVERHEAD + list_size(w->python, w->python_n) + list_size(w->npm, w->npm_n));
    struct jw j = JW(&text);
    char hex[SHA256_HEX];

    jw_object(&j);
    jw_kv_string(&j, "index", a->config.package_index);
    jw_kv_string(&j, "registry", a->config.package_registry);
    list_json(&j, "python", w->python, w->python_n);
    list_json(&j, "npm", w->npm, w->npm_n);
    jw_object_end(&j);
    if (text.failed) {
        buf_done(&text);
        return err_set(e, ERR_HOST, "no memory for a set of packages");
    }
    sha256_hex(text.p, text.n, hex);
    (void)snprintf(out, PACKAGE_SET_OWNER_MAX, "p-%s", hex);
    buf_done(&text);
    return 0;
}

/* ---- JSON ---- */

size_t package_set_json_max(const struct package_set *s)
{
    return 2 * JSON_OVERHEAD + list_size(s->python, s->python_n) + list_size(s->npm, s->npm_n) +
           s->installed.n + (size_t)ESCAPE_FACTOR * (s->error.n + DEPENDENCY_ERROR_MAX);
}

static void progress_json(const struct package_set *s, struct jw *w)
{
    struct dependency_progress p;

    dependencies_progress(s->sync, &p);
    jw_key(w, "progress");
    jw_object(w);
    jw_kv_int(w, "elapsed_ms", (int64_t)((clock_us() - s->began_us) / US_PER_MS));
    jw_kv_int(w, "downloaded_bytes", (int64_t)p.loaded);
    jw_kv_int(w, "files", (int64_t)p.files);
    jw_kv_bytes(w, "output", p.said.p ? p.said.p : "", p.said.n);
    jw_object_end(w);
}

void package_set_json(struct package_set *s, struct jw *w)
{
    jw_object(w);
    jw_kv_string(w, "name", s->name[0] ? s->name : NULL);
    jw_kv_string(w, "id", s->owner);
    jw_kv_string(w, "state", package_set_state_name(s->state));
    jw_kv_string(w, "created_at", s->created_at);
    list_json(w, "python", s->python, s->python_n);
    list_json(w, "npm", s->npm, s->npm_n);
    jw_key(w, "installed");
    jw_raw(w, s->installed.n > 0 ? s->installed.p : "[]", s->installed.n > 0 ? s->installed.n : 2);
    jw_kv_int(w, "files", (int64_t)s->files);
    jw_kv_int(w, "bytes", (int64_t)s->bytes);
    if (s->state == PACKAGE_SET_FAILED)
        jw_kv_bytes(w, "error", s->error.p ? s->error.p : "", s->error.n);
    if (s->state == PACKAGE_SET_INSTALLING && s->sync)
        progress_json(s, w);
    jw_object_end(w);
}

static void installed_json(struct package_set *s, const struct dependency_answer *a)
{
    struct jw w = JW(&s->installed);

    buf_done(&s->installed);
    s->installed = BUF_INIT(JSON_OVERHEAD + a->dists_n * DIST_JSON_MAX);
    jw_array(&w);
    for (size_t i = 0; i < a->dists_n; i++) {
        jw_object(&w);
        jw_kv_string(&w, "name", a->dists[i].name);
        jw_kv_string(&w, "version", a->dists[i].version);
        jw_kv_string(&w, "kind", a->dists[i].npm ? "npm" : "python");
        jw_object_end(&w);
    }
    jw_array_end(&w);
}

/* ---- on disk: <state>/packages/<name>.json ---- */

struct package_record {
    struct work work; /* first */
    struct app *app;  /* borrowed */
    TAILQ_ENTRY(package_record) link;
    char path[CONFIG_TEXT_MAX + PACKAGE_SET_NAME_MAX + PATH_ROOM];
    struct buf text; /* empty: it is removed */
};

static void record_run(struct work *w)
{
    struct package_record *r = (struct package_record *)w;
    char half[sizeof r->path + 8];
    int fd;

    if (r->text.n == 0) {
        (void)unlink(r->path);
        return;
    }
    (void)snprintf(half, sizeof half, "%s.new", r->path);
    fd = open(half, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    if (fd_write_all(fd, r->text.p, r->text.n) == 0 && fsync(fd) == 0)
        (void)rename(half, r->path);
    closep(&fd);
}

static void record_done(struct work *w)
{
    struct package_record *r = (struct package_record *)w, *next;
    struct package_records *all = &r->app->packages.sets.records;

    TAILQ_REMOVE(all, r, link);
    next = TAILQ_FIRST(all);
    if (next)
        work_submit(r->app->work, &next->work);
    buf_done(&r->text);
    free(r);
}

/* One at a time and in order: two changes of one name must not overtake each other. */
static void record(struct package_set *s, const char *name, bool keep)
{
    struct package_records *all = &s->app->packages.sets.records;
    struct package_record *r = name[0] ? calloc(1, sizeof *r) : NULL;
    struct jw w;

    if (!r)
        return;
    r->app = s->app;
    (void)snprintf(r->path, sizeof r->path, "%.1000s/packages/%s.json", s->app->config.state_dir,
                   name);
    r->text = BUF_INIT(package_set_json_max(s));
    w = (struct jw)JW(&r->text);
    if (keep)
        package_set_json(s, &w);
    r->work = (struct work){.run = record_run, .done = record_done, .lane = WORK_SHORT};
    TAILQ_INSERT_TAIL(all, r, link);
    if (TAILQ_FIRST(all) == r)
        work_submit(s->app->work, &r->work);
}

/* ---- life ---- */

static void set_free(struct package_set *s)
{
    TAILQ_REMOVE(&s->app->packages.sets.list, s, link);
    list_free(s->python, s->python_n);
    list_free(s->npm, s->npm_n);
    buf_done(&s->installed);
    buf_done(&s->error);
    free(s);
}

static struct package_set *set_new(struct app *a, const struct package_want *w, const char *owner)
{
    struct package_set *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->app = a;
    LIST_INIT(&s->waiters);
    TAILQ_INSERT_TAIL(&a->packages.sets.list, s, link);
    (void)snprintf(s->owner, sizeof s->owner, "%s", owner);
    (void)clock_iso(s->created_at);
    s->state = PACKAGE_SET_FAILED; /* until something has begun */
    if (list_copy(w->python, w->python_n, &s->python, &s->python_n) == 0 &&
        list_copy(w->npm, w->npm_n, &s->npm, &s->npm_n) == 0)
        return s;
    set_free(s);
    return NULL;
}

static struct package_set *find_by(struct app *a, const char *name, const char *owner)
{
    struct package_set *s;

    TAILQ_FOREACH(s, &a->packages.sets.list, link)
    if ((name && name[0] && strcmp(s->name, name) == 0) || (owner && strcmp(s->owner, owner) == 0))
        return s;
    return NULL;
}

static bool is_needed(const struct package_set *s)
{
    return s->state == PACKAGE_SET_INSTALLING || !LIST_EMPTY(&s->waiters) ||
           shelf_is_held(s->app->packages.shelf, s->owner);
}

static void drop(struct package_set *s)
{
    record(s, s->name, false);
    shelf_remove(s->app->packages.shelf, s->owner);
    set_free(s);
}

/* The one without a name that was used least recently gives way. */
static int make_room(struct app *a, struct err *e)
{
    struct package_set *s, *oldest = NULL;
    size_t n = 0;

    TAILQ_FOREACH(s, &a->packages.sets.list, link)
    {
        n++;
        if (!s->name[0] && !is_needed(s) && (!oldest || s->used_us < oldest->used_us))
            oldest = s;
    }
    if (n < a->config.package_sets_max)
        return 0;
    if (!oldest)
        return err_set(e, ERR_BUSY, "there are %zu sets of packages already (PACKAGE_SETS_MAX)", n);
    drop(oldest);
    return 0;
}

/* ---- installing ---- */

static void on_installed(void *user, const struct dependency_answer *a)
{
    struct package_set *s = user;
    struct package_waiter *w;

    s->sync = NULL;
    s->state = a->status == DEPENDENCY_OK ? PACKAGE_SET_READY : PACKAGE_SET_FAILED;
    s->failed_here = a->status == DEPENDENCY_FAILED;
    s->files = a->files;
    s->bytes = a->bytes;
    installed_json(s, a);
    buf_done(&s->error);
    s->error = BUF_INIT(DEPENDENCY_ERROR_MAX);
    (void)buf_put(&s->error, a->error.p ? a->error.p : "", a->error.n);
    record(s, s->name, s->state == PACKAGE_SET_READY);
    while ((w = LIST_FIRST(&s->waiters))) {
        LIST_REMOVE(w, link);
        w->done(w->user, s);
    }
}

static int install(struct package_set *s, const char *request_id, struct err *e)
{
    const struct config *c = &s->app->config;
    struct bytes python[DEPENDENCIES_MAX], npm[DEPENDENCIES_MAX];
    const struct dependency_order order = {
        .set = s->owner,
        .request_id = request_id,
        .index = {c->package_index,    strlen(c->package_index)   },
        .registry = {c->package_registry, strlen(c->package_registry)},
        .specs = python,
        .specs_n = s->python_n,
        .npm = npm,
        .npm_n = s->npm_n,
        .done = on_installed,
        .user = s,
    };

    list_views(s->python, s->python_n, python);
    list_views(s->npm, s->npm_n, npm);
    if (dependencies_sync(s->app, &order, &s->sync, e) < 0)
        return -1;
    s->state = PACKAGE_SET_INSTALLING;
    s->began_us = clock_us();
    return 0;
}

/* ---- use cases ---- */

static bool name_is_good(const char *name)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

    return strlen(name) <= PACKAGE_SET_NAME_MAX && name[0] != '.' && !name[strspn(name, allowed)];
}

static int check(const struct app *a, const struct package_want *w, struct err *e)
{
    struct bytes python[DEPENDENCIES_MAX], npm[DEPENDENCIES_MAX];

    if (!name_is_good(w->name))
        return err_set(e, ERR_CALLER,
                       "name: letters, digits and ._- only, at most %d, not starting with a dot",
                       PACKAGE_SET_NAME_MAX);
    if (w->python_n + w->npm_n == 0)
        return err_set(e, ERR_CALLER, "packages: neither python nor npm names a package");
    if (w->python_n > DEPENDENCIES_MAX || w->npm_n > DEPENDENCIES_MAX)
        return err_set(e, ERR_CALLER, "packages: more than %d", DEPENDENCIES_MAX);
    list_views(w->python, w->python_n, python);
    list_views(w->npm, w->npm_n, npm);
    if (dependencies_check(python, w->python_n, npm, w->npm_n, e) < 0)
        return -1;
    return a->packages.shelf ? 0 : dependencies_refuse(a, e);
}

/* The set that had the name has none any more. */
static void give_name(struct package_set *s, const char *name)
{
    struct package_set *before = find_by(s->app, name, NULL);

    if (!name[0] || before == s)
        return;
    if (before)
        before->name[0] = '\0';
    if (s->name[0])
        record(s, s->name, false);
    (void)snprintf(s->name, sizeof s->name, "%s", name);
    record(s, s->name, s->state == PACKAGE_SET_READY);
}

int package_sets_want(struct app *a, const struct package_want *w, struct package_set **ret,
                      struct err *e)
{
    char owner[PACKAGE_SET_OWNER_MAX];
    struct package_set *s;
    bool made;

    if (check(a, w, e) < 0 || owner_of(a, w, owner, e) < 0)
        return -1;
    s = find_by(a, NULL, owner);
    made = !s;
    if (made && make_room(a, e) < 0)
        return -1;
    s = made ? set_new(a, w, owner) : s;
    if (!s)
        return err_set(e, ERR_HOST, "no memory for a set of packages");
    if (s->state == PACKAGE_SET_FAILED && install(s, w->request_id, e) < 0) {
        if (made)
            set_free(s);
        return -1;
    }
    give_name(s, w->name);
    s->used_us = clock_us();
    *ret = s;
    return 0;
}

int package_sets_find(struct app *a, const char *name, struct package_set **ret, struct err *e)
{
    struct package_set *s = find_by(a, name, name);

    if (!s)
        return err_set(e, ERR_ABSENT, "no set of packages '%.128s'", name);
    s->used_us = clock_us();
    *ret = s;
    return 0;
}

int package_sets_remove(struct package_set *s, struct err *e)
{
    if (is_needed(s))
        return err_set(e, ERR_BUSY, "the packages are %s",
                       s->state == PACKAGE_SET_INSTALLING ? "being installed" : "in use");
    drop(s);
    return 0;
}

void package_set_wait(struct package_set *s, struct package_waiter *w)
{
    LIST_INSERT_HEAD(&s->waiters, w, link);
}

void package_set_leave(struct package_waiter *w)
{
    LIST_REMOVE(w, link);
}

struct shelf_item *package_set_hold(struct package_set *s)
{
    s->used_us = clock_us();
    return shelf_hold(s->app->packages.shelf, s->owner);
}

void package_set_release(struct shelf_item *i)
{
    shelf_release(i);
}

/* ---- opening ---- */

static void read_list(struct json_value object, const char *name, struct exec_var *out,
                      size_t *ret_n)
{
    struct json_value list = json_member(object, name), item;
    size_t at = 0;

    *ret_n = 0;
    while (list.p && list.type == JSON_ARRAY && *ret_n < DEPENDENCIES_MAX &&
           json_array_next(list, &at, &item)) {
        struct buf text = BUF_INIT(PACKAGE_SPEC_MAX);

        if (item.type == JSON_STRING && json_decode_string(item, 0, &text) == 0 && text.n > 0)
            out[(*ret_n)++].value = (struct bytes){strndup(text.p, text.n), text.n};
        buf_done(&text);
    }
}

/* A record whose lists are no longer on the shelf, or were installed from elsewhere, says nothing:
 * it is made again when it is asked for. */
static void read_record(struct app *a, const char *name, const char *text, size_t n)
{
    struct exec_var python[DEPENDENCIES_MAX] = {0}, npm[DEPENDENCIES_MAX] = {0};
    struct package_want w = {.name = name, .python = python, .npm = npm};
    struct json_value v, installed;
    char owner[PACKAGE_SET_OWNER_MAX];
    struct package_set *s = NULL;
    int64_t number;
    struct err e;

    if (json_parse(text, n, 0, &v, &e) < 0 || v.type != JSON_OBJECT)
        return;
    read_list(v, "python", python, &w.python_n);
    read_list(v, "npm", npm, &w.npm_n);
    if (check(a, &w, &e) == 0 && owner_of(a, &w, owner, &e) == 0 && !find_by(a, NULL, owner))
        s = set_new(a, &w, owner);
    for (size_t i = 0; i < DEPENDENCIES_MAX; i++) {
        free((char *)python[i].value.p);
        free((char *)npm[i].value.p);
    }
    if (!s)
        return;
    (void)snprintf(s->name, sizeof s->name, "%s", name);
    installed = json_member(v, "installed");
    s->installed = BUF_INIT(RECORD_MAX);
    if (installed.p && installed.type == JSON_ARRAY)
        (void)buf_put(&s->installed, installed.p, installed.n);
    if (json_to_int(json_member(v, "files"), &number))
        s->files = (uint64_t)number;
    if (json_to_int(json_member(v, "bytes"), &number))
        s->bytes = (uint64_t)number;
    if (shelf_has(a->packages.shelf, owner))
        s->state = PACKAGE_SET_READY;
}

static void read_file(struct app *a, int dir, const char *file)
{
    char name[PACKAGE_SET_NAME_MAX + 8];
    size_t n = strlen(file);
    cleanup_close int fd = -1;
    struct buf text = BUF_INIT(RECORD_MAX);
    struct stat st;

    if (n < 6 || n >= sizeof name || strcmp(file + n - 5, ".json") != 0)
        return;
    (void)snprintf(name, sizeof name, "%.*s", (int)(n - 5), file);
    fd = openat(dir, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && name_is_good(name) && fstat(fd, &st) == 0 && st.st_size < RECORD_MAX &&
        buf_reserve(&text, (size_t)st.st_size) == 0 &&
        fd_read_full(fd, text.p, (size_t)st.st_size) == st.st_size)
        read_record(a, name, text.p, (size_t)st.st_size);
    buf_done(&text);
}

static bool has_name(void *user, const char *owner)
{
    return strncmp(owner, "p-", 2) != 0 || find_by(user, NULL, owner) != NULL;
}

int package_sets_open(struct app *a, struct err *e)
{
    char path[CONFIG_TEXT_MAX + PATH_ROOM];
    DIR *d;

    if (!a->packages.shelf)
        return 0;
    (void)snprintf(path, sizeof path, "%s/packages", a->config.state_dir);
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_sys(e, -errno, "make '%.300s'", path);
    d = opendir(path);
    if (!d)
        return err_sys(e, -errno, "directory of sets of packages '%.300s'", path);
    for (const struct dirent *at; (at = readdir(d));)
        read_file(a, dirfd(d), at->d_name);
    (void)closedir(d);
    shelf_keep_only(a->packages.shelf, has_name, a);
    return 0;
}

void package_sets_init(struct package_sets *all)
{
    TAILQ_INIT(&all->list);
    TAILQ_INIT(&all->records);
}

void package_sets_done(struct package_sets *all)
{
    struct package_set *s;

    while ((s = TAILQ_FIRST(&all->list)))
        set_free(s);
}
