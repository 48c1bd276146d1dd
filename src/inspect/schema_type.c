/* SPDX-License-Identifier: MIT */
/*
 * A type expression is a union of terms; a term is a name with arguments in [] or <>, a literal, or
 * a group. That is enough for Python annotations, PHP types and the types in JSDoc, phpDoc and
 * YARD.
 *
 *   int | None   Optional[list[str]]   Literal["a", "b"]   ?string   Array<number>   string[]
 *
 * Whatever cannot be read means "any value": the empty schema never refuses a good call.
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/jw.h"
#include "inspect/schema.h"

enum shape {
    SHAPE_ANY,
    SHAPE_NULL,
    SHAPE_BOOLEAN,
    SHAPE_INTEGER,
    SHAPE_NUMBER,
    SHAPE_STRING,
    SHAPE_OBJECT,
    SHAPE_ARRAY,    /* first argument: items */
    SHAPE_TUPLE,    /* arguments: each item; "..." repeats */
    SHAPE_SET,      /* an array without repetitions */
    SHAPE_MAP,      /* second argument: values */
    SHAPE_UNION,    /* arguments: alternatives */
    SHAPE_OPTIONAL, /* argument or null */
    SHAPE_LITERAL,  /* arguments are values */
    SHAPE_WRAPPER,  /* means its first argument */
    SHAPE_DATE_TIME,
    SHAPE_DATE,
};

#define PY  BIT(DIALECT_PYTHON)
#define JS  BIT(DIALECT_JAVASCRIPT)
#define RB  BIT(DIALECT_RUBY)
#define PHP BIT(DIALECT_PHP)
#define ALL (PY | JS | RB | PHP)

/* Names are compared without case and without what stands before a dot, backslash or "::". */
/* clang-format off */
static const struct {
    const char *name;
    unsigned dialects;
    enum shape shape;
} names[] = {
    {"int", ALL, SHAPE_INTEGER}, {"integer", ALL, SHAPE_INTEGER}, {"bigint", JS, SHAPE_INTEGER},
    {"fixnum", RB, SHAPE_INTEGER}, {"long", ALL, SHAPE_INTEGER},
    {"float", ALL, SHAPE_NUMBER}, {"double", ALL, SHAPE_NUMBER}, {"number", ALL, SHAPE_NUMBER},
    {"numeric", ALL, SHAPE_NUMBER}, {"real", ALL, SHAPE_NUMBER}, {"decimal", PY, SHAPE_NUMBER},
    {"str", PY, SHAPE_STRING}, {"string", ALL, SHAPE_STRING}, {"text", ALL, SHAPE_STRING},
    {"symbol", RB, SHAPE_STRING}, {"bytes", PY, SHAPE_STRING}, {"path", PY, SHAPE_STRING},
    {"uuid", PY, SHAPE_STRING}, {"char", ALL, SHAPE_STRING},
    {"datetime", ALL, SHAPE_DATE_TIME}, {"date", PY | RB, SHAPE_DATE}, {"date", JS, SHAPE_DATE_TIME},
    {"bool", ALL, SHAPE_BOOLEAN}, {"boolean", ALL, SHAPE_BOOLEAN}, {"true", ALL, SHAPE_BOOLEAN},
    {"false", ALL, SHAPE_BOOLEAN}, {"trueclass", RB, SHAPE_BOOLEAN}, {"falseclass", RB, SHAPE_BOOLEAN},
    {"none", PY, SHAPE_NULL}, {"nonetype", PY, SHAPE_NULL}, {"null", JS | PHP, SHAPE_NULL},
    {"undefined", JS, SHAPE_NULL}, {"void", ALL, SHAPE_NULL}, {"nil", RB, SHAPE_NULL},
    {"nilclass", RB, SHAPE_NULL},
    {"list", ALL, SHAPE_ARRAY}, {"sequence", PY, SHAPE_ARRAY}, {"iterable", ALL, SHAPE_ARRAY},
    {"mutablesequence", PY, SHAPE_ARRAY}, {"collection", PY, SHAPE_ARRAY}, {"deque", PY, SHAPE_ARRAY},
    {"array", JS | RB, SHAPE_ARRAY}, {"tuple", PY, SHAPE_TUPLE}, {"enumerable", RB, SHAPE_ARRAY},
    {"iterator", PY, SHAPE_ARRAY}, {"generator", PY, SHAPE_ARRAY}, {"asynciterator", PY, SHAPE_ARRAY},
    {"asyncgenerator", PY, SHAPE_ARRAY}, {"asynciterable", PY, SHAPE_ARRAY},
    {"set", ALL, SHAPE_SET}, {"frozenset", PY, SHAPE_SET}, {"abstractset", PY, SHAPE_SET},
    {"dict", PY, SHAPE_MAP}, {"mapping", PY, SHAPE_MAP}, {"mutablemapping", PY, SHAPE_MAP},
    {"defaultdict", PY, SHAPE_MAP}, {"ordereddict", PY, SHAPE_MAP}, {"record", JS, SHAPE_MAP},
    {"map", JS, SHAPE_MAP}, {"hash", RB, SHAPE_MAP}, {"object", JS | PHP, SHAPE_OBJECT},
    {"stdclass", PHP, SHAPE_OBJECT}, {"array", PHP, SHAPE_MAP},
    {"optional", PY, SHAPE_OPTIONAL}, {"union", PY, SHAPE_UNION}, {"literal", PY, SHAPE_LITERAL},
    {"annotated", PY, SHAPE_WRAPPER}, {"final", PY, SHAPE_WRAPPER}, {"required", PY, SHAPE_WRAPPER},
    {"notrequired", PY, SHAPE_WRAPPER}, {"awaitable", PY, SHAPE_WRAPPER}, {"promise", JS, SHAPE_WRAPPER},
    {"partial", JS, SHAPE_WRAPPER}, {"readonly", JS, SHAPE_WRAPPER},
};
/* clang-format on */

struct typing {
    enum dialect dialect;
    struct slice s; /* what is left */
    unsigned depth;
};

static void type_union(struct typing *t, struct buf *out);

static void skip_blanks(struct typing *t)
{
    while (t->s.n > 0 && isspace((unsigned char)t->s.p[0]))
        t->s.p++, t->s.n--;
}

static bool take_mark(struct typing *t, const char *text)
{
    size_t n = strlen(text);

    skip_blanks(t);
    if (t->s.n < n || memcmp(t->s.p, text, n) != 0)
        return false;
    t->s.p += n, t->s.n -= n;
    return true;
}

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || strchr("_.\\:$", c) || (unsigned char)c >= 0x80;
}

static struct slice name_take(struct typing *t)
{
    struct slice name;

    skip_blanks(t);
    name = (struct slice){t->s.p, 0};
    while (t->s.n > 0 && t->s.p[0] && is_name_char(t->s.p[0]))
        t->s.p++, t->s.n--, name.n++;
    return name;
}

static enum shape shape_of(enum dialect d, struct slice name)
{
    for (size_t i = name.n; i-- > 0;)
        if (strchr(".\\:", name.p[i])) {
            name = (struct slice){name.p + i + 1, name.n - i - 1};
            break;
        }
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if ((names[i].dialects & BIT(d)) && strlen(names[i].name) == name.n &&
            strncasecmp(names[i].name, name.p, name.n) == 0)
            return names[i].shape;
    return SHAPE_ANY;
}

/* A literal up to where a type would end. */
static struct slice literal_take(struct typing *t)
{
    struct slice l;
    char quote = 0;

    skip_blanks(t);
    l = (struct slice){t->s.p, 0};
    while (t->s.n > 0 && (quote || !strchr(",]>|)}", t->s.p[0]))) {
        if (quote && t->s.p[0] == '\\' && t->s.n > 1)
            t->s.p++, t->s.n--, l.n++;
        else if (quote && t->s.p[0] == quote)
            quote = 0;
        else if (!quote && (t->s.p[0] == '"' || t->s.p[0] == '\''))
            quote = t->s.p[0];
        t->s.p++, t->s.n--, l.n++;
    }
    return slice_trim(l);
}

static const char *closer(struct typing *t)
{
    if (take_mark(t, "["))
        return "]";
    if (take_mark(t, "<"))
        return ">";
    return NULL;
}

/* To behind the closing bracket, over anything. */
static void skip_to(struct typing *t, const char *close)
{
    size_t depth = 0;

    for (; t->s.n > 0; t->s.p++, t->s.n--) {
        if (depth == 0 && t->s.p[0] == close[0])
            break;
        if (strchr("[<({", t->s.p[0]))
            depth++;
        else if (strchr("]>)}", t->s.p[0]) && depth > 0)
            depth--;
    }
    (void)take_mark(t, close);
}

static void args_literal(struct typing *t, const char *close, struct buf *out)
{
    size_t begin = out->n;
    bool any = false;

    (void)buf_puts(out, "{\"enum\":[");
    do {
        struct slice l = literal_take(t);

        if (any)
            (void)buf_putc(out, ',');
        if (!literal_to_json(t->dialect, l, out)) {
            out->n = begin;
            (void)buf_puts(out, "{}");
            skip_to(t, close);
            return;
        }
        any = true;
    } while (take_mark(t, ","));
    (void)buf_puts(out, "]}");
    skip_to(t, close);
}

/* Alternatives separated by commas or bars up to the closing bracket. */
static void args_union(struct typing *t, const char *close, bool or_null, struct buf *out)
{
    (void)buf_puts(out, "{\"anyOf\":[");
    type_union(t, out);
    while (take_mark(t, ",")) {
        (void)buf_putc(out, ',');
        type_union(t, out);
    }
    (void)buf_puts(out, or_null ? ",{\"type\":\"null\"}]}" : "]}");
    skip_to(t, close);
}

static void args_tuple(struct typing *t, const char *close, struct buf *out)
{
    size_t n = 0, begin = out->n, items;
    bool repeated = false;

    (void)buf_puts(out, "{\"type\":\"array\",\"prefixItems\":[");
    items = out->n;
    do {
        if (take_mark(t, "...")) {
            repeated = true;
            break;
        }
        if (n++)
            (void)buf_putc(out, ',');
        type_union(t, out);
    } while (take_mark(t, ","));
    skip_to(t, close);
    if (repeated && n == 1 && !out->failed) { /* tuple[int, ...] */
        struct buf one = BUF_INIT(INSPECT_TEXT_MAX * 8);

        (void)buf_put(&one, out->p + items, out->n - items);
        out->n = begin;
        (void)buf_printf(out, "{\"type\":\"array\",\"items\":%s}", one.failed ? "{}" : one.p);
        buf_done(&one);
        return;
    }
    (void)buf_printf(out, "],\"minItems\":%zu,\"maxItems\":%zu}", n, n);
}

static void args_array(struct typing *t, const char *close, bool unique, struct buf *out)
{
    (void)buf_puts(out, "{\"type\":\"array\",\"items\":");
    type_union(t, out);
    (void)buf_puts(out, unique ? ",\"uniqueItems\":true}" : "}");
    skip_to(t, close);
}

/* array<string> of phpDoc has one argument, array<string, int> two. */
static void args_map(struct typing *t, const char *close, struct buf *out)
{
    size_t begin = out->n;
    struct buf first = BUF_INIT(INSPECT_TEXT_MAX * 8);

    type_union(t, &first);
    if (take_mark(t, ",") || take_mark(t, "=>")) {
        (void)buf_puts(out, "{\"type\":\"object\",\"additionalProperties\":");
        type_union(t, out);
        (void)buf_puts(out, "}");
    } else if (first.n > 0 && !first.failed) {
        out->n = begin;
        (void)buf_printf(out, "{\"type\":\"array\",\"items\":%s}", first.p);
    } else {
        (void)buf_puts(out, "{}");
    }
    buf_done(&first);
    skip_to(t, close);
}

static void shape_plain(enum dialect d, enum shape s, struct buf *out)
{
    static const char *const plain[] = {
        [SHAPE_NULL] = "{\"type\":\"null\"}",
        [SHAPE_BOOLEAN] = "{\"type\":\"boolean\"}",
        [SHAPE_INTEGER] = "{\"type\":\"integer\"}",
        [SHAPE_NUMBER] = "{\"type\":\"number\"}",
        [SHAPE_STRING] = "{\"type\":\"string\"}",
        [SHAPE_OBJECT] = "{\"type\":\"object\"}",
        [SHAPE_ARRAY] = "{\"type\":\"array\"}",
        [SHAPE_TUPLE] = "{\"type\":\"array\"}",
        [SHAPE_SET] = "{\"type\":\"array\",\"uniqueItems\":true}",
        [SHAPE_MAP] = "{\"type\":\"object\"}",
        [SHAPE_DATE_TIME] = "{\"type\":\"string\",\"format\":\"date-time\"}",
        [SHAPE_DATE] = "{\"type\":\"string\",\"format\":\"date\"}",
    };

    if (d == DIALECT_PHP && s == SHAPE_MAP) /* lists and maps are both arrays there */
        (void)buf_puts(out, "{\"type\":[\"array\",\"object\"]}");
    else
        (void)buf_puts(out, s < ARRAY_LEN(plain) && plain[s] ? plain[s] : "{}");
}

static void shape_with_args(struct typing *t, enum shape s, const char *close, struct buf *out)
{
    switch (s) {
    case SHAPE_LITERAL:
        args_literal(t, close, out);
        return;
    case SHAPE_UNION:
    case SHAPE_OPTIONAL:
        args_union(t, close, s == SHAPE_OPTIONAL, out);
        return;
    case SHAPE_TUPLE:
        args_tuple(t, close, out);
        return;
    case SHAPE_ARRAY:
    case SHAPE_SET:
        args_array(t, close, s == SHAPE_SET, out);
        return;
    case SHAPE_MAP:
        args_map(t, close, out);
        return;
    case SHAPE_WRAPPER:
        type_union(t, out);
        skip_to(t, close);
        return;
    case SHAPE_ANY:
    case SHAPE_NULL:
    case SHAPE_BOOLEAN:
    case SHAPE_INTEGER:
    case SHAPE_NUMBER:
    case SHAPE_STRING:
    case SHAPE_OBJECT:
    case SHAPE_DATE_TIME:
    case SHAPE_DATE:
        break;
    }
    skip_to(t, close);
    shape_plain(t->dialect, s, out);
}

static void type_name(struct typing *t, struct buf *out)
{
    enum shape s = shape_of(t->dialect, name_take(t));
    const char *close;

    if (t->s.n >= 2 && t->s.p[0] == '[' && t->s.p[1] == ']') { /* string[] */
        shape_plain(t->dialect, s, out);
        return;
    }
    close = closer(t);
    if (close)
        shape_with_args(t, s, close, out);
    else
        shape_plain(t->dialect, s, out);
}

static void type_quoted(struct typing *t, struct buf *out)
{
    struct slice l = literal_take(t), whole = t->s;

    if (t->dialect == DIALECT_PYTHON && l.n >= 2) { /* a type that is written before it exists */
        t->s = (struct slice){l.p + 1, l.n - 2};
        type_union(t, out);
        t->s = whole;
        return;
    }
    (void)buf_puts(out, "{\"enum\":[");
    if (!literal_to_json(t->dialect, l, out))
        (void)buf_puts(out, "null");
    (void)buf_puts(out, "]}");
}

static void type_term(struct typing *t, struct buf *out)
{
    size_t begin = out->n;

    skip_blanks(t);
    if (t->s.n == 0) {
        (void)buf_puts(out, "{}");
    } else if (take_mark(t, "(")) {
        type_union(t, out);
        skip_to(t, ")");
    } else if (take_mark(t, "{")) {
        (void)buf_puts(out, "{\"type\":\"object\"}");
        skip_to(t, "}");
    } else if (t->s.p[0] == '"' || t->s.p[0] == '\'') {
        type_quoted(t, out);
    } else if (is_name_char(t->s.p[0]) && !isdigit((unsigned char)t->s.p[0]) && t->s.p[0]) {
        type_name(t, out);
    } else {
        (void)literal_take(t);
        (void)buf_puts(out, "{}");
    }
    while (t->s.n >= 2 && t->s.p[0] == '[' && t->s.p[1] == ']' && !out->failed) {
        struct buf item = BUF_INIT(INSPECT_TEXT_MAX * 8);

        (void)take_mark(t, "[]");
        (void)buf_put(&item, out->p + begin, out->n - begin);
        out->n = begin;
        (void)buf_printf(out, "{\"type\":\"array\",\"items\":%s}",
                         item.failed || !item.p ? "{}" : item.p);
        buf_done(&item);
    }
}

/* Marks of JSDoc and PHP around a term. */
static bool type_marked(struct typing *t, struct buf *out)
{
    bool nullable = take_mark(t, "?");

    while (take_mark(t, "!") || take_mark(t, "..."))
        ;
    if (nullable)
        (void)buf_puts(out, "{\"anyOf\":[");
    type_term(t, out);
    if (nullable)
        (void)buf_puts(out, ",{\"type\":\"null\"}]}");
    (void)take_mark(t, "=");
    return nullable;
}

static void type_union(struct typing *t, struct buf *out)
{
    size_t begin = out->n, n = 1;
    struct buf first = BUF_INIT(INSPECT_TEXT_MAX * 8);
    bool commas = t->dialect == DIALECT_RUBY && t->depth == 0; /* [String, nil] of YARD */

    if (++t->depth > INSPECT_DEPTH_MAX) {
        (void)buf_puts(out, "{}");
        t->s.n = 0;
        return;
    }
    (void)type_marked(t, &first);
    if (first.failed || !first.p) {
        (void)buf_puts(out, "{}");
        buf_done(&first);
        t->depth--;
        return;
    }
    (void)buf_puts(out, "{\"anyOf\":[");
    (void)buf_put(out, first.p, first.n);
    while (take_mark(t, "|") || take_mark(t, "&") || (commas && take_mark(t, ","))) {
        (void)buf_putc(out, ',');
        (void)type_marked(t, out);
        n++;
    }
    (void)buf_puts(out, "]}");
    if (n == 1 && !out->failed) {
        out->n = begin;
        (void)buf_puts(out, first.p);
    }
    buf_done(&first);
    t->depth--;
}

/* {"anyOf":[{"type":"x"},{"type":"null"}]} reads better as {"type":["x","null"]}. */
static void simplify(struct buf *out, size_t begin)
{
    static const char head[] = "{\"anyOf\":[{\"type\":\"", tail[] = "\"},{\"type\":\"null\"}]}";
    size_t n = out->n - begin, type_n;
    char type[32];

    if (out->failed || n <= sizeof head + sizeof tail - 2 ||
        memcmp(out->p + begin, head, sizeof head - 1) != 0 ||
        memcmp(out->p + out->n - (sizeof tail - 1), tail, sizeof tail - 1) != 0)
        return;
    type_n = n - (sizeof head - 1) - (sizeof tail - 1);
    if (type_n >= sizeof type)
        return;
    memcpy(type, out->p + begin + sizeof head - 1, type_n);
    type[type_n] = '\0';
    if (strspn(type, "abcdefghijklmnopqrstuvwxyz") != type_n)
        return;
    out->n = begin;
    (void)buf_printf(out, "{\"type\":[\"%s\",\"null\"]}", type);
}

void schema_of_type(enum dialect d, struct slice type, struct buf *out)
{
    struct typing t = {.dialect = d, .s = slice_trim(type)};
    size_t begin = out->n;

    if (!type.p || t.s.n == 0 || t.s.n >= INSPECT_TEXT_MAX) {
        (void)buf_puts(out, "{}");
        return;
    }
    type_union(&t, out);
    simplify(out, begin);
}
