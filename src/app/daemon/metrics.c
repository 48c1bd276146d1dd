/* SPDX-License-Identifier: MIT */
#include "app/daemon/metrics.h"

#include <stdio.h>

enum { LABELS_MAX = 160 };

static void stage_add(struct histogram *h, uint64_t from, uint64_t to)
{
    if (from != 0 && to >= from)
        histogram_add(h, to - from);
}

void metrics_count(struct metrics *m, int lang, enum exec_status status, const struct run_result *r)
{
    const struct stamps *at = &r->at;

    if (lang >= 0 && lang < METRICS_LANGS_MAX)
        m->executions[lang][status]++;
    m->truncated += r->out_truncated || r->err_truncated;
    stage_add(&m->stage_total, at->asked, at->collected);
    if (at->running == 0)
        return;
    *(r->warm ? &m->warm : &m->cold) += 1;
    stage_add(&m->stage_queue, at->asked, at->started);
    stage_add(&m->stage_start, at->started, at->running);
    stage_add(&m->stage_run, at->running, at->ended);
    stage_add(&m->stage_collect, at->ended, at->collected);
}

void metrics_count_command(struct metrics *m, const struct run_result *r)
{
    const struct stamps *at = &r->at;

    m->commands++;
    m->commands_timed_out += r->reason == END_TIMEOUT;
    stage_add(&m->command_queue, at->asked, at->started);
    stage_add(&m->command_start, at->started, at->running);
    stage_add(&m->command_run, at->running, at->ended);
}

void metrics_turn(struct metrics *m, uint64_t cpu_us)
{
    histogram_add(&m->turns, cpu_us);
    if (cpu_us > m->turn_longest_us)
        m->turn_longest_us = cpu_us;
}

static void write_turns(const struct metrics *m, struct buf *out)
{
    static const char turns[] = "sandbox_loop_turn_seconds";
    static const char longest[] = "sandbox_loop_turn_longest_seconds";

    metric_head(out, turns, "histogram", "processor time of each turn of the event loop");
    metric_histogram(out, turns, "", &m->turns);
    metric_head(out, longest, "gauge", "processor time of its longest turn since the start");
    metric_value(out, longest, "", (double)m->turn_longest_us / 1e6);
}

static void write_commands(const struct metrics *m, struct buf *out)
{
    static const char name[] = "sandbox_command_stage_seconds";

    metric_head(out, name, "histogram",
                "time commands of persistent sandboxes spent in each stage");
    metric_histogram(out, name, "stage=\"queue\"", &m->command_queue);
    metric_histogram(out, name, "stage=\"start\"", &m->command_start);
    metric_histogram(out, name, "stage=\"run\"", &m->command_run);
}

static void write_executions(const struct metrics *m, const char *jail, metrics_lang_fn *lang_name,
                             void *user, struct buf *out)
{
    static const char name[] = "sandbox_executions_total";
    char labels[LABELS_MAX];

    metric_head(out, name, "counter", "finished executions by language, jail and outcome");
    for (size_t i = 0; i < METRICS_LANGS_MAX && lang_name(user, i); i++) {
        for (size_t s = 0; s < STATUS_COUNT; s++) {
            (void)snprintf(labels, sizeof labels, "language=\"%s\",jail=\"%s\",outcome=\"%s\"",
                           lang_name(user, i), jail, exec_status_name((enum exec_status)s));
            metric_value(out, name, labels, (double)m->executions[i][s]);
        }
    }
}

static void write_plain(struct buf *out, const char *name, const char *type, const char *help,
                        uint64_t v)
{
    metric_head(out, name, type, help);
    metric_value(out, name, "", (double)v);
}

void metrics_write(const struct metrics *m, const char *jail, metrics_lang_fn *lang_name,
                   void *user, struct buf *out)
{
    static const char stages[] = "sandbox_stage_seconds";

    write_executions(m, jail, lang_name, user, out);
#define METRIC_COUNTER(field, name, help) write_plain(out, name, "counter", help, m->field);
#define METRIC_GAUGE(field, name, help)   write_plain(out, name, "gauge", help, m->field);
#define METRIC_STAGE(field, name)
#include "core/metrics.def"
#undef METRIC_COUNTER
#undef METRIC_GAUGE
#undef METRIC_STAGE
    metric_head(out, stages, "histogram", "time executions spent in each stage");
#define METRIC_COUNTER(field, name, help)
#define METRIC_GAUGE(field, name, help)
#define METRIC_STAGE(field, name)                                                                  \
    metric_histogram(out, stages, "stage=\"" name "\"", &m->stage_##field);
#include "core/metrics.def"
#undef METRIC_COUNTER
#undef METRIC_GAUGE
#undef METRIC_STAGE
    write_commands(m, out);
    write_turns(m, out);
}
