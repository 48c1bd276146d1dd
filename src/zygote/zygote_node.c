/* SPDX-License-Identifier: MIT */
/*
 * sandbox-zygote-node.node: what makes a Node.js process a zygote.
 *
 * Theory of operation
 *
 *   sandbox-zygote-node ──exec──▶ node -e ...                (zygote_node_main.c)
 *        loads this library, whose text (zygote_node.js) imports and rehearses,
 *        then calls serve()
 *        serve():  park helper threads, note kernel objects, try one fork,
 *                  then only fork keepers (zygote.h)
 *        ──clone──▶ keeper ──clone──▶ init, pid 1 ──clone──▶ first process
 *        which makes its own kernel objects, seeds what is random and returns
 *        from serve() into JavaScript, by a long jump over the frames of keeper
 *        and init; rehearses; revives the threads; there job() waits for work
 *
 * Nothing in a keeper or an init runs JavaScript. No byte of a tenant is read
 * before job(), and everything up to there happens inside the locked sandbox.
 *
 * Node.js is asked only through Node-API, which is stable. A few names more are
 * looked up when needed: without OpenSSL's RAND_seed there is no zygote; without
 * those of V8 and node the heap's limit or process.uptime() are the zygote's.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <speedups.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "init/runner.h"
#include "walls/keeper.h"
#include "zygote/hot.h"
#include "zygote/napi.h"
#include "zygote/renew.h"
#include "zygote/serve.h"
#include "zygote/text.h"
#include "zygote/threads.h"
#include "zygote/zygote.h"
#include "zygote/zygote_node_texts.h"

extern const char wrap_javascript[];

enum {
    TRIAL_MS = 20000,
    SEED_BYTES = 48,
    HEAP_MB_MAX = 1 << 20,
    ARGS_MAX = 1,
    NS_PER_S = 1000000000,
    NS_PER_MS = 1000000,
    MS_PER_S = 1000,
};

/* Why serve() returned. */
enum { WOKEN_TO_WORK = 1, WOKEN_TO_TRY, WOKEN_TO_LEARN };

typedef size_t heap_limit_fn(void *user, size_t now, size_t initial);

/* What is not in Node-API. Looked up once: later that would touch pages of the whole program. */
struct symbols {
    void (*seed)(const void *p, int n); /* OpenSSL's */
    uint64_t *born;                     /* since when process.uptime() counts */
    void *(*isolate)(void);
    void (*heap_watch)(void *isolate, heap_limit_fn *fn, void *user);
    void (*heap_forget)(void *isolate, heap_limit_fn *fn, size_t limit);
};

struct node {
    struct symbols symbols;
    struct threads threads;
    struct renew renew;
    struct filters filters;
    struct zygote_host host;
    struct keeper keeper;
    struct hot hot;
    jmp_buf back;
    uint32_t flags; /* of the job */
};

__attribute__((noreturn)) static void die(const char *what)
{
    (void)fprintf(stderr, "sandbox-zygote-node: %s\n", what);
    _exit(EXIT_FAILURE);
}

/* ---- values ---- */

static napi_value make_string(napi_env env, const char *text)
{
    napi_value v = NULL;

    (void)napi_create_string_utf8(env, text, strlen(text), &v);
    return v;
}

static napi_value make_number(napi_env env, int32_t n)
{
    napi_value v = NULL;

    (void)napi_create_int32(env, n, &v);
    return v;
}

static napi_value argument(napi_env env, napi_callback_info info)
{
    napi_value argv[ARGS_MAX] = {NULL};
    size_t argc = ARGS_MAX;

    (void)napi_get_cb_info(env, info, &argc, argv, NULL, NULL);
    return argv[0];
}

static struct node *node_of(napi_env env, napi_callback_info info)
{
    void *user = NULL;

    (void)napi_get_cb_info(env, info, NULL, NULL, NULL, &user);
    return user;
}

/* ---- waking up ---- */

/* OpenSSL notices a fork by its pid, and in every sandbox that is the same. */
static int seed(const struct node *n)
{
    char bytes[SEED_BYTES];

    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return -EIO;
    n->symbols.seed(bytes, sizeof bytes);
    explicit_bzero(bytes, sizeof bytes);
    return 0;
}

/* The process has no descriptor left but its streams and the job, and no thread but this. */
static int wake(const struct node *n, const char **ret_what)
{
    int r;

    threads_begin(&n->threads);
    *ret_what = "descriptors";
    for (int fd = 0; fd <= RUNNER_FD; fd++) /* as node does at its start */
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    r = renew_make(&n->renew);
    if (r < 0)
        return r;
    *ret_what = "random numbers";
    return seed(n);
}

/* The first process of a sandbox. */
__attribute__((noreturn)) static void first_process(void *user)
{
    struct node *n = user;
    const char *what;
    int r = wake(n, &what);

    if (r < 0)
        runner_fail(what, r);
    longjmp(n->back, WOKEN_TO_WORK);
}

/* ---- serving ---- */

/* One copy of us proves that all the above works with this node. It runs only our own program. */
static int try_one(struct node *n, struct err *e)
{
    cleanup_reap pid_t pid = threads_fork();
    const char *what;
    int status = 0, r;

    if (pid < 0)
        return err_sys(e, -errno, "fork");
    if (pid == 0) {
        (void)close_range(ZYGOTE_FD, ~0u, 0);
        r = wake(n, &what);
        if (r == 0)
            longjmp(n->back, WOKEN_TO_TRY);
        (void)fprintf(stderr, "sandbox-zygote-node: %s: %s\n", what, strerror(-r));
        _exit(EXIT_FAILURE);
    }
    if (hot_await(pid, TRIAL_MS, &status) < 0)
        return err_set(e, ERR_HOST, "a copy of this node does not come to an end");
    (void)take_pid(&pid);
    if (status != 0)
        return err_set(e, ERR_HOST, "a copy of this node does not work (status %d)", status);
    return 0;
}

/* Another one does what every copy does, and no more. */
static void learn(struct node *n)
{
    const char *what;

    if (!SPEEDUP_PINNED_PAGES || !hot_try(&n->hot, threads_fork))
        return;
    (void)close_range(ZYGOTE_FD, ~0u, 0);
    if (wake(n, &what) == 0)
        longjmp(n->back, WOKEN_TO_LEARN);
    _exit(EXIT_FAILURE);
}

static int prepare(struct node *n, struct err *e)
{
    if (!n->symbols.seed)
        return err_set(e, ERR_HOST, "this node does not let its random numbers be seeded");
    n->host = (struct zygote_host){
        .first = {.run = first_process, .user = n},
          .fork = threads_fork, .hot = &n->hot
    };
    if (fcntl(ZYGOTE_FD, F_SETFD, FD_CLOEXEC) < 0)
        return err_set(e, ERR_HOST, "it is started by sandbox-launcher");
    if (filters_build(&n->filters, e) < 0 || threads_park(&n->threads, e) < 0)
        return -1;
    if (renew_note(&n->renew, ZYGOTE_FD + 1, e) < 0)
        return -1;
    if (SPEEDUP_JOINED_MAPS)
        text_join();
    if (SPEEDUP_HUGE_CODE)
        renew_code();
    return renew_memory(e); /* last: whatever was allocated since would be missing in copies */
}

/* Never returns in the zygote. In a copy: why. 1: what copies do can be learned from one. */
static napi_value serve(napi_env env, napi_callback_info info)
{
    struct node *n = node_of(env, info);
    int32_t can_learn = 0;
    struct err e = {0};
    int why;

    if (prepare(n, &e) < 0)
        die(e.text);
    why = setjmp(n->back);
    if (why != 0)
        return make_number(env, why);
    if (try_one(n, &e) < 0)
        die(e.text);
    (void)napi_get_value_int32(env, argument(env, info), &can_learn);
    if (can_learn)
        learn(n);
    text_release();
    zygote_serve(&n->filters, &n->host, &n->keeper);
    keeper_run(&n->keeper);
}

/* ---- in the first process, from JavaScript ---- */

static size_t keep_limit(void *user, size_t now, size_t initial)
{
    (void)user, (void)initial;
    return now;
}

/* What --max-old-space-size does at start. V8 can lower the limit of a living heap only as part of
 * forgetting a callback. Where it cannot, the control group limits all the same. */
static void limit_heap(const struct symbols *y, size_t bytes)
{
    if (!y->isolate || !y->heap_watch || !y->heap_forget)
        return;
    y->heap_watch(y->isolate(), keep_limit, NULL);
    y->heap_forget(y->isolate(), keep_limit, bytes);
}

static void apply_options(const struct symbols *y, char *const *argv)
{
    static const char heap[] = "--max-old-space-size=";

    for (; *argv; argv++)
        if (strncmp(*argv, heap, sizeof heap - 1) == 0) {
            unsigned long mb = strtoul(*argv + sizeof heap - 1, NULL, 10);

            if (mb > 0 && mb < HEAP_MB_MAX)
                limit_heap(y, (size_t)mb << 20);
        }
}

/* The program's time begins with its job, not when the process was made. */
static void begin_uptime(const struct symbols *y)
{
    struct timespec now;

    if (y->born && clock_gettime(CLOCK_MONOTONIC, &now) == 0)
        *y->born = (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* The helper threads come last: as long as there is one thread, no other processor has to be told
 * of every page that is copied. Until then work for them is only queued. */
static napi_value revive(napi_env env, napi_callback_info info)
{
    int r = threads_revive(&node_of(env, info)->threads);

    if (r < 0)
        runner_fail("threads", r);
    return make_number(env, 0);
}

static void revive_now(int sig, siginfo_t *si, void *context)
{
    int r = threads_revive(si->si_value.sival_ptr);

    (void)sig, (void)context;
    if (r < 0)
        runner_fail("threads", r);
}

/* Most programs have ended before any of the threads could be of use, and a process with one thread
 * ends sooner: those of a program that goes on come when so many milliseconds have passed. By the
 * clock, not by what was computed: a program that needs a thread waits no longer than that. */
static napi_value revive_later(napi_env env, napi_callback_info info)
{
    struct node *n = node_of(env, info);
    struct sigaction action = {.sa_sigaction = revive_now, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMAX - 2};
    struct itimerspec when = {0};
    int32_t ms = 0;
    timer_t timer;

    (void)napi_get_value_int32(env, argument(env, info), &ms);
    when.it_value.tv_sec = ms / MS_PER_S;
    when.it_value.tv_nsec = (long)(ms % MS_PER_S) * NS_PER_MS;
    event.sigev_value.sival_ptr = &n->threads;
    (void)sigfillset(&action.sa_mask);
    if (sigaction(event.sigev_signo, &action, NULL) < 0 ||
        timer_create(CLOCK_MONOTONIC, &event, &timer) < 0 ||
        timer_settime(timer, 0, &when, NULL) < 0)
        return revive(env, info); /* then at once */
    return make_number(env, 0);
}

static napi_value learned(napi_env env, napi_callback_info info)
{
    hot_tell(&node_of(env, info)->hot);
}

static napi_value make_list(napi_env env, char *const *texts)
{
    napi_value list = NULL;

    (void)napi_create_array(env, &list);
    for (uint32_t i = 0; texts[i]; i++)
        (void)napi_set_element(env, list, i, make_string(env, texts[i]));
    return list;
}

static napi_value waiting(napi_env env, napi_callback_info info)
{
    (void)info;
    return make_number(env, runner_has_job(0));
}

/* Waits for the job: { argv, cwd, env: ['NAME=value'] }. The frames are still to be read. */
static napi_value job(napi_env env, napi_callback_info info)
{
    struct node *n = node_of(env, info);
    const struct symbols *y = &n->symbols;
    napi_value object = NULL;
    const char *what;
    struct job j;
    int r = runner_read(NULL, &j, &what);

    if (r == -ENODATA)
        _exit(0); /* never used */
    if (r < 0)
        runner_fail(what, r);
    n->flags = j.head.flags;
    apply_options(y, j.argv);
    begin_uptime(y);
    (void)napi_create_object(env, &object);
    (void)napi_set_named_property(env, object, "argv", make_list(env, j.argv));
    (void)napi_set_named_property(env, object, "cwd", make_string(env, j.cwd));
    (void)napi_set_named_property(env, object, "env", make_list(env, j.envp));
    return object;
}

static napi_value pid(napi_env env, napi_callback_info info)
{
    (void)info;
    return make_number(env, getpid());
}

/* A positive number that nobody can foresee. */
static napi_value entropy(napi_env env, napi_callback_info info)
{
    uint32_t n = 0;

    (void)info;
    if (getrandom(&n, sizeof n, 0) != sizeof n)
        die("no random numbers");
    return make_number(env, (int32_t)(n >> 1 | 1));
}

/* A descriptor that a text can be read from: for rehearsals. */
static napi_value feed(napi_env env, napi_callback_info info)
{
    napi_value text = argument(env, info);
    char bytes[4096];
    size_t n = 0;
    int p[2];

    if (napi_get_value_string_utf8(env, text, bytes, sizeof bytes, &n) != 0 || fd_pipe(p) < 0)
        die("rehearsal");
    if (fd_write_all(p[1], bytes, n) < 0)
        die("rehearsal");
    (void)close(p[1]);
    return make_number(env, p[0]);
}

/* Without taking the house down first: everything goes with the process. */
static napi_value leave(napi_env env, napi_callback_info info)
{
    int32_t code = 0;

    (void)napi_get_value_int32(env, argument(env, info), &code);
    runner_leave(node_of(env, info)->flags, code, true, NULL, 0);
}

/* ---- loading ---- */

static void find_symbols(struct symbols *y)
{
    const struct {
        const char *name;
        void *at;
    } rows[] = {
        {"RAND_seed",                                             &y->seed       },
        {"_ZN4node11per_process15node_start_timeE",               &y->born       },
        {"_ZN2v87Isolate10GetCurrentEv",                          &y->isolate    },
        {"_ZN2v87Isolate24AddNearHeapLimitCallbackEPFmPvmmES1_",  &y->heap_watch },
        {"_ZN2v87Isolate27RemoveNearHeapLimitCallbackEPFmPvmmEm", &y->heap_forget},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        void *found = dlsym(RTLD_DEFAULT, rows[i].name);

        memcpy(rows[i].at, &found, sizeof found);
    }
}

napi_value napi_register_module_v1(napi_env env, napi_value exports)
{
    static const struct {
        const char *name;
        napi_callback *fn;
    } functions[] = {
        {"serve",       serve       },
        {"revive",      revive      },
        {"reviveLater", revive_later},
        {"waiting",     waiting     },
        {"learned",     learned     },
        {"job",         job         },
        {"pid",         pid         },
        {"entropy",     entropy     },
        {"feed",        feed        },
        {"leave",       leave       },
    };
    struct node *n = calloc(1, sizeof *n);
    napi_value texts = NULL;

    if (!n)
        die("out of memory");
    find_symbols(&n->symbols);
    for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
        napi_value f = NULL;

        (void)napi_create_function(env, functions[i].name, strlen(functions[i].name),
                                   functions[i].fn, n, &f);
        (void)napi_set_named_property(env, exports, functions[i].name, f);
    }
    (void)napi_set_named_property(env, exports, "wrapper", make_string(env, wrap_javascript));
    (void)napi_create_object(env, &texts);
    zygote_node_texts(env, texts);
    (void)napi_set_named_property(env, exports, "texts", texts);
    return exports;
}
