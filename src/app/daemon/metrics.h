/* SPDX-License-Identifier: MIT */
/* The numbers behind GET /metrics (core/metrics.def). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "app/execution/verdict.h"
#include "base/buf.h"
#include "base/metric.h"

enum { METRICS_LANGS_MAX = 16 };

struct metrics {
#define METRIC_COUNTER(field, name, help) uint64_t field;
#define METRIC_GAUGE(field, name, help)   uint64_t field;
#define METRIC_STAGE(field, name)         struct histogram stage_##field;
#include "core/metrics.def"
#undef METRIC_COUNTER
#undef METRIC_GAUGE
#undef METRIC_STAGE
    uint64_t executions[METRICS_LANGS_MAX][STATUS_COUNT]; /* by language row and outcome */
    struct histogram command_queue, command_start, command_run;
    struct histogram turns; /* of the event loop: processor time */
    uint64_t turn_longest_us;
};

/* Counts a finished execution. */
void metrics_count(struct metrics *m, int lang, enum exec_status status,
                   const struct run_result *r);

/* Counts a command or background process of a persistent sandbox. */
void metrics_count_command(struct metrics *m, const struct run_result *r);

/* Counts one turn of the event loop: everything it did between two waits. */
void metrics_turn(struct metrics *m, uint64_t cpu_us);

/* The exposition text. lang_name(i) is NULL behind the last language. */
typedef const char *metrics_lang_fn(void *user, size_t i);
void metrics_write(const struct metrics *m, const char *jail, metrics_lang_fn *lang_name,
                   void *user, struct buf *out);
