/* SPDX-License-Identifier: MIT */
#include <cmocka.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/json.h"
#include "base/jw.h"
#include "unit/with_python.h"

struct text {
    const char *p;
    size_t n;
};
#define T(literal)                                                                                 \
    {                                                                                              \
        literal, sizeof(literal) - 1                                                               \
    }

/* clang-format off */
static const struct text good[] = {
    T("null"), T("true"), T("false"), T("0"), T("-0"), T("-0.0"), T("1"), T("-1"), T("10"),
    T("0.1"), T("1.0"), T("1e1"), T("1E+1"), T("1e-1"), T("0e0"), T("0E+00"), T("1.5e300"),
    T("123456789012345678901234567890"), T("9223372036854775807"), T("-9223372036854775808"),
    T("9223372036854775808"), T("-9223372036854775809"), T("1e18"), T("1e19"), T("2.0"), T("2e3"),
    T("2.50e1"), T("100e-2"), T("1e-400"), T("1e400"), T("-1e400"), T("0.0000001e7"), T("1.00000"),
    T("0e99999999999999999999"), T("1e-99999999999999999999"), T("9007199254740993"), T("4e-324"),
    T("\"\""), T("\"a\""), T("\" \""), T("\"\\\"\""), T("\"\\\\\""), T("\"\\/\""),
    T("\"\\b\\f\\n\\r\\t\""), T("\"\\u0000\""), T("\"\\u001f\""), T("\"\\u00e9\""),
    T("\"\\u6F22\\u5b57\""), T("\"\\ud83d\\ude00\""), T("\"\\uD83D\\uDE00\""),
    T("\"\\ud83d\""), T("\"\\ude00\""), T("\"\\ud83dx\""), T("\"\\ud83d\\n\""),
    T("\"\\ud83d\\ud83d\\ude00\""), T("\"\\ude00\\ud83d\""), T("\"\\ud83d\\u0041\""),
    T("\"\\ud83d\\ue000\""), T("\"\\ud83d\\udbff\""), T("\"\\udbff\\udfff\""),
    T("\"\\uffff\""), T("\"\\\\u0041\""), T("\"\x7f\""), T("\"\xc3\xa9\""),
    T("\"\xe6\xbc\xa2\xe5\xad\x97\""), T("\"\xf0\x9f\x98\x80\""), T("\"\xe2\x80\xa8\xe2\x80\xa9\""),
    T("\"/* no comment */\""), T("\"[{}]\""), T("\"a,b:c\""), T("\"12345678\\\\\""),
    T("\"1234567\\\"8\""), T("[]"), T("[ ]"), T("{}"), T("{ }"), T("[1]"), T("[1,2]"),
    T("[ 1 , 2 ]"), T("[[]]"), T("[[],[]]"), T("[{}]"), T("{\"a\":1}"), T("{ \"a\" : 1 }"),
    T("{\"a\":1,\"b\":2}"), T("{\"\":0}"), T("{\"a\":{\"a\":{}}}"), T("{\"a\":[]}"),
    T("{\"\\u0061\":1}"), T("{\"a b\":null}"), T("{\"a\":\"}\"}"), T("[\"]\"]"), T("[\"\\\"]\"]"),
    T(" 1"), T("1 "), T("\n\t\r 1 \n\t\r"), T("[\n1\n,\n2\n]"), T("{\"a\":{\"b\":1,\"b\":2}}"),
    T("[{\"b\":1,\"b\":2}]"), T("{\"a\":1,\"A\":2}"), T("[null,true,false,0,\"\",[],{}]"),
};

static const struct text bad[] = {
    T(""), T(" "), T("\0"), T("nul"), T("nulll"), T("Null"), T("NaN"), T("Infinity"),
    T("-Infinity"), T("undefined"), T("True"), T("'a'"), T("a"), T("-"), T("+1"), T("01"), T("-01"),
    T("00"), T("1."), T(".5"), T("1.e1"), T("1e"), T("1e+"), T("1E-"), T("1.0e"), T("0x10"),
    T("1_000"), T("1 2"), T("--1"), T("1a"), T("1e1.5"), T("\""), T("\"a"), T("\"\\\""), T("\"\\"),
    T("\"\\a\""), T("\"\\x41\""), T("\"\\'\""), T("\"\\0\""), T("\"\\u\""), T("\"\\u1\""),
    T("\"\\u123\""), T("\"\\u123g\""), T("\"\\u+123\""), T("\"\\u 123\""), T("\"\\u"), T("\"\\u0"),
    T("\"\\U0041\""), T("\"\n\""), T("\"\t\""), T("\"\x1f\""), T("\"\0\""), T("\"\x80\""),
    T("\"\xc3\""), T("\"\xc0\xaf\""), T("\"\xed\xa0\x80\""), T("\"\xf4\x90\x80\x80\""),
    T("\"\xff\""), T("\"\xe2\x82\""), T("\"12345678\xff\""), T("["), T("]"), T("[1"), T("[1,"),
    T("[1,]"), T("[,]"), T("[,1]"), T("[1,,2]"), T("[1 2]"), T("[1}"), T("[}"), T("[1:2]"),
    T("[]]"), T("[[]"), T("{"), T("}"), T("{]"), T("{\"a\"}"), T("{\"a\":}"), T("{\"a\":1"),
    T("{\"a\":1,"), T("{\"a\":1,}"), T("{,}"), T("{a:1}"), T("{'a':1}"), T("{1:1}"), T("{\"a\" 1}"),
    T("{\"a\"::1}"), T("{\"a\":1]"), T("{\"a\":1 \"b\":2}"), T("{\"a\",1}"), T("{null:1}"),
    T("{\"a\":1}}"), T("[1]x"), T("[]/**/"), T("//\n1"), T("/**/1"), T("#\n1"),
    T("\xef\xbb\xbf" "1"), T("\xef\xbb\xbf"), T("\xa0" "1"), T("\x0b" "1"), T("\x0c" "1"),
    T("\xe2\x80\x83" "1"), T("1\0"), T("[1,\0]"), T("\xff"), T("[\"a\nb\"]"),
};
/* clang-format on */

/* On a heap block of exactly its size, so that a sanitizer sees every read beyond the end. */
static bool accepts(struct text t, unsigned flags)
{
    cleanup_free char *copy = malloc(t.n ? t.n : 1);
    struct json_value v;
    struct err e;

    assert_non_null(copy);
    memcpy(copy, t.p, t.n);
    return json_parse(copy, t.n, flags, &v, &e) == 0;
}

static void accepts_what_is_json(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        if (!accepts(good[i], 0))
            fail_msg("refused: %s", good[i].p);
}

static void refuses_what_is_not(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (accepts(bad[i], 0))
            fail_msg("accepted: %s", bad[i].p);
}

/* ---- Python's opinion ---- */

static const char script[] =
    "import sys, json\n"
    "sys.set_int_max_str_digits(0)\n"
    "def bad(x): raise ValueError\n"
    "def verdict(b):\n"
    "    try:\n"
    "        v = json.loads(b.decode('utf-8'), parse_constant=bad)\n"
    "    except ValueError:\n"
    "        return '-'\n"
    "    if v is None: return 'n'\n"
    "    if v is True: return 't'\n"
    "    if v is False: return 'f'\n"
    "    if isinstance(v, str): return 's' + v.encode('utf-8', 'surrogatepass').hex()\n"
    "    if isinstance(v, int): return 'i%d' % v\n"
    "    if isinstance(v, float): return 'd' + v.hex()\n"
    "    return ('l' if isinstance(v, list) else 'o') + str(len(v))\n"
    "for line in sys.stdin:\n"
    "    print(verdict(bytes.fromhex(line)))\n";

static size_t count_items(struct json_value v)
{
    struct json_value item;
    size_t n = 0;

    for (size_t at = 0; json_array_next(v, &at, &item); n++)
        assert_true(item.n > 0);
    return n;
}

/* Python keeps the last of equal keys; so does json_get(). */
static size_t count_keys(struct json_value v)
{
    struct json_value key, value, last;
    size_t n = 0;

    for (size_t at = 0; json_object_next(v, &at, &key, &value);) {
        cleanup_with(buf_done) struct buf name = BUF_INIT(1 << 16);

        assert_int_equal(json_decode_string(key, JSON_LENIENT_UTF8, &name), 0);
        if (memchr(name.p, '\0', name.n) || strstr(key.p, "\\ud") || strstr(key.p, "\\uD"))
            return SIZE_MAX; /* not a plain name; the count says nothing */
        assert_true(json_get(v, name.p, &last));
        n += last.p == value.p;
    }
    return n;
}

static void compare_string(struct json_value v, char *hex)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(1 << 16);
    ssize_t n = python_get_hex(hex);
    bool lone = false;

    assert_true(n >= 0);
    for (ssize_t i = 0; i + 1 < n; i++) /* the UTF-8 of a surrogate */
        lone |= (unsigned char)hex[i] == 0xed && (unsigned char)hex[i + 1] >= 0xa0;
    if (lone) {
        assert_int_equal(json_decode_string(v, 0, &out), -1);
        assert_false(out.failed);
        assert_int_equal(out.n, 0);
        assert_int_equal(json_decode_string(v, JSON_LENIENT_UTF8, &out), 0);
        return;
    }
    assert_int_equal(json_decode_string(v, 0, &out), 0);
    assert_int_equal(out.n, n);
    assert_memory_equal(out.p, hex, out.n);
}

static void compare_number(struct json_value v, const char *said)
{
    double d = 0, want = strtod(said + 1, NULL);
    int64_t i = 0;
    char text[32];

    assert_int_equal(json_to_double(v, &d), want - want == 0); /* not infinite */
    if (want - want == 0)
        assert_true(d == want);
    if (*said == 'i') {
        bool fits = json_to_int(v, &i);

        (void)snprintf(text, sizeof text, "%lld", (long long)i);
        if (fits)
            assert_string_equal(text, said + 1);
        else
            assert_true(strlen(said + 1) >= 19);
    }
    if (*said == 'd' && json_to_int(v, &i) && i > -(1LL << 53) && i < 1LL << 53)
        assert_true((double)i == want);
}

static void compare_value(struct json_value v, char *said)
{
    bool truth;
    size_t n;

    switch (*said) {
    case 'n':
        assert_int_equal(v.type, JSON_NULL);
        return;
    case 't':
    case 'f':
        assert_true(json_to_bool(v, &truth));
        assert_int_equal(truth, *said == 't');
        return;
    case 's':
        assert_int_equal(v.type, JSON_STRING);
        compare_string(v, said + 1);
        return;
    case 'i':
    case 'd':
        assert_int_equal(v.type, JSON_NUMBER);
        compare_number(v, said);
        return;
    case 'l':
        assert_int_equal(v.type, JSON_ARRAY);
        assert_int_equal(count_items(v), strtoul(said + 1, NULL, 10));
        return;
    default:
        assert_int_equal(v.type, JSON_OBJECT);
        n = count_keys(v);
        if (n != SIZE_MAX)
            assert_int_equal(n, strtoul(said + 1, NULL, 10));
        return;
    }
}

static void compare(const char *p, size_t n, char *said)
{
    cleanup_free char *copy = malloc(n + 1); /* with a NUL: count_keys() looks for escapes */
    struct json_value v;
    struct err e;
    int r;

    assert_non_null(copy);
    memcpy(copy, p, n);
    copy[n] = '\0';
    said[strcspn(said, "\n")] = '\0';
    r = json_parse(copy, n, JSON_LENIENT_DUPES, &v, &e);
    if ((r == 0) != (*said != '-'))
        fail_msg("'%s': we say %s, Python says %s", copy, r == 0 ? "good" : e.text, said);
    if (r == 0)
        compare_value(v, said);
}

enum { MUTANTS = 6000, MUTANT_MAX = 512 };

static uint32_t next_random(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed;
}

/* A known text with a few bytes replaced, inserted, dropped or repeated. */
static size_t mutate(struct text t, uint32_t *seed, char out[MUTANT_MAX])
{
    static const char bytes[] = "{}[],:\"\\/0123456789eE+-.truefalsn u\n\t\0\x80\xc3\xa9\xed\xff";
    size_t n = t.n;
    uint32_t times = 1 + next_random(seed) % 3;

    memcpy(out, t.p, n);
    while (times-- > 0) {
        size_t at = n ? next_random(seed) % n : 0;
        char c = bytes[next_random(seed) % (sizeof bytes - 1)];
        uint32_t how = next_random(seed) % 3;

        if (how == 0 && n > 0) {
            out[at] = c;
        } else if (how == 1 && n > 0) {
            memmove(out + at, out + at + 1, n - at - 1);
            n--;
        } else {
            memmove(out + at + 1, out + at, n - at);
            out[at] = c;
            n++;
        }
    }
    return n;
}

static struct text case_of(size_t i)
{
    size_t all = ARRAY_LEN(good) + ARRAY_LEN(bad);

    i %= all;
    return i < ARRAY_LEN(good) ? good[i] : bad[i - ARRAY_LEN(good)];
}

/* The same texts in the same order, once to ask and once to compare. */
static size_t make_case(size_t i, uint32_t *seed, char out[MUTANT_MAX])
{
    struct text t = case_of(i);

    if (i >= ARRAY_LEN(good) + ARRAY_LEN(bad))
        return mutate(t, seed, out);
    memcpy(out, t.p, t.n);
    return t.n;
}

static void agrees_with_python(void **state)
{
    size_t all = ARRAY_LEN(good) + ARRAY_LEN(bad) + MUTANTS;
    FILE *in = tmpfile(), *out = tmpfile();
    char text[MUTANT_MAX], line[4096];
    uint32_t seed = 2463534242;

    (void)state;
    assert_true(in && out);
    if (!python_is_there())
        skip();
    for (size_t i = 0; i < all; i++)
        python_put_hex(in, text, make_case(i, &seed, text));
    assert_true(python_filter(script, in, out));
    seed = 2463534242;
    for (size_t i = 0; i < all; i++) {
        size_t n = make_case(i, &seed, text);

        assert_non_null(fgets(line, sizeof line, out));
        compare(text, n, line);
    }
    (void)fclose(in);
    (void)fclose(out);
}

/* ---- errors ---- */

static void errors_say_where(void **state)
{
    static const struct {
        const char *text;
        int line, column;
        const char *what;
    } cases[] = {
        {"",                        1, 1, "unexpected end"                   },
        {"{\"a\":1,}",              1, 8, "expected a key in double quotes"  },
        {"{\n  \"a\": tru\n}",      2, 8, "expected a value"                 },
        {"[\"漢字\", x]",         1, 8, "expected a value"                 },
        {"[1",                      1, 3, "unexpected end"                   },
        {"\n\n[1 2]",               3, 4, "expected ',' or ']'"              },
        {"{\"a\":1 \"b\"}",         1, 8, "expected ',' or '}'"              },
        {"[\"abc",                  1, 2, "unterminated string"              },
        {"\"a\\qb\"",               1, 3, "unknown escape"                   },
        {"\"\\u12\"",               1, 2, "\\u needs four hexadecimal digits"},
        {"\"a\tb\"",                1, 3, "control character in a string"    },
        {"\"a\xff\"",               1, 3, "invalid UTF-8"                    },
        {"\xef\xbb\xbf{}",          1, 1, "byte order mark"                  },
        {"1 2",                     1, 3, "text after the value"             },
        {"012",                     1, 2, "a number must not begin with 0"   },
        {"{\"x\":1,\"\\u0078\":2}", 1, 8, "duplicate key \"\\u0078\""        },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct json_value v = {.n = 77};
        char want[200];
        struct err e;

        (void)snprintf(want, sizeof want, "invalid JSON at line %d, column %d: %s", cases[i].line,
                       cases[i].column, cases[i].what);
        assert_int_equal(json_parse(cases[i].text, strlen(cases[i].text), 0, &v, &e), -1);
        assert_string_equal(e.text, want);
        assert_int_equal(e.kind, ERR_CALLER);
        assert_int_equal(v.n, 77); /* untouched */
    }
}

static void depth_is_limited(void **state)
{
    enum { OVER = JSON_DEPTH_MAX + 1 };
    char text[2 * OVER];
    struct json_value v;
    struct err e;

    (void)state;
    memset(text, '[', OVER);
    memset(text + OVER, ']', OVER);
    assert_int_equal(json_parse(text + 1, 2 * OVER - 2, 0, &v, &e), 0);
    assert_int_equal(json_parse(text, 2 * OVER, 0, &v, &e), -1);
    assert_non_null(strstr(e.text, "nested too deeply"));
}

static void brackets_match_at_every_depth(void **state)
{
    cleanup_with(buf_done) struct buf b = BUF_INIT(1 << 16);
    struct json_value v;
    struct err e;

    (void)state;
    for (int i = 0; i < 200; i++)
        assert_int_equal(buf_puts(&b, i % 3 ? "{\"k\":" : "["), 0);
    assert_int_equal(buf_puts(&b, "1"), 0);
    for (int i = 199; i >= 0; i--)
        assert_int_equal(buf_puts(&b, i % 3 ? "}" : "]"), 0);
    assert_int_equal(json_parse(b.p, b.n, 0, &v, &e), 0);
    for (size_t i = b.n - 200; i < b.n; i++) {
        b.p[i] ^= ']' ^ '}';
        assert_int_equal(json_parse(b.p, b.n, 0, &v, &e), -1);
        b.p[i] ^= ']' ^ '}';
    }
}

/* ---- flags ---- */

static void leniency_is_asked_for(void **state)
{
    static const struct {
        struct text text;
        unsigned flag;
    } cases[] = {
        {T("{} trailing"),       JSON_LENIENT_TAIL },
        {T("\"\xff\""),          JSON_LENIENT_UTF8 },
        {T("{\"a\":1,\"a\":2}"), JSON_LENIENT_DUPES},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_true(accepts(cases[i].text, cases[i].flag));
        assert_false(accepts(cases[i].text, ~cases[i].flag & 7u));
    }
}

static void bad_text_is_repaired_when_asked(void **state)
{
    static const char text[] = "\"a\xff\xe2\x82"
                               "b\\ud83d|\\ud83d\\ude00\"";
    cleanup_with(buf_done) struct buf out = BUF_INIT(100);
    struct json_value v;
    struct err e;

    (void)state;
    assert_int_equal(json_parse(text, sizeof text - 1, JSON_LENIENT_UTF8, &v, &e), 0);
    assert_int_equal(buf_puts(&out, "before "), 0);
    assert_int_equal(json_decode_string(v, 0, &out), -1);
    assert_string_equal(out.p, "before ");
    assert_false(out.failed);
    assert_int_equal(json_decode_string(v, JSON_LENIENT_UTF8, &out), 0);
    assert_string_equal(out.p, "before a\xef\xbf\xbd\xef\xbf\xbd"
                               "b\xef\xbf\xbd|\xf0\x9f\x98\x80");
}

static void a_full_buffer_is_an_error(void **state)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(3);
    struct json_value v;
    struct err e;

    (void)state;
    assert_int_equal(json_parse("\"abcd\"", 6, 0, &v, &e), 0);
    assert_int_equal(json_decode_string(v, 0, &out), -1);
    assert_true(out.failed);
}

/* ---- duplicates, lookup ---- */

static void put_keys(struct buf *b, size_t n, size_t again)
{
    (void)buf_putc(b, '{');
    for (size_t i = 0; i < n; i++)
        (void)buf_printf(b, "%s\"key\\u00%02zx%zu\":%zu", i ? "," : "", 0x41 + i % 20, i, i);
    if (again < n)
        (void)buf_printf(b, ",\"key%c%zu\":0", (char)(0x41 + again % 20), again);
    (void)buf_putc(b, '}');
}

static void duplicates_are_found_in_objects_of_any_size(void **state)
{
    static const size_t sizes[] = {1, 2, 23, 24, 25, 26, 100, 20000};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        size_t n = sizes[i];
        size_t again[] = {n, 0, n / 2, n - 1};

        for (size_t j = 0; j < ARRAY_LEN(again); j++) {
            cleanup_with(buf_done) struct buf b = BUF_INIT(1 << 20);
            struct json_value v;
            struct err e;

            put_keys(&b, n, again[j]);
            assert_false(b.failed);
            assert_int_equal(json_parse(b.p, b.n, 0, &v, &e), again[j] == n ? 0 : -1);
            assert_int_equal(json_parse(b.p, b.n, JSON_LENIENT_DUPES, &v, &e), 0);
        }
    }
}

static void members_are_found_by_name(void **state)
{
    static const char text[] =
        " { \"code\" : \"a\\nb\" , \"timeout\":30,\"\\u0063ode2\":[1, {\"x\":\"]\"} ,\"}\"],"
        "\"e\":{},\"漢\":true, \"a\":null } ";
    struct json_value v, f, item, key;
    struct err e;
    size_t at = 0, n = 0;

    (void)state;
    assert_int_equal(json_parse(text, sizeof text - 1, 0, &v, &e), 0);
    assert_int_equal(v.type, JSON_OBJECT);
    assert_int_equal(*v.p, '{');
    assert_int_equal(v.p[v.n - 1], '}');
    assert_true(json_get(v, "code", &f));
    assert_int_equal(f.n, 6);
    assert_true(json_get(v, "code2", &f));
    assert_int_equal(f.type, JSON_ARRAY);
    assert_true(json_array_next(f, &at, &item) && item.type == JSON_NUMBER && item.n == 1);
    assert_true(json_array_next(f, &at, &item) && item.type == JSON_OBJECT && item.n == 9);
    assert_true(json_array_next(f, &at, &item) && item.type == JSON_STRING && item.n == 3);
    assert_false(json_array_next(f, &at, &item));
    assert_false(json_array_next(f, &at, &item));
    assert_true(json_get(v, "漢", &f) && f.type == JSON_BOOL);
    assert_true(json_get(v, "a", &f) && f.type == JSON_NULL);
    assert_false(json_get(v, "cod", &f) || json_get(v, "code3", &f) || json_get(v, "", &f));
    for (at = 0; json_object_next(v, &at, &key, &f); n++)
        assert_int_equal(key.type, JSON_STRING);
    assert_int_equal(n, 6);
    at = 0;
    assert_true(json_get(v, "e", &f));
    assert_false(json_object_next(f, &at, &key, &item));
    assert_false(json_array_next(f, &at, &item)); /* not an array */
}

static void a_plain_name_knows_no_escapes(void **state)
{
    static const char text[] = "{\"a\\\\\":1,\"\\u0041\":2,\"\\\\u0041\":3,\"q\\\"\":4}";
    static const char *const names[] = {"a\\", "A", "\\u0041", "q\""};
    struct json_value v, f;
    struct err e;

    (void)state;
    assert_int_equal(json_parse(text, sizeof text - 1, 0, &v, &e), 0);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        assert_true(json_get(v, names[i], &f));
        assert_int_equal(*f.p, '1' + (int)i);
    }
    assert_false(json_get(v, "\\", &f) || json_get(v, "\\u", &f) || json_get(v, "a", &f));
}

static void integers_are_exact(void **state)
{
    static const struct {
        const char *text;
        bool is;
        int64_t value;
    } cases[] = {
        {"0",                       true,  0                  },
        {"-0",                      true,  0                  },
        {"0.000",                   true,  0                  },
        {"0e5",                     true,  0                  },
        {"0e999999999999999999999", true,  0                  },
        {"2.0",                     true,  2                  },
        {"2e3",                     true,  2000               },
        {"-2.5e1",                  true,  -25                },
        {"1200e-2",                 true,  12                 },
        {"0.0012e4",                true,  12                 },
        {"9223372036854775807",     true,  INT64_MAX          },
        {"-9223372036854775808",    true,  INT64_MIN          },
        {"922337203685477580.7e1",  true,  INT64_MAX          },
        {"1e18",                    true,  1000000000000000000},
        {"9223372036854775808",     false, 0                  },
        {"-9223372036854775809",    false, 0                  },
        {"1e19",                    false, 0                  },
        {"1e99999999999",           false, 0                  },
        {"1e-1",                    false, 0                  },
        {"1.5",                     false, 0                  },
        {"1e-99999999999",          false, 0                  },
        {"0.1e0",                   false, 0                  },
        {"99999999999999999999999", false, 0                  },
        {"\"1\"",                   false, 0                  },
        {"true",                    false, 0                  },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct json_value v;
        int64_t got = 4711;
        struct err e;

        assert_int_equal(json_parse(cases[i].text, strlen(cases[i].text), 0, &v, &e), 0);
        if (json_to_int(v, &got) != cases[i].is)
            fail_msg("%s", cases[i].text);
        assert_int_equal(got, cases[i].is ? cases[i].value : 4711);
    }
}

/* What the writer writes, the scanner reads. */
static void strings_make_the_round_trip(void **state)
{
    uint32_t seed = 88172645;
    char text[200];

    (void)state;
    for (int i = 0; i < 3000; i++) {
        cleanup_with(buf_done) struct buf json = BUF_INIT(4096), back = BUF_INIT(4096);
        struct jw w = {.out = &json, .ascii = i % 3 == 1, .html = i % 3 == 2};
        size_t n = next_random(&seed) % sizeof text;
        struct json_value v;
        struct err e;

        for (size_t j = 0; j < n; j++)
            text[j] = (char)(next_random(&seed) % 128);
        jw_bytes(&w, text, n);
        assert_int_equal(json_parse(json.p, json.n, 0, &v, &e), 0);
        assert_int_equal(json_decode_string(v, 0, &back), 0);
        assert_int_equal(back.n, n);
        assert_memory_equal(back.p, text, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_what_is_json),
        cmocka_unit_test(refuses_what_is_not),
        cmocka_unit_test(agrees_with_python),
        cmocka_unit_test(errors_say_where),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(brackets_match_at_every_depth),
        cmocka_unit_test(leniency_is_asked_for),
        cmocka_unit_test(bad_text_is_repaired_when_asked),
        cmocka_unit_test(a_full_buffer_is_an_error),
        cmocka_unit_test(duplicates_are_found_in_objects_of_any_size),
        cmocka_unit_test(members_are_found_by_name),
        cmocka_unit_test(a_plain_name_knows_no_escapes),
        cmocka_unit_test(integers_are_exact),
        cmocka_unit_test(strings_make_the_round_trip),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
