/* SPDX-License-Identifier: MIT */
#include <cmocka.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "app/sandbox/file_signature.h"

/* sha256("/a b:read:user:secret") and the same with ":4102444800" behind it. */
static void a_signature_is_the_digest_of_path_verb_user_token_and_end(void **state)
{
    struct signed_access a = {.path = "/a b", .verb = "read", .user = "user"};
    char out[SIGNATURE_MAX];

    (void)state;
    assert_int_equal(signature_make(&a, "secret", out), 0);
    assert_string_equal(out, "v1_PEA/icv+z+JO9bsZ7QQJfW5MQV9ADdOES2Wk1FxeiFU");
    a.expires = "4102444800";
    assert_int_equal(signature_make(&a, "secret", out), 0);
    assert_string_equal(out, "v1_YcpZMs1/oESO4CQTOk5DkRCK8k2stMCipdUCfYnm7vA");
}

static void a_signature_opens_with_the_token_that_made_it_only(void **state)
{
    static const char *const tokens[] = {"one", "two", "three"};
    struct signed_access a = {.path = "/f", .verb = "write", .user = ""};
    char out[SIGNATURE_MAX];

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(signature_make(&a, tokens[i], out), 0);
        assert_int_equal(signature_which(out, &a, tokens, 3), i);
        assert_true(signature_opens(out, &a, tokens[i]));
        assert_false(signature_opens(out, &a, tokens[(i + 1) % 3]));
    }
    assert_int_equal(signature_make(&a, "four", out), 0);
    assert_int_equal(signature_which(out, &a, tokens, 3), 3);
    assert_int_equal(signature_which("", &a, tokens, 3), 3);
    assert_int_equal(signature_which(out, &a, NULL, 0), 0);
}

static void a_signature_is_for_this_path_verb_user_and_time_only(void **state)
{
    struct signed_access a = {.path = "/f", .verb = "read", .user = "u"}, b = a;
    char out[SIGNATURE_MAX], past[32];

    (void)state;
    assert_int_equal(signature_make(&a, "t", out), 0);
    b.path = "/g";
    assert_false(signature_opens(out, &b, "t"));
    b = a, b.verb = "write";
    assert_false(signature_opens(out, &b, "t"));
    b = a, b.user = "";
    assert_false(signature_opens(out, &b, "t"));
    b = a, b.expires = "4102444800";
    assert_false(signature_opens(out, &b, "t"));
    (void)snprintf(past, sizeof past, "%lld", (long long)time(NULL) - 10);
    b.expires = past;
    assert_int_equal(signature_make(&b, "t", out), 0);
    assert_false(signature_opens(out, &b, "t"));
    b.expires = "99999999999999999999";
    assert_int_equal(signature_make(&b, "t", out), 0);
    assert_false(signature_opens(out, &b, "t"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signature_is_the_digest_of_path_verb_user_token_and_end),
        cmocka_unit_test(a_signature_opens_with_the_token_that_made_it_only),
        cmocka_unit_test(a_signature_is_for_this_path_verb_user_and_time_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
