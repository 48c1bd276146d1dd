/* SPDX-License-Identifier: MIT */
/*
 * sbx bench: how long a fresh sandbox takes, beside a bare interpreter that does nothing. One
 * request after the other, so this is latency; bench/run of the source tree measures more.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "cli/table.h"
#include "cli/talk.h"

enum { RUNS_USUAL = 50, RUNS_MAX = 10000, WARM = 3, BODY_MAX = 4096 };

struct kind {
    const char *name, *language, *code;
    const char *const *bare; /* arguments; the first is the program */
};

static const char *const python[] = {"python3", "-I", "-S", "-c", "pass", NULL};
static const char *const node[] = {"node", "-e", "0", NULL};
static const char *const shell[] = {"bash", "-c", ":", NULL};
static const struct kind kinds[] = {
    {"Python handler",     "python",     "def handler(event):\n    return 1",     python},
    {"JavaScript handler", "javascript", "function handler(event) { return 1; }", node  },
    {"shell script",       "shell",      ":",                                     shell },
};

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

struct measured {
    double median, p90; /* milliseconds; -1: could not be measured */
};

static struct measured judge(double *ms, size_t n)
{
    if (n == 0)
        return (struct measured){-1, -1};
    qsort(ms, n, sizeof *ms, compare);
    return (struct measured){ms[n / 2], ms[n * 9 / 10]};
}

/* ---- a bare interpreter ---- */

extern char **environ;

/* -1: it could not be started, or failed. */
static double start_bare(const char *const *words)
{
    posix_spawn_file_actions_t quiet;
    uint64_t from = clock_us();
    int status = -1;
    pid_t pid;

    if (posix_spawn_file_actions_init(&quiet) != 0)
        return -1;
    for (int fd = 0; fd < 3; fd++)
        (void)posix_spawn_file_actions_addopen(&quiet, fd, "/dev/null", O_RDWR | O_CLOEXEC, 0);
    if (posix_spawnp(&pid, words[0], &quiet, NULL, (char *const *)(uintptr_t)words, environ) == 0)
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    (void)posix_spawn_file_actions_destroy(&quiet);
    return status == 0 ? (double)(clock_us() - from) / 1000 : -1;
}

static struct measured measure_bare(const char *const *words, double *ms, size_t runs)
{
    size_t n = 0;

    for (size_t i = 0; i < runs; i++) {
        ms[n] = start_bare(words);
        if (ms[n] < 0)
            return (struct measured){-1, -1};
        n++;
    }
    return judge(ms, n);
}

/* ---- the daemon ---- */

/* -1 after saying why. */
static int execute(struct talk *t, const struct kind *k, double *ret_ms)
{
    cleanup_with(buf_done) struct buf body = BUF_INIT(BODY_MAX);
    cleanup_with(http_answer_done) struct http_answer answer = {0};
    struct json_value v;
    struct jw w = JW(&body);
    uint64_t from;

    jw_object(&w);
    jw_kv_string(&w, "language", k->language);
    jw_kv_string(&w, "code", k->code);
    jw_object_end(&w);
    from = clock_us();
    if (talk_json(t, "POST", "/execute", &body, &answer, &v) < 0)
        return -1;
    *ret_ms = (double)(clock_us() - from) / 1000;
    if (member_is(v, "status", "success"))
        return 0;
    (void)fprintf(stderr, "sbx: %s: it failed\n", k->name);
    return -1;
}

static int measure(struct talk *t, const struct kind *k, double *ms, size_t runs,
                   struct measured *ret)
{
    double ignored;

    for (size_t i = 0; i < WARM; i++)
        if (execute(t, k, &ignored) < 0)
            return -1;
    for (size_t i = 0; i < runs; i++)
        if (execute(t, k, &ms[i]) < 0)
            return -1;
    *ret = judge(ms, runs);
    return 0;
}

/* ---- the report ---- */

static void put_ms(struct table *t, double ms)
{
    char text[32] = "-";

    if (ms >= 0)
        (void)snprintf(text, sizeof text, "%.2f ms", ms);
    table_cell(t, text);
}

static void json_ms(struct jw *w, const char *name, double ms)
{
    if (ms >= 0)
        jw_kv_double(w, name, ms, 3);
    else
        jw_kv_string(w, name, NULL);
}

static void report(struct table *table, struct jw *w, const struct kind *k,
                   const struct measured *ours, const struct measured *bare)
{
    table_cell(table, k->name);
    put_ms(table, ours->median);
    put_ms(table, ours->p90);
    table_cell(table, k->bare[0]);
    put_ms(table, bare->median);
    put_ms(table, bare->p90);
    jw_object(w);
    jw_kv_string(w, "name", k->name);
    json_ms(w, "median_ms", ours->median);
    json_ms(w, "p90_ms", ours->p90);
    jw_kv_string(w, "bare", k->bare[0]);
    json_ms(w, "bare_median_ms", bare->median);
    json_ms(w, "bare_p90_ms", bare->p90);
    jw_object_end(w);
}

int cmd_bench(const struct args *a)
{
    static const char *const head[] = {"PROGRAM", "FRESH SANDBOX", "90 OF 100", "BARE",
                                       "MEDIAN",  "90 OF 100",     NULL};
    cleanup_with(talk_close) struct talk t = {0};
    cleanup_with(buf_done) struct buf json = BUF_INIT(1 << 16);
    cleanup_free double *ms = NULL;
    struct jw w = JW(&json);
    struct table table;
    long runs;
    int status = 0;

    if (a->n > 0)
        return args_wrong(a, NULL);
    if (args_number(a, "runs", 1, RUNS_MAX, RUNS_USUAL, &runs) < 0 || talk_open(a, &t) < 0)
        return CMD_FAILED;
    ms = calloc((size_t)runs, sizeof *ms);
    table_init(&table, head);
    jw_array(&w);
    for (size_t i = 0; ms && i < ARRAY_LEN(kinds) && status == 0; i++) {
        struct measured ours, bare;

        if (measure(&t, &kinds[i], ms, (size_t)runs, &ours) < 0) {
            status = CMD_FAILED;
            break;
        }
        bare = measure_bare(kinds[i].bare, ms, (size_t)runs);
        report(&table, &w, &kinds[i], &ours, &bare);
    }
    jw_array_end(&w);
    if (status == 0 && t.json)
        (void)printf("%s\n", json.p);
    else if (status == 0)
        table_print(&table, stdout);
    table_done(&table);
    return status;
}
