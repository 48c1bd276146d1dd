/* SPDX-License-Identifier: MIT */
/* The control plane: sandboxes made, found, kept alive, paused and ended. */
#include "http/api/e2b/control.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app/daemon/app.h"
#include "app/sandbox/template.h"
#include "base/json.h"
#include "core/port_files.h"
#include "core/port_net.h"
#include "http/api/e2b/e2b.h"
#include "http/api/packages/packages.h"
#include "http/server/dialect.h"

enum {
    MS_PER_S = 1000,
    US_PER_MS = 1000,
    NS_PER_US = 1000,
    PAIRS_MAX = 1000,
    METRICS_MAX = 4096,
};

static void reply_made(struct http_call *c, int status, const struct persistent *p)
{
    struct buf body = BUF_INIT(control_json_max(p));
    struct jw w = JW(&body);

    control_write_made(&w, http_app(c), p);
    http_reply_json(c, status, &body);
}

/* The one that the path names; behind a dash old SDKs had the client's id. NULL: answered. */
static struct persistent *named(struct http_call *c)
{
    const char *text = http_request(c)->param[0];
    size_t n = strcspn(text, "-");
    char id[PERSISTENT_ID_MAX + 1];
    struct persistent *p = NULL;

    if (n <= PERSISTENT_ID_MAX) {
        (void)snprintf(id, sizeof id, "%.*s", (int)n, text);
        p = sandboxes_get(http_app(c)->sandboxes, id);
    }
    if (!p)
        e2b_reply_status(c, 404, "Sandbox \"%.64s\" was not found", text);
    return p;
}

/* ---- making ---- */

struct rules_body {
    bool public_traffic;
    struct shape_strings allow, deny;
    struct json_value rules, proxy;
};

struct resume_body {
    bool enabled;
};

struct made_body {
    struct bytes template;
    int64_t timeout_s; /* 0: not given */
    struct shape_strings metadata, env;
    bool auto_pause, internet;
    struct resume_body auto_resume;
    struct rules_body network;
    struct json_value memory, volumes, mcp;
};

/* clang-format off */
#define AT(member) offsetof(struct rules_body, member)
static const struct shape_field rules_fields[] = {
    {"allowPublicTraffic", SHAPE_BOOL, 0, AT(public_traffic)},
    {"allowOut", SHAPE_LIST, 0, AT(allow)},
    {"denyOut", SHAPE_LIST, 0, AT(deny)},
    {"rules", SHAPE_RAW, 0, AT(rules)},
    {"egressProxy", SHAPE_RAW, 0, AT(proxy)},
};
#undef AT
static const struct shape rules_shape = {rules_fields, ARRAY_LEN(rules_fields), SHAPE_NULLS | SHAPE_OPEN, NULL};
static const struct shape_field resume_fields[] = {
    {"enabled", SHAPE_BOOL, 0, offsetof(struct resume_body, enabled)},
};
static const struct shape resume_shape = {resume_fields, ARRAY_LEN(resume_fields), SHAPE_NULLS | SHAPE_OPEN, NULL};
#define AT(member) offsetof(struct made_body, member)
static const struct shape_field made_fields[] = {
    {"templateID", SHAPE_STRING, 0, AT(template)},
    {"timeout", SHAPE_INT, 0, AT(timeout_s)},
    {"metadata", SHAPE_STRINGS, 0, AT(metadata), 0, PERSISTENT_PAIRS_MAX},
    {"envVars", SHAPE_STRINGS, 0, AT(env), 0, PAIRS_MAX},
    {"allow_internet_access", SHAPE_BOOL, 0, AT(internet)},
    {"network", SHAPE_NESTED, 0, AT(network), .inner = &rules_shape},
    {"autoPause", SHAPE_BOOL, 0, AT(auto_pause)},
    {"autoPauseMemory", SHAPE_RAW, 0, AT(memory)},
    {"autoResume", SHAPE_NESTED, 0, AT(auto_resume), .inner = &resume_shape},
    {"volumeMounts", SHAPE_RAW, 0, AT(volumes)},
    {"mcp", SHAPE_RAW, 0, AT(mcp)},
};
#undef AT
static const struct shape made_shape = {made_fields, ARRAY_LEN(made_fields), SHAPE_NULLS | SHAPE_OPEN, NULL};
/* clang-format on */

static bool is_something(struct json_value v)
{
    struct json_value key, one;
    size_t at = 0;

    if (!v.p || v.type == JSON_NULL)
        return false;
    return v.type == JSON_ARRAY    ? json_array_next(v, &at, &one)
           : v.type == JSON_OBJECT ? json_object_next(v, &at, &key, &one)
                                   : true;
}

static bool is_false(struct json_value v)
{
    bool is;

    return v.p && v.type == JSON_BOOL && json_to_bool(v, &is) && !is;
}

/* What cannot be given is refused, not left out. NULL: nothing of the kind is asked for. */
static const char *impossible(const struct made_body *b)
{
    if (is_something(b->volumes))
        return "volumeMounts: this server has no volumes";
    if (is_something(b->mcp))
        return "mcp: this server has no MCP gateway";
    if (is_false(b->memory) && !b->auto_pause)
        return "autoPauseMemory needs autoPause";
    if (is_false(b->memory))
        return "autoPauseMemory: this server pauses with the memory only";
    if (is_something(b->network.rules) || is_something(b->network.proxy))
        return "network: this server has no rules that change requests and no proxy of another";
    return NULL;
}

static bool check_variables(struct http_call *c, const struct shape_strings *env)
{
    for (size_t i = 0; i < env->n; i++)
        if (!exec_var_is_name(env->v[i].name) || strlen(env->v[i].value.p) != env->v[i].value.n) {
            e2b_reply_status(c, 400, "envVars: '%.64s' cannot be set", env->v[i].name.p);
            return false;
        }
    return true;
}

static bool check_made(struct http_call *c, const struct made_body *b)
{
    const char *why = impossible(b);
    int64_t most = (int64_t)http_app(c)->config.sandbox_life_s;

    if (!b->template.p || b->template.n == 0)
        e2b_reply_status(c, 400, "templateID is missing");
    else if (b->timeout_s < 1 || b->timeout_s > most)
        e2b_reply_status(c, 400, "timeout must be from 1 to %lld seconds", (long long)most);
    else if (why)
        e2b_reply_status(c, 400, "%s", why);
    else
        return check_variables(c, &b->env);
    return false;
}

/* Everything is denied, so what is allowed is all. */
static bool denies_all(const struct shape_strings *deny)
{
    for (size_t i = 0; i < deny->n; i++)
        if (strcmp(deny->v[i].value.p, "0.0.0.0/0") == 0)
            return true;
    return false;
}

/* As far as the operator permits: the hosts that are allowed, else the public Internet without
 * those that are denied; and the host's network where the operator lets sandboxes have that. */
static int network_of(const struct app *a, const struct made_body *b, struct net_wish *ret,
                      struct err *e)
{
    const struct config *c = &a->config;
    const struct shape_strings *allow = &b->network.allow, *deny = &b->network.deny;

    *ret = (struct net_wish){.mode = NET_NONE};
    if (allow->n > 0)
        return net_wish_hosts(c, EGRESS_ALLOW, allow->v, allow->n, ret, e);
    if (!b->internet || denies_all(deny))
        return 0;
    if (strcmp(c->egress, "public") == 0)
        return net_wish_hosts(c, EGRESS_PUBLIC, deny->v, deny->n, ret, e);
    if (c->host_network && deny->n == 0)
        ret->mode = NET_HOST;
    return 0;
}

static void make(struct http_call *c, const struct made_body *b, api_fn *again)
{
    struct app *a = http_app(c);
    char set[PERSISTENT_NAME_MAX + 1], quoted[PERSISTENT_NAME_MAX + 3];
    struct persistent_spec spec = {
        .name = "",
        .template = b->template.p,
        .limits = sandboxes_limits(a),
        .span_ms = (uint64_t)b->timeout_s * MS_PER_S,
        .pause_at_end = b->auto_pause,
        .wakes = b->auto_resume.enabled,
        .own_home = true,
        .private_ports = !b->network.public_traffic,
        .pairs = b->metadata.v,
        .pairs_n = b->metadata.n,
        .env = b->env.v,
        .env_n = b->env.n,
    };
    cleanup_with(net_wish_done) struct net_wish network = {.mode = NET_NONE};
    struct json_value packages = {0};
    struct persistent *p;
    struct err e;

    if (network_of(a, b, &network, &e) < 0) {
        e2b_reply_status(c, 400, "%s", e.text);
        return;
    }
    spec.network = network.mode;
    spec.policy = network.policy;

    if (!template_find(a, b->template.p, set)) {
        e2b_reply_status(c, 404, "template '%.64s' not found", b->template.p);
        return;
    }
    if (set[0])
        packages = (struct json_value){JSON_STRING, quoted,
                                       (size_t)snprintf(quoted, sizeof quoted, "\"%s\"", set)};
    if (packages_take(c, packages, again, &spec.packages) != PACKAGES_GO)
        return;
    if (sandboxes_create(a->sandboxes, &spec, &p, &e) == 0) {
        reply_made(c, 201, p);
        return;
    }
    package_set_release(spec.packages);
    http_reply_error(c, &e);
}

static void create(struct http_call *c, int64_t life_s, api_fn *again)
{
    cleanup_with(shaping_done) struct shaping s = {0};
    struct made_body b = {.timeout_s = life_s, .internet = true, .network.public_traffic = true};

    if (dialect_decode(c, &made_shape, &b, &s) && check_made(c, &b))
        make(c, &b, again);
}

void e2b_create(struct http_call *c)
{
    create(c, CONTROL_LIFE_S, e2b_create);
}

void e2b_create_old(struct http_call *c)
{
    create(c, CONTROL_LIFE_OLD_S, e2b_create_old);
}

/* ---- one ---- */

void e2b_info(struct http_call *c)
{
    const struct persistent *p = named(c);
    struct buf body = BUF_INIT(p ? control_json_max(p) : 0);
    struct jw w = JW(&body);

    if (!p)
        return;
    control_write_info(&w, p, true);
    http_reply_json(c, 200, &body);
}

static void on_dead(void *user)
{
    http_reply(user, 204, NULL, NULL);
}

void e2b_kill(struct http_call *c)
{
    struct persistent *p = named(c);

    if (p)
        sandboxes_delete(p, on_dead, c);
}

/* ---- its life ---- */

struct life_body {
    int64_t timeout_s; /* below 0: as 0 */
    bool auto_pause;
    struct json_value memory;
};

/* clang-format off */
#define AT(member) offsetof(struct life_body, member)
static const struct shape_field life_fields[] = {
    {"timeout", SHAPE_INT, 0, AT(timeout_s), INT32_MIN},
    {"duration", SHAPE_INT, 0, AT(timeout_s), INT32_MIN},
    {"autoPause", SHAPE_BOOL, 0, AT(auto_pause)},
    {"memory", SHAPE_RAW, 0, AT(memory)},
};
#undef AT
static const struct shape life_shape = {life_fields, ARRAY_LEN(life_fields), SHAPE_NULLS | SHAPE_OPEN, NULL};
/* clang-format on */

/* The optional body of a request about the life of a sandbox. False: answered. */
static bool take_life(struct http_call *c, struct life_body *ret)
{
    cleanup_with(shaping_done) struct shaping s = {0};
    int64_t most = (int64_t)http_app(c)->config.sandbox_life_s;

    ret->memory = (struct json_value){0};
    if (http_request(c)->body_n > 0 && !dialect_decode(c, &life_shape, ret, &s))
        return false;
    if (ret->timeout_s > most) {
        e2b_reply_status(c, 400, "timeout must be at most %lld seconds", (long long)most);
        return false;
    }
    if (ret->timeout_s < 0)
        ret->timeout_s = 0;
    return true;
}

/* Milliseconds; no time at all is the shortest there is, because 0 stands for no end. */
static uint64_t span_of(const struct life_body *b)
{
    return b->timeout_s > 0 ? (uint64_t)b->timeout_s * MS_PER_S : 1;
}

void e2b_timeout(struct http_call *c)
{
    struct life_body b = {.timeout_s = CONTROL_LIFE_S};
    struct persistent *p = named(c);

    if (!p || !take_life(c, &b))
        return;
    if (p->state != PERSISTENT_RUNNING) {
        e2b_reply_status(c, 409, "the sandbox is not running");
        return;
    }
    persistent_set_end(p, span_of(&b));
    http_reply(c, 204, NULL, NULL);
}

void e2b_refresh(struct http_call *c)
{
    struct life_body b = {.timeout_s = CONTROL_LIFE_S};
    struct persistent *p = named(c);

    if (!p || !take_life(c, &b))
        return;
    persistent_lengthen(p, span_of(&b));
    http_reply(c, 204, NULL, NULL);
}

static void resume(struct http_call *c, struct persistent *p, uint64_t span_ms)
{
    struct err e;

    if (persistent_resume(p, &e) < 0) {
        http_reply_error(c, &e);
        return;
    }
    persistent_set_end(p, span_ms);
    reply_made(c, 201, p);
}

void e2b_connect(struct http_call *c)
{
    struct life_body b = {.timeout_s = CONTROL_LIFE_S};
    struct persistent *p = named(c);

    if (!p || !take_life(c, &b))
        return;
    if (p->state == PERSISTENT_PAUSED) {
        resume(c, p, span_of(&b));
        return;
    }
    persistent_lengthen(p, span_of(&b));
    reply_made(c, 200, p);
}

void e2b_resume(struct http_call *c)
{
    struct life_body b = {.timeout_s = CONTROL_LIFE_S};
    struct persistent *p = named(c);

    if (!p || !take_life(c, &b))
        return;
    if (p->state != PERSISTENT_PAUSED)
        e2b_reply_status(c, 409, "the sandbox is running");
    else
        resume(c, p, span_of(&b));
}

void e2b_pause(struct http_call *c)
{
    struct life_body b = {.timeout_s = CONTROL_LIFE_S};
    struct persistent *p = named(c);
    struct err e;

    if (!p || !take_life(c, &b))
        return;
    if (p->state == PERSISTENT_PAUSED)
        e2b_reply_status(c, 409, "the sandbox is paused already");
    else if (is_false(b.memory))
        e2b_reply_status(c, 501, "this server pauses with the memory only");
    else if (persistent_pause(p, &e) < 0)
        http_reply_error(c, &e);
    else
        http_reply(c, 204, NULL, NULL);
}

/* ---- what it uses ---- */

struct measured {
    struct activity activity;
    struct http_call *call;
    struct filework *filework;
};

static void measured_free(struct measured *m)
{
    activity_end(&m->activity);
    filework_free(m->filework);
    free(m);
}

static void measured_drop(struct activity *a)
{
    measured_free((struct measured *)((char *)a - offsetof(struct measured, activity)));
}

/* Of one processor, in percent, since it was asked for last or since the sandbox was made. */
static double cpu_share(struct persistent *p)
{
    uint64_t now = clock_us(), from = p->sampled.at_us;
    struct usage u;
    double share = 0;

    persistent_usage(p, &u);
    if (u.cpu_us >= p->sampled.cpu_us && now > from)
        share = 100.0 * (double)(u.cpu_us - p->sampled.cpu_us) / (double)(now - from);
    p->sampled.at_us = now;
    p->sampled.cpu_us = u.cpu_us > 0 ? u.cpu_us : 0;
    return share;
}

static void on_measured(void *user, struct file_result *r)
{
    struct measured *m = user;
    struct persistent *p = m->activity.home;
    struct buf body = BUF_INIT(METRICS_MAX);
    struct jw w = JW(&body);
    char now[CLOCK_ISO_MAX];
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);

    m->filework = NULL;
    jw_array(&w);
    if (r->sys == 0) {
        jw_object(&w);
        jw_kv_string(&w, "timestamp", clock_iso(now));
        jw_kv_int(&w, "timestampUnix", (int64_t)time(NULL));
        jw_kv_int(&w, "cpuCount", cpus > 0 ? cpus : 1);
        jw_kv_double(&w, "cpuUsedPct", cpu_share(p), 2);
        jw_kv_int(&w, "memUsed", (int64_t)r->memory);
        jw_kv_int(&w, "memTotal", (int64_t)p->limits.memory_max);
        jw_kv_int(&w, "memCache", 0);
        jw_kv_int(&w, "diskUsed", (int64_t)r->disk);
        jw_kv_int(&w, "diskTotal", (int64_t)p->limits.workspace_max);
        jw_object_end(&w);
    }
    jw_array_end(&w);
    http_reply_json(m->call, 200, &body);
    measured_free(m);
}

static void reply_none(struct http_call *c)
{
    struct buf body = BUF_INIT(2);

    (void)buf_puts(&body, "[]");
    http_reply(c, 200, API_JSON, &body);
}

void e2b_metrics(struct http_call *c)
{
    const struct file_order o = {
        .verb = FILE_USAGE, .path = {"", 0}
    };
    struct persistent *p = named(c);
    struct measured *m;
    struct err e;

    if (!p)
        return;
    m = p->state == PERSISTENT_RUNNING ? calloc(1, sizeof *m) : NULL;
    if (!m) { /* nothing can be measured */
        reply_none(c);
        return;
    }
    m->call = c;
    if (filework_start(&p->inside.files, &o, on_measured, m, &m->filework, &e) < 0) {
        free(m);
        http_reply_error(c, &e);
        return;
    }
    activity_begin(p, &m->activity, measured_drop);
}

/* ---- the rest ---- */

void e2b_logs(struct http_call *c)
{
    struct buf body = BUF_INIT(64);

    if (!named(c))
        return;
    (void)buf_puts(&body, "{\"logs\":[],\"logEntries\":[]}");
    http_reply(c, 200, API_JSON, &body);
}

void e2b_template_alias(struct http_call *c)
{
    const char *name = http_request(c)->param[0];
    char set[PERSISTENT_NAME_MAX + 1];
    struct buf body = BUF_INIT(1024);
    struct jw w = JW(&body);

    if (!template_find(http_app(c), name, set)) {
        e2b_reply_status(c, 404, "template '%.64s' not found", name);
        return;
    }
    jw_object(&w);
    jw_kv_string(&w, "templateID", name);
    jw_kv_bool(&w, "public", true);
    jw_object_end(&w);
    http_reply(c, 200, API_JSON, &body);
}

void e2b_no_snapshots(struct http_call *c)
{
    e2b_reply_status(c, 501,
                     "this server has no snapshots and no forks: the memory of processes "
                     "cannot be copied; pause a sandbox to keep it");
}

void e2b_no_templates(struct http_call *c)
{
    e2b_reply_status(c, 501,
                     "this server builds no templates: its operator names them "
                     "(SANDBOX_TEMPLATES)");
}

void e2b_no_volumes(struct http_call *c)
{
    e2b_reply_status(c, 501, "this server has no volumes and no secrets");
}

void e2b_no_rules(struct http_call *c)
{
    e2b_reply_status(c, 501, "the network of a sandbox is decided when it is made");
}
