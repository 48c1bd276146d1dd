/* SPDX-License-Identifier: MIT */
#include "app/sandbox/sandboxes.h"

#include <assert.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/daemon/app.h"
#include "app/network/network.h"
#include "app/sandbox/context.h"
#include "app/sandbox/expose.h"
#include "app/sandbox/process.h"
#include "app/sandbox/watchers.h"
#include "base/random.h"
#include "core/port_files.h"
#include "core/port_run.h"
#include "jail/inner.h"
#include "store/shelf.h"

enum {
    PACKAGE_PATHS = 2,
    RESOLVER_MAX = 16 * 1024,
    ID_RANDOM = 16,
    MS_PER_S = 1000,
    US_PER_MS = 1000,
    NS_PER_MS = 1000000,
};

static const char default_name[] = "default";
enum { DEFAULT_ENV_MAX = 256 };

struct limits sandboxes_limits(const struct app *a)
{
    const struct config *c = &a->config;

    return (struct limits){
        .memory_max = c->sandbox_memory_mb << 20,
        .workspace_max = c->sandbox_disk_mb << 20,
        .workspace_files = c->sandbox_files,
        .tmp_max = c->tmp_mb << 20,
        .pids_max = (uint32_t)c->sandbox_pids,
        .files_max = (uint32_t)c->files_max,
    };
}

/* clang-format off */
static const struct {
    const char *name;
    unsigned next; /* legal successors */
} states[] = {
    [PERSISTENT_RUNNING] = {"running", BIT(PERSISTENT_PAUSED) | BIT(PERSISTENT_ENDING)},
    [PERSISTENT_PAUSED]  = {"paused",  BIT(PERSISTENT_RUNNING) | BIT(PERSISTENT_ENDING)},
    [PERSISTENT_ENDING]  = {"ending",  0},
};
/* clang-format on */
_Static_assert(ARRAY_LEN(states) == PERSISTENT_STATE_COUNT, "every state has a row");

const char *persistent_state_name(enum persistent_state s)
{
    return states[s].name;
}

static void move(struct persistent *p, enum persistent_state to)
{
    assert(states[p->state].next & BIT(to));
    p->state = to;
}

/* ---- ending ---- */

static void label_done(struct label *l)
{
    for (size_t i = 0; i < l->pairs_n; i++) {
        free(l->pairs[i].key);
        free(l->pairs[i].value);
    }
    free(l->pairs);
}

static void persistent_free(struct persistent *p)
{
    TAILQ_REMOVE(&p->all->ending, p, link);
    expose_done(p);
    processes_done(p);
    contexts_done(p);
    watchers_done(p);
    run_engine_close(p->inside.engine);
    if (p->inside.jail)
        p->inside.jail->ops->close(p->inside.jail);
    if (p->timer)
        event_free(p->timer);
    for (size_t i = 0; i < p->env_n; i++)
        free(p->env[i]);
    free(p->env);
    network_free(p->network.of);
    label_done(&p->label);
    shelf_release(p->packages);
    free(p);
}

static void arm(struct persistent *p, uint64_t ms)
{
    struct timeval tv = {.tv_sec = (time_t)(ms / MS_PER_S),
                         .tv_usec = (suseconds_t)(ms % MS_PER_S * US_PER_MS)};

    (void)event_add(p->timer, &tv);
}

/* It is not found any more; its memory is freed when the last activity has ended. */
static void end(struct persistent *p, const char *why)
{
    struct sandboxes *s = p->all;

    if (p->state == PERSISTENT_ENDING)
        return;
    move(p, PERSISTENT_ENDING);
    TAILQ_REMOVE(&s->list, p, link);
    TAILQ_INSERT_TAIL(&s->ending, p, link);
    s->n--;
    if (s->standard == p)
        s->standard = NULL;
    log_event(&s->app->log, LOG_INFO, "sandbox_ended", LOG_STR("sandbox_id", p->id),
              LOG_STR("reason", why),
              LOG_STR("error", p->inside.jail ? inner_failure(p->inside.jail) : ""));
    expose_unbind(p);
    processes_end(p);
    contexts_end(p);
    if (p->inside.jail)
        inner_kill(p->inside.jail);
    arm(p, 0);
}

void sandboxes_delete(struct persistent *p, persistent_dead_fn *dead, void *user)
{
    p->dead.fn = dead;
    p->dead.user = user;
    end(p, "deleted");
}

bool persistent_usage(const struct persistent *p, struct usage *ret)
{
    return inner_usage(p->inside.jail, ret);
}

unsigned persistent_writable(const struct persistent *p)
{
    return inner_writable(p->inside.jail);
}

const char *persistent_cwd(const struct persistent *p)
{
    return !(p->jail->traits & JAIL_FS) ? p->all->cwd
           : p->label.own_home          ? "/home/user"
                                        : "/workspace";
}

const char *persistent_home(const struct persistent *p)
{
    return !(p->jail->traits & JAIL_FS) ? p->all->home
           : p->label.own_home          ? "/home/user"
                                        : "/workspace";
}

/* Told as soon as everything inside is dead; freed when every activity has ended as well. An
 * activity lasts for as long as its client takes to read what is left: nobody else waits for that.
 */
static void try_free(struct persistent *p)
{
    persistent_dead_fn *dead = p->dead.fn;
    void *user = p->dead.user;

    if (!inner_is_dead(p->inside.jail))
        return;
    p->dead.fn = NULL;
    if (TAILQ_EMPTY(&p->activities))
        persistent_free(p);
    if (dead)
        dead(user);
}

/* Milliseconds until it will have been idle for too long, at the earliest. */
static uint64_t idle_left(const struct persistent *p)
{
    const struct life *l = &p->life;
    uint64_t idle_ms = (clock_us() - l->used_us) / US_PER_MS;
    size_t resting = contexts_idle(p) + p->inside.watchers_n;
    bool busy = !TAILQ_EMPTY(&p->activities) || inner_helpers(p->inside.jail) > resting;

    if (l->idle_ms == 0)
        return UINT64_MAX;
    return busy ? l->idle_ms : idle_ms < l->idle_ms ? l->idle_ms - idle_ms : 0;
}

/* Milliseconds until the fixed time, rounded up. */
static uint64_t end_left(const struct persistent *p)
{
    uint64_t now = clock_us(), at = p->life.ends_us;

    if (at == 0)
        return UINT64_MAX;
    return at > now ? (at - now + US_PER_MS - 1) / US_PER_MS : 0;
}

/* Sees to it that on_timer() comes when its life may be over. */
static void arm_end(struct persistent *p)
{
    uint64_t idle = idle_left(p), left = end_left(p);

    if (idle < left)
        left = idle;
    if (p->state == PERSISTENT_ENDING)
        return;
    if (p->state == PERSISTENT_PAUSED || left == UINT64_MAX)
        (void)event_del(p->timer);
    else
        arm(p, left);
}

void persistent_set_end(struct persistent *p, uint64_t span_ms)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    p->life.ends_us = span_ms ? clock_us() + span_ms * US_PER_MS : 0;
    p->life.ends_ms = now.tv_sec * MS_PER_S + now.tv_nsec / NS_PER_MS + (int64_t)span_ms;
    arm_end(p);
}

void persistent_lengthen(struct persistent *p, uint64_t span_ms)
{
    if (p->life.ends_us != 0 && clock_us() + span_ms * US_PER_MS > p->life.ends_us)
        persistent_set_end(p, span_ms);
}

int persistent_pause(struct persistent *p, struct err *e)
{
    if (p->state != PERSISTENT_RUNNING)
        return 0;
    if (inner_freeze(p->inside.jail, true, e) < 0)
        return -1;
    move(p, PERSISTENT_PAUSED);
    arm_end(p);
    log_event(&p->all->app->log, LOG_INFO, "sandbox_paused", LOG_STR("sandbox_id", p->id));
    return 0;
}

int persistent_resume(struct persistent *p, struct err *e)
{
    if (p->state != PERSISTENT_PAUSED)
        return 0;
    if (inner_freeze(p->inside.jail, false, e) < 0)
        return -1;
    move(p, PERSISTENT_RUNNING);
    p->life.used_us = clock_us();
    persistent_set_end(p, p->life.span_ms);
    log_event(&p->all->app->log, LOG_INFO, "sandbox_resumed", LOG_STR("sandbox_id", p->id));
    return 0;
}

bool persistent_wake(struct persistent *p)
{
    struct err ignored;

    if (p->state == PERSISTENT_PAUSED && p->life.wakes)
        (void)!persistent_resume(p, &ignored);
    return p->state == PERSISTENT_RUNNING;
}

static void end_of_life(struct persistent *p)
{
    struct err e;

    if (!p->life.pause_at_end || persistent_pause(p, &e) < 0)
        end(p, "lifetime");
}

static void on_timer(evutil_socket_t fd, short what, void *user)
{
    struct persistent *p = user;

    (void)fd, (void)what;
    if (p->state == PERSISTENT_ENDING)
        try_free(p);
    else if (end_left(p) == 0)
        end_of_life(p);
    else if (idle_left(p) == 0)
        end(p, "idle");
    else
        arm_end(p);
}

bool persistent_ports_are_private(const struct persistent *p)
{
    return p->access.private_ports || net_effective(p->jail, p->network.mode) == NET_HOST;
}

void persistent_set_idle(struct persistent *p, uint64_t idle_ms)
{
    p->life.idle_ms = idle_ms;
    p->life.used_us = clock_us();
    arm_end(p);
}

void persistent_set_pair(struct persistent *p, const char *key, const char *value)
{
    char *copy = strdup(value);

    for (size_t i = 0; copy && i < p->label.pairs_n; i++)
        if (strcmp(p->label.pairs[i].key, key) == 0) {
            free(p->label.pairs[i].value);
            p->label.pairs[i].value = take_ptr(&copy);
        }
    free(copy);
}

const char *persistent_pair(const struct persistent *p, const char *key)
{
    for (size_t i = 0; i < p->label.pairs_n; i++)
        if (strcmp(p->label.pairs[i].key, key) == 0)
            return p->label.pairs[i].value;
    return NULL;
}

static bool on_wake(void *user)
{
    return persistent_wake(user);
}

static void on_dead(void *user)
{
    struct persistent *p = user;

    end(p, "died");
    arm(p, 0);
}

/* ---- activities ---- */

void activity_begin(struct persistent *p, struct activity *a, void (*drop)(struct activity *a))
{
    a->home = p;
    a->drop = drop;
    TAILQ_INSERT_TAIL(&p->activities, a, link);
    p->life.used_us = clock_us();
}

void activity_end(struct activity *a)
{
    struct persistent *p = a->home;

    if (!p)
        return;
    a->home = NULL;
    TAILQ_REMOVE(&p->activities, a, link);
    p->life.used_us = clock_us();
    if (p->state == PERSISTENT_ENDING && TAILQ_EMPTY(&p->activities))
        arm(p, 0); /* not from here: the caller may still look at it */
}

/* ---- names of the host's network ---- */

struct seeding {
    struct activity activity;
    struct filework *filework;
};

static void seeding_free(struct seeding *s)
{
    activity_end(&s->activity);
    filework_free(s->filework);
    free(s);
}

static void seeding_drop(struct activity *a)
{
    seeding_free((struct seeding *)((char *)a - offsetof(struct seeding, activity)));
}

static void on_seeded(void *user, struct file_result *r)
{
    struct seeding *s = user;

    (void)r; /* after a failure names are not resolved inside */
    s->filework = NULL;
    seeding_free(s);
}

/* A sandbox in the host's network uses the host's name servers. */
static void seed_resolver(struct persistent *p)
{
    static const char path[] = "/etc/resolv.conf";
    const struct file_order o = {
        .verb = FILE_WRITE, .path = {path, sizeof path - 1}
    };
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct seeding *s = calloc(1, sizeof *s);
    char text[RESOLVER_MAX];
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : -1;
    struct err ignored;

    if (!s || n <= 0 ||
        filework_start(&p->inside.files, &o, on_seeded, s, &s->filework, &ignored) < 0) {
        free(s);
        return;
    }
    activity_begin(p, &s->activity, seeding_drop);
    (void)filework_feed(s->filework, text, (size_t)n);
    filework_feed_end(s->filework);
}

/* ---- making ---- */

static bool is_named(const struct persistent_spec *spec, const char *name)
{
    for (size_t i = 0; i < spec->env_n; i++)
        if (strcmp(spec->env[i].name.p, name) == 0)
            return true;
    return false;
}

/* Where the interpreters look for what is mounted; a variable of the request says it better. */
static int put_package_paths(struct persistent *p, const struct persistent_spec *spec,
                             struct err *e)
{
    static const struct {
        const char *name, *value;
    } paths[] = {
        {"PYTHONPATH", PLAN_DEPENDENCIES                },
        {"NODE_PATH",  PLAN_DEPENDENCIES "/node_modules"},
    };

    _Static_assert(ARRAY_LEN(paths) == PACKAGE_PATHS, "room for them");
    for (size_t i = 0; p->packages && i < ARRAY_LEN(paths); i++) {
        if (is_named(spec, paths[i].name))
            continue;
        if (asprintf(&p->env[p->env_n], "%s=%s", paths[i].name, paths[i].value) < 0)
            return err_set(e, ERR_HOST, "no memory");
        p->env_n++;
    }
    return 0;
}

static int put_env(struct persistent *p, const struct persistent_spec *spec, struct err *e)
{
    struct exec_var more[NET_VARS_MAX];
    size_t more_n = spec->policy ? net_vars(spec->env, spec->env_n, more) : 0;

    p->env = calloc(spec->env_n + PACKAGE_PATHS + NET_VARS_MAX + 1, sizeof *p->env);
    if (!p->env)
        return err_set(e, ERR_HOST, "no memory");
    if (put_package_paths(p, spec, e) < 0)
        return -1;
    for (size_t i = 0; i < spec->env_n + more_n; i++) {
        const struct exec_var *v = i < spec->env_n ? &spec->env[i] : &more[i - spec->env_n];

        if (memchr(v->name.p, '\0', v->name.n) || memchr(v->value.p, '\0', v->value.n))
            return err_set(e, ERR_CALLER, "an environment variable contains a NUL byte");
        if (asprintf(&p->env[i], "%s=%s", v->name.p, v->value.p) < 0)
            return err_set(e, ERR_HOST, "no memory");
        p->env_n++;
    }
    return 0;
}

static int check_name(struct sandboxes *s, const char *name, struct err *e)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    struct persistent *p;

    if (strlen(name) > PERSISTENT_NAME_MAX || name[0] == '.' || name[strspn(name, allowed)])
        return err_set(e, ERR_CALLER,
                       "name: letters, digits and ._- only, at most %d, not starting with a dot",
                       PERSISTENT_NAME_MAX);
    TAILQ_FOREACH(p, &s->list, link)
    if (strcmp(p->label.name, name) == 0 || strcmp(p->id, name) == 0)
        return err_set(e, ERR_CALLER, "there is a sandbox '%s' already", name);
    return 0;
}

enum {
    PLACES_MAX = 4096, /* requests of one sandbox at once; its init has a table of that size */
    OWN_PIDS = 2,      /* of a sandbox: init, and one to spare */
    FILE_SHARE = 8,    /* one process in so many is for file requests */
    FILE_MIN = 2,
    WATCH_SHARE = 16, /* and one in so many watches a directory */
    WATCHES_MAX = 64, /* a user may have 128 queues of inotify, those of its programs included */
};

static void set_places(struct persistent *p)
{
    size_t queue_max = p->all->app->config.sandbox_queue_max;
    unsigned pids = p->limits.pids_max > OWN_PIDS ? p->limits.pids_max - OWN_PIDS : 0;
    unsigned files, commands, watches;

    if (pids == 0 || pids > PLACES_MAX)
        pids = PLACES_MAX;
    files = pids / FILE_SHARE > FILE_MIN ? pids / FILE_SHARE : FILE_MIN;
    watches = pids / WATCH_SHARE < WATCHES_MAX ? pids / WATCH_SHARE + 1 : WATCHES_MAX;
    commands = pids > files + watches + 2 ? (pids - files - watches) / 2 : 1;
    admission_init(&p->inside.commands, commands, queue_max);
    admission_init(&p->inside.requests, files, queue_max);
    admission_init(&p->inside.watches, watches, 0);
}

/* ---- network ---- */

/* Something inside may have taken a port before. */
static void on_listening(void *user, uint32_t port, int fd)
{
    struct persistent *p = user;
    const struct net_gate *g = p->network.of ? network_gate(p->network.of) : NULL;

    if (fd < 0)
        log_event(&p->all->app->log, LOG_WARN, "network_port_taken", LOG_STR("sandbox_id", p->id),
                  LOG_INT("port", (int64_t)(port & UINT16_MAX)), LOG_STR("error", strerror(-fd)));
    else if (g)
        g->listening(g->user, port, fd);
    else
        (void)close(fd);
}

/* Init does it before it makes a helper: the first program finds them. */
static int listen_inside(struct persistent *p, size_t first, struct err *e)
{
    const struct net_gate *g = network_gate(p->network.of);

    for (size_t i = first; i < g->ports_n; i++)
        if (inner_listen(p->inside.jail, g->ports[i], e) < 0)
            return -1;
    return 0;
}

static int open_network(struct persistent *p, const struct egress_policy *policy, struct err *e)
{
    return network_open(p->all->app, p->jail, policy, p->id, &p->network.of, e) < 0
               ? -1
               : listen_inside(p, 0, e);
}

int persistent_set_network(struct persistent *p, const struct egress_policy *policy,
                           void (*fn)(void *user), void *user, struct err *e)
{
    cleanup_free struct egress_policy *nothing = NULL;
    size_t first;

    if (p->network.mode == NET_HOST)
        return err_set(e, ERR_CALLER, "network: this sandbox has the network of the host");
    if (!policy && !p->network.of)
        return 0;
    p->network.mode = policy ? NET_GATE : NET_NONE;
    if (!p->network.of)
        return open_network(p, policy, e);
    if (network_changing(p->network.of))
        return err_set(e, ERR_BUSY, "network: another change is under way");
    if (!policy) {
        nothing = malloc(sizeof *nothing);
        if (!nothing)
            return err_set(e, ERR_HOST, "no memory for a policy");
        *nothing = *network_policy(p->network.of);
        nothing->mode = EGRESS_ALLOW;
        nothing->rules_n = nothing->ports_n = 0;
        policy = nothing;
    }
    network_change(p->network.of, policy, &first, fn, user);
    return listen_inside(p, first, e) < 0 ? -1 : 1;
}

/* Memory that is shared with the warmed interpreter counts as a keeper's own when the kernel looks
 * for the largest process: with little memory it would end the keeper, not the tenant's program. */
#define WARM_MEMORY_MIN ((uint64_t)256 << 20)

static enum plan_template template_of(const struct persistent *p)
{
    bool little = p->limits.memory_max > 0 && p->limits.memory_max < WARM_MEMORY_MIN;

    return p->packages || little ? TEMPLATE_EXEC : TEMPLATE_PYTHON_CELLS;
}

static int start(struct persistent *p, const struct persistent_spec *spec, struct err *e)
{
    struct app *a = p->all->app;
    struct inside *in = &p->inside;
    const struct inner_conf conf = {
        .base = a->base,
        .jail = p->jail,
        .spec = {.template = template_of(p),
                 .limits = &p->limits,
                 .persistent = true,
                 .host_network = p->network.mode == NET_HOST,
                 .dependencies = p->packages ? shelf_item_name(p->packages) : NULL},
        .start_ms = (unsigned)a->config.helper_answer_ms,
        .wake = on_wake,
        .dead = on_dead,
        .listening = on_listening,
        .user = p,
    };

    p->timer = event_new(a->base, -1, 0, on_timer, p);
    if (!p->timer)
        return err_set(e, ERR_HOST, "no memory");
    set_places(p);
    if (inner_open(&conf, &in->jail, e) < 0)
        return -1;
    in->files = (struct file_home){
        .base = a->base,
        .inside = in->jail,
        .admission = &in->requests,
        .wait_ms = (unsigned)a->config.sandbox_wait_ms,
        .answer_ms = (unsigned)a->config.helper_answer_ms,
    };
    in->watched = in->files;
    in->watched.admission = &in->watches;
    if (spec->policy && open_network(p, spec->policy, e) < 0)
        return -1;
    return run_engine_beside(a->engine, in->jail, &in->engine, e);
}

static void set_life(struct life *l, const struct persistent_spec *spec)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)clock_iso_at(now.tv_sec, now.tv_nsec, l->created_at);
    l->created_ms = now.tv_sec * MS_PER_S + now.tv_nsec / NS_PER_MS;
    l->used_us = clock_us();
    l->idle_ms = spec->idle_ms;
    l->span_ms = spec->span_ms;
    l->pause_at_end = spec->pause_at_end;
    l->wakes = spec->wakes;
}

static int put_label(struct persistent *p, const struct persistent_spec *spec, struct err *e)
{
    struct label *l = &p->label;
    size_t bytes = 0;

    (void)snprintf(l->name, sizeof l->name, "%s", spec->name[0] ? spec->name : p->id);
    (void)snprintf(l->template, sizeof l->template, "%s", spec->template ? spec->template : "");
    if (spec->pairs_n > PERSISTENT_PAIRS_MAX)
        return err_set(e, ERR_CALLER, "metadata: at most %d members", PERSISTENT_PAIRS_MAX);
    for (size_t i = 0; i < spec->pairs_n; i++)
        bytes += spec->pairs[i].name.n + spec->pairs[i].value.n;
    if (bytes > PERSISTENT_PAIRS_BYTES_MAX)
        return err_set(e, ERR_CALLER, "metadata: at most %d bytes", PERSISTENT_PAIRS_BYTES_MAX);
    l->pairs = calloc(spec->pairs_n + 1, sizeof *l->pairs);
    if (!l->pairs)
        return err_set(e, ERR_HOST, "no memory");
    for (size_t i = 0; i < spec->pairs_n; i++) {
        const struct exec_var *v = &spec->pairs[i];
        struct pair *pair = &l->pairs[l->pairs_n++];

        pair->key = strndup(v->name.p, v->name.n);
        pair->value = strndup(v->value.p, v->value.n);
        if (!pair->key || !pair->value)
            return err_set(e, ERR_HOST, "no memory");
    }
    return 0;
}

static struct persistent *persistent_new(struct sandboxes *s, const struct persistent_spec *spec,
                                         const struct place *where)
{
    struct persistent *p = calloc(1, sizeof *p);
    char tail[ID_RANDOM + 1];

    if (!p)
        return NULL;
    p->all = s;
    p->jail = where->jail;
    random_base36(tail, ID_RANDOM);
    (void)snprintf(p->id, sizeof p->id, "sb%s", tail);
    random_hex(p->access.token, ACCESS_TOKEN / 2);
    random_hex(p->access.traffic, ACCESS_TOKEN / 2);
    p->access.private_ports = spec->private_ports;
    p->label.own_home = spec->own_home;
    set_life(&p->life, spec);
    p->life.serial = ++s->serial;
    p->sampled.at_us = p->life.used_us;
    p->limits = spec->limits;
    p->network.mode = spec->network;
    TAILQ_INIT(&p->activities);
    TAILQ_INIT(&p->processes.list);
    TAILQ_INIT(&p->contexts);
    TAILQ_INIT(&p->inside.watchers);
    return p;
}

int sandboxes_create(struct sandboxes *s, const struct persistent_spec *spec,
                     struct persistent **ret, struct err *e)
{
    struct persistent *p;
    struct place where;

    if (s->n >= s->app->config.sandboxes_max)
        return err_set(e, ERR_BUSY, "there are %zu sandboxes already", s->n);
    if (check_name(s, spec->name, e) < 0)
        return -1;
    if (place_find(s->app, spec->isolation ? spec->isolation : "", &where, e) < 0)
        return err_wrap(e, "isolation");
    p = persistent_new(s, spec, &where);
    if (!p)
        return err_set(e, ERR_HOST, "no memory for a sandbox");
    TAILQ_INSERT_TAIL(&s->ending, p, link); /* until it is complete */
    p->packages = spec->packages;
    if (put_label(p, spec, e) < 0 || put_env(p, spec, e) < 0 || start(p, spec, e) < 0) {
        p->packages = NULL; /* the caller's again */
        persistent_free(p);
        return -1;
    }
    TAILQ_REMOVE(&s->ending, p, link);
    TAILQ_INSERT_TAIL(&s->list, p, link);
    s->n++;
    if (strcmp(p->label.name, default_name) == 0)
        s->standard = p; /* the verbs without a name mean it, whichever request made it */
    persistent_set_end(p, spec->span_ms);
    if (p->network.mode == NET_HOST)
        seed_resolver(p);
    log_event(&s->app->log, LOG_INFO, "sandbox_created", LOG_STR("sandbox_id", p->id),
              LOG_STR("name", p->label.name));
    *ret = p;
    return 0;
}

/* SANDBOX_ENV: NAME for a variable of our own environment, or NAME=VALUE, between commas. What has
 * no value here is left out. `text` is a copy that is cut to pieces, which the list points to. */
static int default_env(char *text, struct exec_var *out, size_t *ret_n, struct err *e)
{
    char *rest = text, *pair;

    *ret_n = 0;
    while ((pair = strsep(&rest, ","))) {
        char *equals = strchr(pair, '=');
        const char *value = equals ? equals + 1 : getenv(pair);

        if (equals)
            *equals = '\0';
        if (!*pair && !equals)
            continue;
        if (!exec_var_is_name((struct bytes){pair, strlen(pair)}))
            return err_set(e, ERR_CALLER, "SANDBOX_ENV: '%.64s' is not a name", pair);
        if (*ret_n == DEFAULT_ENV_MAX)
            return err_set(e, ERR_CALLER, "SANDBOX_ENV: more than %d variables", DEFAULT_ENV_MAX);
        if (value)
            out[(*ret_n)++] = (struct exec_var){
                {pair,  strlen(pair) },
                {value, strlen(value)}
            };
    }
    return 0;
}

static int make_default(struct sandboxes *s, struct err *e)
{
    struct exec_var env[DEFAULT_ENV_MAX];
    char text[sizeof s->app->config.sandbox_env];
    struct persistent_spec spec = {
        .name = default_name,
        .limits = sandboxes_limits(s->app),
        .idle_ms = s->app->config.sandbox_idle_s * MS_PER_S,
        .env = env,
    };

    memcpy(text, s->app->config.sandbox_env, sizeof text);
    if (default_env(text, env, &spec.env_n, e) < 0)
        return -1;
    return sandboxes_create(s, &spec, &s->standard, e);
}

static bool is_meant(const struct persistent *p, const struct sandboxes_query *q)
{
    const struct life *l = &p->life;

    if ((q->states && !(q->states & BIT(p->state))) || l->created_ms < q->since_ms ||
        (q->template && strcmp(p->label.template, q->template) != 0))
        return false;
    if (q->after && (q->oldest_first ? l->serial <= q->after : l->serial >= q->after))
        return false;
    for (size_t i = 0; i < q->pairs_n; i++) {
        const char *value = persistent_pair(p, q->pairs[i].name.p);

        if (!value || strcmp(value, q->pairs[i].value.p) != 0)
            return false;
    }
    return true;
}

size_t sandboxes_select(const struct sandboxes *s, const struct sandboxes_query *q, size_t max,
                        const struct persistent **ret, bool *ret_more)
{
    const struct persistent *p =
        q->oldest_first ? TAILQ_FIRST(&s->list) : TAILQ_LAST(&s->list, persistent_list);
    size_t n = 0;

    *ret_more = false;
    for (; p; p = q->oldest_first ? TAILQ_NEXT(p, link) : TAILQ_PREV(p, persistent_list, link)) {
        if (!is_meant(p, q))
            continue;
        if (n == max) {
            *ret_more = true;
            break;
        }
        ret[n++] = p;
    }
    return n;
}

struct persistent *sandboxes_get(struct sandboxes *s, const char *id)
{
    struct persistent *p;

    TAILQ_FOREACH(p, &s->list, link)
    if (strcmp(p->id, id) == 0)
        return p;
    return NULL;
}

int sandboxes_find(struct sandboxes *s, const char *id, struct persistent **ret, struct err *e)
{
    struct persistent *p;

    if (strcmp(id, default_name) == 0) {
        if (!s->standard && make_default(s, e) < 0)
            return -1;
        *ret = s->standard;
        return 0;
    }
    TAILQ_FOREACH(p, &s->list, link)
    if (strcmp(p->id, id) == 0 || strcmp(p->label.name, id) == 0) {
        *ret = p;
        return 0;
    }
    return err_set(e, ERR_ABSENT, "no sandbox '%.128s'", id);
}

int sandboxes_find_awake(struct sandboxes *s, const char *id, struct persistent **ret,
                         struct err *e)
{
    struct persistent *p;

    if (sandboxes_find(s, id, &p, e) < 0)
        return -1;
    if (!persistent_wake(p))
        return err_set(e, ERR_BUSY, "the sandbox is paused: resume it first");
    *ret = p;
    return 0;
}

int sandboxes_open(struct app *a, struct sandboxes **ret, struct err *e)
{
    struct sandboxes *s = calloc(1, sizeof *s);
    const char *home = getenv("HOME");
    struct exec_var env[DEFAULT_ENV_MAX];
    char text[sizeof a->config.sandbox_env];
    size_t n;

    if (!s)
        return err_set(e, ERR_HOST, "no memory");
    s->app = a;
    memcpy(text, a->config.sandbox_env, sizeof text);
    if (default_env(text, env, &n, e) < 0) { /* only to refuse at the start what cannot be given */
        free(s);
        return -1;
    }
    if (!getcwd(s->cwd, sizeof s->cwd))
        (void)snprintf(s->cwd, sizeof s->cwd, "/");
    (void)snprintf(s->home, sizeof s->home, "%s", home && home[0] == '/' ? home : s->cwd);
    TAILQ_INIT(&s->list);
    TAILQ_INIT(&s->ending);
    *ret = s;
    return 0;
}

void sandboxes_close(struct sandboxes *s)
{
    struct persistent *p;

    if (!s)
        return;
    while ((p = TAILQ_FIRST(&s->list)))
        end(p, "shutdown");
    while ((p = TAILQ_FIRST(&s->ending))) {
        struct activity *a;

        /* What is freed now makes no room for others. */
        p->inside.commands.granting = p->inside.requests.granting = true;
        while ((a = TAILQ_FIRST(&p->activities)))
            a->drop(a);
        persistent_free(p);
    }
    free(s);
}
