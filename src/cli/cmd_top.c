/* SPDX-License-Identifier: MIT */
/* sbx top: what the daemon and its sandboxes do, as it changes. */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/stops.h"
#include "cli/table.h"
#include "cli/talk.h"

enum { SHOWN_MAX = 50, ID_MAX = 64 };

/* What a sandbox had used when it was looked at last. */
struct before {
    char id[ID_MAX];
    int64_t cpu_ms;
    uint64_t at_us;
};

struct top {
    struct talk *talk;
    struct before before[SHOWN_MAX];
    size_t before_n;
};

static int ask(struct top *t, const char *path, struct http_answer *answer, struct json_value *v)
{
    return talk_json(t->talk, "GET", path, NULL, answer, v);
}

/* Processor time since the last look, in hundredths of one processor; -1: there was none. */
static int cpu_percent(struct top *t, const char *id, int64_t cpu_ms)
{
    uint64_t now = clock_us();
    struct before *b = NULL;
    int percent = -1;

    for (size_t i = 0; i < t->before_n && !b; i++)
        if (strcmp(t->before[i].id, id) == 0)
            b = &t->before[i];
    if (b && now > b->at_us)
        percent = (int)((double)(cpu_ms - b->cpu_ms) * 1e5 / (double)(now - b->at_us));
    if (!b && t->before_n < SHOWN_MAX)
        b = &t->before[t->before_n++];
    if (b) {
        (void)snprintf(b->id, sizeof b->id, "%s", id);
        b->cpu_ms = cpu_ms;
        b->at_us = now;
    }
    return percent;
}

static void put_text(struct table *table, struct json_value s, const char *name)
{
    cleanup_free char *text = member_text(s, name);

    table_cell(table, text);
}

static void put_sandbox(struct top *t, struct table *table, const char *id)
{
    cleanup_with(buf_done) struct buf path = BUF_INIT(TALK_PATH_MAX);
    cleanup_with(http_answer_done) struct http_answer answer = {0};
    cleanup_free char *since = NULL;
    struct json_value s, usage;
    struct http_request r = {0};
    char cpu[16] = "-";
    struct err e;
    int percent;

    path_add(&path, "v1", "sandboxes", id);
    r.path = path.p;
    if (http_ask(t->talk->http, &r, &answer, &e) < 0 || answer.status != 200 ||
        json_parse(answer.body.p, answer.body.n, 0, &s, &e) < 0)
        return; /* it has ended meanwhile */
    usage = json_member(s, "usage");
    percent = cpu_percent(t, id, member_int(usage, "cpu_ms"));
    if (percent >= 0)
        (void)snprintf(cpu, sizeof cpu, "%d%%", percent);
    since = member_text(s, "created_at");
    put_text(table, s, "name");
    put_text(table, s, "state");
    table_cell(table, cpu);
    table_bytes(table, member_int(usage, "memory_bytes"));
    table_bytes(table, member_int(usage, "disk_bytes"));
    put_text(table, usage, "pids");
    table_age(table, since);
}

static void print_head(struct json_value info)
{
    cleanup_free char *version = member_text(info, "version"),
                      *jail = member_text(info, "isolation");
    int64_t up = (int64_t)member_double(info, "uptime_seconds");

    (void)printf("sandbox-executor %s  %s  up %" PRId64 ":%02d:%02d\n", version ? version : "",
                 jail ? jail : "", up / 3600, (int)(up / 60 % 60), (int)(up % 60));
    (void)printf("executions  %" PRId64 " running  %" PRId64 " queued  %" PRId64 " kept\n\n",
                 member_int(info, "active_executions"), member_int(info, "queued_executions"),
                 member_int(info, "retained_executions"));
}

/* -1 after saying why. */
static int show(struct top *t, const char *before)
{
    static const char *const head[] = {"NAME", "STATE", "CPU", "MEMORY",
                                       "DISK", "PIDS",  "AGE", NULL};
    cleanup_with(http_answer_done) struct http_answer info = {0}, list = {0};
    struct json_value i, l, all, s;
    struct table table;
    size_t shown = 0;

    if (ask(t, "/info", &info, &i) < 0 || ask(t, "/v1/sandboxes?limit=50", &list, &l) < 0)
        return -1;
    if (t->talk->json) {
        (void)printf("{\"info\":%.*s,\"sandboxes\":%.*s}\n", (int)i.n, i.p,
                     (int)json_member(l, "sandboxes").n, json_member(l, "sandboxes").p);
        return 0;
    }
    all = json_member(l, "sandboxes");
    table_init(&table, head);
    for (size_t at = 0; all.p && shown < SHOWN_MAX && json_array_next(all, &at, &s); shown++) {
        cleanup_free char *id = member_text(s, "id");

        if (id)
            put_sandbox(t, &table, id);
    }
    (void)fputs(before, stdout);
    print_head(i);
    table_print(&table, stdout);
    (void)fflush(stdout);
    table_done(&table);
    return 0;
}

/* Until q, Ctrl-C or another end. */
static int watch(struct top *t, int stops, int every_ms)
{
    struct pollfd fds[] = {
        {.fd = stops,        .events = POLLIN},
        {.fd = STDIN_FILENO, .events = POLLIN}
    };
    int sig = 0, got;
    char key = 0;

    while ((got = show(t, "\033[H\033[2J")) == 0 && key != 'q') {
        if (poll(fds, ARRAY_LEN(fds), every_ms) <= 0)
            continue;
        sig = fds[0].revents ? stops_take(stops) : 0;
        if (sig && sig != SIGWINCH)
            break;
        if (fds[1].revents && (read(STDIN_FILENO, &key, 1) <= 0 || key == 'q'))
            break;
    }
    return got < 0 ? CMD_FAILED : 0;
}

static int live(struct top *t, int every_ms)
{
    struct termios before, quiet;
    cleanup_close int stops = stops_open();
    bool keys = tcgetattr(STDIN_FILENO, &before) == 0;
    int status;

    if (stops < 0)
        return CMD_FAILED;
    if (keys) {
        quiet = before;
        quiet.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &quiet);
    }
    (void)fputs("\033[?1049h\033[?25l", stdout); /* a screen of its own, without a cursor */
    status = watch(t, stops, every_ms);
    (void)fputs("\033[?25h\033[?1049l", stdout);
    (void)fflush(stdout);
    if (keys)
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
    return status;
}

int cmd_top(const struct args *a)
{
    cleanup_with(talk_close) struct talk t = {0};
    struct top top = {.talk = &t};
    long every;

    if (a->n > 0)
        return args_wrong(a, NULL);
    if (args_number(a, "every", 1, 3600, 2, &every) < 0 || talk_open(a, &t) < 0)
        return CMD_FAILED;
    if (t.json || args_option(a, "once") || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
        return show(&top, "") < 0 ? CMD_FAILED : 0;
    return live(&top, (int)every * 1000);
}
