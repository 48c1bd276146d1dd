/* SPDX-License-Identifier: MIT */
#include <cmocka.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mime.h"

static void known_endings(void **state)
{
    static const struct {
        const char *path, *type;
    } cases[] = {
        {"a.txt",          "text/plain"      },
        {"dir.d/plot.PNG", "image/png"       },
        {"x.json",         "application/json"},
        {"table.csv",      "text/csv"        },
        {"report.tar.gz",  "application/gzip"},
        {"first.3gp",      "video/3gpp"      },
        {"last.zst",       "application/zstd"},
        {"module.wasm",    "application/wasm"},
        {"",               MIME_DEFAULT      },
        {"README",         MIME_DEFAULT      },
        {".html",          MIME_DEFAULT      },
        {"a/.html",        MIME_DEFAULT      },
        {"a.html/b",       MIME_DEFAULT      },
        {"a.",             MIME_DEFAULT      },
        {"a.unheard-of",   MIME_DEFAULT      },
        {"..html",         "text/html"       },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_string_equal(mime_of(cases[i].path), cases[i].type);
}

static void every_ending_is_there_once_in_lower_case(void **state)
{
    static const char *const lists[] = {
#define MIME(type, endings) " " endings " ",
#include "base/mime.def"
#undef MIME
    };
    char all[4096] = "", word[32];
    size_t n = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        (void)strncat(all, lists[i], sizeof all - strlen(all) - 1);
    assert_int_equal(strspn(all, "abcdefghijklmnopqrstuvwxyz0123456789 "), strlen(all));
    for (const char *at = all; *(at += strspn(at, " ")); n++) {
        (void)snprintf(word, sizeof word, " %.*s ", (int)strcspn(at, " "), at);
        assert_null(strstr(at, word));
        at += strcspn(at, " ");
    }
    assert_in_range(n, 100, 1000);
}

static void times_are_iso(void **state)
{
    char now[CLOCK_ISO_MAX], date[9];

    (void)state;
    assert_string_equal(clock_iso_at(0, 0, now), "1970-01-01T00:00:00.000000Z");
    assert_string_equal(clock_iso_at(1700000000, 123456789, now), "2023-11-14T22:13:20.123456Z");
    assert_string_equal(clock_iso_at(-1, 0, now), "1969-12-31T23:59:59.000000Z");
    (void)clock_iso_at(INT64_MAX, 999999999, now);
    assert_true(strlen(now) < CLOCK_ISO_MAX);
    (void)clock_iso_at(INT64_MIN, -1, now);
    assert_true(strlen(now) < CLOCK_ISO_MAX);
    (void)clock_iso(now);
    assert_int_equal(strlen(now), 27);
    clock_date8(date);
    assert_int_equal(strspn(date, "0123456789"), 8);
    assert_true(clock_us() > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_endings),
        cmocka_unit_test(every_ending_is_there_once_in_lower_case),
        cmocka_unit_test(times_are_iso),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
