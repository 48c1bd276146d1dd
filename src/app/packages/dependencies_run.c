/* SPDX-License-Identifier: MIT */
/* The installation itself: a plan, a door, and the way of the files to the shelf. */
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "app/packages/dependencies_inner.h"

enum {
    OUTPUT_MAX = 256 * 1024, /* kept of what the installer says */
    FILES_AHEAD = 32,        /* copies under way before the scan has to wait */
    REFUSED_LOGGED = 16,     /* hosts of one installation that a log names */
    INSTALL_TMP = 16 << 20,  /* of /tmp: the installer works in the workspace */
    WORDS_MAX = 512,
    TRUSTED_MAX = PACKAGE_HOST_MAX + 16,
    MS_PER_S = 1000,
    FIXED_ARGS = 8,
    CONNECTIONS = 64,
    DIAL_MS = 10000,
    IDLE_MS = 120000,
};

/* Where the installer puts packages; the rest of the workspace is its own. */
#define SITE "site/"

/* Of the settings only ours count: an installer that builds a package starts another one. */
static const char *const environment[] = {
    "PATH=/usr/local/bin:/usr/bin:/bin",
    "HOME=/workspace",
    "TMPDIR=/workspace/.tmp",
    "LANG=C.UTF-8",
    "PYTHONUNBUFFERED=1",
    "PIP_NO_CACHE_DIR=1",
    "PIP_NO_INPUT=1",
    "PIP_DISABLE_PIP_VERSION_CHECK=1",
    "http_proxy=" NET_PROXY_URL,
    "https_proxy=" NET_PROXY_URL,
    NULL,
};

/* ---- the end ---- */

/* Whose fault is it? A limit and the installer's own failure are the caller's to mend. */
static enum dependency_status judge(const struct dependency_sync *s, char words[WORDS_MAX])
{
    const struct config *c = &s->app->config;
    const struct run_result *r = &s->task.result;
    enum dependency_status status = DEPENDENCY_NOT_INSTALLED;

    words[0] = '\0';
    if (s->out.full)
        (void)snprintf(words, WORDS_MAX, "more than %zu MiB were loaded (DEPENDENCY_DOWNLOAD_MB)",
                       (size_t)c->dependency_download_mb);
    else if (r->reason == END_TIMEOUT)
        (void)snprintf(words, WORDS_MAX, "not installed within %zu s (DEPENDENCY_TIMEOUT)",
                       (size_t)c->dependency_s);
    else if (r->reason == END_OOM)
        (void)snprintf(words, WORDS_MAX, "the installation needs too much memory (DEPENDENCY_MB)");
    else if (s->copy.too_large)
        (void)snprintf(words, WORDS_MAX, "the packages are too large (DEPENDENCY_MB)");
    else if (r->files_left_out > 0 || s->copy.bad_file)
        (void)snprintf(words, WORDS_MAX, "some files of the packages cannot be kept");
    else if (r->reason == END_EXIT && r->exit_code == 0 && !r->scanned)
        (void)snprintf(words, WORDS_MAX, "the installed files could not be looked at");
    else if (r->reason == END_EXIT && r->exit_code == 0)
        status = DEPENDENCY_OK;
    else if (r->reason == END_EXIT && s->out.unresolved[0])
        (void)snprintf(words, WORDS_MAX, "the name of host '%.100s' leads nowhere",
                       s->out.unresolved);
    else if (r->reason == END_FAILED || r->reason == END_SHUTDOWN || r->reason == END_CANCELLED) {
        (void)snprintf(words, WORDS_MAX, "%s",
                       r->reason == END_FAILED ? r->fault : "the service is shutting down");
        status = DEPENDENCY_FAILED;
    } else if (r->reason != END_EXIT) {
        (void)snprintf(words, WORDS_MAX, "the installer was ended: %s", end_reason_name(r->reason));
    }
    return status;
}

static void on_told(void *user)
{
    struct task *t = user;
    struct dependency_sync *s = dependency_of(t);

    s->out.transferred = egress_door_bytes(s->out.door);
    task_continue(t, TASK_NEXT);
}

/* What there was of connections. */
static enum task_go step_tell(struct task *t, struct err *e)
{
    struct dependency_sync *s = dependency_of(t);

    (void)e;
    if (!s->out.door)
        return TASK_NEXT;
    egress_door_ask(s->out.door, on_told, t);
    return TASK_WAIT;
}

/* The run has ended; files may still be on their way. */
static enum task_go step_collect(struct task *t, struct err *e)
{
    struct dependency_sync *s = dependency_of(t);

    (void)e;
    egress_door_close(take_ptr(&s->out.door));
    return s->copy.adding > 0 ? TASK_WAIT : TASK_NEXT;
}

static void on_published(void *user, const struct err *e)
{
    struct dependency_sync *s = user;

    if (e->kind != ERR_NONE) {
        dependency_answer(s, DEPENDENCY_FAILED, e->text);
        task_continue(&s->task, TASK_END);
        return;
    }
    dependency_answer(s, DEPENDENCY_OK, "");
    task_continue(&s->task, TASK_NEXT);
}

static enum task_go step_publish(struct task *t, struct err *e)
{
    struct dependency_sync *s = dependency_of(t);
    enum dependency_status status = DEPENDENCY_OK;
    char words[WORDS_MAX];

    (void)e;
    if (!dependency_is_empty(s))
        status = judge(s, words);
    if (status != DEPENDENCY_OK) {
        dependency_answer(s, status, words);
        return TASK_END;
    }
    shelf_build_publish(take_ptr(&s->copy.build), s->owner, on_published, s);
    return TASK_WAIT;
}

/* Steps before it were stopped or could not be begun. */
static enum task_go step_explain(struct task *t, struct err *e)
{
    struct dependency_sync *s = dependency_of(t);
    const char *words = t->stopped ? "the service is shutting down" : t->result.fault;

    (void)e;
    if (!s->answer.completed_at[0])
        dependency_answer(s, DEPENDENCY_FAILED, words);
    return TASK_NEXT;
}

/* ---- files ---- */

static bool ends_with(const char *path, const char *tail)
{
    size_t n = strlen(path), k = strlen(tail);

    return n > k && strcmp(path + n - k, tail) == 0;
}

/* "node_modules/name/package.json" and "node_modules/@scope/name/package.json". */
static bool is_npm_metadata(const char *path)
{
    static const char modules[] = "node_modules/";
    const char *at = path + sizeof modules - 1;

    if (strncmp(path, modules, sizeof modules - 1) != 0 || *at == '.')
        return false;
    at = strchr(at, '/');
    if (at && path[sizeof modules - 1] == '@')
        at = strchr(at + 1, '/');
    return at && strcmp(at, "/package.json") == 0;
}

/* "name-1.0.dist-info/METADATA", at the top. */
static bool is_metadata(const char *path)
{
    const char *slash = strchr(path, '/');

    return slash && !strchr(slash + 1, '/') &&
           (ends_with(path, ".dist-info/METADATA") || ends_with(path, ".egg-info/PKG-INFO"));
}

static void dist_add(struct dependency_sync *s, const char *path, const char *head, size_t n)
{
    struct package_dist d, *grown;
    size_t max = s->found.max ? 2 * s->found.max : 32;

    if (s->found.n == DEPENDENCY_DISTS_MAX ||
        !(is_npm_metadata(path) ? package_json_parse(head, n, &d)
                                : package_metadata_parse(head, n, &d)))
        return;
    if (s->found.n == s->found.max) {
        grown = realloc(s->found.dists, max * sizeof *grown);
        if (!grown)
            return;
        s->found.dists = grown;
        s->found.max = max;
    }
    s->found.dists[s->found.n++] = d;
}

static void on_added(void *user, bool ok, const char *path, const char *head, size_t head_n)
{
    struct dependency_sync *s = user;

    s->copy.adding--;
    if (!ok)
        s->copy.bad_file = true;
    else if (is_metadata(path) || is_npm_metadata(path))
        dist_add(s, path, head, head_n);
    if (s->task.run && s->copy.adding < FILES_AHEAD)
        run_files_resume(s->task.run);
    if (s->copy.adding == 0 && task_waits_in(&s->task, step_collect))
        task_continue(&s->task, TASK_NEXT);
}

/* A sparse file can claim any size, so what is copied is counted, not what memory it took. */
static void on_file(void *user, struct run_file *f)
{
    struct dependency_sync *s = dependency_of(user);
    struct stat st;
    struct shelf_file file = {
        .mode = f->mode, .mtime_s = f->mtime_s, .mtime_ns = f->mtime_ns, .fd = -1};

    if (s->task.result.reason != END_EXIT || s->task.result.exit_code != 0 || s->copy.too_large ||
        s->copy.bad_file || strncmp(f->name, SITE, sizeof SITE - 1) != 0 || fstat(f->fd, &st) < 0)
        return;
    s->copy.bytes += (uint64_t)st.st_size;
    s->copy.files++;
    if (s->copy.bytes > s->app->config.dependency_mb << 20) {
        s->copy.too_large = true;
        return;
    }
    file.path = f->name + sizeof SITE - 1;
    file.size = (uint64_t)st.st_size;
    file.head = is_metadata(file.path) || is_npm_metadata(file.path);
    file.fd = take_fd(&f->fd);
    if (shelf_build_add(s->copy.build, &file, on_added, s) < 0) {
        s->copy.bad_file = true;
        return;
    }
    if (++s->copy.adding >= FILES_AHEAD)
        run_files_pause(s->task.run);
}

/* ---- the door ---- */

static void on_refused(struct dependency_sync *s, const struct egress_row *row)
{
    struct app *a = s->app;
    char target[PACKAGE_HOST_MAX + 8];

    a->metrics.dependency_refused++;
    (void)snprintf(target, sizeof target, "%s:%u", row->host, row->port);
    if (s->out.refused++ < REFUSED_LOGGED)
        log_event(&a->log, LOG_WARN, "dependency_host_refused",
                  LOG_STR("session_id", dependency_session(s)),
                  LOG_STR("request_id", s->request_id), LOG_STR("target", target),
                  LOG_STR("reason", egress_verdict_name(row->verdict)));
}

static void on_row(void *user, const struct egress_row *row)
{
    struct dependency_sync *s = user;

    if (row->verdict == EGRESS_UNRESOLVED) {
        memcpy(s->out.unresolved, row->host, sizeof s->out.unresolved);
    } else if (row->verdict == EGRESS_QUOTA) {
        s->out.full = true;
        run_stop(s->task.run, END_DISK);
    } else if (row->verdict != EGRESS_ALLOWED && row->verdict != EGRESS_UNREACHABLE) {
        on_refused(s, row);
    }
}

static void on_listening(void *user, uint32_t port, int fd)
{
    egress_door_serve(dependency_of(user)->out.door, port, fd);
}

/* The caller, or the operator, has named these hosts: wherever they are, they may be reached. */
static int policy_make(const struct dependency_sync *s, struct egress_policy *p, struct err *e)
{
    egress_policy_init(p, EGRESS_ALLOW);
    p->bytes_max = s->app->config.dependency_download_mb << 20;
    p->connections_max = CONNECTIONS;
    p->dial_ms = DIAL_MS;
    p->idle_ms = IDLE_MS;
    p->pin_s = (uint32_t)s->app->config.dependency_s;
    for (size_t i = 0; i < s->out.hosts_n; i++) {
        const struct package_host *h = &s->out.hosts[i];
        bool literal = strchr(h->name, ':') != NULL;
        char text[PACKAGE_HOST_MAX + 16];
        int n = snprintf(text, sizeof text, "%s%s%s:%u", literal ? "[" : "", h->name,
                         literal ? "]" : "", h->port);

        if (egress_rule_add(p, text, (size_t)n, e) < 0)
            return -1;
        p->rule[p->rules_n - 1].any_address = true;
    }
    return 0;
}

static int door_open(struct dependency_sync *s, struct err *e)
{
    cleanup_free struct egress_policy *p = malloc(sizeof *p);

    if (!p)
        return err_set(e, ERR_HOST, "no memory for a policy");
    return policy_make(s, p, e) < 0
               ? -1
               : egress_door_open(s->app->ways.egress, p, on_row, s, &s->out.door, e);
}

/* ---- the plan ---- */

struct limits dependency_limits(const struct app *a)
{
    const struct config *c = &a->config;
    struct limits l = app_limits(a, c->dependency_s * MS_PER_S);

    l.cpu_ms = 0;
    l.workspace_max = c->dependency_mb << 20;
    l.workspace_files = c->dependency_files;
    l.memory_max += l.workspace_max; /* its files are in memory, too */
    l.tmp_max = INSTALL_TMP;
    l.output_max = OUTPUT_MAX;
    return l;
}

/* Both installers, one after the other, as far as there is something to install. The number of
 * Python packages comes first, then these, then those of npm. */
static const char script[] =
    "set -e; n=$1; shift; mkdir -p site\n"
    "if ((n)); then\n"
    "  /usr/bin/python3 -m pip install --target /workspace/site --no-cache-dir"
    " --disable-pip-version-check --no-warn-script-location --no-input --progress-bar off"
    " --retries 2 --proxy \"$http_proxy\" --index-url \"$INDEX\""
    " ${TRUSTED:+--trusted-host \"$TRUSTED\"} -- \"${@:1:n}\"\n"
    "fi\n"
    "if (($# > n)); then\n"
    "  npm install --prefix /workspace/site --registry \"$REGISTRY\" --proxy \"$http_proxy\""
    " --https-proxy \"$http_proxy\" --cache /workspace/.tmp/npm --fetch-retries 2 --no-audit"
    " --no-fund --no-update-notifier --no-progress -- \"${@:n+1}\"\n"
    "fi\n";

enum { SETTINGS = 3 };

/* What differs between installations. An index without TLS is the caller's choice; nothing else
 * becomes less strict by it. */
struct settings {
    char count[16];
    char index[PACKAGE_URL_MAX + 16], registry[PACKAGE_URL_MAX + 16], trusted[TRUSTED_MAX + 16];
    const char *envp[ARRAY_LEN(environment) + SETTINGS];
    const char *argv[FIXED_ARGS + 2 * DEPENDENCIES_MAX + 1];
};

static void settings_make(const struct dependency_sync *s, struct settings *w)
{
    const char *const fixed[] = {"/bin/bash", "-c", script, "install", w->count};
    size_t n = 0;

    _Static_assert(ARRAY_LEN(fixed) <= FIXED_ARGS, "room for all arguments of ours");
    (void)snprintf(w->count, sizeof w->count, "%zu", s->specs_n);
    (void)snprintf(w->index, sizeof w->index, "INDEX=%s", s->index.url);
    (void)snprintf(w->registry, sizeof w->registry, "REGISTRY=%s", s->registry.url);
    (void)snprintf(w->trusted, sizeof w->trusted, "TRUSTED=");
    if (s->index.host.name[0] && !s->index.tls)
        (void)snprintf(w->trusted, sizeof w->trusted, "TRUSTED=%s:%u", s->index.host.name,
                       s->index.host.port);
    for (; environment[n]; n++)
        w->envp[n] = environment[n];
    w->envp[n++] = w->index;
    w->envp[n++] = w->registry;
    w->envp[n++] = w->trusted;
    w->envp[n] = NULL;
    for (n = 0; n < ARRAY_LEN(fixed); n++)
        w->argv[n] = fixed[n];
    for (size_t i = 0; i < s->specs_n; i++)
        w->argv[n++] = s->specs[i];
    for (size_t i = 0; i < s->npm_n; i++)
        w->argv[n++] = s->npm[i];
    w->argv[n] = NULL;
}

static enum task_go step_install(struct task *t, struct err *e)
{
    static const struct plan_file files[] = {
        {.path = "/workspace/.tmp/", .mode = 0700}
    };
    static const struct run_events events = {.file = on_file};
    static const uint32_t port = NET_PROXY_PORT;
    struct dependency_sync *s = dependency_of(t);
    const struct net_gate gate = {&port, 1, on_listening, t};
    struct settings w;
    struct plan plan = {
        .template = TEMPLATE_EXEC,
        .argv = w.argv,
        .envp = w.envp,
        .cwd = "/workspace",
        .files = files,
        .files_n = ARRAY_LEN(files),
        .limits = t->limits,
        .gate = &gate,
        .scan_all = true,
    };

    if (dependency_is_empty(s))
        return TASK_NEXT;
    if (door_open(s, e) < 0)
        return task_fail(t, END_FAILED, e->text);
    settings_make(s, &w);
    return task_run(t, &plan, &events, NULL);
}

static enum task_go step_prepare(struct task *t, struct err *e)
{
    struct dependency_sync *s = dependency_of(t);

    if (shelf_build_new(s->app->packages.shelf, &s->copy.build, e) < 0)
        return task_fail(t, END_FAILED, e->text);
    return TASK_NEXT;
}

/* clang-format off */
const struct task_step dependency_steps[DEPENDENCY_STEPS] = {
    {"admit",   TASK_QUEUED,     task_admit},
    {"prepare", TASK_STARTING,   step_prepare},
    {"install", TASK_STARTING,   step_install},
    {"tell",    TASK_COLLECTING, step_tell,    .always = true},
    {"collect", TASK_COLLECTING, step_collect, .always = true},
    {"publish", TASK_COLLECTING, step_publish},
    {"explain", TASK_COLLECTING, step_explain, .always = true},
};
/* clang-format on */
