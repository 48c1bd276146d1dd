/* SPDX-License-Identifier: MIT */
#include "jail/launched.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/os.h"
#include "jail/jails.h"
#include "wire/client.h"

/* ---- the port ---- */

int launched_take(struct jail *j, const struct sandbox_spec *s, struct sandbox *ret, struct err *e)
{
    struct launched *n = launched_of(j);
    struct sandbox_spec want = *s;
    struct box *b;

    if (n->sock < 0)
        return err_set(e, ERR_HOST, "the launcher is gone");
    if (template_is_wasm(want.template) && !(j->templates & BIT(want.template)))
        return err_set(e, ERR_HOST, "there is no such WebAssembly runtime here");
    n->pools[want.template].asked = true;
    if (!template_is_wasm(want.template) && !pool_can_warm(n, want.template))
        want.template = TEMPLATE_EXEC; /* slower, the same otherwise: the plan has an argv */
    b = pool_take(n, &want);
    if (!b && template_is_prestarted(want.template)) {
        want.template = TEMPLATE_EXEC; /* none is ready: starting cold is as fast */
        b = pool_take(n, &want);
    }
    if (b)
        b->sandbox.warm = b->ready;
    else if (box_new(n, &want, &b, e) < 0)
        return -1;
    b->taken = true;
    n->pools[b->sandbox.template].used++;
    b->sandbox.marked = b->started;
    if (b->started)
        usage_mark_cpu(&n->slots[b->slot % SLOTS_KNOWN], &b->base);
    *ret = b->sandbox;
    return 0;
}

void launched_ask(struct jail *j, enum plan_template t)
{
    struct launched *n = launched_of(j);

    n->pools[t].asked = true;
    pool_refill_later(n, 0);
}

/* Unknown until the launcher's STARTED has named the slot. Init's EXITED can arrive before that. */
bool launched_usage(struct jail *j, const struct sandbox *s, bool denied, struct usage *ret)
{
    struct launched *n = launched_of(j);
    const struct box *b = s->adapter;

    *ret = USAGE_UNKNOWN;
    if (b->started)
        usage_since(&n->slots[b->slot % SLOTS_KNOWN], &b->base, denied, ret);
    return b->started || b->over || n->sock < 0;
}

bool launched_alone(struct jail *j, const struct sandbox *s)
{
    const struct launched *n = launched_of(j);
    const struct box *b = s->adapter;

    bool threads = s->template == TEMPLATE_NODE || template_is_wasm(s->template);

    return b->started && usage_is_alone(&n->slots[b->slot % SLOTS_KNOWN], threads);
}

void launched_kill(struct jail *j, const struct sandbox *s)
{
    struct launched *n = launched_of(j);
    struct launch_msg m = {.verb = LAUNCH_KILL, .id = s->id};

    /* If the launcher cannot be told: init exits at the end of its control socket. */
    if (outbox_send(&n->outbox, &m, sizeof m, NULL, 0) < 0)
        (void)shutdown(s->ctl, SHUT_RDWR);
}

int launched_freeze(struct jail *j, const struct sandbox *s, bool frozen, struct err *e)
{
    struct launched *n = launched_of(j);
    struct launch_msg m = {.verb = frozen ? LAUNCH_FREEZE : LAUNCH_THAW, .id = s->id};
    int r = outbox_send(&n->outbox, &m, sizeof m, NULL, 0);

    return r < 0 ? err_sys(e, r, "ask the launcher to pause a sandbox") : 0;
}

void launched_release(struct jail *j, struct sandbox *s)
{
    struct launched *n = launched_of(j);
    struct box *b = s->adapter;
    struct pool *p;

    if (!b)
        return;
    p = &n->pools[s->template];
    b->sandbox = *s; /* takes back the ends that are still open */
    *s = SANDBOX_NONE;
    b->taken = false;
    p->used--;
    if (p->used == 0 && p->ready > 0)
        box_leave(b);
    else
        box_close(b);
    pool_refill_later(n, REFILL_MS);
    box_settle(b);
}

const char *launched_failure(struct jail *j, const struct sandbox *s)
{
    const struct box *b = s->adapter;

    (void)j;
    return b ? b->failure : "";
}

int launched_probe(struct jail *j, unsigned *ret_traits, struct err *e)
{
    if (launched_of(j)->sock < 0)
        return err_set(e, ERR_HOST, "the launcher is gone");
    *ret_traits = j->traits;
    return 0;
}

void launched_state(const struct jail *j, struct jail_pool_state *ret)
{
    const struct launched *n = (const struct launched *)j;

    *ret = (struct jail_pool_state){.sandboxes = n->alive};
    for (size_t t = 0; t < TEMPLATE_COUNT; t++) {
        ret->ready[t] = n->pools[t].ready;
        ret->preparing[t] = n->pools[t].n - n->pools[t].ready;
    }
}

/* ---- opening ---- */

/* Makes one sandbox and drops it: a jail is usable only if a sandbox with its traits can be made.
 */
static int try_one(struct launched *n, struct err *e)
{
    const struct sandbox_spec s = {.template = TEMPLATE_EXEC, .limits = &n->limits};
    char bytes[sizeof(struct init_msg) + FAILURE_MAX] = "";
    struct pollfd p = {.events = POLLIN};
    struct box *b;
    struct init_msg m = {0};
    struct sandbox taken;
    ssize_t got;

    if (box_new(n, &s, &b, e) < 0)
        return -1;
    b->taken = true;
    p.fd = b->sandbox.ctl;
    if (poll(&p, 1, PROBE_MS) <= 0)
        return err_set(e, ERR_HOST, "no sandbox within %d s", PROBE_MS / 1000);
    got = fd_recv(b->sandbox.ctl, bytes, sizeof bytes - 1, NULL, NULL);
    if (got >= (ssize_t)sizeof m)
        memcpy(&m, bytes, sizeof m);
    if (m.verb == INIT_READY) {
        taken = b->sandbox; /* release empties the struct; the box needs the id in its own */
        launched_release(&n->jail, &taken);
        return 0;
    }
    if (m.verb == INIT_FAILED)
        return err_set(e, ERR_HOST, "a sandbox failed at: %s", bytes + sizeof m);
    p.fd = n->sock; /* the keeper's text may still be on its way */
    for (int i = 0; i < WORDS_MAX && !b->failure[0] && poll(&p, 1, WORDS_MS) > 0; i++)
        launched_on_readable(n->sock, EV_READ, n);
    return err_set(e, ERR_HOST, "a sandbox could not be made: %s", b->failure);
}

void launched_close(struct jail *j)
{
    struct launched *n = launched_of(j);

    for (size_t i = 0; i < BUCKETS; i++)
        while (!TAILQ_EMPTY(&n->by_id[i]))
            box_free(TAILQ_FIRST(&n->by_id[i]));
    if (event_initialized(&n->readable))
        (void)event_del(&n->readable);
    if (event_initialized(&n->refill))
        (void)event_del(&n->refill);
    if (event_initialized(&n->calm))
        (void)event_del(&n->calm);
    if (event_initialized(&n->leave))
        (void)event_del(&n->leave);
    for (size_t i = 0; i < SLOTS_KNOWN; i++)
        usage_files_close(&n->slots[i]);
    outbox_close(&n->outbox);
    fd_close_all(&n->sock, 1);
    if (n->guard > 0) /* it removes the control groups, then ends */
        (void)waitpid(n->guard, NULL, 0);
    free(n);
}

static void configure(struct launched *n, const struct jail_conf *conf)
{
    const struct config *c = conf->config;

    n->limits = (struct limits){
        .memory_max = c->memory_mb << 20,
        .workspace_max = c->workspace_mb << 20,
        .workspace_files = c->workspace_files,
        .tmp_max = c->tmp_mb << 20,
        .pids_max = (uint32_t)c->pids_max,
    };
    n->persistent = (struct limits){
        .memory_max = c->sandbox_memory_mb << 20,
        .workspace_max = c->sandbox_disk_mb << 20,
        .workspace_files = c->sandbox_files,
        .tmp_max = c->tmp_mb << 20,
        .pids_max = (uint32_t)c->sandbox_pids,
    };
    n->pools[TEMPLATE_EXEC].proven = true;
    n->pool_memory_mb = c->pool_memory_mb;
    n->pool_calm_s = c->pool_calm_s;
    if (conf->standby)
        return;
    for (size_t t = 0; t < TEMPLATE_COUNT; t++) {
        struct pool *p = &n->pools[t];

        p->least = p->target = (unsigned)*(const uint64_t *)((const char *)c + templates[t].pool);
    }
}

/* All programs are installed in one directory. */
static int own_directory(char out[4096], struct err *e)
{
    int r = os_beside("", out, 4096);

    if (r < 0)
        return err_sys(e, r, "our own program");
    out[strlen(out) - 1] = '\0'; /* the slash */
    return 0;
}

static int start(struct launched *n, const struct jail_conf *given, struct err *e)
{
    const struct config *c = given->config;
    char directory[4096], workspaces[CONFIG_TEXT_MAX];
    struct launch_conf conf = {
        .directory = directory,
        .workspaces = config_workspaces(c, workspaces),
        .own = config_has_own_workspace(c) ? c->workspace_path : "",
        .dependencies = c->dependencies_path,
        .netns = c->netns,
        .wasm = c->wasm ? c->wasm_path : "",
        .jail = n->jail.ops->name,
        .user = given->user,
        .group = given->group,
        .uid_base = LAUNCH_UID_BASE,
    };
    struct launch_msg hello;

    if (own_directory(directory, e) < 0 || launch_start(&conf, &n->sock, &n->guard, &hello, e) < 0)
        return -1;
    outbox_open(&n->outbox, n->loop, n->sock);
    n->jail.traits = hello.traits;
    n->jail.templates = hello.templates;
    n->jail.freezes = hello.flags & LAUNCH_FREEZES;
    hello.dirs[sizeof hello.dirs - 1] = '\0';
    if (!(hello.flags & LAUNCH_LAZY))
        (void)snprintf(n->jail.lazy_refused, sizeof n->jail.lazy_refused, "%.*s",
                       JAIL_WORDS_MAX - 1, hello.dirs);
    if (!c->node_zygote)
        n->jail.templates &= ~BIT(TEMPLATE_NODE);
    n->watch_memory = !(hello.traits & JAIL_MEMORY);
    return try_one(n, e);
}

int launched_open(const struct launched_kind *kind, const struct jail_conf *c, struct jail **ret,
                  struct err *e)
{
    struct launched *n = calloc(1, sizeof *n);

    if (!n)
        return err_set(e, ERR_HOST, "out of memory");
    n->jail.ops = kind->ops;
    n->jail.mounts_dependencies = kind->mounts;
    (void)snprintf(n->jail.version, sizeof n->jail.version, "%s", kind->version);
    n->loop = c->loop;
    n->log = c->log;
    n->sock = -1;
    outbox_init(&n->outbox);
    for (size_t i = 0; i < BUCKETS; i++)
        TAILQ_INIT(&n->by_id[i]);
    for (size_t i = 0; i < SLOTS_KNOWN; i++)
        usage_files_init(&n->slots[i]);
    TAILQ_INIT(&n->leaving);
    for (size_t t = 0; t < TEMPLATE_COUNT; t++)
        TAILQ_INIT(&n->pools[t].waiting);
    configure(n, c);
    (void)evtimer_assign(&n->refill, c->loop, pool_on_refill, n);
    (void)evtimer_assign(&n->calm, c->loop, pool_on_calm, n);
    (void)evtimer_assign(&n->leave, c->loop, box_on_leave, n);
    if (start(n, c, e) < 0) {
        launched_close(&n->jail);
        return -1;
    }
    (void)event_assign(&n->readable, c->loop, n->sock, EV_READ | EV_PERSIST, launched_on_readable,
                       n);
    (void)event_add(&n->readable, NULL);
    pool_refill_later(n, 0);
    *ret = &n->jail;
    return 0;
}
