/* SPDX-License-Identifier: MIT */
#include "call/mount.h"

#include <string.h>

#include "call/glob.h"
#include "call/request.h"

static int wrong(struct err *e, const char *what)
{
    return err_set(e, ERR_CALLER, "options.mount: %s", what);
}

/* Which of the words; -1: none of them. */
static int word(struct json_value v, const char *const words[])
{
    for (int i = 0; words[i]; i++)
        if (v.type == JSON_STRING && json_key_is(v, words[i]))
            return i;
    return -1;
}

static int choose(struct json_value object, const char *name, const char *const words[], int *ret,
                  struct err *e)
{
    struct json_value v = json_member(object, name);
    int i;

    if (!v.p)
        return 0;
    i = word(v, words);
    if (i < 0)
        return err_set(e, ERR_CALLER, "options.mount: %s has an unknown value", name);
    *ret = i;
    return 0;
}

static const char *keep(struct mount *m, struct json_value v)
{
    size_t at = m->arena.n;

    if (v.type != JSON_STRING || json_decode_string(v, 0, &m->arena) < 0 ||
        buf_putc(&m->arena, '\0') < 0 || strlen(m->arena.p + at) + at + 1 != m->arena.n)
        return NULL;
    return m->arena.p + at;
}

/* Leading slashes mean nothing. */
static int keep_glob(struct mount *m, struct json_value v, struct glob **ret, struct err *e)
{
    const char *pattern = keep(m, v);

    if (!pattern)
        return wrong(e, "a pattern should be text");
    if (glob_compile(pattern + strspn(pattern, "/"), &m->room, ret, e) < 0)
        return err_wrap(e, "options.mount");
    return 0;
}

static const char *keep_path(struct mount *m, struct json_value v)
{
    const char *text = keep(m, v);
    size_t at = m->arena.n;

    if (!text || text[0] != '/' || strlen(text) > MOUNT_HOST_MAX ||
        call_path("", text, strlen(text), &m->arena) < 0)
        return NULL;
    return m->arena.p + at;
}

static int read_dirs(struct mount *m, struct json_value dirs, struct err *e)
{
    struct json_value key, v;
    size_t at = 0;

    if (!dirs.p)
        return 0;
    if (dirs.type != JSON_OBJECT)
        return wrong(e, "dirs should be an object");
    while (json_object_next(dirs, &at, &key, &v)) {
        struct mount_dir *d = &m->dir[m->n];

        if (m->n == MOUNT_DIRS_MAX)
            return wrong(e, "too many dirs");
        d->inside = keep_path(m, key);
        d->host = keep_path(m, v);
        if (!d->inside || !d->host || !d->inside[1])
            return wrong(e, "dirs should name absolute paths without '..'");
        m->n++;
    }
    return 0;
}

static int read_size(struct json_value loading, const char *name, uint64_t *ret, struct err *e)
{
    struct json_value v = json_member(loading, name);
    int64_t n;

    if (!v.p)
        return 0;
    if (!json_to_int(v, &n) || n < 0)
        return wrong(e, "a size should be a number of bytes");
    *ret = (uint64_t)n;
    return 0;
}

static int read_loading(struct mount *m, struct json_value loading, struct err *e)
{
    static const char *const modes[] = {"eager", "lazy", "explicit", NULL};
    struct json_value include = json_member(loading, "include"), v;
    int mode = LOAD_EAGER;
    size_t at = 0;

    if (choose(loading, "mode", modes, &mode, e) < 0 ||
        read_size(loading, "maxFileSize", &m->file_max, e) < 0 ||
        read_size(loading, "maxTotalSize", &m->total_max, e) < 0)
        return -1;
    m->load = (enum mount_load)mode;
    while (include.p && include.type == JSON_ARRAY && json_array_next(include, &at, &v)) {
        if (m->include_n == MOUNT_INCLUDE_MAX || v.type != JSON_STRING)
            return wrong(e, "include should be a list of patterns");
        if (keep_glob(m, v, &m->include[m->include_n], e) < 0)
            return -1;
        m->include_n++;
    }
    return 0;
}

static int read_answers(struct mount *m, struct json_value rules, struct err *e)
{
    static const char *const states[] = {"continue", "skip", "abort", NULL};
    struct json_value v;
    size_t at = 0;

    while (rules.p && rules.type == JSON_ARRAY && json_array_next(rules, &at, &v)) {
        struct json_value pattern = json_member(v, "pattern");
        int state = ANSWER_CONTINUE;

        if (m->answers_n == MOUNT_ANSWERS_MAX || !pattern.p)
            return wrong(e, "sync.rules should be a short list of {pattern, state}");
        if (choose(v, "state", states, &state, e) < 0 ||
            keep_glob(m, pattern, &m->answer[m->answers_n].glob, e) < 0)
            return -1;
        m->answer[m->answers_n++].answer = (enum mount_answer)state;
    }
    return 0;
}

static int read_sync(struct mount *m, struct json_value sync, struct err *e)
{
    static const char *const modes[] = {"manual", "batch", NULL};
    static const char *const errors[] = {"continue", "abort", "rollback", NULL};
    struct json_value abort = json_member(sync, "allowAbort");
    int mode = 0, error = (int)m->on_error;

    if (choose(sync, "mode", modes, &mode, e) < 0 || choose(sync, "onError", errors, &error, e) < 0)
        return -1;
    if (abort.p && !json_to_bool(abort, &m->allow_abort))
        return wrong(e, "allowAbort should be true or false");
    m->sync = mode == 1;
    m->on_error = (enum mount_error)error;
    return read_answers(m, json_member(sync, "rules"), e);
}

/* What changes there is not found, so nothing could be written back: no reason to seem to. */
static int check_sync(const struct mount *m, struct err *e)
{
    for (size_t i = 0; i < m->n && m->sync; i++)
        if (strncmp(m->dir[i].inside, "/tmp", 4) == 0 && strchr("/", m->dir[i].inside[4]))
            return wrong(e, "a directory below /tmp cannot be written back");
    return 0;
}

static int read_rest(struct mount *m, struct json_value mount, struct err *e)
{
    static const char *const denied[] = {"virtual", "throw", "ignore", NULL};
    struct json_value links = json_member(json_member(mount, "security"), "followSymlinks");
    bool follow = false;
    int how = PERM_VIRTUAL;

    if (choose(mount, "onPermissionDenied", denied, &how, e) < 0)
        return -1;
    m->denied = (enum perm_denied)how;
    if (!links.p)
        return 0;
    if (links.type == JSON_STRING && json_key_is(links, "restricted"))
        follow = true;
    else if (!json_to_bool(links, &follow))
        return wrong(e, "followSymlinks should be true, false or \"restricted\"");
    m->links = follow ? LINKS_INSIDE : LINKS_NEVER;
    return 0;
}

int mount_parse(struct mount *m, struct json_value mount, struct json_value permissions,
                struct err *e)
{
    struct json_value own = json_member(mount, "permissions");

    *m = (struct mount){.file_max = UINT64_MAX, .total_max = UINT64_MAX, .allow_abort = true};
    m->room = GLOB_COMPILE_MAX;
    m->arena = BUF_INIT(3 * mount.n + 64);
    if (buf_reserve(&m->arena, m->arena.max) < 0)
        return err_set(e, ERR_HOST, "out of memory");
    if (mount.p && (read_dirs(m, json_member(mount, "dirs"), e) < 0 ||
                    read_loading(m, json_member(mount, "loading"), e) < 0 ||
                    read_sync(m, json_member(mount, "sync"), e) < 0 || check_sync(m, e) < 0 ||
                    read_rest(m, mount, e) < 0))
        return -1;
    m->has_perms = m->n > 0 || own.p || permissions.p;
    if (own.p && own.type != JSON_OBJECT)
        return wrong(e, "permissions should be an object");
    return perms_parse(&m->perms, own.p ? own : permissions, e);
}

int mount_parse_sync(struct mount *m, struct json_value sync, const struct mount *usual,
                     struct err *e)
{
    *m = (struct mount){.on_error = usual->on_error, .allow_abort = usual->allow_abort};
    m->room = GLOB_COMPILE_MAX;
    m->arena = BUF_INIT(3 * sync.n + 64);
    if (buf_reserve(&m->arena, m->arena.max) < 0)
        return err_set(e, ERR_HOST, "out of memory");
    return read_sync(m, sync, e);
}

void mount_done(struct mount *m)
{
    buf_done(&m->arena);
    for (; m->include_n > 0; m->include_n--)
        glob_free(m->include[m->include_n - 1]);
    for (; m->answers_n > 0; m->answers_n--)
        glob_free(m->answer[m->answers_n - 1].glob);
    perms_done(&m->perms);
}

const char *mount_loaded(const struct mount *m, bool lent)
{
    if (m->n == 0)
        return NULL;
    return m->load == LOAD_EXPLICIT ? "explicit" : lent ? "lazy" : "eager";
}

const struct mount_dir *mount_of(const struct mount *m, const char *path)
{
    const struct mount_dir *best = NULL;

    for (size_t i = 0; i < m->n; i++) {
        size_t n = strlen(m->dir[i].inside);

        if (strncmp(path, m->dir[i].inside, n) == 0 && (path[n] == '/' || !path[n]) &&
            (!best || n > strlen(best->inside)))
            best = &m->dir[i];
    }
    return best;
}

unsigned mount_allows(const struct mount *m, const char *path, const char *workdir, uint64_t *steps)
{
    const struct mount_dir *d = mount_of(m, path);

    if (!m->has_perms)
        return PERM_ALL;
    return perms_of(&m->perms, path, d ? d->inside : workdir, steps);
}

enum glob_answer mount_wants(const struct mount *m, const char *name, uint64_t *steps)
{
    enum glob_answer answer = GLOB_NO;
    struct glob_path cut;

    if (m->include_n == 0)
        return m->load != LOAD_EXPLICIT ? GLOB_YES : GLOB_NO;
    glob_path_set(&cut, name);
    for (size_t i = 0; i < m->include_n && answer == GLOB_NO; i++)
        answer = glob_match(m->include[i], &cut, 0, steps);
    return answer;
}

/* Segments of a mounted directory that a path is below. */
static size_t segments_of(const struct mount_dir *d)
{
    size_t n = 0;

    for (const char *p = d->inside; (p = strchr(p, '/')); p++)
        n++;
    return n;
}

enum mount_answer mount_answers(const struct mount *rules, const struct mount *m, const char *path,
                                uint64_t *steps)
{
    const struct mount_dir *d = rules->answers_n > 0 ? mount_of(m, path) : NULL;
    enum mount_answer strictest = ANSWER_CONTINUE;
    struct glob_path cut;

    if (rules->answers_n > 0)
        glob_path_set(&cut, path + 1);
    for (size_t i = 0; i < rules->answers_n; i++) {
        enum mount_answer then = rules->answer[i].answer;
        enum glob_answer match = glob_match(rules->answer[i].glob, &cut, 0, steps);

        if (match == GLOB_NO && d && path[strlen(d->inside)])
            match = glob_match(rules->answer[i].glob, &cut, segments_of(d), steps);
        if (match != GLOB_NO && then > strictest)
            strictest = then;
        if (match == GLOB_YES)
            return strictest;
    }
    return strictest;
}
