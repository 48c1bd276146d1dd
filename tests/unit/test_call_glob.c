/* SPDX-License-Identifier: MIT */
/* Globs against the vectors in tests/api/vectors, and against patterns meant to be slow. */
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "call/glob.h"

static char *text_of(struct json_value v)
{
    struct buf b = BUF_INIT(v.n + 1);

    assert_int_equal(json_decode_string(v, 0, &b), 0);
    return b.p ? buf_take(&b, NULL) : calloc(1, 1);
}

static void read_all(struct buf *out)
{
    FILE *f = fopen("tests/api/vectors/functions_units.json", "rbe");
    char part[4096];
    size_t n;

    assert_non_null(f);
    while ((n = fread(part, 1, sizeof part, f)) > 0)
        assert_int_equal(buf_put(out, part, n), 0);
    (void)fclose(f);
}

static void vectors(void **state)
{
    struct buf text = BUF_INIT(1 << 20);
    struct json_value all, globs, one, v;
    struct err e;
    size_t at = 0, wrong = 0, count = 0;

    (void)state;
    read_all(&text);
    assert_int_equal(json_parse(text.p, text.n, 0, &all, &e), 0);
    assert_true(json_get(all, "globs", &globs));
    while (json_array_next(globs, &at, &one)) {
        char *pattern, *path;
        bool want;

        assert_true(json_get(one, "pattern", &v));
        pattern = text_of(v);
        assert_true(json_get(one, "path", &v));
        path = text_of(v);
        assert_true(json_get(one, "want", &v) || json_get(one, "match", &v));
        assert_true(json_to_bool(v, &want));
        count++;
        if (glob_match(pattern, path) != want) {
            print_error("'%s' on '%s' should be %s\n", pattern, path, want ? "true" : "false");
            wrong++;
        }
        free(pattern);
        free(path);
    }
    buf_done(&text);
    assert_true(count > 100);
    assert_int_equal(wrong, 0);
}

static void is_bounded(void **state)
{
    (void)state;
    assert_false(glob_match("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b",
                            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
    assert_false(glob_match("**/a/**/a/**/a/**/a/**/a/**/b",
                            "a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/c"));
    assert_false(glob_match("+(+(+(+(a|aa)|aaa)|aa)|a)b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac"));
    assert_false(glob_match("{1..1000000}{1..1000000}", "x"));
    assert_false(glob_match(
        "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}"
        "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}",
        "x"));
    assert_false(glob_match("{9223372036854775806..9223372036854775807}", "-9223372036854775808"));
    assert_true(glob_match("{9223372036854775806..9223372036854775807}", "9223372036854775807"));
    assert_true(glob_match("{0000000000000000000000000000000000000000000000001..2}",
                           "0000000000000000000000000000000000000000000000002"));
}

/* Many stars are no reason to give up. */
static void is_right(void **state)
{
    (void)state;
    assert_true(glob_match("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b",
                           "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"));
    assert_true(glob_match("**/a/**/a/**/a/**/a/**/a/**/b",
                           "a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/b"));
    /* what took too long matches nothing, not even the other way round */
    assert_false(glob_match("!{1..1000000}", "x"));
    assert_false(glob_match("!+(+(+(+(a|aa)|aaa)|aa)|a)b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors),
        cmocka_unit_test(is_bounded),
        cmocka_unit_test(is_right),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
