/* SPDX-License-Identifier: MIT */
#include "core/result_write.h"

enum { US_PER_MS = 1000, US_PER_S = 1000000, MIB = 1024 * 1024 };

static void kv_known(struct jw *w, const char *key, int64_t v)
{
    jw_key(w, key);
    if (v < 0)
        jw_null(w);
    else
        jw_int(w, v);
}

void result_write_metrics(struct jw *w, const struct run_result *r)
{
    const struct spans s = spans_of(&r->at);
    const struct usage *u = &r->usage;

    jw_key(w, "metrics");
    jw_object(w);
    jw_kv_double(w, "duration_ms", (double)s.run / US_PER_MS, 3);
    jw_kv_double(w, "cpu_time_ms", u->cpu_us < 0 ? 0 : (double)u->cpu_us / US_PER_MS, 3);
    jw_key(w, "peak_memory_mb");
    if (u->memory_peak < 0)
        jw_null(w);
    else
        jw_double(w, (double)u->memory_peak / MIB, 3);
    kv_known(w, "io_read_bytes", u->io_read);
    kv_known(w, "io_write_bytes", u->io_write);
    jw_object_end(w);
}

void result_write_output(struct jw *w, const struct run_result *r, bool returned)
{
    const struct spans s = spans_of(&r->at);

    jw_kv_bytes(w, "stdout", r->out.p ? r->out.p : "", r->out.n);
    jw_kv_bytes(w, "stderr", r->err.p ? r->err.p : "", r->err.n);
    jw_kv_int(w, "exit_code", r->exit_code);
    jw_kv_double(w, "execution_time", (double)s.run / US_PER_S, 6);
    jw_key(w, "return_value");
    if (returned && r->result.n > 0)
        jw_raw(w, r->result.p, r->result.n);
    else
        jw_null(w);
}
