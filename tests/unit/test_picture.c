/* SPDX-License-Identifier: MIT */
#include <cmocka.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "http/api/mcp/picture.h"

#define IS(text, good) assert_int_equal(picture_can_be_shown(text, sizeof(text) - 1), good)

static void headers_of_all_kinds_are_read(void **state)
{
    (void)state;
    IS("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x1f\x40\0\0\x1f\x40", true);
    IS("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x1f\x41\0\0\0\1", false);
    IS("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\0\0\0\0\1", false);
    IS("GIF89a\1\0\1\0", true);
    IS("GIF87a\x41\x1f\1\0", false);
    IS("\xff\xd8\xff\xe0\0\4ab\xff\xc0\0\x11\10\0\1\0\2", true);
    IS("\xff\xd8\xff\xff\xff\xc2\0\x11\10\x1f\x41\0\2", false);
    IS("RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\1\0\0\1\0\0", true);
    IS("RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\1\0\xff\1\0\0", false);
    IS("RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\xff\x0f\0\0\0\0\0\0\0", true);
    IS("RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\2\0\2\0", true);
}

static void what_is_cut_or_something_else_is_none(void **state)
{
    static const char *const whole[] = {
        "\x89PNG\r\n\x1a\n1234IHDRaaaabbbb",
        "\xff\xd8\xff\xe0\1\1",
        "GIF89a\1",
        "RIFFaaaaWEBPVP8X",
        "<svg/>",
        "",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(whole); i++)
        for (size_t n = 0; n <= strlen(whole[i]); n++)
            assert_false(picture_can_be_shown(whole[i], n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_of_all_kinds_are_read),
        cmocka_unit_test(what_is_cut_or_something_else_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
