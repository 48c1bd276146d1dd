/* SPDX-License-Identifier: MIT */
/* /v1/sandboxes: persistent sandboxes made, listed, looked at and deleted. */
#include <event2/event.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/network/network.h"
#include "app/sandbox/expose.h"
#include "app/sandbox/process.h"
#include "app/sandbox/sandboxes.h"
#include "app/sandbox/template.h"
#include "base/json.h"
#include "base/jw.h"
#include "http/api/api.h"
#include "http/api/packages/packages.h"
#include "http/api/sandboxes/sandbox_query.h"
#include "http/server/h1.h"
#include "http/server/reply.h"

enum {
    ONE_MAX = 16 * 1024, /* a sandbox in JSON, without its environment */
    ESCAPE_FACTOR = 6,
    ENV_MAX = 4096,
    MS_PER_S = 1000,
    NS_PER_MS = 1000000,
    US_PER_MS = 1000,
    AGAIN_MS = 2,
    MB = 20, /* bits */
    IDLE_MAX_S = 365 * 86400,
    LIST_MAX = 1000, /* sandboxes in one answer */
    WORD_MAX = 64,
};

/* ---- what is told ---- */

static void write_limits(struct jw *w, const struct limits *l)
{
    jw_key(w, "limits");
    jw_object(w);
    jw_kv_int(w, "memory_mb", (int64_t)(l->memory_max >> MB));
    jw_kv_int(w, "disk_mb", (int64_t)(l->workspace_max >> MB));
    jw_kv_int(w, "files", (int64_t)l->workspace_files);
    jw_kv_int(w, "pids", l->pids_max);
    jw_object_end(w);
}

static void write_port(struct jw *w, const struct persistent *p)
{
    uint16_t own = expose_own_port(p);
    const struct app *a = p->all->app;

    jw_kv_string(w, "bound_port", p->port[0] ? p->port : NULL);
    jw_key(w, "proxy_port");
    if (p->port[0] && own)
        jw_int(w, own);
    else if (p->port[0] && a->ways.expose)
        jw_int(w, expose_port(a->ways.expose));
    else
        jw_null(w);
}

static void write_processes(struct jw *w, const struct persistent *p)
{
    const struct process *pr;
    int64_t running = 0;

    TAILQ_FOREACH(pr, &p->processes.list, link)
    running += pr->status == PROCESS_RUNNING;
    jw_key(w, "processes");
    jw_object(w);
    jw_kv_int(w, "running", running);
    jw_kv_int(w, "kept", (int64_t)p->processes.n);
    jw_object_end(w);
}

/* Only names: values may be secrets. */
static void write_env(struct jw *w, const struct persistent *p)
{
    jw_key(w, "env");
    jw_array(w);
    for (size_t i = 0; i < p->env_n; i++)
        jw_bytes(w, p->env[i], strcspn(p->env[i], "="));
    jw_array_end(w);
}

static void write_known(struct jw *w, const char *key, int64_t v)
{
    jw_key(w, key);
    if (v >= 0)
        jw_int(w, v);
    else
        jw_null(w);
}

/* u: by its control groups; memory, processes, disk: by a helper. */
struct looked {
    struct usage u;
    uint64_t memory, disk;
    int processes;
};

static void write_usage(struct jw *w, const struct looked *l)
{
    jw_key(w, "usage");
    jw_object(w);
    write_known(w, "cpu_ms", l->u.cpu_us >= 0 ? l->u.cpu_us / 1000 : -1);
    write_known(w, "memory_bytes", (int64_t)l->memory);
    write_known(w, "memory_peak_bytes", l->u.memory_peak);
    write_known(w, "oom_kills", l->u.oom_kills);
    write_known(w, "pids", l->processes);
    write_known(w, "disk_bytes", (int64_t)l->disk);
    jw_object_end(w);
}

static const char *const homes[] = {"/workspace", "/home/user", NULL};
static const char *const ends[] = {"delete", "pause", NULL};

static void write_life(struct jw *w, const struct persistent *p)
{
    const struct life *l = &p->life;
    char text[CLOCK_ISO_MAX];

    jw_kv_string(w, "ends_at",
                 l->ends_us && p->state == PERSISTENT_RUNNING
                     ? clock_iso_at(l->ends_ms / MS_PER_S, l->ends_ms % MS_PER_S * NS_PER_MS, text)
                     : NULL);
    jw_kv_string(w, "on_end", ends[l->pause_at_end]);
    jw_kv_bool(w, "auto_resume", l->wakes);
}

static void write_label(struct jw *w, const struct persistent *p)
{
    const struct label *l = &p->label;

    jw_kv_string(w, "template", l->template[0] ? l->template : NULL);
    jw_key(w, "metadata");
    jw_object(w);
    for (size_t i = 0; i < l->pairs_n; i++)
        jw_kv_string(w, l->pairs[i].key, l->pairs[i].value);
    jw_object_end(w);
}

/* Only requests with the secret get here, and the secret opens every sandbox. */
static void write_access(struct jw *w, const struct persistent *p)
{
    jw_key(w, "access");
    jw_object(w);
    jw_kv_string(w, "token", p->access.token);
    jw_kv_string(w, "traffic_token", p->access.traffic);
    jw_kv_bool(w, "private_ports", p->access.private_ports);
    jw_object_end(w);
}

/* The object is left open. */
static void write_one(struct jw *w, const struct persistent *p)
{
    jw_object(w);
    jw_kv_string(w, "id", p->id);
    jw_kv_string(w, "name", p->label.name);
    jw_kv_string(w, "state", persistent_state_name(p->state));
    jw_kv_string(w, "created_at", p->life.created_at);
    jw_kv_int(w, "timeout", (int64_t)(p->life.idle_ms / MS_PER_S));
    write_life(w, p);
    write_label(w, p);
    jw_kv_string(w, "home", persistent_home(p));
    write_limits(w, &p->limits);
    jw_kv_string(w, "isolation", p->jail->ops->name);
    jw_key(w, "network");
    jw_object(w);
    if (p->network.of)
        network_policy_json(w, network_policy(p->network.of));
    else
        jw_kv_string(w, "mode", net_mode_name(net_effective(p->jail, p->network.mode), NULL));
    jw_object_end(w);
    write_env(w, p);
    write_port(w, p);
    write_processes(w, p);
}

/* What can be changed inside besides /workspace and /tmp; known once it is ready. */
static void write_writable(struct jw *w, const struct persistent *p)
{
    static const char *const names[] = {"/usr", "/usr/local", "/etc"};
    static const char *const always[] = {"/workspace", "/home", "/tmp", "/var",
                                         "/opt",       "/srv",  "/run", "/mnt"};
    unsigned bits = persistent_writable(p);

    jw_key(w, "writable");
    jw_array(w);
    if (!(p->jail->traits & JAIL_FS)) { /* the host's file system: whatever its user may */
        jw_string(w, "/");
        jw_array_end(w);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(always); i++)
        jw_string(w, always[i]);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (bits & BIT(i))
            jw_string(w, names[i]);
    jw_array_end(w);
}

static size_t json_max(const struct persistent *p)
{
    size_t n = ONE_MAX + PERSISTENT_PORT_MAX * ESCAPE_FACTOR +
               (p->network.of ? sizeof(struct egress_policy) : 0);

    for (size_t i = 0; i < p->env_n; i++)
        n += strcspn(p->env[i], "=") * ESCAPE_FACTOR + 4;
    for (size_t i = 0; i < p->label.pairs_n; i++)
        n += (strlen(p->label.pairs[i].key) + strlen(p->label.pairs[i].value)) * ESCAPE_FACTOR + 8;
    return n;
}

static void reply_one(struct http_call *c, int status, const struct persistent *p)
{
    struct buf body = BUF_INIT(json_max(p));
    struct jw w = JW(&body);

    write_one(&w, p);
    write_access(&w, p);
    jw_object_end(&w);
    http_reply_json(c, status, &body);
}

/* What is wrong with the parameters; NULL: nothing. `text` is for what the pairs point to. */
static const char *read_query(const struct http_call *c, struct sandboxes_query *q,
                              struct exec_var *pairs, char text[H1_TARGET_MAX + 1], uint64_t *limit)
{
    char word[WORD_MAX];

    *limit = LIST_MAX;
    if (http_query(c, "state", word, sizeof word) && !query_states(word, &q->states))
        return "state: must be running, paused, or both with a comma";
    if (http_query(c, "limit", word, sizeof word) && !query_number(word, 1, LIST_MAX, limit))
        return "limit: must be from 1 to 1000";
    if (http_query(c, "after", word, sizeof word) && !query_number(word, 1, UINT64_MAX, &q->after))
        return "after: must be what `next` said";
    if (http_query(c, "metadata", text, H1_TARGET_MAX + 1) &&
        !query_pairs(text, pairs, &q->pairs_n))
        return "metadata: must be NAME=VALUE, with & between several";
    q->pairs = pairs;
    return NULL;
}

static void reply_list(struct http_call *c, const struct sandboxes_query *q, size_t limit)
{
    const struct persistent **page = calloc(limit, sizeof *page);
    struct buf body = BUF_INIT(ONE_MAX);
    struct jw w = JW(&body);
    bool more = false;
    size_t n;

    if (!page) {
        reply_status(c, 503);
        return;
    }
    n = sandboxes_select(http_app(c)->sandboxes, q, limit, page, &more);
    for (size_t i = 0; i < n; i++)
        body.max += json_max(page[i]);
    jw_object(&w);
    jw_key(&w, "sandboxes");
    jw_array(&w);
    for (size_t i = 0; i < n; i++) {
        write_one(&w, page[i]);
        jw_object_end(&w);
    }
    jw_array_end(&w);
    jw_key(&w, "next");
    if (more)
        jw_int(&w, (int64_t)page[n - 1]->life.serial);
    else
        jw_null(&w);
    jw_object_end(&w);
    free(page);
    http_reply_json(c, 200, &body);
}

void api_sandboxes_list(struct http_call *c)
{
    struct sandboxes_query q = {.oldest_first = true};
    struct exec_var pairs[PERSISTENT_PAIRS_MAX];
    char text[H1_TARGET_MAX + 1];
    const char *wrong;
    uint64_t limit;
    struct err e;

    wrong = read_query(c, &q, pairs, text, &limit);
    if (wrong) {
        (void)err_set(&e, ERR_CALLER, "%s", wrong);
        http_reply_error(c, &e);
    } else {
        reply_list(c, &q, limit);
    }
}

struct persistent *api_sandbox(struct http_call *c)
{
    struct persistent *p;
    struct err e;

    if (sandboxes_find(http_app(c)->sandboxes, http_request(c)->param[0], &p, &e) == 0)
        return p;
    http_reply_error(c, &e);
    return NULL;
}

/* ---- looking at one ---- */

struct looking {
    struct activity activity;
    struct http_call *call;
    struct filework *filework;
    struct event *again;
    uint64_t began_us;
    struct looked looked;
};

static void looking_free(struct looking *l)
{
    activity_end(&l->activity);
    filework_free(l->filework);
    if (l->again)
        event_free(l->again);
    free(l);
}

static void looking_drop(struct activity *a)
{
    looking_free((struct looking *)((char *)a - offsetof(struct looking, activity)));
}

static void looking_answer(struct looking *l)
{
    const struct persistent *p = l->activity.home;
    struct buf body = BUF_INIT(json_max(p));
    struct jw w = JW(&body);

    write_one(&w, p);
    write_access(&w, p);
    write_writable(&w, p);
    write_usage(&w, &l->looked);
    jw_object_end(&w);
    http_reply_json(l->call, 200, &body);
    looking_free(l);
}

/* A helper may answer before the launcher has told whose control groups these are. */
static void on_again(evutil_socket_t fd, short what, void *user)
{
    static const struct timeval soon = {.tv_usec = AGAIN_MS * US_PER_MS};
    struct looking *l = user;
    const struct persistent *p = l->activity.home;
    uint64_t most_us = p->all->app->config.helper_answer_ms * US_PER_MS;

    (void)fd, (void)what;
    if (persistent_usage(p, &l->looked.u) || clock_us() - l->began_us > most_us ||
        event_add(l->again, &soon) < 0)
        looking_answer(l);
}

static void on_looked(void *user, struct file_result *r)
{
    struct looking *l = user;

    l->filework = NULL;
    l->looked.memory = r->memory;
    l->looked.disk = r->disk;
    l->looked.processes = r->processes;
    on_again(-1, 0, l);
}

void api_sandbox_get(struct http_call *c)
{
    const struct file_order o = {
        .verb = FILE_USAGE, .path = {"", 0}
    };
    struct persistent *p = api_sandbox(c);
    struct looking *l;
    struct err e;

    if (!p)
        return;
    if (p->state == PERSISTENT_PAUSED) { /* no one in there could look */
        reply_one(c, 200, p);
        return;
    }
    l = calloc(1, sizeof *l);
    if (l)
        l->again = evtimer_new(http_app(c)->base, on_again, l);
    if (!l || !l->again) {
        free(l);
        reply_status(c, 503);
        return;
    }
    l->call = c;
    l->began_us = clock_us();
    if (filework_start(&p->inside.files, &o, on_looked, l, &l->filework, &e) < 0) {
        looking_free(l);
        http_reply_error(c, &e);
        return;
    }
    activity_begin(p, &l->activity, looking_drop);
}

/* ---- its life ---- */

void api_sandbox_pause(struct http_call *c)
{
    struct persistent *p = api_sandbox(c);
    struct err e;

    if (!p)
        return;
    if (persistent_pause(p, &e) < 0)
        http_reply_error(c, &e);
    else
        reply_one(c, 200, p);
}

void api_sandbox_resume(struct http_call *c)
{
    struct persistent *p = api_sandbox(c);
    struct err e;

    if (!p)
        return;
    if (persistent_resume(p, &e) < 0)
        http_reply_error(c, &e);
    else
        reply_one(c, 200, p);
}

struct lifetime_body {
    double lifetime_s;
};
static const struct shape_field lifetime_fields[] = {
    {"lifetime", SHAPE_NUMBER, SHAPE_REQUIRED, offsetof(struct lifetime_body, lifetime_s), 0,
     IDLE_MAX_S, NULL, "seconds from now after which its life ends; 0: never"},
};
const struct shape lifetime_shape = {lifetime_fields, ARRAY_LEN(lifetime_fields), 0,
                                     "SandboxLifetime"};

void api_sandbox_lifetime(struct http_call *c)
{
    cleanup_with(shaping_done) struct shaping s = {0};
    struct persistent *p = api_sandbox(c);
    struct lifetime_body b = {0};

    if (!p || !dialect_decode(c, &lifetime_shape, &b, &s))
        return;
    persistent_set_end(p, (uint64_t)(b.lifetime_s * MS_PER_S));
    reply_one(c, 200, p);
}

/* ---- deleting ---- */

static void on_dead(void *user)
{
    http_reply(user, 204, NULL, NULL);
}

void api_sandbox_delete(struct http_call *c)
{
    struct sandboxes *s = http_app(c)->sandboxes;
    struct persistent *p;

    /* The default one is not made only to be deleted. */
    if (strcmp(http_request(c)->param[0], "default") == 0 && !s->standard) {
        http_reply(c, 204, NULL, NULL);
        return;
    }
    p = api_sandbox(c);
    if (p)
        sandboxes_delete(p, on_dead, c);
}

/* ---- making ---- */

struct limits_body {
    int64_t memory_mb, disk_mb, files, pids; /* 0: not given */
};

struct create_body {
    struct bytes name, isolation, template;
    struct shape_strings env, metadata;
    int home, on_end; /* indices of homes[], ends[] */
    bool auto_resume, private_ports;
    struct limits_body limits;
    struct json_value network, packages;
    double timeout_s; /* below 0: not given */
    double lifetime_s;
};

static const struct {
    size_t at;
    enum config_index option; /* the least it takes is the least we take */
} limit_rows[] = {
    {offsetof(struct limits_body, memory_mb), OPTION_sandbox_memory_mb},
    {offsetof(struct limits_body, disk_mb),   OPTION_sandbox_disk_mb  },
    {offsetof(struct limits_body, files),     OPTION_sandbox_files    },
    {offsetof(struct limits_body, pids),      OPTION_sandbox_pids     },
};

/* The most that may be asked for, in the units of the body. */
static int64_t limit_most(const struct app *a, size_t row)
{
    const struct limits l = sandboxes_limits(a);
    const uint64_t most[] = {l.memory_max >> MB, l.workspace_max >> MB, l.workspace_files,
                             l.pids_max};

    return (int64_t)most[row];
}

/* A request may ask for less than the configuration gives, not for more. */
static void check_limit(struct shaping *s, const struct shape_field *f, const void *value)
{
    int64_t n = *(const int64_t *)value, least, most;
    size_t i = 0;

    while (limit_rows[i].at != f->at)
        i++;
    least = (int64_t)config_options[limit_rows[i].option].min;
    most = limit_most(s->user, i);
    if (n < least || n > most)
        shape_complain(s, f->name, NULL, "value_error", "must be from %lld to %lld",
                       (long long)least, (long long)most);
}

static void check_text(struct shaping *s, const struct shape_field *f, const void *value)
{
    const struct bytes *b = value;

    if (strlen(b->p) != b->n)
        shape_complain(s, f->name, NULL, "value_error", "String should not contain NUL");
}

/* clang-format off */
#define AT(member) offsetof(struct limits_body, member)
static const struct shape_field limit_fields[] = {
    {"memory_mb", SHAPE_INT, 0, AT(memory_mb), INT64_MIN, 0, check_limit, "MiB of memory"},
    {"disk_mb", SHAPE_INT, 0, AT(disk_mb), INT64_MIN, 0, check_limit, "MiB of disk"},
    {"files", SHAPE_INT, 0, AT(files), INT64_MIN, 0, check_limit, "files and directories"},
    {"pids", SHAPE_INT, 0, AT(pids), INT64_MIN, 0, check_limit, "processes and threads"},
};
#undef AT
static const struct shape limits_shape = {limit_fields, ARRAY_LEN(limit_fields), SHAPE_NULLS, "SandboxLimits"};

#define AT(member) offsetof(struct create_body, member)
static const struct shape_field create_fields[] = {
    {"name", SHAPE_STRING, 0, AT(name), 0, 0, check_text, "a name of your own, to find it again"},
    {"isolation", SHAPE_STRING, 0, AT(isolation), 0, 0, check_text,
     "name of a jail that ISOLATION allows, default the first of them"},
    {"env", SHAPE_STRINGS, 0, AT(env), 0, ENV_MAX, NULL, "environment variables of every command"},
    {"limits", SHAPE_NESTED, 0, AT(limits), .inner = &limits_shape, .help = "less than the configuration gives"},
    {"network", SHAPE_RAW, 0, AT(network), .accepts = BIT(JSON_OBJECT) | BIT(JSON_STRING),
     .inner = &network_shape, .schema = NETWORK_SCHEMA, .help = NETWORK_HELP},
    {"packages", SHAPE_RAW, 0, AT(packages), .accepts = BIT(JSON_OBJECT) | BIT(JSON_STRING),
     .schema = PACKAGES_SCHEMA, .help = "name of a set of packages, or its lists"},
    {"timeout", SHAPE_NUMBER, 0, AT(timeout_s), 0, IDLE_MAX_S, NULL,
     "seconds without a request after which it is deleted; 0: never"},
    {"lifetime", SHAPE_NUMBER, 0, AT(lifetime_s), 0, IDLE_MAX_S, NULL,
     "seconds after which its life ends, whatever happens in it; 0: never"},
    {"on_end", SHAPE_CHOICE, 0, AT(on_end), .words = ends, .help = "what happens then, default delete"},
    {"auto_resume", SHAPE_BOOL, 0, AT(auto_resume), .help = "a request to it resumes it while it is paused"},
    {"metadata", SHAPE_STRINGS, 0, AT(metadata), 0, PERSISTENT_PAIRS_MAX, NULL, "texts of your own, to find it by"},
    {"template", SHAPE_STRING, 0, AT(template), 0, 0, check_text,
     "base, code-interpreter-v1 or one of SANDBOX_TEMPLATES"},
    {"home", SHAPE_CHOICE, 0, AT(home), .words = homes, .help = "where commands begin, and HOME; default /workspace"},
    {"private_ports", SHAPE_BOOL, 0, AT(private_ports),
     .help = "its ports are open only to who has its traffic token"},
};
#undef AT
/* clang-format on */
const struct shape create_shape = {create_fields, ARRAY_LEN(create_fields), SHAPE_NULLS,
                                   "SandboxCreate"};

static struct persistent_spec spec_of(const struct app *a, const struct create_body *b,
                                      const struct net_wish *network)
{
    struct persistent_spec spec = {
        .name = b->name.p ? b->name.p : "",
        .isolation = b->isolation.p,
        .env = b->env.v,
        .env_n = b->env.n,
        .limits = sandboxes_limits(a),
        .idle_ms = b->timeout_s < 0 ? a->config.sandbox_idle_s * MS_PER_S
                                    : (uint64_t)(b->timeout_s * MS_PER_S),
        .network = network->mode,
        .policy = network->policy,
        .template = b->template.p,
        .pairs = b->metadata.v,
        .pairs_n = b->metadata.n,
        .span_ms = (uint64_t)(b->lifetime_s * MS_PER_S),
        .pause_at_end = b->on_end == 1,
        .wakes = b->auto_resume,
        .own_home = b->home == 1,
        .private_ports = b->private_ports,
    };
    struct limits *l = &spec.limits;

    if (b->limits.memory_mb)
        l->memory_max = (uint64_t)b->limits.memory_mb << MB;
    if (b->limits.disk_mb)
        l->workspace_max = (uint64_t)b->limits.disk_mb << MB;
    if (b->limits.files)
        l->workspace_files = (uint64_t)b->limits.files;
    if (b->limits.pids)
        l->pids_max = (uint32_t)b->limits.pids;
    return spec;
}

/* A set of packages as a request would name it. */
struct set_name {
    char text[PERSISTENT_NAME_MAX + 3];
    struct json_value value;
};

/* The packages are those of the request, else those of its template. False: answered. */
static bool take_template(struct http_call *c, const struct create_body *b, struct set_name *ret)
{
    char set[PERSISTENT_NAME_MAX + 1] = "";
    struct err e;

    if (b->template.p && !template_find(http_app(c), b->template.p, set)) {
        (void)err_set(&e, ERR_CALLER, "template: there is no '%.64s'", b->template.p);
        http_reply_error(c, &e);
        return false;
    }
    ret->value = b->packages;
    if (set[0] && !b->packages.p)
        ret->value = (struct json_value){
            JSON_STRING, ret->text, (size_t)snprintf(ret->text, sizeof ret->text, "\"%s\"", set)};
    return true;
}

void api_sandbox_create(struct http_call *c)
{
    struct app *a = http_app(c);
    cleanup_with(shaping_done) struct shaping s = {0};
    struct create_body b = {.timeout_s = -1};
    struct persistent_spec spec;
    struct set_name packages;
    struct persistent *p;
    cleanup_with(net_wish_done) struct net_wish network = {.mode = NET_NONE};
    struct err e;

    if (http_request(c)->body_n > 0 && !dialect_decode(c, &create_shape, &b, &s))
        return;
    if (net_decode(&a->config, b.network, &network, &e) < 0) {
        http_reply_error(c, &e);
        return;
    }
    spec = spec_of(a, &b, &network);
    if (!take_template(c, &b, &packages))
        return;
    if (packages_take(c, packages.value, api_sandbox_create, &spec.packages) != PACKAGES_GO)
        return;
    if (sandboxes_create(a->sandboxes, &spec, &p, &e) < 0) {
        package_set_release(spec.packages);
        http_reply_error(c, &e);
    } else {
        reply_one(c, 201, p);
    }
}
