/* SPDX-License-Identifier: MIT */
/* Globs against the vectors in tests/api/vectors, and against patterns meant to be slow. */
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "function/glob.h"

enum { REFUSED = 3 };

static int match_within(const char *pattern, const char *path, uint64_t steps)
{
    size_t room = GLOB_COMPILE_MAX;
    struct glob_path p;
    struct glob *g;
    struct err e;
    int answer;

    if (glob_compile(pattern, &room, &g, &e) < 0)
        return REFUSED;
    glob_path_set(&p, path);
    answer = (int)glob_match(g, &p, 0, &steps);
    glob_free(g);
    return answer;
}

static int match(const char *pattern, const char *path)
{
    return match_within(pattern, path, 1000000);
}

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
        if (match(pattern, path) != (want ? GLOB_YES : GLOB_NO)) {
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
    assert_int_equal(match("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b",
                           "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
                     GLOB_NO);
    assert_int_equal(match("**/a/**/a/**/a/**/a/**/a/**/b",
                           "a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/c"),
                     GLOB_NO);
    assert_int_equal(match("+(+(+(+(a|aa)|aaa)|aa)|a)b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac"),
                     GLOB_NO);
    assert_int_equal(match("{9223372036854775806..9223372036854775807}", "-9223372036854775808"),
                     GLOB_NO);
    assert_int_equal(match("{9223372036854775806..9223372036854775807}", "9223372036854775807"),
                     GLOB_YES);
    assert_int_equal(match("{0000000000000000000000000000000000000000000000001..2}",
                           "0000000000000000000000000000000000000000000000002"),
                     GLOB_YES);
}

static void too_large_is_refused(void **state)
{
    char text[2 * GLOB_PATTERN_MAX];

    (void)state;
    assert_int_equal(match("{1..1000000}", "x"), REFUSED);
    assert_int_equal(match("!{1..1000000}{1..1000000}", "x"), REFUSED);
    assert_int_equal(
        match("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}",
              "x"),
        REFUSED);
    memset(text, 'a', sizeof text);
    text[GLOB_PATTERN_MAX + 1] = '\0';
    assert_int_equal(match(text, "x"), REFUSED);
    for (size_t i = 0; i < GLOB_PATTERN_MAX / 4; i++)
        memcpy(text + 2 * i, "+(", 3);
    memset(text + GLOB_PATTERN_MAX / 2, ')', GLOB_PATTERN_MAX / 4);
    text[3 * GLOB_PATTERN_MAX / 4] = '\0';
    assert_int_equal(match(text, "x"), REFUSED); /* groups in groups */
    memset(text, '[', GLOB_PATTERN_MAX);
    text[GLOB_PATTERN_MAX] = '\0';
    assert_int_equal(match(text, "x"), REFUSED); /* looked at again and again */
    memset(text, '{', GLOB_PATTERN_MAX);
    assert_int_equal(match(text, "x"), REFUSED);
}

static void is_right(void **state)
{
    (void)state;
    assert_int_equal(match("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b",
                           "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"),
                     GLOB_YES);
    assert_int_equal(match("**/a/**/a/**/a/**/a/**/a/**/b",
                           "a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/b"),
                     GLOB_YES);
    assert_int_equal(match("+(+(+(+(a|aa)|aaa)|aa)|a)b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"),
                     GLOB_YES);
    assert_int_equal(match("!+(+(+(+(a|aa)|aaa)|aa)|a)b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac"),
                     GLOB_YES);
    assert_int_equal(match("*??", "\xe2\x82\xac"), GLOB_NO); /* one character of three bytes */
    assert_int_equal(match("*?", "\xe2\x82\xac"), GLOB_YES);
    assert_int_equal(match("!(*.c)", "x.h"), GLOB_YES);
    assert_int_equal(match("x!(a|b)y", "xay"), GLOB_NO);
    assert_int_equal(match("x!(a|b)y", "xcy"), GLOB_YES);
    assert_int_equal(match("@(a|!(b)c)d", "xcd"), GLOB_YES);
}

/* Rules that outside testers used to stop the daemon, on the names they used. The number of steps
 * is what counts: a million of them take some milliseconds. */
static void hostile_names_cost_little(void **state)
{
    static const char *const patterns[] = {
        "**/*.@(php|phtml|phar)",
        "**/*.{exe,dll,so,bat,cmd,com,scr,pif,vbs,js,jse,wsf,wsh,msi,jar,php,phtml,htaccess}",
        "**/node_modules/**",
        "*/**/*.log",
    };
    char path[GLOB_PATH_MAX];
    size_t n = 0;

    (void)state;
    for (size_t i = 0; i < 14; i++, path[n++] = '/') {
        memset(path + n, '.', 250);
        n += 250;
    }
    memcpy(path + n, "x.htaccess", 11);
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
        assert_int_not_equal(match_within(patterns[i], path, 10000), GLOB_UNKNOWN);
    assert_int_equal(match_within(patterns[1], path, 10000), GLOB_YES);
    memcpy(path + n, "x.phar", 7);
    assert_int_equal(match_within(patterns[0], path, 10000), GLOB_YES);
}

static void without_steps_nothing_is_known(void **state)
{
    size_t room = GLOB_COMPILE_MAX;
    uint64_t steps = 3000;
    struct glob_path p;
    struct glob *g;
    struct err e;
    int answer = GLOB_NO, times = 0;

    (void)state;
    assert_int_equal(match_within("*a*b*", "aaaaaaaaaaab", 3), GLOB_UNKNOWN);
    assert_int_equal(match_within("!*a*b*", "aaaaaaaaaaab", 3), GLOB_UNKNOWN);
    assert_int_equal(match_within("# *a*b*", "aaaaaaaaaaab", 0), GLOB_NO);
    assert_int_equal(glob_compile("x!(a|b)*c", &room, &g, &e), 0);
    glob_path_set(&p, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
    for (; answer == GLOB_NO && times < 1000; times++)
        answer = (int)glob_match(g, &p, 0, &steps);
    assert_int_equal(answer, GLOB_UNKNOWN); /* one budget for all of them */
    assert_true(times > 1);
    assert_int_equal(glob_match(g, &p, 0, &steps), GLOB_UNKNOWN);
    glob_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors),
        cmocka_unit_test(is_bounded),
        cmocka_unit_test(too_large_is_refused),
        cmocka_unit_test(is_right),
        cmocka_unit_test(hostile_names_cost_little),
        cmocka_unit_test(without_steps_nothing_is_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
