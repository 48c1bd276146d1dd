/* SPDX-License-Identifier: MIT */
#include "function/mount.h"

#include <string.h>

#include "function/glob.h"
#include "function/request.h"

enum { RULE_ARENA = 64 };

/* ---- tables ---- */

struct loading_body {
    int mode;
    struct shape_strings include;
    int64_t file_max, total_max; /* -1: not given */
};

struct sync_body {
    int mode, on_error;
    bool allow_abort;
    struct json_value rules;
};

struct mount_body {
    struct json_value dirs, permissions, links;
    struct loading_body loading;
    struct sync_body sync;
    int denied;
};

struct rule_body {
    struct bytes pattern;
    int state;
};

static const char *const load_modes[] = {"eager", "lazy", "explicit", NULL};
static const char *const sync_modes[] = {"manual", "batch", NULL};
static const char *const sync_errors[] = {"continue", "abort", "rollback", NULL};
static const char *const rule_states[] = {"continue", "skip", "abort", NULL};
static const char *const denials[] = {"virtual", "throw", "ignore", NULL};

/* clang-format off */
#define AT(member) offsetof(struct rule_body, member)
static const struct shape_field rule_fields[] = {
    {"pattern", SHAPE_STRING, SHAPE_REQUIRED, AT(pattern), .help = "which files, as a glob"},
    {"state", SHAPE_CHOICE, 0, AT(state), .words = rule_states, .help = "what happens to them"},
};
#undef AT
static const struct shape rule_shape = {rule_fields, ARRAY_LEN(rule_fields), SHAPE_NULLS, "SyncRule"};

#define AT(member) offsetof(struct sync_body, member)
static const struct shape_field sync_fields[] = {
    {"mode", SHAPE_CHOICE, 0, AT(mode), .words = sync_modes,
     .help = "batch: changes go back when the call has ended; manual: when they are asked for"},
    {"onError", SHAPE_CHOICE, 0, AT(on_error), .words = sync_errors,
     .help = "when one file cannot be written back"},
    {"allowAbort", SHAPE_BOOL, 0, AT(allow_abort), .help = "a rule may end the sync; true"},
    {"rules", SHAPE_RAW, 0, AT(rules), .accepts = BIT(JSON_ARRAY), .inner = &rule_shape,
     .help = "the first whose pattern matches decides"},
};
#undef AT
static const struct shape sync_shape = {sync_fields, ARRAY_LEN(sync_fields), SHAPE_NULLS, "MountSync"};
static const struct shape sync_open = {sync_fields, ARRAY_LEN(sync_fields), SHAPE_NULLS | SHAPE_OPEN, NULL};

#define AT(member) offsetof(struct loading_body, member)
static const struct shape_field loading_fields[] = {
    {"mode", SHAPE_CHOICE, 0, AT(mode), .words = load_modes,
     .help = "eager: all files are copied in; lazy: when they are opened; explicit: those of include"},
    {"include", SHAPE_LIST, 0, AT(include), .max = MOUNT_INCLUDE_MAX, .help = "which files, as globs"},
    {"maxFileSize", SHAPE_INT, 0, AT(file_max), .help = "bytes of one file"},
    {"maxTotalSize", SHAPE_INT, 0, AT(total_max), .help = "bytes of all files"},
};
#undef AT
static const struct shape loading_shape = {loading_fields, ARRAY_LEN(loading_fields), SHAPE_NULLS, "MountLoading"};

static const struct shape_field security_fields[] = {
    {"followSymlinks", SHAPE_RAW, 0, 0, .accepts = BIT(JSON_BOOL) | BIT(JSON_STRING),
     .schema = "{\"anyOf\":[{\"type\":\"boolean\"},{\"const\":\"restricted\"}]}",
     .help = "links that lead to places inside the mount"},
};
static const struct shape security_shape = {security_fields, ARRAY_LEN(security_fields), SHAPE_NULLS, "MountSecurity"};

#define AT(member) offsetof(struct mount_body, member)
static const struct shape_field mount_fields[] = {
    {"dirs", SHAPE_RAW, 0, AT(dirs), .accepts = BIT(JSON_OBJECT),
     .schema = "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}",
     .help = "path inside to directory of the host"},
    {"loading", SHAPE_NESTED, 0, AT(loading), .inner = &loading_shape, .help = "how files come in"},
    {"sync", SHAPE_NESTED, 0, AT(sync), .inner = &sync_shape, .help = "how changes go back"},
    {"permissions", SHAPE_RAW, 0, AT(permissions), .accepts = BIT(JSON_OBJECT), .inner = &perms_shape,
     .help = "what may be done to files; in place of options.permissions"},
    {"security", SHAPE_NESTED, 0, AT(links), .inner = &security_shape, .help = "symbolic links"},
    {"onPermissionDenied", SHAPE_CHOICE, 0, AT(denied), .words = denials,
     .help = "virtual: reported; throw: the call fails; ignore: not even reported"},
};
#undef AT
/* clang-format on */
const struct shape mount_shape = {mount_fields, ARRAY_LEN(mount_fields), SHAPE_NULLS, "Mount"};

/* ---- reading ---- */

static int wrong(struct err *e, const char *what)
{
    return err_set(e, ERR_CALLER, "options.mount: %s", what);
}

/* Leading slashes mean nothing. */
static int keep_glob(struct mount *m, struct bytes pattern, struct glob **ret, struct err *e)
{
    if (strlen(pattern.p) != pattern.n)
        return wrong(e, "a pattern should be text");
    if (glob_compile(pattern.p + strspn(pattern.p, "/"), &m->room, ret, e) < 0)
        return err_wrap(e, "options.mount");
    return 0;
}

/* A path of the request, in the arena. */
static const char *keep_path(struct mount *m, struct json_value v)
{
    struct buf *arena = &m->shaping.arena;
    cleanup_with(buf_done) struct buf text = BUF_INIT(MOUNT_HOST_MAX + 1);
    size_t at = arena->n;

    if (v.type != JSON_STRING || json_decode_string(v, 0, &text) < 0 || strlen(text.p) != text.n ||
        text.p[0] != '/' || call_path("", text.p, text.n, arena) < 0)
        return NULL;
    return arena->p + at;
}

static int read_dirs(struct mount *m, struct json_value dirs, struct err *e)
{
    struct json_value key, v;
    size_t at = 0;

    while (dirs.p && json_object_next(dirs, &at, &key, &v)) {
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

static int read_loading(struct mount *m, const struct loading_body *b, struct err *e)
{
    m->load = (enum mount_load)b->mode;
    m->file_max = b->file_max < 0 ? UINT64_MAX : (uint64_t)b->file_max;
    m->total_max = b->total_max < 0 ? UINT64_MAX : (uint64_t)b->total_max;
    for (size_t i = 0; i < b->include.n; i++) {
        struct bytes pattern = b->include.v[i].value;

        if (keep_glob(m, pattern, &m->include[m->include_n], e) < 0)
            return -1;
        m->include_n++;
    }
    return 0;
}

static int read_rules(struct mount *m, struct json_value rules, struct err *e)
{
    struct json_value v;

    for (size_t at = 0; rules.p && json_array_next(rules, &at, &v);) {
        struct rule_body rule = {0};

        if (m->answers_n == MOUNT_ANSWERS_MAX)
            return wrong(e, "sync.rules should be a short list of {pattern, state}");
        if (shape_value(&rule_shape, v, "rules", &rule, &m->shaping) < 0)
            return shape_err(&m->shaping, e);
        if (keep_glob(m, rule.pattern, &m->answer[m->answers_n].glob, e) < 0)
            return -1;
        m->answer[m->answers_n++].answer = (enum mount_answer)rule.state;
    }
    return 0;
}

static int read_sync(struct mount *m, const struct sync_body *b, struct err *e)
{
    m->sync = b->mode == 1;
    m->on_error = (enum mount_error)b->on_error;
    m->allow_abort = b->allow_abort;
    return read_rules(m, b->rules, e);
}

/* What changes there is not found, so nothing could be written back: no reason to seem to. */
static int check_sync(const struct mount *m, struct err *e)
{
    for (size_t i = 0; i < m->n && m->sync; i++)
        if (strncmp(m->dir[i].inside, "/tmp", 4) == 0 && strchr("/", m->dir[i].inside[4]))
            return wrong(e, "a directory below /tmp cannot be written back");
    return 0;
}

static int read_links(struct mount *m, struct json_value links, struct err *e)
{
    bool follow = false;

    if (!links.p)
        return 0;
    if (links.type == JSON_STRING && json_key_is(links, "restricted"))
        follow = true;
    else if (!json_to_bool(links, &follow))
        return wrong(e, "followSymlinks should be true, false or \"restricted\"");
    m->links = follow ? LINKS_INSIDE : LINKS_NEVER;
    return 0;
}

/* Room for what is decoded and for the paths made of it. */
static int begin(struct mount *m, size_t n, struct err *e)
{
    m->room = GLOB_COMPILE_MAX;
    shaping_init(&m->shaping, NULL);
    m->shaping.room = 2 * n + RULE_ARENA;
    return shaping_reserve(&m->shaping, n) < 0 ? err_set(e, ERR_HOST, "out of memory") : 0;
}

static int read_mount(struct mount *m, struct json_value mount, struct mount_body *b, struct err *e)
{
    if (!mount.p)
        return 0;
    if (shape_value(&mount_shape, mount, NULL, b, &m->shaping) < 0)
        return shape_err(&m->shaping, e);
    m->denied = (enum perm_denied)b->denied;
    return read_dirs(m, b->dirs, e) < 0 || read_loading(m, &b->loading, e) < 0 ||
                   read_sync(m, &b->sync, e) < 0 || check_sync(m, e) < 0 ||
                   read_links(m, b->links, e) < 0
               ? -1
               : 0;
}

int mount_parse(struct mount *m, struct json_value mount, struct json_value permissions,
                struct err *e)
{
    struct mount_body b = {
        .loading = {.file_max = -1, .total_max = -1},
          .sync = {.allow_abort = true             }
    };
    int r;

    *m = (struct mount){.file_max = UINT64_MAX, .total_max = UINT64_MAX, .allow_abort = true};
    if (begin(m, mount.n, e) < 0)
        return -1;
    m->shaping.in[m->shaping.depth++] = "options";
    m->shaping.in[m->shaping.depth++] = "mount";
    r = read_mount(m, mount, &b, e);
    m->shaping.depth = 0;
    if (r < 0)
        return -1;
    m->has_perms = m->n > 0 || b.permissions.p || permissions.p;
    return perms_parse(&m->perms, b.permissions.p ? b.permissions : permissions, e);
}

int mount_parse_sync(struct mount *m, struct json_value sync, const struct mount *usual,
                     struct err *e)
{
    struct sync_body b = {.on_error = (int)usual->on_error, .allow_abort = usual->allow_abort};

    *m = (struct mount){0};
    if (begin(m, sync.n, e) < 0)
        return -1;
    if (shape_value(&sync_open, sync, NULL, &b, &m->shaping) < 0)
        return shape_err(&m->shaping, e);
    return read_sync(m, &b, e);
}

void mount_done(struct mount *m)
{
    shaping_done(&m->shaping);
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

enum glob_answer mount_shows(const struct mount *m, const char *path, const char *workdir,
                             bool on_the_way, uint64_t *steps)
{
    const struct mount_dir *d = mount_of(m, path);
    const unsigned seen = PERM_READ | PERM_LIST;
    unsigned allowed;
    bool granted;

    if (!m->has_perms)
        return GLOB_YES;
    allowed = perms_ask(&m->perms, path, d ? d->inside : workdir, steps, &granted);
    if (allowed & PERM_UNKNOWN)
        return GLOB_UNKNOWN;
    return (allowed & seen) == seen && (granted || !on_the_way) ? GLOB_YES : GLOB_NO;
}

bool mount_opens(const struct mount *m, const char *dir)
{
    const struct mount_dir *d = mount_of(m, dir);

    return m->has_perms && perms_open(&m->perms, dir, d ? d->inside : "");
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
