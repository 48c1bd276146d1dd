/* SPDX-License-Identifier: MIT */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tar.h"
#include "base/tar_inner.h"

enum { OUT_MAX = 1 << 20 };

/* Everything that was told, as text. */
struct told {
    struct buf text;
    int refuse_at; /* the entry that is refused; 0: none */
    int n;
};

static int on_entry(void *user, const struct tar_entry *e)
{
    struct told *t = user;

    (void)buf_printf(&t->text, "%d %s>%s %o %lld.%09u %llu:", (int)e->kind, e->name, e->link,
                     e->mode, (long long)e->mtime_s, e->mtime_ns, (unsigned long long)e->size);
    if (e->kind != TAR_FILE)
        (void)buf_putc(&t->text, '\n');
    return ++t->n == t->refuse_at;
}

static int on_data(void *user, const char *p, size_t n)
{
    return buf_put(&((struct told *)user)->text, p, n);
}

static int on_entry_end(void *user)
{
    return buf_putc(&((struct told *)user)->text, '\n');
}

static const struct tar_limits roomy = {100, OUT_MAX, 10};

/* Reads it in pieces of that size; the fault, or 100 when the sink refused. */
static int read_archive(const struct buf *a, size_t piece, const struct tar_limits *limits,
                        struct told *t)
{
    struct tar_reader *r = malloc(sizeof *r);
    const struct tar_sink sink = {on_entry, on_data, on_entry_end, t};
    int result = 0, fault;

    assert_non_null(r);
    tar_open(r, limits, &sink);
    for (size_t at = 0; at < a->n && result == 0; at += piece)
        result = tar_feed(r, a->p + at, a->n - at < piece ? a->n - at : piece);
    if (result == 0)
        result = tar_finish(r);
    fault = (int)r->fault;
    if (result < 0 && fault == TAR_FINE)
        fault = 100;
    assert_true((result == 0) == (fault == TAR_FINE));
    tar_close(r);
    free(r);
    return fault;
}

static void expect_told(const struct buf *a, const char *text)
{
    static const size_t pieces[] = {1, 7, 511, 512, 513, OUT_MAX};

    for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
        struct told t = {.text = BUF_INIT(OUT_MAX)};

        assert_int_equal(read_archive(a, pieces[i], &roomy, &t), TAR_FINE);
        assert_string_equal(t.text.p ? t.text.p : "", text);
        buf_done(&t.text);
    }
}

static void expect_fault(const struct buf *a, enum tar_fault fault)
{
    struct told t = {.text = BUF_INIT(OUT_MAX)};

    assert_int_equal(read_archive(a, 100, &roomy, &t), fault);
    buf_done(&t.text);
}

static void put_zeros(struct buf *b, size_t n)
{
    while (n-- > 0)
        (void)buf_putc(b, '\0');
}

static void put_content(struct buf *b, const char *text)
{
    (void)buf_puts(b, text);
    put_zeros(b, tar_padding(strlen(text)));
}

/* A header by hand. */
static void put_raw(struct buf *b, const char *name, char type, const char *size, const char *magic)
{
    struct tar_head h = {.type = type};
    unsigned sum;
    int ignored;

    memcpy(h.name, name, strlen(name));
    (void)snprintf(h.mode, sizeof h.mode, "644 ");
    (void)snprintf(h.size, sizeof h.size, "%s", size);
    memcpy(h.magic, magic, strlen(magic));
    tar_sums(&h, &sum, &ignored);
    (void)snprintf(h.checksum, sizeof h.checksum, "%06o", sum);
    (void)buf_put(b, &h, sizeof h);
}

static void sum_again(struct buf *b, size_t at)
{
    struct tar_head h;
    unsigned sum;
    int ignored;

    memcpy(&h, b->p + at, sizeof h);
    tar_sums(&h, &sum, &ignored);
    (void)snprintf(h.checksum, sizeof h.checksum, "%06o", sum);
    memcpy(b->p + at, &h, sizeof h);
}

/* An extended header with one record, whose length is counted. */
static void put_pax(struct buf *b, const char *record)
{
    char text[512], size[32];
    size_t n = strlen(record) + 2;

    n += n + 2 > 99 ? 3 : n + 1 > 9 ? 2 : 1;
    (void)snprintf(text, sizeof text, "%zu %s\n", n, record);
    (void)snprintf(size, sizeof size, "%zo", strlen(text));
    put_raw(b, "x", 'x', size, "ustar");
    put_content(b, text);
}

/* ---- what is written is read ---- */

static void test_every_kind_comes_back(void **state)
{
    cleanup_with(buf_done) struct buf b = BUF_INIT(OUT_MAX);

    (void)state;
    tar_put_header(&b,
                   &(struct tar_entry){
                       .kind = TAR_DIRECTORY, .name = "d", .link = "", .mode = 0755, .mtime_s = 5});
    tar_put_header(&b, &(struct tar_entry){
                           .kind = TAR_FILE, .name = "d/f", .link = "", .size = 5, .mode = 04644});
    put_content(&b, "hello");
    tar_put_header(&b, &(struct tar_entry){.kind = TAR_FILE, .name = "e", .link = "", .mode = 0});
    tar_put_header(&b, &(struct tar_entry){.kind = TAR_SYMLINK, .name = "s", .link = "../x//y"});
    tar_put_header(&b, &(struct tar_entry){.kind = TAR_HARDLINK, .name = "h", .link = "d/f"});
    put_zeros(&b, TAR_END_SIZE);
    expect_told(&b, "1 d> 755 5.000000000 0:\n"
                    "0 d/f> 644 0.000000000 5:hello\n"
                    "0 e> 0 0.000000000 0:\n"
                    "2 s>../x//y 0 0.000000000 0:\n"
                    "3 h>d/f 0 0.000000000 0:\n");
}

static void test_long_names_of_every_length(void **state)
{
    (void)state;
    for (size_t n = 90; n < 300; n++) {
        cleanup_with(buf_done) struct buf b = BUF_INIT(OUT_MAX);
        cleanup_with(buf_done) struct buf text = BUF_INIT(OUT_MAX);
        char name[300] = {0};

        for (size_t i = 0; i < n; i++)
            name[i] = i % 60 == 59 && i + 1 < n ? '/' : 'n';
        tar_put_header(&b, &(struct tar_entry){.kind = TAR_SYMLINK, .name = name, .link = name});
        put_zeros(&b, TAR_END_SIZE);
        (void)buf_printf(&text, "2 %s>%s 0 0.000000000 0:\n", name, name);
        expect_told(&b, text.p);
    }
}

static void test_large_numbers(void **state)
{
    static const int64_t times[] = {-1, INT64_MIN / 4, 0, 077777777777, 0100000000000};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        cleanup_with(buf_done) struct buf b = BUF_INIT(OUT_MAX);
        char text[128];

        tar_put_header(&b, &(struct tar_entry){.kind = TAR_DIRECTORY,
                                               .name = "d",
                                               .link = "",
                                               .mtime_s = times[i],
                                               .uid = UINT32_MAX});
        put_zeros(&b, TAR_END_SIZE);
        (void)snprintf(text, sizeof text, "1 d> 0 %lld.000000000 0:\n", (long long)times[i]);
        expect_told(&b, text);
    }
    {
        cleanup_with(buf_done) struct buf b = BUF_INIT(OUT_MAX);
        struct told t = {.text = BUF_INIT(OUT_MAX), .refuse_at = 1};
        const struct tar_limits wide = {1, UINT64_MAX, 1};

        tar_put_header(
            &b, &(struct tar_entry){.kind = TAR_FILE, .name = "f", .link = "", .size = 9000000000});
        assert_int_equal(read_archive(&b, 512, &wide, &t), 100);
        assert_string_equal(t.text.p, "0 f> 0 0.000000000 9000000000:");
        buf_done(&t.text);
    }
}

/* ---- what others write ---- */

static void test_gnu_s_large_numbers(void **state)
{
    static const struct {
        const char *field, *text;
    } cases[] = {
        {"\x80\0\0\0\0\0\0\1\0\0\0\0",                       "1 d> 644 4294967296.000000000 0:\n"},
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe", "1 d> 644 -2.000000000 0:\n"        },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_with(buf_done) struct buf b = BUF_INIT(OUT_MAX);

        put_raw(&b, "d/", '5', "0", "ustar  ");
        memcpy(b.p + offsetof(struct tar_head, mtime), cases[i].field, 12);
        sum_again(&b, 0);
        put_zeros(&b, TAR_END_SIZE);
        expect_told(&b, cases[i].text);
    }
    {
        cleanup_with(buf_done) struct buf b = BUF_INIT(OUT_MAX);

        put_raw(&b, "f", '0', "0", "ustar  ");
        memset(b.p + offsetof(struct tar_head, size), 0xff, 12);
        sum_again(&b, 0);
        expect_fault(&b, TAR_NUMBER); /* less than nothing */
    }
    {
        cleanup_with(buf_done) struct buf b = BUF_INIT(OUT_MAX);

        put_raw(&b, "f", '0', "0", "ustar  ");
        memcpy(b.p + offsetof(struct tar_head, mtime), "\x80\0\0\0\x7f\0\0\0\0\0\0\0", 12);
        sum_again(&b, 0);
        expect_fault(&b, TAR_NUMBER); /* a time that no extended header may name */
    }
}

static void test_extended_headers(void **state)
{
    cleanup_with(buf_done) struct buf b = BUF_INIT(OUT_MAX);

    (void)state;
    put_raw(&b, "g", 'g', "15", "ustar");
    put_content(&b, "13 comment=x\n");
    put_pax(&b, "path=./a//b/./c");
    put_pax(&b, "mtime=12.5");
    put_pax(&b, "SCHILY.xattr.user.x=whatever");
    put_raw(&b, "ignored", '0', "3", "ustar");
    put_content(&b, "abc");
    put_raw(&b, "L", 'L', "11", "ustar  ");
    put_content(&b, "long/name");
    put_raw(&b, "K", 'K', "7", "ustar  ");
    put_content(&b, "target");
    put_raw(&b, "ignored", '2', "0", "ustar  ");
    put_pax(&b, "mtime=-1.25");
    put_pax(&b, "size=2");
    put_raw(&b, "v7", '\0', "77", "");
    put_content(&b, "xy");
    put_raw(&b, "olddir/", '\0', "0", "");
    put_zeros(&b, TAR_BLOCK);
    (void)buf_puts(&b, "what follows the end does not matter");
    expect_told(&b, "0 a/b/c> 644 12.500000000 3:abc\n"
                    "2 long/name>target 644 0.000000000 0:\n"
                    "0 v7> 644 -2.750000000 2:xy\n"
                    "1 olddir> 644 0.000000000 0:\n");
}

static void test_malformed_extended_headers(void **state)
{
    static const char *const bad[] = {"x path=a\n",
                                      "9 path=ab\n",
                                      "99 path=a\n",
                                      "8 path=a",
                                      "8path=a\n",
                                      "0 path=a\n",
                                      "7 nothing\n",
                                      "12 size=1000x\n",
                                      "8 size=\n",
                                      "11 mtime=x\n",
                                      "9 path=a\n8",
                                      "12 mtime=1.x\n",
                                      "28 size=99999999999999999999\n"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        cleanup_with(buf_done) struct buf b = BUF_INIT(OUT_MAX);
        char size[32];

        (void)snprintf(size, sizeof size, "%zo", strlen(bad[i]));
        put_raw(&b, "x", 'x', size, "ustar");
        put_content(&b, bad[i]);
        put_raw(&b, "f", '0', "0", "ustar");
        put_zeros(&b, TAR_END_SIZE);
        expect_fault(&b, TAR_EXTENDED);
    }
}

/* ---- what is refused ---- */

static void test_types_and_numbers_that_are_refused(void **state)
{
    static const struct {
        const char *name, *size;
        char type;
        enum tar_fault fault;
    } cases[] = {
        {"f",                       "9",           '0', TAR_NUMBER       },
        {"f",                       "1 2",         '0', TAR_NUMBER       },
        {"d",                       "1",           '5', TAR_CONTENT      },
        {"d/",                      "1",           '0', TAR_CONTENT      },
        {"c",                       "0",           '3', TAR_SPECIAL      },
        {"b",                       "0",           '4', TAR_SPECIAL      },
        {"p",                       "0",           '6', TAR_SPECIAL      },
        {"s",                       "0",           'S', TAR_TYPE         },
        {"?",                       "0",           '~', TAR_TYPE         },
        {"/f",                      "0",           '0', TAR_NAME_ABSOLUTE},
        {"a/../",                   "0",           '5', TAR_NAME_PARENT  },
        {"..",                      "0",           '5', TAR_NAME_PARENT  },
        {"",                        "0",           '0', TAR_NAME_EMPTY   },
        {"./",                      "0",           '2', TAR_NAME_EMPTY   },
        {"l",                       "0",           '2', TAR_NAME_EMPTY   },
        {"x",                       "200001",      'x', TAR_EXTENDED     },
        {"L",                       "200001",      'L', TAR_NAME_LONG    },
        {"f",                       "77777777777", '0', TAR_LARGE        },
        {"1/2/3/4/5/6/7/8/9/10/11", "0",           '0', TAR_DEEP         },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_with(buf_done) struct buf b = BUF_INIT(OUT_MAX);

        put_raw(&b, cases[i].name, cases[i].type, cases[i].size, "ustar");
        put_zeros(&b, TAR_END_SIZE);
        expect_fault(&b, cases[i].fault);
    }
}

static void test_sparse_files_are_not_guessed_at(void **state)
{
    cleanup_with(buf_done) struct buf b = BUF_INIT(OUT_MAX);

    (void)state;
    put_pax(&b, "GNU.sparse.major=1");
    put_raw(&b, "f", '0', "0", "ustar");
    put_zeros(&b, TAR_END_SIZE);
    expect_fault(&b, TAR_TYPE);
}

static void test_ends(void **state)
{
    cleanup_with(buf_done) struct buf b = BUF_INIT(OUT_MAX);
    size_t whole;

    (void)state;
    expect_fault(&b, TAR_NO_END);
    put_raw(&b, "f", '0', "3", "ustar");
    put_content(&b, "abc");
    put_zeros(&b, TAR_END_SIZE);
    whole = b.n;
    for (b.n = 0; b.n < whole - TAR_BLOCK; b.n++)
        expect_fault(&b, b.n % (2 * TAR_BLOCK) ? TAR_CUT : TAR_NO_END);
    b.n = whole - TAR_BLOCK; /* one block of zeros is enough */
    expect_told(&b, "0 f> 644 0.000000000 3:abc\n");
    b.p[0] ^= 1;
    expect_fault(&b, TAR_CHECKSUM);
}

static void test_limits(void **state)
{
    cleanup_with(buf_done) struct buf b = BUF_INIT(OUT_MAX);
    struct told t = {.text = BUF_INIT(OUT_MAX)};

    (void)state;
    for (int i = 0; i < 3; i++) {
        put_raw(&b, "a/f", '0', "3", "ustar");
        put_content(&b, "abc");
    }
    put_zeros(&b, TAR_END_SIZE);
    assert_int_equal(read_archive(&b, 100, &(struct tar_limits){2, 10000, 2}, &t), TAR_MANY);
    assert_int_equal(read_archive(&b, 100, &(struct tar_limits){3, 10000, 1}, &t), TAR_DEEP);
    assert_int_equal(read_archive(&b, 100, &(struct tar_limits){3, 3583, 2}, &t), TAR_LARGE);
    assert_int_equal(read_archive(&b, 100, &(struct tar_limits){3, 3584, 2}, &t), TAR_FINE);
    buf_done(&t.text);
}

static void test_a_sink_ends_the_reading(void **state)
{
    cleanup_with(buf_done) struct buf b = BUF_INIT(OUT_MAX);
    struct told t = {.text = BUF_INIT(OUT_MAX), .refuse_at = 2};

    (void)state;
    put_raw(&b, "a", '5', "0", "ustar");
    put_raw(&b, "b", '5', "0", "ustar");
    put_raw(&b, "c", '5', "0", "ustar");
    put_zeros(&b, TAR_END_SIZE);
    assert_int_equal(read_archive(&b, OUT_MAX, &roomy, &t), 100);
    assert_int_equal(t.n, 2);
    buf_done(&t.text);
}

static void test_names_are_cleaned(void **state)
{
    static const struct {
        const char *raw, *clean;
        unsigned depth;
    } cases[] = {
        {".",         ".",       0},
        {"././/",     ".",       0},
        {"a",         "a",       1},
        {"./a/",      "a",       1},
        {"a//b/./c/", "a/b/c",   3},
        {"...",       "...",     1},
        {"..a/b..",   "..a/b..", 2},
    };
    char out[TAR_NAME_MAX];
    char long_name[TAR_NAME_MAX + 10];
    unsigned depth = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(tar_clean_name(cases[i].raw, out, &depth), TAR_FINE);
        assert_string_equal(out, cases[i].clean);
        assert_int_equal(depth, cases[i].depth);
    }
    memset(long_name, 'x', sizeof long_name);
    long_name[sizeof long_name - 1] = '\0';
    assert_int_equal(tar_clean_name(long_name, out, &depth), TAR_NAME_LONG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_comes_back),
        cmocka_unit_test(test_long_names_of_every_length),
        cmocka_unit_test(test_large_numbers),
        cmocka_unit_test(test_gnu_s_large_numbers),
        cmocka_unit_test(test_extended_headers),
        cmocka_unit_test(test_malformed_extended_headers),
        cmocka_unit_test(test_types_and_numbers_that_are_refused),
        cmocka_unit_test(test_sparse_files_are_not_guessed_at),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_a_sink_ends_the_reading),
        cmocka_unit_test(test_names_are_cleaned),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
