/* SPDX-License-Identifier: MIT */
#include "selftest/report.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/jw.h"

enum { LINE_MAX_BYTES = 8192, US_PER_MS = 1000, US_PER_S = 1000000 };

/* ---- for machines: one object, written row by row ---- */

static void emit(struct buf *b)
{
    (void)fwrite(b->p ? b->p : "", 1, b->n, stdout);
    buf_done(b);
}

static void json_separate(struct report *r)
{
    (void)fputs(r->comma ? ",\n" : "\n", stdout);
    r->comma = true;
}

static void json_traits(struct jw *w, unsigned traits)
{
    jw_key(w, "traits");
    jw_array(w);
    for (unsigned i = 0; i < JAIL_TRAIT_COUNT; i++)
        if (traits & BIT(i))
            jw_string(w, jail_trait_name(i));
    jw_array_end(w);
}

static void json_row(struct report *r, const struct attack *a, const struct sight *s,
                     const char *key, const char *verdict)
{
    struct buf line = BUF_INIT(LINE_MAX_BYTES);
    struct jw w = JW(&line);

    json_separate(r);
    jw_object(&w);
    jw_kv_string(&w, "attack", a->id);
    jw_kv_string(&w, "group", attack_group_name(a->group));
    jw_kv_string(&w, "title", a->title);
    json_traits(&w, a->traits);
    jw_kv_string(&w, "expected", attack_expected(a));
    jw_kv_string(&w, "observed", s->words);
    jw_kv_string(&w, "reason", end_reason_name(s->reason));
    jw_kv_string(&w, "witness", s->noticed ? s->witness : NULL);
    jw_kv_string(&w, "witness_kind", attack_eye_name(a->eye, s->weak));
    jw_kv_string(&w, key, verdict);
    jw_kv_double(&w, "ms", (double)s->us / US_PER_MS, 1);
    jw_object_end(&w);
    emit(&line);
}

/* ---- for both ---- */

void report_begin(struct report *r, bool json)
{
    *r = (struct report){.json = json, .began_us = clock_us()};
    if (json)
        (void)fputs("{\"rounds\":[", stdout);
}

void report_round(struct report *r, const char *name, unsigned traits, const char *why)
{
    r->rows_begun = false;
    if (r->json) {
        struct buf line = BUF_INIT(LINE_MAX_BYTES);
        struct jw w = JW(&line);

        json_separate(r);
        jw_object(&w);
        jw_kv_string(&w, "jail", name);
        jw_kv_string(&w, "unavailable", why);
        json_traits(&w, traits);
        jw_key(&w, "rows");
        emit(&line);
        (void)fputs("[", stdout);
        r->comma = false;
        return;
    }
    (void)printf("\n%s\n", name);
    if (why)
        (void)printf("  not attacked: %s\n", why);
    else if (traits) {
        (void)printf("  declares:");
        for (unsigned i = 0; i < JAIL_TRAIT_COUNT; i++)
            if (traits & BIT(i))
                (void)printf(" %s", jail_trait_name(i));
        (void)printf("\n");
    }
    (void)fflush(stdout);
}

static void table_row(struct report *r, const struct attack *a, const struct sight *s,
                      const char *verdict)
{
    const char *seen = s->noticed ? s->witness : s->words;

    if (!r->rows_begun || r->last != a->group)
        (void)printf("\n%-22s %-60s %-9s %-34s %-9s %s\n", attack_group_name(a->group), "attack",
                     "expected", "observed", "witness", "verdict");
    r->rows_begun = true;
    r->last = a->group;
    if (!seen[0])
        seen = end_reason_name(s->reason);
    (void)printf("  %-20s %-60.60s %-9s %-34.34s %-9s %s\n", a->id, a->title, attack_expected(a),
                 seen, attack_eye_name(a->eye, s->weak), verdict);
    (void)fflush(stdout);
}

static void count(struct report *r, const struct attack *a, enum verdict_kind v)
{
    r->counts[v]++;
    if (a->group == GROUP_WORK)
        r->works++;
    else
        r->attacks++;
}

void report_row(struct report *r, const struct attack *a, const struct sight *s,
                enum verdict_kind v)
{
    count(r, a, v);
    if (r->json)
        json_row(r, a, s, "verdict", verdict_kind_name(v));
    else
        table_row(r, a, s, verdict_kind_name(v));
}

void report_shown(struct report *r, const struct attack *a, const struct sight *s,
                  const char *shown)
{
    count(r, a, shown[0] ? VERDICT_HELD : VERDICT_BROKEN);
    if (r->json)
        json_row(r, a, s, "shown", shown[0] ? shown : NULL);
    else
        table_row(r, a, s, shown[0] ? shown : "NOT SHOWN");
}

void report_round_end(struct report *r)
{
    if (r->json)
        (void)fputs("]}", stdout);
    r->comma = true;
}

void report_end(struct report *r, bool good)
{
    double seconds = (double)(clock_us() - r->began_us) / US_PER_S;

    if (r->json) {
        (void)printf("],\n\"attacks\":%u,\"works\":%u,\"held\":%u,\"breached\":%u,"
                     "\"not_promised\":%u,\"broken\":%u,\"absent\":%u,"
                     "\"seconds\":%.1f,\"good\":%s}\n",
                     r->attacks, r->works, r->counts[VERDICT_HELD], r->counts[VERDICT_BREACHED],
                     r->counts[VERDICT_UNPROMISED], r->counts[VERDICT_BROKEN],
                     r->counts[VERDICT_ABSENT], seconds, good ? "true" : "false");
        return;
    }
    (void)printf("\n%u attacks, %u kinds of ordinary work, %.1f s: %u held, %u breached, "
                 "%u not promised, %u work, %u broken, %u absent\n%s\n",
                 r->attacks, r->works, seconds, r->counts[VERDICT_HELD],
                 r->counts[VERDICT_BREACHED], r->counts[VERDICT_UNPROMISED],
                 r->counts[VERDICT_WORKS], r->counts[VERDICT_BROKEN], r->counts[VERDICT_ABSENT],
                 good ? "Everything holds." : "Something does NOT hold: see above.");
}
