/* SPDX-License-Identifier: MIT */
#include "selftest/attack.h"

/* Rows name their columns without the prefix. */
#define ATTACK(id, group, program, traits, ends, shown, flags, eye, title)                         \
    {id, title, GROUP_##group, PROGRAM_##program, traits, ends, SHOWN_##shown, flags, EYE_##eye},
#define WORK(id, program, title)                                                                   \
    {id, title, GROUP_WORK, PROGRAM_##program, 0, 0, SHOWN_UNSHOWN, 0, EYE_RESULT},

enum {
    TIGHT = FLAG_TIGHT,
    SHORT = FLAG_SHORT,
    CPU = FLAG_CPU,
    QUIET = FLAG_QUIET,
    COLLECT = FLAG_COLLECT,
    AFTER = FLAG_AFTER,
    BESIDE = FLAG_BESIDE,
    LEAK = FLAG_LEAK,
};

const struct attack attacks[] = {
#include "selftest/attacks.def"
};
const size_t attacks_n = ARRAY_LEN(attacks);

const char *attack_group_name(enum attack_group g)
{
    static const char *const names[] = {
        "files",        "artifacts", "mounts",  "privileges", "namespaces", "processes",
        "system calls", "sockets",   "network", "limits",     "tenants",    "ordinary work",
    };

    _Static_assert(ARRAY_LEN(names) == GROUP_COUNT, "every group has a name");
    return names[g];
}

const char *attack_eye_name(enum attack_eye e, bool weak)
{
    static const char *const names[] = {"none", "canary",    "listener", "victim",
                                        "name", "processes", "result"};

    if (e < ARRAY_LEN(names))
        return names[e];
    if (e == EYE_CALL)
        return weak ? "filter" : "answer";
    return e < EYE_MEMORY ? "kernel" : "count";
}

bool attack_is_held(const struct attack *a)
{
    return a->eye > EYE_RESULT;
}

const char *attack_expected(const struct attack *a)
{
    if (a->group == GROUP_WORK)
        return "works";
    if (a->flags & FLAG_QUIET)
        return "cut off";
    if (a->flags & FLAG_SHORT)
        return "ended";
    return a->group == GROUP_LIMITS ? "stopped" : "refused";
}

/* A program that says nothing and was not ended by a wall has not attacked at all. */
static bool is_silent(const struct attack *a, const struct sight *s)
{
    if (a->flags & FLAG_QUIET)
        return s->reason != END_EXIT && !(a->ends & BIT(s->reason));
    return !s->held && !(a->ends & BIT(s->reason));
}

enum verdict_kind attack_verdict(const struct attack *a, unsigned traits, const struct sight *s)
{
    if (s->absent)
        return VERDICT_ABSENT;
    if (a->group == GROUP_WORK)
        return s->ok && !s->noticed ? VERDICT_WORKS : VERDICT_BROKEN;
    if (s->breach || s->noticed)
        return (traits & a->traits) == a->traits ? VERDICT_BREACHED : VERDICT_UNPROMISED;
    return s->failed || is_silent(a, s) ? VERDICT_BROKEN : VERDICT_HELD;
}

const char *verdict_kind_name(enum verdict_kind v)
{
    static const char *const names[] = {"held",  "BREACHED", "not promised",
                                        "works", "BROKEN",   "absent"};

    _Static_assert(ARRAY_LEN(names) == VERDICT_COUNT, "every verdict has a name");
    return names[v];
}
