/* SPDX-License-Identifier: MIT */
/* /v1/sandboxes: persistent sandboxes made, listed, looked at and deleted. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/expose.h"
#include "app/filing.h"
#include "app/process.h"
#include "base/json.h"
#include "base/jw.h"
#include "http/api.h"
#include "http/reply.h"

enum {
    ONE_MAX = 16 * 1024, /* a sandbox in JSON, without its environment */
    ESCAPE_FACTOR = 6,
    ENV_MAX = 4096,
    MS_PER_S = 1000,
    MB = 20, /* bits */
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
    else if (p->port[0] && a->expose)
        jw_int(w, expose_port(a->expose));
    else
        jw_null(w);
}

static void write_processes(struct jw *w, const struct persistent *p)
{
    const struct process *pr;
    int64_t running = 0;

    TAILQ_FOREACH(pr, &p->processes, link)
    running += pr->status == PROCESS_RUNNING;
    jw_key(w, "processes");
    jw_object(w);
    jw_kv_int(w, "running", running);
    jw_kv_int(w, "kept", (int64_t)p->processes_n);
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

static void write_usage(struct jw *w, const struct persistent *p, const struct file_result *r)
{
    struct usage u;

    persistent_usage(p, &u);
    jw_key(w, "usage");
    jw_object(w);
    write_known(w, "cpu_ms", u.cpu_us >= 0 ? u.cpu_us / 1000 : -1);
    write_known(w, "memory_bytes", (int64_t)r->memory);
    write_known(w, "memory_peak_bytes", u.memory_peak);
    write_known(w, "oom_kills", u.oom_kills);
    write_known(w, "pids", r->processes);
    write_known(w, "disk_bytes", (int64_t)r->disk);
    jw_object_end(w);
}

/* The object is left open. */
static void write_one(struct jw *w, const struct persistent *p)
{
    jw_object(w);
    jw_kv_string(w, "id", p->id);
    jw_kv_string(w, "name", p->name);
    jw_kv_string(w, "state", p->ending ? "ending" : "running");
    jw_kv_string(w, "created_at", p->created_at);
    jw_kv_int(w, "timeout", (int64_t)(p->idle_ms / MS_PER_S));
    write_limits(w, &p->limits);
    jw_kv_string(w, "isolation", p->jail->ops->name);
    jw_key(w, "network");
    jw_object(w);
    jw_kv_string(w, "mode", p->host_network || !(p->jail->traits & JAIL_NET) ? "host" : "none");
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
    size_t n = ONE_MAX + PERSISTENT_PORT_MAX * ESCAPE_FACTOR;

    for (size_t i = 0; i < p->env_n; i++)
        n += strcspn(p->env[i], "=") * ESCAPE_FACTOR + 4;
    return n;
}

static void reply_one(struct http_call *c, int status, const struct persistent *p)
{
    struct buf body = BUF_INIT(json_max(p));
    struct jw w = JW(&body);

    write_one(&w, p);
    jw_object_end(&w);
    http_reply(c, status, API_JSON, &body);
}

void api_sandboxes_list(struct http_call *c)
{
    struct sandboxes *s = http_app(c)->sandboxes;
    struct buf body = BUF_INIT(ONE_MAX);
    struct jw w = JW(&body);
    const struct persistent *p;

    TAILQ_FOREACH(p, &s->list, link)
    body.max += json_max(p);
    jw_object(&w);
    jw_key(&w, "sandboxes");
    jw_array(&w);
    TAILQ_FOREACH(p, &s->list, link)
    {
        write_one(&w, p);
        jw_object_end(&w);
    }
    jw_array_end(&w);
    jw_object_end(&w);
    http_reply(c, 200, API_JSON, &body);
}

static struct persistent *find(struct http_call *c)
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
};

static void looking_free(struct looking *l)
{
    activity_end(&l->activity);
    filework_free(l->filework);
    free(l);
}

static void looking_drop(struct activity *a)
{
    looking_free((struct looking *)((char *)a - offsetof(struct looking, activity)));
}

static void on_looked(void *user, struct file_result *r)
{
    struct looking *l = user;
    const struct persistent *p = l->activity.home;
    struct buf body = BUF_INIT(json_max(p));
    struct jw w = JW(&body);

    l->filework = NULL;
    write_one(&w, p);
    write_writable(&w, p);
    write_usage(&w, p, r);
    jw_object_end(&w);
    http_reply(l->call, 200, API_JSON, &body);
    looking_free(l);
}

void api_sandbox_get(struct http_call *c)
{
    const struct file_order o = {
        .verb = FILE_USAGE, .path = {"", 0}
    };
    struct persistent *p = find(c);
    struct looking *l = p ? calloc(1, sizeof *l) : NULL;
    struct err e;

    if (!p)
        return;
    if (!l) {
        reply_status(c, 503);
        return;
    }
    l->call = c;
    if (filing_start(p, &o, on_looked, l, &l->filework, &e) < 0) {
        free(l);
        http_reply_error(c, &e);
        return;
    }
    activity_begin(p, &l->activity, looking_drop);
}

/* ---- deleting ---- */

static void on_freed(void *user)
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
    p = find(c);
    if (p)
        sandboxes_delete(p, on_freed, c);
}

/* ---- making ---- */

struct create_body {
    struct persistent_spec spec;
    struct buf text; /* what strings point into */
    struct exec_var *env;
    bool host_network; /* may be asked for */
};

static int bad(struct err *e, const char *field, const char *what)
{
    return err_set(e, ERR_CALLER, "%s: %s", field, what);
}

static int take_string(struct create_body *b, struct json_value v, struct bytes *ret)
{
    size_t at = b->text.n;

    if (v.type != JSON_STRING || json_decode_string(v, 0, &b->text) < 0)
        return -1;
    *ret = (struct bytes){b->text.p + at, b->text.n - at};
    return buf_putc(&b->text, '\0');
}

static int take_name(struct create_body *b, struct json_value v, struct err *e)
{
    struct bytes name;

    if (take_string(b, v, &name) < 0 || strlen(name.p) != name.n)
        return bad(e, "name", "must be a string");
    b->spec.name = name.p;
    return 0;
}

static int take_isolation(struct create_body *b, struct json_value v, struct err *e)
{
    struct bytes name;

    if (take_string(b, v, &name) < 0)
        return bad(e, "isolation", "must be the name of a jail");
    b->spec.isolation = name.p;
    return 0;
}

static int take_env(struct create_body *b, struct json_value v, struct err *e)
{
    struct json_value key, value;
    size_t at = 0;

    if (v.type != JSON_OBJECT)
        return bad(e, "env", "must be an object of strings");
    b->env = calloc(ENV_MAX, sizeof *b->env);
    if (!b->env)
        return err_set(e, ERR_HOST, "no memory");
    while (json_object_next(v, &at, &key, &value)) {
        struct exec_var *x = &b->env[b->spec.env_n];

        if (b->spec.env_n == ENV_MAX || take_string(b, key, &x->name) < 0 ||
            take_string(b, value, &x->value) < 0)
            return bad(e, "env", "must be an object of strings");
        if (x->name.n == 0 || memchr(x->name.p, '=', x->name.n))
            return bad(e, "env", "a name is empty or contains '='");
        b->spec.env_n++;
    }
    b->spec.env = b->env;
    return 0;
}

/* A request may ask for less than the configuration gives, not for more. */
static int take_limits(struct create_body *b, struct json_value v, struct err *e)
{
    struct limits *l = &b->spec.limits;
    uint64_t pids = l->pids_max;
    const struct {
        const char *name;
        uint64_t *at;
        unsigned bits;
        enum config_index option; /* the least it takes is the least we take */
    } rows[] = {
        {"memory_mb", &l->memory_max,      MB, OPTION_sandbox_memory_mb},
        {"disk_mb",   &l->workspace_max,   MB, OPTION_sandbox_disk_mb  },
        {"files",     &l->workspace_files, 0,  OPTION_sandbox_files    },
        {"pids",      &pids,               0,  OPTION_sandbox_pids     },
    };
    struct json_value value;

    if (v.type != JSON_OBJECT)
        return bad(e, "limits", "must be an object");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t n, most = (int64_t)(*rows[i].at >> rows[i].bits);
        int64_t least = (int64_t)config_options[rows[i].option].min;

        if (!json_get(v, rows[i].name, &value) || value.type == JSON_NULL)
            continue;
        if (value.type != JSON_NUMBER || !json_to_int(value, &n) || n < least || n > most)
            return err_set(e, ERR_CALLER, "limits.%s: must be from %lld to %lld", rows[i].name,
                           (long long)least, (long long)most);
        *rows[i].at = (uint64_t)n << rows[i].bits;
    }
    l->pids_max = (uint32_t)pids;
    return 0;
}

static int take_network(struct create_body *b, struct json_value v, struct err *e)
{
    struct json_value mode = v;
    struct bytes name;

    if (v.type == JSON_OBJECT && !json_get(v, "mode", &mode))
        return 0;
    if (take_string(b, mode, &name) < 0)
        return bad(e, "network", "must be an object with a 'mode'");
    b->spec.host_network = strcmp(name.p, "host") == 0;
    if (b->spec.host_network && !b->host_network)
        return err_set(e, ERR_DENIED, "network.mode: 'host' needs ALLOW_HOST_NETWORK=true");
    if (!b->spec.host_network && strcmp(name.p, "none") != 0)
        return err_set(e, ERR_CALLER, "network.mode: must be 'none' or 'host'");
    return 0;
}

static int take_timeout(struct create_body *b, struct json_value v, struct err *e)
{
    double s;

    if (v.type != JSON_NUMBER || !json_to_double(v, &s) || !(s >= 0) || s > 365.0 * 86400)
        return bad(e, "timeout", "must be a number of seconds; 0: never");
    b->spec.idle_ms = (uint64_t)(s * MS_PER_S);
    return 0;
}

static const struct {
    const char *name;
    int (*take)(struct create_body *b, struct json_value v, struct err *e);
} create_fields[] = {
    {"name",      take_name     },
    {"isolation", take_isolation},
    {"env",       take_env      },
    {"limits",    take_limits   },
    {"network",   take_network  },
    {"timeout",   take_timeout  },
};

static int parse_create(struct http_call *c, struct create_body *b, struct err *e)
{
    const struct http_request *r = http_request(c);
    struct json_value v, value;

    if (r->body_n == 0)
        return 0;
    b->text = BUF_INIT(r->body_n * 3 + 16);
    if (buf_reserve(&b->text, b->text.max) < 0)
        return err_set(e, ERR_HOST, "no memory");
    if (json_parse(r->body, r->body_n, 0, &v, e) < 0)
        return -1;
    if (v.type != JSON_OBJECT)
        return err_set(e, ERR_CALLER, "the body must be an object");
    for (size_t i = 0; i < ARRAY_LEN(create_fields); i++)
        if (json_get(v, create_fields[i].name, &value) && value.type != JSON_NULL &&
            create_fields[i].take(b, value, e) < 0)
            return -1;
    return 0;
}

void api_sandbox_create(struct http_call *c)
{
    struct app *a = http_app(c);
    struct create_body b = {
        .spec = {.name = "",
                 .limits = sandboxes_limits(a),
                 .idle_ms = a->config.sandbox_idle_s * MS_PER_S},
        .host_network = a->config.host_network,
    };
    struct persistent *p;
    struct err e;

    if (parse_create(c, &b, &e) < 0 || sandboxes_create(a->sandboxes, &b.spec, &p, &e) < 0)
        http_reply_error(c, &e);
    else
        reply_one(c, 201, p);
    buf_done(&b.text);
    free(b.env);
}
