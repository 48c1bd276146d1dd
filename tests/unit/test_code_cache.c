/* SPDX-License-Identifier: MIT */
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "app/execution/code_cache.h"

#define BYTES(literal) ((struct bytes){.p = (literal), .n = sizeof(literal) - 1})

static struct code_cache *cache_of(size_t bytes)
{
    struct code_cache *c;
    struct err e;

    assert_int_equal(code_cache_new(bytes, &c, &e), 0);
    return c;
}

static bool has(struct code_cache *c, const char *code, const char *compiled)
{
    struct bytes got;

    if (!code_cache_find(c, (struct bytes){code, strlen(code)}, &got))
        return false;
    assert_int_equal(got.n, strlen(compiled));
    assert_memory_equal(got.p, compiled, got.n);
    return true;
}

static void add(struct code_cache *c, const char *code, const char *compiled)
{
    code_cache_add(c, (struct bytes){code, strlen(code)},
                   (struct bytes){compiled, strlen(compiled)});
}

static void the_same_text_is_found(void **state)
{
    struct code_cache *c = cache_of(1 << 20);

    (void)state;
    assert_false(has(c, "def f", "1"));
    add(c, "def f", "1");
    add(c, "def g, which is longer than a word", "22");
    assert_true(has(c, "def f", "1"));
    assert_true(has(c, "def g, which is longer than a word", "22"));
    assert_false(has(c, "def f ", "1"));
    assert_false(has(c, "def", "1"));
    assert_false(has(c, "", ""));
    code_cache_free(c);
}

static void what_is_known_stays_as_it_is(void **state)
{
    struct code_cache *c = cache_of(1 << 20);

    (void)state;
    add(c, "def f", "first");
    add(c, "def f", "second");
    assert_true(has(c, "def f", "first"));
    code_cache_free(c);
}

/* Only zeros behind it make a text of another length out of it. */
static void zeros_are_bytes_like_others(void **state)
{
    struct code_cache *c = cache_of(1 << 20);
    struct bytes got;

    (void)state;
    code_cache_add(c, BYTES("a"), BYTES("one"));
    assert_false(code_cache_find(c, BYTES("a\0"), &got));
    assert_false(code_cache_find(c, BYTES("a\0\0\0\0\0\0\0\0"), &got));
    assert_true(code_cache_find(c, BYTES("a"), &got));
    code_cache_free(c);
}

static void the_least_recently_used_go_first(void **state)
{
    struct code_cache *c = cache_of(80); /* one may take ten, eight of which fit */
    char code[8];

    (void)state;
    for (int i = 0; i < 8; i++) {
        (void)snprintf(code, sizeof code, "text%d", i);
        add(c, code, "12345");
    }
    assert_true(has(c, "text0", "12345"));
    add(c, "text8", "12345");
    assert_true(has(c, "text0", "12345"));
    assert_false(has(c, "text1", "12345"));
    assert_true(has(c, "text8", "12345"));
    code_cache_free(c);
}

static void no_text_takes_the_place_of_all(void **state)
{
    struct code_cache *c = cache_of(80);

    (void)state;
    assert_true(code_cache_wants(c, BYTES("text")));
    assert_false(code_cache_wants(c, BYTES("")));
    assert_false(code_cache_wants(c, BYTES("eleven byte")));
    add(c, "text0", "123456");
    assert_false(has(c, "text0", "123456"));
    add(c, "text0", "");
    assert_false(has(c, "text0", ""));
    code_cache_free(c);
}

static void there_are_only_so_many(void **state)
{
    struct code_cache *c = cache_of(1 << 20);
    char code[16];

    (void)state;
    for (int i = 0; i <= CODES_MAX; i++) {
        (void)snprintf(code, sizeof code, "%d", i);
        add(c, code, "1");
    }
    assert_false(has(c, "0", "1"));
    assert_true(has(c, "1", "1"));
    code_cache_free(c);
}

static void without_room_nothing_is_kept(void **state)
{
    struct code_cache *c = cache_of(0);

    (void)state;
    assert_false(code_cache_wants(c, BYTES("text")));
    add(c, "text", "1");
    assert_false(has(c, "text", "1"));
    code_cache_free(c);
    code_cache_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_text_is_found),
        cmocka_unit_test(what_is_known_stays_as_it_is),
        cmocka_unit_test(zeros_are_bytes_like_others),
        cmocka_unit_test(the_least_recently_used_go_first),
        cmocka_unit_test(no_text_takes_the_place_of_all),
        cmocka_unit_test(there_are_only_so_many),
        cmocka_unit_test(without_room_nothing_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
