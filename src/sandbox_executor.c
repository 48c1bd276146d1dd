/* SPDX-License-Identifier: MIT */
/*
 * The daemon: read the configuration, put struct app together, serve, end in order.
 *
 * The order of start() is a security property: the launcher is started while we still have what
 * privileges we were given and before any socket is open; then we become somebody harmless; only
 * then does anybody outside get to talk to us.
 */
#include <errno.h>
#include <event2/event.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/daemon/app.h"
#include "app/daemon/boot.h"
#include "app/daemon/host_check.h"
#include "app/daemon/language_probe.h"
#include "app/daemon/lifecycle.h"
#include "app/daemon/operator_command.h"
#include "app/daemon/reporting.h"
#include "app/daemon/supervisor.h"
#include "app/sandbox/expose.h"
#include "app/sandbox/sandboxes.h"
#include "base/clock.h"
#include "base/lockdown.h"
#include "base/os.h"
#include "base/output.h"
#include "base/privilege.h"
#include "core/port_net.h"
#include "http/api/api.h"
#include "http/api/console/console.h"
#include "http/api/openapi/openapi.h"
#include "http/server/auth.h"
#include "http/server/server.h"
#include "jail/jails.h"
#include "lang/runners.h"
#include "net/egress_doors.h"
#include "store/shelf.h"
#include "store/store.h"
#include "store/work_threads.h"

#ifndef SBX_VERSION
#define SBX_VERSION "0"
#endif

enum { WARM_MS = 20000, EXIT_SIGNAL = 128, MS_PER_S = 1000, HEAP_KEPT = 2 << 20 };

/* All end the daemon in order; its exit status names which. */
static const int stop_signals[] = {SIGTERM, SIGINT};
enum { STOP_SIGNALS = ARRAY_LEN(stop_signals) };

/* What only main knows. */
struct daemon {
    struct app app;
    struct boot_identity who;
    struct auth *auth;                 /* owned */
    struct http_server *http;          /* owned */
    struct event *stops[STOP_SIGNALS]; /* owned */
    struct event *reload;              /* owned; SIGHUP */
    struct lifecycle *life;            /* owned */
    struct supervisor supervisor;
    struct customer *customer;             /* owned; NULL: there is no command of the operator */
    int customer_status;                   /* once it has ended by itself */
    char secret[BOOT_SECRET_MAX];          /* from a file; "": from the configuration, or none */
    char secret_file[CONFIG_TEXT_MAX + 8]; /* which SIGHUP reads again; "": none */
    bool secret_made;                      /* by this start */
    int signal;                            /* that asked us to end */
    bool ending, ended;
};

/* ---- ending ---- */

/* The operator's command is given its own time. */
static void on_ended(void *user)
{
    struct daemon *d = user;

    d->ended = true;
    if (!customer_is_running(d->customer))
        (void)event_base_loopbreak(d->app.base);
}

static void on_http_drained(void *user)
{
    struct daemon *d = user;

    lifecycle_drained(d->life);
}

/* In order, and at most once. */
static void end(struct daemon *d, int exit_code)
{
    uint64_t grace_ms = d->app.config.shutdown_grace_s * MS_PER_S;

    d->ending = true;
    supervisor_tell(&d->supervisor, "STOPPING=1\n");
    lifecycle_stop(d->life, exit_code);
    http_server_drain(d->http, (uint32_t)grace_ms + LIFECYCLE_REQUESTS_MS, on_http_drained, d);
}

/* Its end is ours. One that has prepared the default sandbox may end before us. */
static void on_customer_ended(void *user, int status)
{
    struct daemon *d = user;

    log_event(&d->app.log, LOG_INFO, "command_ended", LOG_INT("status", status));
    if (d->app.config.inside && status == 0 && !d->ending)
        return;
    d->customer_status = status;
    if (d->ended)
        (void)event_base_loopbreak(d->app.base);
    else if (!d->ending)
        end(d, status);
}

/* Without a jail nothing can be served: the supervisor of the daemon starts it again. */
static void on_jail_lost(void *user)
{
    struct daemon *d = user;

    if (d->http && !d->ending)
        end(d, EXIT_FAILURE);
}

static void on_signal(evutil_socket_t number, short what, void *user)
{
    struct daemon *d = user;

    (void)what;
    log_event(&d->app.log, LOG_INFO, "stopping", LOG_INT("signal", number),
              LOG_INT("active_executions", (int64_t)d->app.registry.active_n));
    if (d->signal != 0 && d->customer)
        customer_kill(d->customer);
    if (d->signal != 0) /* asked twice: now. The launcher cleans up behind us */
        _exit(EXIT_SIGNAL + d->signal);
    d->signal = (int)number;
    if (d->customer)
        customer_signal(d->customer, d->signal);
    if (!d->ending)
        end(d, EXIT_SIGNAL + d->signal);
}

/* SIGHUP: what can change while we serve. What cannot be read leaves everything as it is. */
static void on_reload(evutil_socket_t number, short what, void *user)
{
    struct daemon *d = user;
    uint64_t overlap_ms = d->app.config.secret_overlap_s * MS_PER_S;
    char secret[BOOT_SECRET_MAX];
    int r = 0;
    struct err e;

    (void)number, (void)what;
    if (d->secret_file[0]) {
        r = boot_secret_read(d->secret_file, secret, &e);
        r = r < 0 ? r : auth_replace(d->auth, secret, overlap_ms, &e);
        explicit_bzero(secret, sizeof secret);
    }
    if (r < 0)
        log_event(&d->app.log, LOG_WARN, "reload_failed", LOG_STR("error", e.text));
    else
        log_event(&d->app.log, LOG_INFO, "reloaded",
                  LOG_STR("secret", r > 0 ? "replaced" : "as before"),
                  LOG_INT("overlap_s", r > 0 ? (int64_t)d->app.config.secret_overlap_s : 0));
}

/* ---- starting ---- */

static void log_open(struct app *a)
{
    const struct config *c = &a->config;

    bool for_people = strcmp(c->log_format, "text") == 0 ||
                      (strcmp(c->log_format, "auto") == 0 && isatty(STDERR_FILENO));

    a->log = (struct log){.fd = STDERR_FILENO, .json = !for_people};
    if (!log_level_parse(c->log_level, &a->log.level))
        a->log.level = LOG_INFO;
    (void)snprintf(a->log.container_id, sizeof a->log.container_id, "%.79s", c->container_id);
}

/* The threads must not be chosen to handle a signal that the loop waits for. */
static int workers_open(struct app *a, struct err *e)
{
    sigset_t all, before;
    int r;

    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, &before);
    r = work_pool_open(a->base, &a->work, e);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return r;
}

static int base_open(struct app *a, struct err *e)
{
    struct event_config *c = event_config_new();

    os_heap_keep(HEAP_KEPT); /* what each request takes and gives back is none of the kernel's */
    if (c && event_config_set_flag(c, EVENT_BASE_FLAG_NOLOCK) == 0)
        a->base = event_base_new_with_config(c);
    if (c)
        event_config_free(c);
    return a->base ? 0 : err_set(e, ERR_HOST, "no event loop");
}

/* nohup(1) and the like mean it. */
static bool is_ignored(int number)
{
    struct sigaction now;

    return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

static int events_open(struct daemon *d, struct err *e)
{
    struct event_base *base = d->app.base;

    (void)signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < STOP_SIGNALS; i++) {
        if (is_ignored(stop_signals[i]))
            continue;
        d->stops[i] = evsignal_new(base, stop_signals[i], on_signal, d);
        if (!d->stops[i] || event_add(d->stops[i], NULL) < 0)
            return err_set(e, ERR_HOST, "no memory for events");
    }
    if (!is_ignored(SIGHUP)) {
        d->reload = evsignal_new(base, SIGHUP, on_reload, d);
        if (!d->reload || event_add(d->reload, NULL) < 0)
            return err_set(e, ERR_HOST, "no memory for events");
    }
    return lifecycle_open(&d->app, on_ended, d, &d->life, e);
}

/* As whom we were started: the file may be root's alone. To be read again it must be readable by
 * RUN_AS. */
static int secret_file_open(struct daemon *d, struct err *e)
{
    const struct config *c = &d->app.config;

    if (!c->secret_file[0])
        return 0;
    (void)snprintf(d->secret_file, sizeof d->secret_file, "%s", c->secret_file);
    return boot_secret_read(c->secret_file, d->secret, e);
}

static int secret_open(struct daemon *d, struct err *e)
{
    const struct config *c = &d->app.config;
    struct auth_conf conf = {.mode = AUTH_STATIC,
                             .secret = c->secret,
                             .path = c->secret_path,
                             .uid = (uid_t)-1,
                             .gid = (gid_t)-1};

    if (c->auth_mode[0] && !auth_mode_parse(c->auth_mode, &conf.mode))
        return err_set(e, ERR_CALLER, "SANDBOX_AUTH_MODE: '%.32s'", c->auth_mode);
    if (conf.mode != AUTH_STATIC) {
        conf.secret = NULL;
    } else if (!c->secret[0]) {
        if (!d->secret[0]) {
            (void)snprintf(d->secret_file, sizeof d->secret_file, "%s/secret", c->state_dir);
            if (boot_secret(c, d->secret, &d->secret_made, e) < 0)
                return -1;
        }
        conf.secret = d->secret;
    }
    return auth_open(&conf, &d->auth, e);
}

/* Pool mode may have to make a directory that only root can make. */
static int pool_dir_open(struct daemon *d, struct err *e)
{
    struct auth_conf conf = {
        .mode = AUTH_POOL, .path = d->app.config.secret_path, .uid = d->who.uid, .gid = d->who.gid};

    if (strcmp(d->app.config.auth_mode, "pool") != 0 || !d->who.change)
        return 0;
    return auth_open(&conf, &d->auth, e);
}

/* After boot_become(): what root could do does not count. */
static int auth_ready(struct daemon *d, struct err *e)
{
    char number[16];

    if (!d->auth && secret_open(d, e) < 0)
        return -1;
    (void)snprintf(number, sizeof number, "%u", (unsigned)d->who.uid);
    return auth_claimable(d->auth, d->who.change ? d->app.config.run_as : number, e);
}

/* Returns -1. A port that is in use is told with the option that chooses another. */
static int explain_port(struct err *e, const char *option)
{
    if (e->sys == EADDRINUSE)
        return err_wrap(e, "another program has that port; choose one with %s", option);
    return -1;
}

static int http_open(struct daemon *d, struct err *e)
{
    const struct config *c = &d->app.config;
    struct http_server_conf conf = {
        .host = c->host,
        .port = (uint16_t)c->port,
        .dialects = api_dialects,
        .auth = d->auth,
        .log = &d->app.log,
        .allowed_hosts = c->allowed_hosts,
        .connections_max = (uint32_t)c->connections_max,
        .head_ms = (uint32_t)c->head_ms,
        .idle_ms = (uint32_t)c->idle_ms,
        .body_window_ms = (uint32_t)c->body_window_ms,
        .body_rate = c->body_rate,
        .body_max = c->body_max,
    };

    if (http_server_open(d->app.base, &conf, &d->app, &d->http, e) < 0)
        return explain_port(e, "EXECUTOR_PORT");
    d->app.http = d->http;
    return 0;
}

static int jail_open(struct daemon *d, struct err *e)
{
    struct app *a = &d->app;

    struct jail_conf conf = {
        .config = &a->config, .log = &a->log, .user = d->who.uid, .group = d->who.gid};
    size_t first;

    if (!a->base && base_open(a, e) < 0)
        return -1;
    conf.loop = a->base;
    if (jails_open(&conf, a->jails, &first, e) < 0)
        return -1;
    for (size_t i = 0; i < JAILS_MAX; i++) {
        if (!a->jails[i].jail)
            continue;
        a->jails[i].jail->lost = on_jail_lost;
        a->jails[i].jail->lost_user = d;
        if (run_engine_open(a->base, a->jails[i].jail, &a->engines[i], e) < 0)
            return -1;
    }
    a->jail = a->jails[first].jail;
    a->engine = a->engines[first];
    return 0;
}

/* Everything but the network, with the privileges we end up with. */
static int inside_open(struct daemon *d, struct err *e)
{
    struct app *a = &d->app;

    a->languages.ops = &lang_ops;
    if (events_open(d, e) < 0 || workers_open(a, e) < 0 ||
        store_open(a->config.state_dir, a->work, &a->store, e) < 0 || report_open(a, e) < 0)
        return -1;
    if (app_init(a, e) < 0 || dependencies_open(a, e) < 0 || package_sets_open(a, e) < 0)
        return -1;
    return sandboxes_open(a, &a->sandboxes, e);
}

/* A port that nobody asked for may be taken; one that was asked for must be had. */
static int proxy_start(struct app *a, struct err *e)
{
    if (expose_open(a, &a->ways.expose, e) == 0)
        return 0;
    (void)explain_port(e, "PROXY_PORT");
    if (a->config.origin[OPTION_proxy_port] != CONFIG_DEFAULT)
        return -1;
    log_event(&a->log, LOG_WARN, "no_proxy", LOG_STR("error", e->text));
    return 0;
}

/* Without it there is a daemon, and no network for sandboxes. */
static void way_out(struct app *a)
{
    char directory[PATH_MAX];
    struct err e;
    int r = os_beside("", directory, sizeof directory);

    if (!net_possible(a->jail, NET_GATE))
        return;
    if (r < 0)
        (void)err_sys(&e, r, "our own program");
    if (r == 0 && egress_start(directory, a->config.egress_hosts_file, &a->ways.egress, &e) == 0 &&
        egress_open(a->ways.egress, a->base, &a->log, a->config.egress_doors_max, &e) == 0)
        return;
    log_event(&a->log, LOG_WARN, "no_egress", LOG_STR("error", e.text));
    egress_close(take_ptr(&a->ways.egress));
}

static int start(struct daemon *d, struct err *e)
{
    struct config *c = &d->app.config;
    unsigned walls = 0;

    if (net_check_config(c, e) < 0)
        return -1;
    privilege_all_files();
    boot_host(c);
    d->app.life.in_the_way = advice_look();
    if (boot_identity(c, &d->who, e) < 0 || boot_state_dir(c, &d->who, e) < 0 ||
        boot_lock(c, &d->who, e) < 0 || secret_file_open(d, e) < 0 ||
        boot_workspaces(c, &d->app.workspace.dir, e) < 0 || boot_dependencies(c, &d->who, e) < 0 ||
        report_prepare(&d->app, &d->who, e) < 0)
        return -1;
    if (jail_open(d, e) < 0) /* the launcher: before any socket */
        return -1;
    supervisor_open(&d->supervisor);
    if (pool_dir_open(d, e) < 0 || boot_become(&d->who, e) < 0)
        return -1;
    way_out(&d->app); /* as whom we are now, and before nothing can be started any more */
    if (auth_ready(d, e) < 0 || boot_confine(c, &walls, e) < 0)
        return -1;
    log_event(&d->app.log, LOG_INFO, "confined",
              LOG_STR("system_calls", walls & LOCKDOWN_CALLS ? "filtered" : "no"),
              LOG_STR("files", walls & LOCKDOWN_FILES ? "landlock" : "no"));
    if (inside_open(d, e) < 0) /* the first threads: after the walls, or they would be outside */
        return -1;
    if (http_open(d, e) < 0 || proxy_start(&d->app, e) < 0)
        return -1;
    return d->customer ? customer_start(d->customer, &d->app, on_customer_ended, d, e) : 0;
}

/* Anybody who reaches the port may run programs: say so where others can reach it. */
static void warn_open(const struct daemon *d)
{
    const char *host = d->app.config.host;
    bool loopback =
        strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0 || strcmp(host, "localhost") == 0;

    if (auth_mode(d->auth) != AUTH_NONE || loopback)
        return;
    log_event(&d->app.log, LOG_WARN, "no_authentication", LOG_STR("host", host),
              LOG_STR("reason", "SANDBOX_AUTH_MODE=none: everybody who can connect to this "
                                "address can run programs"));
}

/* The command line beside us; "": it is not there. */
static void find_sbx(char out[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - sizeof "sbx");
    char *slash = n > 0 ? memrchr(out, '/', (size_t)n) : NULL;

    if (slash)
        memcpy(slash + 1, "sbx", sizeof "sbx");
    if (!slash || access(out, X_OK) < 0)
        out[0] = '\0';
}

static void print_secret(const struct daemon *d)
{
    if (d->secret_made)
        (void)printf("  export SANDBOX_SECRET=%s\n", d->secret);
    else if (d->secret_file[0])
        (void)printf("  export SANDBOX_SECRET=$(cat %s)\n", d->secret_file);
}

/* With a ticket that opens it once. What is printed into a journal is kept, and tickets are not for
 * keeping: there is none. */
static void print_console(const struct daemon *d, const char *url)
{
    uint64_t valid_us = d->app.config.console_ticket_s * MS_PER_S * 1000;
    char ticket[TICKET_MAX];

    if (!console_is_there(&d->app))
        return;
    if (getenv("JOURNAL_STREAM") || !auth_has_tickets(d->auth) ||
        auth_ticket(d->auth, valid_us, ticket) < 0)
        (void)printf("  Console   %s/console\n", url);
    else
        (void)printf("  Console   %s/console#ticket=%s\n", url, ticket);
    explicit_bzero(ticket, sizeof ticket);
}

static void print_missing(const struct jail *j)
{
    const char *before = "  Without   ";

    for (unsigned i = 0; i < JAIL_TRAIT_COUNT; i++) {
        if (j->traits & BIT(i))
            continue;
        (void)printf("%s%s", before, jail_trait_name(i));
        before = ", ";
    }
    if (before[0] == ',')
        (void)printf(": not given by this host; sbx doctor says what would have to change\n");
}

/* What somebody who has just started this needs next. */
static void banner(const struct daemon *d)
{
    const struct config *c = &d->app.config;
    bool everywhere =
        strcmp(c->host, "*") == 0 || strcmp(c->host, "0.0.0.0") == 0 || strcmp(c->host, "::") == 0;
    bool colons = strchr(c->host, ':') != NULL && !everywhere;
    char url[CONFIG_TEXT_MAX + 32], sbx[PATH_MAX];

    (void)snprintf(url, sizeof url, "http://%s%s%s:%u", colons ? "[" : "",
                   everywhere ? "127.0.0.1" : c->host, colons ? "]" : "",
                   http_server_port(d->http));
    find_sbx(sbx);
    (void)printf("Sandbox Executor %s is ready: %s, jail '%s', isolation '%s'. Try:\n\n",
                 SBX_VERSION, url, d->app.jail->ops->name, c->isolation_level);
    print_secret(d);
    (void)printf("  curl -s %s/execute%s \\\n"
                 "    -H 'Content-Type: application/json' "
                 "-d '{\"language\":\"python\",\"code\":\"print(40 + 2)\"}'\n",
                 url,
                 auth_mode(d->auth) == AUTH_NONE ? ""
                                                 : " -H \"Authorization: Bearer $SANDBOX_SECRET\"");
    if (sbx[0])
        (void)printf("  echo 'print(40 + 2)' | %s run -l python -u %s -\n", sbx, url);
    (void)printf("\n  Docs      %s/docs\n", url);
    print_console(d, url);
    if (d->secret_file[0])
        (void)printf("  Secret    %s\n", d->secret_file);
    if (sbx[0])
        (void)printf("  Tools     %s (run, mcp, doctor, selftest)\n", sbx);
    print_missing(d->app.jail);
    (void)printf("  Stop      Ctrl-C, or kill %ld\n\n", (long)getpid());
    (void)fflush(stdout);
}

/* In reverse order. Works however far start() came. */
static void stop(struct daemon *d)
{
    struct app *a = &d->app;

    http_server_free(d->http);
    a->http = NULL;
    sandboxes_close(a->sandboxes);
    expose_close(a->ways.expose);
    work_pool_close(a->work); /* delivers what was under way */
    shelf_stop(a->packages.shelf);
    app_done(a);
    egress_close(a->ways.egress);
    shelf_close(a->packages.shelf);
    report_close(a);
    store_close(a->store);
    auth_free(d->auth);
    for (size_t i = 0; i < JAILS_MAX; i++)
        run_engine_close(a->engines[i]);
    jails_close(a->jails);
    for (size_t i = 0; i < STOP_SIGNALS; i++) {
        if (d->stops[i])
            event_free(d->stops[i]);
    }
    if (d->reload)
        event_free(d->reload);
    lifecycle_close(d->life);
    customer_free(d->customer);
    supervisor_close(&d->supervisor);
    if (a->base)
        event_base_free(a->base);
    explicit_bzero(d->secret, sizeof d->secret);
}

/* ---- modes ---- */

/* With a command of the operator: its own status, or success when we were asked to end. One inside
 * is a process of a sandbox: being asked to end is what it is without. */
static int exit_status(const struct daemon *d)
{
    if (d->signal != 0)
        return d->customer && !d->app.config.inside ? EXIT_SUCCESS : EXIT_SIGNAL + d->signal;
    return d->customer ? d->customer_status : EXIT_FAILURE;
}

/* One turn: libevent waits once, then calls everything that is due. Waiting takes no processor
 * time, so the difference is what the turn did itself, however busy the host is. */
static void loop(struct app *a)
{
    uint64_t before = clock_thread_us(), now;
    int r;

    do {
        r = event_base_loop(a->base, EVLOOP_ONCE);
        now = clock_thread_us();
        metrics_turn(&a->metrics, now - before);
        before = now;
    } while (r == 0 && !event_base_got_break(a->base));
}

static int serve(struct daemon *d)
{
    struct app *a = &d->app;
    struct err e;

    if (start(d, &e) < 0) {
        log_event(&a->log, LOG_ERROR, "start_failed", LOG_STR("error", e.text));
        (void)fprintf(stderr, "sandbox-executor: %s\n", e.text);
        return EXIT_FAILURE;
    }
    log_event(&a->log, LOG_INFO, "listening", LOG_STR("host", a->config.host),
              LOG_INT("port", http_server_port(d->http)), LOG_STR("version", SBX_VERSION),
              LOG_INT("proxy_port", a->ways.expose ? expose_port(a->ways.expose) : 0),
              LOG_STR("jail", a->jail->ops->name));
    warn_open(d);
    banner(d);
    survey_start(a);
    lifecycle_ready(d->life, http_server_port(d->http));
    supervisor_tell(&d->supervisor, "READY=1\n");
    loop(a);
    log_event(&a->log, LOG_INFO, "stopped", LOG_INT("signal", d->signal));
    return exit_status(d);
}

/* What a start would say before it asks the host for anything; config_load() has said the rest. */
static int check_config(const struct config *c)
{
    struct err e;

    if (jails_check(c, &e) < 0 || report_check(c, &e) < 0 || net_check_config(c, &e) < 0) {
        (void)fprintf(stderr, "sandbox-executor: %s\n", e.text);
        return EXIT_FAILURE;
    }
    (void)printf("configuration is valid\n");
    return EXIT_SUCCESS;
}

static void print_traits(unsigned traits, unsigned required)
{
    for (unsigned i = 0; i < JAIL_TRAIT_COUNT; i++)
        (void)printf("  %-18s %s%s\n", jail_trait_name(i), traits & BIT(i) ? "yes" : "no",
                     traits & BIT(i)     ? ""
                     : required & BIT(i) ? "  (required)"
                                         : "  (optional)");
}

/* Only where something is missing: a host that gives everything needs no advice. */
static void print_advice(unsigned missing)
{
    const char *words;
    size_t at = 0;

    if (!missing)
        return;
    while ((words = advice_next(&at)))
        (void)printf("  in the way: %s\n", words);
}

static void on_tick(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what, (void)user;
}

/* Every interpreter that can be warmed without WebAssembly is, or has failed to be, by then. */
static void warm_all(struct app *a, unsigned wanted)
{
    const struct timeval step = {.tv_usec = 50 * 1000};
    uint64_t until = clock_us() + WARM_MS * 1000ull;
    struct event *tick = event_new(a->base, -1, EV_PERSIST, on_tick, NULL);

    for (unsigned t = 0; t < TEMPLATE_COUNT; t++)
        if (wanted & BIT(t))
            a->jail->ops->ask(a->jail, (enum plan_template)t);
    if (tick && event_add(tick, &step) == 0)
        while (wanted & ~(a->jail->warm | a->jail->cannot_warm) && clock_us() < until)
            (void)event_base_loop(a->base, EVLOOP_ONCE);
    if (tick)
        event_free(tick);
}

static void print_templates(struct app *a)
{
    unsigned wanted = a->jail->templates & (BIT(TEMPLATE_WASM_FIRST) - 1) & ~BIT(TEMPLATE_EXEC);

    warm_all(a, wanted);
    (void)printf("Interpreters that are warmed beforehand:\n");
    for (unsigned t = 0; t < TEMPLATE_COUNT; t++)
        if (wanted & BIT(t))
            (void)printf("  %-18s %s\n", jail_template_name((enum plan_template)t),
                         a->jail->warm & BIT(t) ? "yes"
                         : a->jail->cannot_warm & BIT(t)
                             ? "no  (it ends before it is ready; its last words are above)"
                             : "not yet");
}

/* What can this host isolate, and what would have to change? */
static int check_host(struct daemon *d)
{
    struct app *a = &d->app;
    unsigned required = 0;
    struct err e, basic;
    const struct lang_fact *f;
    int r;

    a->log.level = LOG_ERROR;
    (void)signal(SIGPIPE, SIG_IGN);
    if (jails_required(a->config.isolation_level, &required, &e) < 0)
        required = 0;
    (void)printf("Isolation level '%s' with jail '%s', as uid %u\n", a->config.isolation_level,
                 a->config.isolation, (unsigned)geteuid());
    r = jail_open(d, &e);
    if (r < 0) {
        (void)printf("Not possible here: %s\n", e.text);
        (void)snprintf(a->config.isolation_level, sizeof a->config.isolation_level, "basic");
        if (!a->jail && jail_open(d, &basic) == 0)
            (void)printf("With ISOLATION_LEVEL=basic this host gives:\n");
    }
    if (a->jail)
        print_traits(a->jail->traits, required);
    print_advice(r < 0 || !a->jail ? required : required & ~a->jail->traits);
    if (a->jail)
        print_templates(a);
    (void)printf("Languages:\n");
    for (size_t i = 0; (f = lang_ops.fact(i)); i++)
        (void)printf("  %-18s %s\n", f->name, f->available ? "yes" : "no  (install it)");
    (void)printf("%s\n", r < 0 ? "This host is not ready." : "This host is ready.");
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int run_mode(struct daemon *d)
{
    const struct config *c = &d->app.config;
    struct buf table = BUF_INIT(16 << 20);
    struct jw w = JW(&table);

    switch (c->mode) {
    case CONFIG_HELP:
        config_help(stdout);
        return EXIT_SUCCESS;
    case CONFIG_VERSION:
        (void)printf("sandbox-executor %s\n", SBX_VERSION);
        return EXIT_SUCCESS;
    case CONFIG_PRINT:
        config_print(c, stdout);
        return EXIT_SUCCESS;
    case CONFIG_PRINT_DOCS:
        config_print_docs(stdout);
        return EXIT_SUCCESS;
    case CONFIG_PRINT_JSON:
        config_table_json(&w);
        (void)printf("%s\n", table.p ? table.p : "");
        buf_done(&table);
        return EXIT_SUCCESS;
    case CONFIG_PRINT_API:
        openapi_write(&w);
        (void)printf("%s\n", table.p ? table.p : "");
        buf_done(&table);
        return EXIT_SUCCESS;
    case CONFIG_CHECK:
        return check_config(c);
    case CONFIG_CHECK_HOST:
        return check_host(d);
    case CONFIG_SELFTEST: /* become_selftest() */
    case CONFIG_RUN:
    case CONFIG_MODE_COUNT:
        break;
    }
    return serve(d);
}

/* A misspelt variable would silently do nothing. */
static void warn_stray(void *user, const char *name, const char *near)
{
    const struct app *a = user;

    if (a->config.mode == CONFIG_CHECK)
        (void)fprintf(stderr, "sandbox-executor: no option is called %s%s%s\n", name,
                      near ? "; did you mean " : "", near ? near : "");
    else
        log_event(&a->log, LOG_WARN, "unknown_variable", LOG_STR("variable", name),
                  LOG_STR("nearest_option", near));
}

/* The operator's command inherits the whole environment, what we hide from everybody else too: so
 * it is forked first. */
static int hide_secrets(struct daemon *d, int argc, char **argv, char **envp, struct err *e)
{
    const struct config *c = &d->app.config;
    int r = 0;

    config_hide_arguments(argc, argv);
    if (c->mode == CONFIG_RUN && c->command_n > 0)
        r = customer_prepare(c->command, c->inside, &d->customer, e);
    config_hide_variables(envp);
    return r;
}

/* A program of its own, which takes the same options: none of the attacks is linked into a daemon.
 */
static int become_selftest(char **argv)
{
    char path[PATH_MAX] = "";
    int r = os_beside("sandbox-selftest", path, sizeof path);

    if (r == 0) {
        (void)execv(path, argv);
        r = -errno;
    }
    (void)fprintf(stderr, "sandbox-executor: %s: %s\n", path, strerror(-r));
    return EXIT_FAILURE;
}

int main(int argc, char **argv, char **envp)
{
    struct daemon *d = calloc(1, sizeof *d);
    struct err e;
    int status;

    if (!d)
        return EXIT_FAILURE;
    supervisor_find(&d->supervisor);
    if (config_load(&d->app.config, argc, argv, envp, &e) < 0) {
        (void)fprintf(stderr, "sandbox-executor: %s\n", e.text);
        free(d);
        return EXIT_FAILURE;
    }
    if (d->app.config.mode == CONFIG_SELFTEST)
        return become_selftest(argv);
    if (hide_secrets(d, argc, argv, envp, &e) < 0) {
        (void)fprintf(stderr, "sandbox-executor: %s\n", e.text);
        free(d);
        return EXIT_FAILURE;
    }
    log_open(&d->app);
    if (d->app.config.mode == CONFIG_RUN || d->app.config.mode == CONFIG_CHECK)
        config_strays(envp, warn_stray, &d->app);
    status = run_mode(d);
    if (d->app.config.mode != CONFIG_RUN) /* a server's exit code does not tell of its output */
        status = output_end("sandbox-executor", status);
    stop(d);
    free(d);
    return status;
}
