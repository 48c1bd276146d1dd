/* SPDX-License-Identifier: MIT */
#include <cmocka.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "net/callback.h"
#include "net/http_client.h"

static void every_answer_has_a_meaning(void **state)
{
    static const struct {
        int status;
        enum callback_verdict meaning;
    } rows[] = {
        {0,   CALLBACK_RETRY    },
        {100, CALLBACK_RETRY    },
        {199, CALLBACK_RETRY    },
        {200, CALLBACK_DELIVERED},
        {201, CALLBACK_DELIVERED},
        {204, CALLBACK_DELIVERED},
        {299, CALLBACK_DELIVERED},
        {301, CALLBACK_RETRY    },
        {307, CALLBACK_RETRY    },
        {400, CALLBACK_REFUSED  },
        {401, CALLBACK_RETRY    },
        {403, CALLBACK_REFUSED  },
        {404, CALLBACK_UNKNOWN  },
        {408, CALLBACK_REFUSED  },
        {409, CALLBACK_DELIVERED},
        {413, CALLBACK_REFUSED  },
        {422, CALLBACK_REFUSED  },
        {429, CALLBACK_RETRY    },
        {499, CALLBACK_REFUSED  },
        {500, CALLBACK_RETRY    },
        {503, CALLBACK_RETRY    },
        {599, CALLBACK_RETRY    },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(callback_judge(rows[i].status), rows[i].meaning);
}

static void pauses_double_up_to_the_cap(void **state)
{
    static const uint64_t expected[] = {1000, 2000, 4000, 8000, 10000, 10000};

    (void)state;
    for (uint32_t i = 0; i < ARRAY_LEN(expected); i++)
        assert_int_equal(callback_delay_ms(i + 1, 1000, 10000, 0, 0), expected[i]);
    assert_int_equal(callback_delay_ms(UINT32_MAX, 1000, 10000, 0, 0), 10000);
    assert_int_equal(callback_delay_ms(3, 60000, 10000, 0, 0), 10000);
}

static void chance_adds_at_most_a_tenth(void **state)
{
    (void)state;
    assert_int_equal(callback_delay_ms(1, 1000, 10000, 0, UINT16_MAX), 1100);
    assert_int_equal(callback_delay_ms(9, 1000, 10000, 0, UINT16_MAX), 11000);
    assert_in_range(callback_delay_ms(2, 1000, 10000, 0, UINT16_MAX / 2), 2000, 2200);
}

static void what_the_other_side_asks_for_is_granted_in_reason(void **state)
{
    (void)state;
    assert_int_equal(callback_delay_ms(1, 1000, 10000, 7, 0), 7000);
    assert_int_equal(callback_delay_ms(4, 1000, 10000, 7, 0), 8000);
    assert_int_equal(callback_delay_ms(1, 1000, 10000, UINT32_MAX, 0),
                     CALLBACK_RETRY_AFTER_MAX_S * 1000);
}

static void only_plain_web_addresses_are_good(void **state)
{
    static const char *const good[] = {"http://localhost:8000", "https://control.example/base",
                                       "http://[::1]:80/", "HTTP://UPPER"};
    static const char *const bad[] = {"",
                                      "localhost",
                                      "ftp://host/",
                                      "file:///etc/passwd",
                                      "http://",
                                      "http://user@host/",
                                      "http://user:secret@host/",
                                      "http://host/?q",
                                      "http://host/#f",
                                      "http://ho st/",
                                      "javascript:alert(1)"};
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        assert_int_equal(http_url_check(good[i], &e), 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(http_url_check(bad[i], &e), -1);
        assert_int_equal(e.kind, ERR_CALLER);
        assert_null(strstr(e.text, "secret"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_answer_has_a_meaning),
        cmocka_unit_test(pauses_double_up_to_the_cap),
        cmocka_unit_test(chance_adds_at_most_a_tenth),
        cmocka_unit_test(what_the_other_side_asks_for_is_granted_in_reason),
        cmocka_unit_test(only_plain_web_addresses_are_good),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
