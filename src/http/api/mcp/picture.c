/* SPDX-License-Identifier: MIT */
#include "http/api/mcp/picture.h"

#include <string.h>

#include "base/cleanup.h"

enum {
    SEGMENTS_MAX = 256, /* of a JPEG before the one that names its size */
    PNG_HEAD = 24,
    GIF_HEAD = 10,
    WEBP_HEAD = 30,
    SIDE_14 = 0x3fff, /* a side of a WebP has so many bits */
};

struct sides {
    unsigned width, height;
};

static unsigned big16(const unsigned char *p)
{
    return (unsigned)p[0] << 8 | p[1];
}

static unsigned little16(const unsigned char *p)
{
    return (unsigned)p[1] << 8 | p[0];
}

static unsigned little24(const unsigned char *p)
{
    return (unsigned)p[2] << 16 | little16(p);
}

static bool is_png(const unsigned char *p, size_t n, struct sides *s)
{
    if (n < PNG_HEAD || memcmp(p, "\x89PNG\r\n\x1a\n", 8) != 0 || memcmp(p + 12, "IHDR", 4) != 0)
        return false;
    *s = (struct sides){big16(p + 16) << 16 | big16(p + 18), big16(p + 20) << 16 | big16(p + 22)};
    return true;
}

static bool is_gif(const unsigned char *p, size_t n, struct sides *s)
{
    if (n < GIF_HEAD || (memcmp(p, "GIF87a", 6) != 0 && memcmp(p, "GIF89a", 6) != 0))
        return false;
    *s = (struct sides){little16(p + 6), little16(p + 8)};
    return true;
}

static bool is_frame(unsigned marker)
{
    return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

static bool is_jpeg(const unsigned char *p, size_t n, struct sides *s)
{
    size_t at = 2;

    if (n < 4 || p[0] != 0xff || p[1] != 0xd8)
        return false;
    for (unsigned i = 0; i < SEGMENTS_MAX && n - at >= 9 && p[at] == 0xff; i++) {
        unsigned marker = p[at + 1], length = big16(p + at + 2);

        if (is_frame(marker)) {
            *s = (struct sides){big16(p + at + 7), big16(p + at + 5)};
            return true;
        }
        if (marker == 0xff) { /* filling */
            at++;
            continue;
        }
        if (length < 2 || n - at - 2 < length)
            return false;
        at += 2 + length;
    }
    return false;
}

static bool is_webp(const unsigned char *p, size_t n, struct sides *s)
{
    if (n < WEBP_HEAD || memcmp(p, "RIFF", 4) != 0 || memcmp(p + 8, "WEBP", 4) != 0)
        return false;
    if (memcmp(p + 12, "VP8X", 4) == 0) {
        *s = (struct sides){1 + little24(p + 24), 1 + little24(p + 27)};
        return true;
    }
    if (memcmp(p + 12, "VP8L", 4) == 0 && p[20] == 0x2f) {
        unsigned bits = little24(p + 21) | (unsigned)p[24] << 24;

        *s = (struct sides){1 + (bits & SIDE_14), 1 + (bits >> 14 & SIDE_14)};
        return true;
    }
    if (memcmp(p + 12, "VP8 ", 4) == 0 && memcmp(p + 23, "\x9d\x01\x2a", 3) == 0) {
        *s = (struct sides){little16(p + 26) & SIDE_14, little16(p + 28) & SIDE_14};
        return true;
    }
    return false;
}

static bool (*const kinds[])(const unsigned char *p, size_t n, struct sides *s) = {is_png, is_jpeg,
                                                                                   is_gif, is_webp};

bool picture_can_be_shown(const void *p, size_t n)
{
    struct sides s = {0};

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (kinds[i](p, n, &s))
            return s.width > 0 && s.height > 0 && s.width <= PICTURE_SIDE_MAX &&
                   s.height <= PICTURE_SIDE_MAX;
    return false;
}
