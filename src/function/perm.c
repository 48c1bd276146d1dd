/* SPDX-License-Identifier: MIT */
#include "function/perm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "function/glob.h"

static const struct {
    const char *name;
    unsigned bit;
} operations[] = {
    {"read",   PERM_READ  },
    {"list",   PERM_LIST  },
    {"create", PERM_CREATE},
    {"modify", PERM_MODIFY},
    {"delete", PERM_DELETE},
};

static int wrong(struct err *e, const char *what)
{
    return err_set(e, ERR_CALLER, "permissions: %s", what);
}

/* ---- tables ---- */

struct rule_body {
    struct json_value pattern, allow, deny;
    double priority;
};

struct perms_body {
    bool usual[ARRAY_LEN(operations)];
    struct json_value rules, exclude;
};

/* clang-format off */
#define OPERATIONS \
    "{\"anyOf\":[{\"const\":\"*\"},{\"type\":\"array\",\"items\":{\"enum\":" \
    "[\"read\",\"list\",\"create\",\"modify\",\"delete\"]}}]}"
#define AT(member) offsetof(struct rule_body, member)
static const struct shape_field rule_fields[] = {
    {"pattern", SHAPE_RAW, SHAPE_REQUIRED, AT(pattern), .accepts = BIT(JSON_STRING),
     .schema = "{\"type\":\"string\"}", .help = "which files, as a glob"},
    {"allow", SHAPE_RAW, 0, AT(allow), .schema = OPERATIONS, .help = "operations, or *"},
    {"deny", SHAPE_RAW, 0, AT(deny), .schema = OPERATIONS, .help = "operations, or *"},
    {"priority", SHAPE_NUMBER, 0, AT(priority), .min = INT64_MIN, .help = "the highest is looked at first; 0"},
};
#undef AT
static const struct shape rule_shape = {rule_fields, ARRAY_LEN(rule_fields), SHAPE_NULLS, "PermissionRule"};

static const struct shape_field usual_fields[] = {
    {"read",   SHAPE_BOOL, 0, 0, .help = "true"},
    {"list",   SHAPE_BOOL, 0, 1 * sizeof(bool), .help = "true"},
    {"create", SHAPE_BOOL, 0, 2 * sizeof(bool), .help = "false"},
    {"modify", SHAPE_BOOL, 0, 3 * sizeof(bool), .help = "false"},
    {"delete", SHAPE_BOOL, 0, 4 * sizeof(bool), .help = "false"},
};
_Static_assert(ARRAY_LEN(usual_fields) == ARRAY_LEN(operations), "in the order of operations[]");
static const struct shape usual_shape = {usual_fields, ARRAY_LEN(usual_fields), SHAPE_NULLS, "PermissionDefaults"};

#define AT(member) offsetof(struct perms_body, member)
static const struct shape_field perms_fields[] = {
    {"default", SHAPE_NESTED, 0, AT(usual), .inner = &usual_shape, .help = "where no rule matches"},
    {"rules", SHAPE_RAW, 0, AT(rules), .accepts = BIT(JSON_ARRAY), .inner = &rule_shape, .help = "the first that matches"},
    {"exclude", SHAPE_RAW, 0, AT(exclude), .accepts = BIT(JSON_ARRAY),
     .schema = "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}", .help = "globs of what is not there at all"},
};
#undef AT
/* clang-format on */
const struct shape perms_shape = {perms_fields, ARRAY_LEN(perms_fields), SHAPE_NULLS,
                                  "Permissions"};

/* ---- reading ---- */

/* A list of operations, or "*". */
static int read_operations(struct json_value v, unsigned *ret, struct err *e)
{
    struct json_value one;
    size_t at = 0;

    *ret = 0;
    if (!v.p)
        return 0;
    if (v.type == JSON_STRING && json_key_is(v, "*")) {
        *ret = PERM_ALL;
        return 0;
    }
    if (v.type != JSON_ARRAY)
        return wrong(e, "allow and deny should be lists of operations, or \"*\"");
    while (json_array_next(v, &at, &one)) {
        size_t i = 0;

        while (i < ARRAY_LEN(operations) &&
               !(one.type == JSON_STRING && json_key_is(one, operations[i].name)))
            i++;
        if (i == ARRAY_LEN(operations))
            return wrong(e, "an operation is read, list, create, modify or delete");
        *ret |= operations[i].bit;
    }
    return 0;
}

static int add(struct perms *p, const struct perm_rule *r, struct err *e)
{
    struct perm_rule *rule;

    if (p->n == PERM_RULES_MAX)
        return wrong(e, "too many rules");
    rule = reallocarray(p->rule, p->n + 1, sizeof *rule);
    if (!rule || !r->pattern)
        return err_set(e, ERR_HOST, "out of memory");
    p->rule = rule;
    p->rule[p->n++] = *r;
    return 0;
}

/* A leading "!" or "#" means something; leading slashes do not. */
static char *pattern_of(const char *format, struct json_value v)
{
    struct buf text = BUF_INIT(v.n + 1), out = BUF_INIT(v.n + 16);
    const char *p;

    if (json_decode_string(v, 0, &text) < 0 || (text.n > 0 && strlen(text.p) != text.n)) {
        buf_done(&text);
        return NULL;
    }
    p = text.p ? text.p : "";
    p += strspn(p, "/");
    for (; *format; format++) {
        if (*format == '=')
            (void)buf_puts(&out, p);
        else
            (void)buf_putc(&out, *format);
    }
    buf_done(&text);
    return out.p ? buf_take(&out, NULL) : calloc(1, 1);
}

/* `format` with the text in the place of "=" becomes the pattern of the rule. */
static int add_pattern(struct perms *p, struct perm_rule *r, const char *format,
                       struct json_value text, struct err *e)
{
    r->pattern = pattern_of(format, text);
    if (!r->pattern)
        return wrong(e, "a pattern should be text");
    if (glob_compile(r->pattern, &p->room, &r->glob, e) < 0) {
        free(r->pattern);
        return err_wrap(e, "permissions");
    }
    if (add(p, r, e) < 0) {
        glob_free(r->glob);
        free(r->pattern);
        return -1;
    }
    return 0;
}

static int read_rule(struct perms *p, struct json_value v, struct shaping *s, struct err *e)
{
    struct rule_body b = {0};
    struct perm_rule r = {0};

    if (shape_value(&rule_shape, v, "rules", &b, s) < 0)
        return shape_err(s, e);
    if (read_operations(b.allow, &r.allow, e) < 0 || read_operations(b.deny, &r.deny, e) < 0)
        return -1;
    r.priority = b.priority;
    return add_pattern(p, &r, "=", b.pattern, e);
}

/* A bare name means the directory's contents, and a file of that name in any directory. */
static int read_exclude(struct perms *p, struct json_value v, struct err *e)
{
    static const char *const bare[] = {"**/=/**", "*/**/=", NULL};
    static const char *const path[] = {"=", NULL};
    const char *const *forms;

    if (v.type != JSON_STRING)
        return wrong(e, "exclude should be a list of patterns");
    forms = memchr(v.p, '/', v.n) ? path : bare;
    for (; *forms; forms++) {
        struct perm_rule r = {.deny = PERM_ALL, .priority = PERM_EXCLUDE_PRIORITY};

        if (add_pattern(p, &r, *forms, v, e) < 0)
            return -1;
    }
    return 0;
}

/* Stable: rules of equal priority keep their order. */
static void sort(struct perms *p)
{
    for (size_t i = 1; i < p->n; i++) {
        struct perm_rule r = p->rule[i];
        size_t k = i;

        for (; k > 0 && p->rule[k - 1].priority < r.priority; k--)
            p->rule[k] = p->rule[k - 1];
        p->rule[k] = r;
    }
}

int perms_parse(struct perms *p, struct json_value config, struct err *e)
{
    cleanup_with(shaping_done) struct shaping s;
    struct perms_body b = {
        .usual = {true, true}
    };
    struct json_value v;

    shaping_init(&s, NULL);
    *p = (struct perms){.usual = PERM_READ | PERM_LIST, .room = GLOB_COMPILE_MAX};
    if (!config.p)
        return 0;
    s.in[s.depth++] = "permissions";
    if (shape_value(&perms_shape, config, NULL, &b, &s) < 0)
        return shape_err(&s, e);
    p->usual = 0;
    for (size_t i = 0; i < ARRAY_LEN(operations); i++)
        p->usual |= b.usual[i] ? operations[i].bit : 0;
    for (size_t at = 0; b.rules.p && json_array_next(b.rules, &at, &v);)
        if (read_rule(p, v, &s, e) < 0)
            return -1;
    for (size_t at = 0; b.exclude.p && json_array_next(b.exclude, &at, &v);)
        if (read_exclude(p, v, e) < 0)
            return -1;
    sort(p);
    return 0;
}

void perms_done(struct perms *p)
{
    for (size_t i = 0; i < p->n; i++) {
        free(p->rule[i].pattern);
        glob_free(p->rule[i].glob);
    }
    free(p->rule);
    *p = (struct perms){0};
}

int perms_too_slow(struct err *e)
{
    return err_set(e, ERR_CALLER,
                   "permissions: the rules and patterns take too many steps for these files");
}

/* Segments of the path that the mount has; 0: the path is not below it. */
static size_t segments_of(const char *base, const char *path)
{
    size_t n, segments = 1;

    base += strspn(base, "/");
    n = strlen(base);
    if (n == 0 || strncmp(path, base, n) != 0 || path[n] != '/')
        return 0;
    for (const char *p = strchr(base, '/'); p; p = strchr(p + 1, '/'))
        segments++;
    return segments;
}

static enum glob_answer matches(const struct perm_rule *r, const struct glob_path *path,
                                size_t below, uint64_t *steps)
{
    enum glob_answer whole = glob_match(r->glob, path, 0, steps);

    if (whole == GLOB_YES || below == 0)
        return whole;
    return whole == GLOB_UNKNOWN ? whole : glob_match(r->glob, path, below, steps);
}

static unsigned with_rule(const struct perms *p, const struct perm_rule *r)
{
    return (p->usual & ~r->deny) | r->allow;
}

unsigned perms_ask(const struct perms *p, const char *path, const char *base, uint64_t *steps,
                   bool *ret_granted)
{
    unsigned allowed = PERM_ALL, unknown = 0;
    struct glob_path cut;
    size_t below;

    *ret_granted = false;
    if (p->n == 0)
        return p->usual;
    path += strspn(path, "/");
    glob_path_set(&cut, path);
    below = segments_of(base, path);
    for (size_t i = 0; i < p->n; i++) {
        unsigned then = with_rule(p, &p->rule[i]);
        enum glob_answer answer = matches(&p->rule[i], &cut, below, steps);

        if (answer == GLOB_YES) {
            *ret_granted = p->rule[i].allow & (PERM_READ | PERM_LIST);
            return (allowed & then) | unknown;
        }
        if (answer == GLOB_UNKNOWN) {
            allowed &= then;
            unknown = PERM_UNKNOWN;
        }
    }
    return (allowed & p->usual) | unknown;
}

unsigned perms_of(const struct perms *p, const char *path, const char *base, uint64_t *steps)
{
    bool ignored;

    return perms_ask(p, path, base, steps, &ignored);
}

/* ---- directories on the way ---- */

size_t perm_literal_dirs(const char *pattern)
{
    size_t special = strcspn(pattern, "*?[{(!\\"), n = 0;

    for (size_t i = 0; i < special; i++)
        if (pattern[i] == '/')
            n = i + 1;
    return n;
}

/* One leads to the other: the directory to the pattern's names, or these to the directory. */
static bool may_match_below(const char *pattern, const char *dir)
{
    size_t n = perm_literal_dirs(pattern), d = strlen(dir);

    return strncmp(pattern, dir, n < d ? n : d) == 0;
}

bool perms_open(const struct perms *p, const char *dir, const char *base)
{
    const unsigned seen = PERM_READ | PERM_LIST;
    size_t n;

    dir += strspn(dir, "/");
    base += strspn(base, "/");
    n = strlen(base);
    if (strncmp(dir, base, n) != 0 || dir[n] != '/')
        n = 0;
    for (size_t i = 0; i < p->n; i++) {
        const struct perm_rule *r = &p->rule[i];

        if (r->allow & seen && (with_rule(p, r) & seen) == seen &&
            (may_match_below(r->pattern, dir) ||
             (n > 0 && may_match_below(r->pattern, dir + n + 1))))
            return true;
    }
    return false;
}
