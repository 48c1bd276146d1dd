/* SPDX-License-Identifier: MIT */
#include <cmocka.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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

/* The lookup is a binary search: an ending out of order would be silently unknown. */
static void the_table_is_sorted_and_lower_case(void **state)
{
    static const char *const endings[] = {
#define MIME(ending, type) ending,
#include "base/mime.def"
#undef MIME
    };

    (void)state;
    assert_in_range(ARRAY_LEN(endings), 100, 1000);
    for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
        assert_int_equal(strspn(endings[i], "abcdefghijklmnopqrstuvwxyz0123456789"),
                         strlen(endings[i]));
        if (i > 0)
            assert_true(strcmp(endings[i - 1], endings[i]) < 0);
    }
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
        cmocka_unit_test(the_table_is_sorted_and_lower_case),
        cmocka_unit_test(times_are_iso),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
