/* SPDX-License-Identifier: MIT */
#include "selftest/selftest.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "jail/jails.h"
#include "selftest/bare.h"
#include "selftest/report.h"
#include "selftest/throwaway.h"

enum { EXIT_USAGE = 2, ARGS_MAX = 64, ARGS_BYTES = 16384, SLOW_MAX = 100 };

static const char usage_text[] =
    "usage: sandbox-selftest [OPTION OF sandbox-executor...] [-- [--json] [--jail=NAME]\n"
    "                        [--only=TEXT] [--slow=N] [--witness-check] [--list]]\n\n"
    "  --json           one JSON object instead of a table\n"
    "  --jail=NAME      that jail only; default: every jail this host can open\n"
    "  --only=TEXT      rows whose name or group contains TEXT\n"
    "  --slow=N         N times as much time for each, where the machine is slow (1 to 100)\n"
    "  --witness-check  run the attacks without a jail, in namespaces to be thrown away,\n"
    "                   and demand that they succeed: shows that the test can fail\n"
    "  --list           the rows, without running anything\n";

struct wish {
    const struct selftest *test; /* borrowed */
    bool json, witness_check, list;
    const char *jail, *only; /* borrowed; NULL: all */
    unsigned slow;
    char secret[WITNESS_SECRET_MAX];
};

static bool parse_slow(const char *text, unsigned *ret)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);

    if (end == text || *end || n < 1 || n > SLOW_MAX)
        return false;
    *ret = (unsigned)n;
    return true;
}

static int parse(const struct selftest *t, struct wish *w)
{
    *w = (struct wish){.test = t, .slow = 1};
    for (int i = 0; i < t->config->command_n; i++) {
        const char *arg = t->config->command[i];

        if (strcmp(arg, "--json") == 0)
            w->json = true;
        else if (strcmp(arg, "--witness-check") == 0)
            w->witness_check = true;
        else if (strcmp(arg, "--list") == 0)
            w->list = true;
        else if (strncmp(arg, "--jail=", 7) == 0)
            w->jail = arg + 7;
        else if (strncmp(arg, "--only=", 7) == 0)
            w->only = arg + 7;
        else if (strncmp(arg, "--slow=", 7) == 0 && parse_slow(arg + 7, &w->slow))
            continue;
        else
            return -1;
    }
    return 0;
}

static bool is_wanted(const struct wish *w, const struct attack *a)
{
    return !w->only || strstr(a->id, w->only) || strstr(attack_group_name(a->group), w->only);
}

/* ---- inside a jail ---- */

static bool lang_is_there(const struct lang_ops *langs, const struct attack *a)
{
    const char *need = a->program == PROGRAM_JS_CONTROL   ? "javascript"
                       : a->program == PROGRAM_SH_CONTROL ? "shell"
                       : a->program == PROGRAM_PROBE      ? NULL
                                                          : "python";
    const struct lang_fact *f;

    for (size_t i = 0; need && (f = langs->fact(i)); i++)
        if (strcmp(f->name, need) == 0)
            return f->available;
    return true;
}

static bool run_rows(const struct wish *w, struct carrier *c, unsigned traits, struct report *r)
{
    bool good = true;

    for (size_t i = 0; i < attacks_n; i++) {
        struct sight s = {.absent = true, .words = "its interpreter is not installed"};
        enum verdict_kind v;

        if (!is_wanted(w, &attacks[i]))
            continue;
        if (lang_is_there(c->langs, &attacks[i]))
            carry_attack(c, &attacks[i], false, &s);
        v = attack_verdict(&attacks[i], traits, &s);
        good &= v != VERDICT_BREACHED && v != VERDICT_BROKEN;
        report_row(r, &attacks[i], &s, v);
    }
    return good;
}

static int attack_jail(const struct wish *w, struct jail *j, struct report *r, struct err *e)
{
    cleanup_with(witness_closep) struct witness *witness = NULL;
    struct carrier c = {.config = w->test->config,
                        .langs = w->test->langs,
                        .base = w->test->base,
                        .secret = w->secret,
                        .slow = w->slow};
    bool good;

    if (witness_open(w->secret, &witness, e) < 0 ||
        run_engine_open(w->test->base, j, &c.engine, e) < 0)
        return -1;
    c.witness = witness;
    carrier_in_jail(&c);
    report_round(r, j->ops->name, j->traits, NULL);
    good = run_rows(w, &c, j->traits, r);
    report_round_end(r);
    run_engine_close(c.engine);
    return good ? 1 : 0;
}

static void unavailable(struct report *r, const char *name, const char *why)
{
    report_round(r, name, 0, why);
    report_round_end(r);
}

/* 1: held; 0: did not; -1: cannot be attacked here. */
static int try_jail(const struct wish *w, const char *name, struct report *r)
{
    struct config config = *w->test->config;
    const struct jail_conf conf = {.config = &config,
                                   .loop = w->test->base,
                                   .log = w->test->log,
                                   .user = geteuid(),
                                   .group = getegid()};
    struct jail_option all[JAILS_MAX] = {0};
    struct jail *j;
    struct err e = {0};
    size_t first;
    int held = -1;

    (void)snprintf(config.isolation, sizeof config.isolation, "%s", name);
    if (jails_open(&conf, all, &first, &e) < 0) {
        unavailable(r, name, e.text);
        return -1;
    }
    j = all[first].jail;
    if (!(j->traits & JAIL_FS)) {
        unavailable(r, name,
                    "it isolates nothing, so the attacks would succeed on this host; "
                    "--witness-check shows that in namespaces to be thrown away");
    } else {
        held = attack_jail(w, j, r, &e);
        if (held < 0)
            unavailable(r, name, e.text);
    }
    jails_close(all);
    return held;
}

/* A jail that was asked for, by name or by configuration, has to be there. */
static int run_jails(const struct wish *w)
{
    const char *configured = w->jail ? w->jail : w->test->config->isolation;
    struct report r;
    bool good = true, any = false;
    const char *name;

    report_begin(&r, w->json);
    for (size_t i = 0; (name = jails_name(i)); i++) {
        size_t n = strlen(name);
        bool asked = strncmp(configured, name, n) == 0 && (!configured[n] || configured[n] == ',');
        int held;

        if (w->jail && strcmp(name, w->jail) != 0)
            continue;
        held = try_jail(w, name, &r);
        any |= held >= 0;
        good &= held != 0 && (held > 0 || !asked);
    }
    good &= any && r.attacks + r.works > 0;
    report_end(&r, good);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- without one ---- */

/* How it was shown, or "". Its own word is not enough, unless nobody may trace here. */
static const char *show(struct carrier *c, const struct attack *a, struct sight *s)
{
    carry_attack(c, a, false, s);
    bare_sweep(c->witness);
    if (s->noticed)
        return "succeeds, witnessed";
    if (a->shown == SHOWN_FAKED) {
        carry_attack(c, a, true, s);
        bare_sweep(c->witness);
        if (s->noticed)
            return "feigned, witnessed";
        if (s->breach && s->weak)
            return "feigned, noticed";
    }
    if (s->absent)
        return "absent";
    return a->shown == SHOWN_UNSHOWN ? "refused to all" : "";
}

static int witness_check(void *user)
{
    const struct wish *w = user;
    cleanup_with(witness_closep) struct witness *witness = NULL;
    struct carrier c = {
        .config = w->test->config, .langs = w->test->langs, .secret = w->secret, .slow = w->slow};
    struct report r;
    struct err e = {0};
    bool good = true;

    bare_prepare();
    if (witness_open(w->secret, &witness, &e) < 0) {
        (void)fprintf(stderr, "selftest: %s\n", e.text);
        return THROWAWAY_IMPOSSIBLE;
    }
    c.witness = witness;
    carrier_bare(&c);
    report_begin(&r, w->json);
    report_round(&r, "no jail", 0, NULL);
    for (size_t i = 0; i < attacks_n; i++) {
        struct sight s = {0};
        const char *shown;

        if (!is_wanted(w, &attacks[i]) || attacks[i].group == GROUP_WORK)
            continue;
        shown = show(&c, &attacks[i], &s);
        good &= shown[0] != '\0';
        report_shown(&r, &attacks[i], &s, shown);
    }
    report_round_end(&r);
    report_end(&r, good);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- */

static int list(const struct wish *w)
{
    for (size_t i = 0; i < attacks_n; i++)
        if (is_wanted(w, &attacks[i]))
            (void)printf("%-22s %-14s %s\n", attacks[i].id, attack_group_name(attacks[i].group),
                         attacks[i].title);
    return EXIT_SUCCESS;
}

/* It has to be in the environment that the kernel shows of us: nothing inside may ever have it. */
static int know_secret(char secret[WITNESS_SECRET_MAX])
{
    static const char name[] = "SELFTEST_SECRET";
    const char *known = getenv(name);
    cleanup_close int fd = -1;
    char text[ARGS_BYTES], *argv[ARGS_MAX + 1];
    int argc = 0;
    ssize_t n;

    if (known) {
        (void)snprintf(secret, WITNESS_SECRET_MAX, "%s", known);
        return 0;
    }
    witness_secret(secret);
    fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : fd_read_full(fd, text, sizeof text - 1);
    if (n <= 0 || setenv(name, secret, 1) < 0)
        return -1;
    text[n] = '\0';
    for (char *at = text; at < text + n && argc < ARGS_MAX; at += strlen(at) + 1)
        argv[argc++] = at;
    argv[argc] = NULL;
    (void)execv("/proc/self/exe", argv);
    return -1;
}

int selftest_usage(FILE *out)
{
    (void)fputs(usage_text, out);
    return out == stdout ? EXIT_SUCCESS : EXIT_USAGE;
}

int selftest_main(const struct selftest *t)
{
    struct wish w;

    if (parse(t, &w) < 0)
        return selftest_usage(stderr);
    if (w.list)
        return list(&w);
    (void)signal(SIGPIPE, SIG_IGN);
    if (know_secret(w.secret) < 0)
        return EXIT_FAILURE;
    return w.witness_check ? throwaway_run(witness_check, &w) : run_jails(&w);
}
