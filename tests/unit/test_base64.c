/* SPDX-License-Identifier: MIT */
#include <cmocka.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/base64.h"
#include "base/random.h"
#include "base/sha256.h"

static void vectors_of_the_standard(void **state)
{
    static const struct {
        const char *plain, *text;
    } cases[] = {
        {"",             ""        },
        {"f",            "Zg=="    },
        {"fo",           "Zm8="    },
        {"foo",          "Zm9v"    },
        {"foob",         "Zm9vYg=="},
        {"fooba",        "Zm9vYmE="},
        {"foobar",       "Zm9vYmFy"},
        {"\xff\xef\xbe", "/+++"    },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_with(buf_done) struct buf b = BUF_INIT(100);

        assert_int_equal(base64_encode(cases[i].plain, strlen(cases[i].plain), &b), 0);
        assert_string_equal(b.p, cases[i].text);
        assert_int_equal(b.n, strlen(cases[i].text));
        buf_clear(&b);
        assert_int_equal(base64_decode(cases[i].text, strlen(cases[i].text), &b), 0);
        assert_string_equal(b.p, cases[i].plain);
        assert_int_equal(b.n, strlen(cases[i].plain));
    }
}

static void malformed_text_is_refused_and_leaves_no_trace(void **state)
{
    static const char *const cases[] = {
        "Z",    "Zg",   "Zg=",      "=",         "====",         "Zg===",   "Zm9v=", "Z===",
        "Zh==", "Zm9=", "Zg==Zg==", "Zm 9",      "Zm9v\n",       "\nZm9v",  "Zm9-",  "Zm9_",
        "Zm=v", "=m9v", "Zm8=Zm8=", "Zm9v Zm9v", "Zm9v\n\n\n\n", "Zm9\xc3", "Zg=A",  "Z=g=",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_with(buf_done) struct buf b = BUF_INIT(100);

        assert_int_equal(buf_puts(&b, "before"), 0);
        if (base64_decode(cases[i], strlen(cases[i]), &b) == 0)
            fail_msg("accepted '%s'", cases[i]);
        assert_string_equal(b.p, "before");
        assert_int_equal(b.n, 6);
        assert_false(b.failed);
    }
    for (int c = 0; c < 256; c++) {
        cleanup_with(buf_done) struct buf b = BUF_INIT(100);
        char text[4] = {'A', 'A', 'A', (char)c};
        bool known = c && strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                 "0123456789+/=",
                                 c);

        assert_int_equal(base64_decode(text, 4, &b) == 0, known);
    }
}

static void random_bytes_come_back(void **state)
{
    unsigned char data[300];

    (void)state;
    for (size_t n = 0; n < sizeof data; n++) {
        cleanup_with(buf_done) struct buf text = BUF_INIT(1000), back = BUF_INIT(1000);

        random_bytes(data, n);
        assert_int_equal(base64_encode(data, n, &text), 0);
        assert_int_equal(text.n, BASE64_LENGTH(n));
        assert_int_equal(base64_decode(text.p, text.n, &back), 0);
        assert_int_equal(back.n, n);
        assert_memory_equal(back.p, data, n);
    }
}

static void full_buffers_are_told_from_bad_text(void **state)
{
    cleanup_with(buf_done) struct buf b = BUF_INIT(7);

    (void)state;
    assert_int_equal(base64_encode("foobar", 6, &b), -1);
    assert_true(b.failed);
    buf_clear(&b);
    assert_int_equal(base64_decode("Zm9vYmFyZm9v", 12, &b), -1);
    assert_true(b.failed);
    assert_int_equal(b.n, 0);
}

static void sha256_of_known_texts(void **state)
{
    cleanup_with(sha256_freep) struct sha256 *h = sha256_new();
    char hex[SHA256_HEX];

    (void)state;
    sha256_hex("", 0, hex);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    sha256_hex("abc", 3, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_non_null(h);
    sha256_add(h, "a", 1);
    sha256_add(h, "", 0);
    sha256_add(h, "bc", 2);
    sha256_end_hex(h, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void random_texts_have_their_shape(void **state)
{
    char a[41], b[41], uuid[37];

    (void)state;
    random_base36(a, 40);
    random_base36(b, 40);
    assert_int_equal(strspn(a, "0123456789abcdefghijklmnopqrstuvwxyz"), 40);
    assert_string_not_equal(a, b);
    random_hex(a, 20);
    assert_int_equal(strspn(a, "0123456789abcdef"), 40);
    assert_int_equal(strlen(a), 40);
    random_uuid4(uuid);
    assert_int_equal(strlen(uuid), 36);
    assert_int_equal(uuid[14], '4');
    assert_non_null(strchr("89ab", uuid[19]));
    for (size_t i = 0; i < 36; i++)
        assert_int_equal(uuid[i] == '-', i == 8 || i == 13 || i == 18 || i == 23);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_of_the_standard),
        cmocka_unit_test(malformed_text_is_refused_and_leaves_no_trace),
        cmocka_unit_test(random_bytes_come_back),
        cmocka_unit_test(full_buffers_are_told_from_bad_text),
        cmocka_unit_test(sha256_of_known_texts),
        cmocka_unit_test(random_texts_have_their_shape),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
