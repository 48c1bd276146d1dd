/* SPDX-License-Identifier: MIT */
#include <cmocka.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/jw.h"
#include "unit/with_python.h"

static void commas_are_its_business(void **state)
{
    cleanup_with(buf_done) struct buf b = BUF_INIT(1000);
    struct jw w = JW(&b);

    (void)state;
    jw_object(&w);
    jw_kv_string(&w, "s", "x");
    jw_kv_string(&w, "none", NULL);
    jw_kv_int(&w, "i", INT64_MIN);
    jw_kv_double(&w, "d", 1.23456, 2);
    jw_kv_double(&w, "nan", (double)NAN, 2);
    jw_kv_double(&w, "inf", (double)-INFINITY, 0);
    jw_kv_bool(&w, "b", true);
    jw_kv_bytes(&w, "z", "a\0b", 3);
    jw_key(&w, "list");
    jw_array(&w);
    jw_array(&w);
    jw_array_end(&w);
    jw_object(&w);
    jw_object_end(&w);
    jw_raw(&w, "{\"raw\": 1}", 10);
    jw_null(&w);
    jw_string(&w, "");
    jw_array_end(&w);
    jw_object_end(&w);
    assert_string_equal(b.p, "{\"s\":\"x\",\"none\":null,\"i\":-9223372036854775808,\"d\":1.23,"
                             "\"nan\":null,\"inf\":null,\"b\":true,\"z\":\"a\\u0000b\","
                             "\"list\":[[],{},{\"raw\": 1},null,\"\"]}");
}

static void numbers_have_their_decimals(void **state)
{
    static const struct {
        double v;
        int decimals;
        const char *want;
    } cases[] = {
        {0,            0, "0"                 },
        {0.5,          3, "0.500"             },
        {0.0004999,    3, "0.000"             },
        {0.0005,       3, "0.001"             },
        {0.9996,       3, "1.000"             },
        {41.07,        2, "41.07"             },
        {123456789.25, 6, "123456789.250000"  },
        {1e15,         1, "1000000000000000.0"},
        {-2.5,         1, "-2.5"              },
        {1.5,          9, "1.500000000"       },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_with(buf_done) struct buf b = BUF_INIT(1000);
        struct jw w = JW(&b);

        jw_double(&w, cases[i].v, cases[i].decimals);
        assert_string_equal(b.p, cases[i].want);
    }
}

static void assert_writes(struct jw style, const char *text, size_t n, const char *want)
{
    cleanup_with(buf_done) struct buf b = BUF_INIT(1000);

    style.out = &b;
    jw_bytes(&style, text, n);
    assert_false(b.failed);
    assert_string_equal(b.p, want);
}

static void escapes(void **state)
{
    const struct jw plain = {0}, ascii = {.ascii = true}, html = {.html = true};

    (void)state;
    assert_writes(plain, "\"\\/\b\f\n\r\t\x01\x1f\x7f", 11,
                  "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\"");
    assert_writes(plain, "é漢😀\xe2\x80\xa8<&>", 15, "\"é漢😀\xe2\x80\xa8<&>\"");
    assert_writes(ascii, "é漢😀<\xff\xc2\x85", 13,
                  "\"\\u00e9\\u6f22\\ud83d\\ude00<\\ufffd\\u0085\"");
    assert_writes(html, "a<b>&\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa\xff", 15,
                  "\"a\\u003cb\\u003e\\u0026\\u2028\\u2029\xe2\x80\xaa\\ufffd\"");
    assert_writes(plain, "", 0, "\"\"");
    assert_writes(plain, "a\xf0\x9f\x98", 4, "\"a\xef\xbf\xbd\"");
}

/* They are looked at in words, whose edges are anywhere. */
static void a_quote_is_seen_wherever_it_is(void **state)
{
    enum { MAX = 20 };
    const struct jw plain = {0};

    (void)state;
    for (size_t n = 1; n <= MAX; n++)
        for (size_t at = 0; at <= n; at++) {
            char text[MAX + 1], want[MAX + 4] = "\"";

            memset(text, 'x', n);
            if (at < n)
                text[at] = '"';
            (void)snprintf(want + 1, sizeof want - 1, "%.*s%s%.*s\"", (int)at, text,
                           at < n ? "\\\"" : "", at < n ? (int)(n - at - 1) : 0, text + at + 1);
            assert_writes(plain, text, n, want);
        }
}

/* Long texts are encoded in pieces; what is at their edges must not matter, nor how much of it is
 * escaped: 1 MB of it took a minute when the rest of the text was looked at again for each '<'. */
static void long_texts_are_encoded_in_pieces(void **state)
{
    static const struct {
        struct jw style;
        const char *part, *want;
    } cases[] = {
        {{.html = true},  "<",                 "\\u003c"                },
        {{.html = true},  "ab\xf0\x9f\x98",    "ab\\ufffd\\ufffd\\ufffd"},
        {{.html = true},  "a\xe2\x80\xa8",     "a\\u2028"               },
        {{.ascii = true}, "a\xf0\x9f\x98\x80", "a\\ud83d\\ude00"        },
        {{0},             "a\xf0\x9f\x98\x80", "a\xf0\x9f\x98\x80"      },
        {{0},             "abc\n\x01",         "abc\\n\\u0001"          },
    };
    enum { PARTS = 1000000 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_with(buf_done) struct buf text = BUF_INIT(PARTS * 8), b = BUF_INIT(PARTS * 24);
        struct jw w = cases[i].style;
        size_t n = strlen(cases[i].want);

        w.out = &b;
        for (size_t k = 0; k < PARTS; k++)
            assert_int_equal(buf_puts(&text, cases[i].part), 0);
        jw_bytes(&w, text.p, text.n);
        assert_false(b.failed);
        assert_int_equal(b.n, n * PARTS + 2);
        for (size_t k = 0; k < PARTS; k++)
            if (memcmp(b.p + 1 + k * n, cases[i].want, n) != 0)
                fail_msg("case %zu differs at part %zu", i, k);
    }
}

static void a_full_buffer_is_seen_at_the_end(void **state)
{
    (void)state;
    for (size_t max = 0; max < 12; max++) {
        cleanup_with(buf_done) struct buf b = BUF_INIT(max);
        struct jw w = JW(&b);

        jw_bytes(&w, "ab\ncd\xff", 6); /* "ab\ncd\ufffd" in 11 bytes */
        assert_int_equal(b.failed, max < 11);
        assert_true(b.n <= max);
    }
}

/* ---- Python's errors="replace" ---- */

enum { ROUNDS = 4000, INPUT_MAX = 60 };

static const char script[] = "import sys, json\n"
                             "for line in sys.stdin:\n"
                             "    s = bytes.fromhex(line).decode('utf-8', 'replace')\n"
                             "    print(json.dumps(s, ensure_ascii=False).encode().hex())\n"
                             "    print(json.dumps(s).encode().hex())\n";

static uint32_t next_random(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed;
}

/* Mostly bytes that begin or continue characters, so that every kind of fault comes up. DEL is left
 * out: Python counts it among the characters beyond ASCII. */
static size_t make_input(uint32_t *seed, char out[INPUT_MAX])
{
    static const unsigned char spice[] = {0xc2, 0xc3, 0xe0, 0xe2, 0xed, 0xef, 0xf0, 0xf4,
                                          0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xff,
                                          '"',  '\\', '\n', 0,    '<',  'a',  'b',  'c'};
    size_t n = next_random(seed) % INPUT_MAX;
    uint32_t kind = next_random(seed) % 3;

    for (size_t i = 0; i < n; i++) {
        uint32_t r = next_random(seed);

        out[i] = (char)(kind == 0 || r % 4 == 0 ? r >> 8 : spice[(r >> 8) % sizeof spice]);
        if (out[i] == 0x7f)
            out[i] = 'x';
    }
    return n;
}

static void compare(FILE *said, const char *text, size_t n, bool ascii)
{
    cleanup_with(buf_done) struct buf b = BUF_INIT(1000);
    struct jw w = {.out = &b, .ascii = ascii};
    char line[2048];
    ssize_t want;

    assert_non_null(fgets(line, sizeof line, said));
    want = python_get_hex(line);
    assert_true(want >= 0);
    jw_bytes(&w, text, n);
    assert_int_equal(b.n, want);
    assert_memory_equal(b.p, line, b.n);
}

static void repairs_as_python_does(void **state)
{
    FILE *in = tmpfile(), *out = tmpfile();
    char text[INPUT_MAX];
    uint32_t seed = 362436069;

    (void)state;
    assert_true(in && out);
    if (!python_is_there())
        skip();
    for (int i = 0; i < ROUNDS; i++)
        python_put_hex(in, text, make_input(&seed, text));
    assert_true(python_filter(script, in, out));
    seed = 362436069;
    for (int i = 0; i < ROUNDS; i++) {
        size_t n = make_input(&seed, text);

        compare(out, text, n, false);
        compare(out, text, n, true);
    }
    (void)fclose(in);
    (void)fclose(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commas_are_its_business),
        cmocka_unit_test(numbers_have_their_decimals),
        cmocka_unit_test(escapes),
        cmocka_unit_test(a_quote_is_seen_wherever_it_is),
        cmocka_unit_test(long_texts_are_encoded_in_pieces),
        cmocka_unit_test(a_full_buffer_is_seen_at_the_end),
        cmocka_unit_test(repairs_as_python_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
