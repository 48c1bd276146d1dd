/* SPDX-License-Identifier: MIT */
/* Profiles and arguments for macOS's sandbox, on every platform: against golden files, and against
 * a small checker of the language. */
#include <cmocka.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/seatbelt.h"

/* ---- the checker ---- */

struct reader {
    const char *p;
    int depth;
};

static void blanks(struct reader *r)
{
    while (*r->p == ' ' || *r->p == '\n')
        r->p++;
}

/* A word of the language: version, allow, file-read*, ... */
static size_t word(struct reader *r, char out[64])
{
    size_t n = strspn(r->p, "abcdefghijklmnopqrstuvwxyz0123456789-*");

    if (n == 0 || n >= 64)
        return 0;
    memcpy(out, r->p, n);
    out[n] = '\0';
    r->p += n;
    return n;
}

static bool string(struct reader *r)
{
    for (r->p++; *r->p && *r->p != '"'; r->p++)
        if (*r->p == '\\' && (*++r->p != '"' && *r->p != '\\'))
            return false;
        else if ((unsigned char)*r->p < ' ')
            return false;
    return *r->p++ == '"';
}

static bool is_one_of(const char *w, const char *const *all)
{
    for (; *all; all++)
        if (strcmp(w, *all) == 0)
            return true;
    return false;
}

/* (subpath "..."), (literal "..."), (global-name "..."), (target same-sandbox) */
static bool filter(struct reader *r)
{
    static const char *const with_string[] = {"subpath", "literal", "global-name", NULL};
    char w[64];

    if (*r->p++ != '(' || !word(r, w))
        return false;
    blanks(r);
    if (is_one_of(w, with_string)) {
        if (*r->p != '"' || !string(r))
            return false;
    } else if (strcmp(w, "target") != 0 || !word(r, w) || strcmp(w, "same-sandbox") != 0) {
        return false;
    }
    return *r->p++ == ')';
}

/* (allow operation filter...) */
static bool rule(struct reader *r)
{
    static const char *const operations[] = {
        "process-fork",       "process-exec", "signal",      "sysctl-read", "mach-lookup",
        "file-read-metadata", "file-read*",   "file-write*", "network*",    NULL};
    char w[64];

    if (*r->p++ != '(' || !word(r, w) || strcmp(w, "allow") != 0)
        return false;
    blanks(r);
    if (!word(r, w) || !is_one_of(w, operations))
        return false;
    for (blanks(r); *r->p == '('; blanks(r))
        if (!filter(r))
            return false;
    return *r->p++ == ')';
}

static bool is_profile(const char *text)
{
    static const char head[] = "(version 1)\n(deny default)\n";
    struct reader r = {.p = text + sizeof head - 1};

    if (strncmp(text, head, sizeof head - 1) != 0)
        return false;
    for (blanks(&r); *r.p; blanks(&r))
        if (!rule(&r))
            return false;
    return true;
}

/* ---- the tests ---- */

static void read_golden(const char *name, char out[SEATBELT_PROFILE_MAX])
{
    char path[128];
    FILE *f;
    size_t n;

    (void)snprintf(path, sizeof path, "tests/unit/golden/%s", name); /* tests run at the top */
    f = fopen(path, "re");
    assert_non_null(f);
    n = fread(out, 1, SEATBELT_PROFILE_MAX - 1, f);
    out[n] = '\0';
    (void)fclose(f);
}

static void assert_golden(const struct seatbelt *s, const char *name)
{
    struct buf out = BUF_INIT(SEATBELT_PROFILE_MAX);
    char golden[SEATBELT_PROFILE_MAX];
    struct err e;

    assert_int_equal(seatbelt_profile(s, &out, &e), 0);
    read_golden(name, golden);
    assert_string_equal(out.p, golden);
    assert_true(is_profile(out.p));
    buf_done(&out);
}

static void profiles_are_the_golden_ones(void **state)
{
    (void)state;
    assert_golden(&(struct seatbelt){.room = "/private/tmp/room"}, "seatbelt-plain.sb");
    assert_golden(&(struct seatbelt){.room = "/private/tmp/room",
                                     .workspace = "/Users/me/with \"quotes\" and \\",
                                     .network = true},
                  "seatbelt-network.sb");
}

static void a_network_is_there_only_when_asked_for(void **state)
{
    struct buf out = BUF_INIT(SEATBELT_PROFILE_MAX);
    struct err e;

    (void)state;
    assert_int_equal(seatbelt_profile(&(struct seatbelt){.room = "/r"}, &out, &e), 0);
    assert_null(strstr(out.p, "network"));
    assert_null(strstr(out.p, "(allow default)"));
    assert_null(strstr(out.p, "/Users"));
    buf_done(&out);
}

static void paths_that_cannot_be_written_are_refused(void **state)
{
    static const char *const bad[] = {"relative", "", "/a\nb", "/a\x01", "/a\x7f"};
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct buf out = BUF_INIT(SEATBELT_PROFILE_MAX);

        assert_int_equal(seatbelt_profile(&(struct seatbelt){.room = bad[i]}, &out, &e), -1);
        buf_done(&out);
    }
}

static void a_path_cannot_add_a_rule(void **state)
{
    struct buf out = BUF_INIT(SEATBELT_PROFILE_MAX);
    struct err e;

    (void)state;
    assert_int_equal(
        seatbelt_profile(&(struct seatbelt){.room = "/r\")) (allow network*) (allow x (literal \""},
                         &out, &e),
        0);
    assert_true(is_profile(out.p));
    assert_null(strstr(out.p, "(allow network*)\n"));
    buf_done(&out);
}

static void the_checker_sees_what_is_wrong(void **state)
{
    static const char *const bad[] = {
        "(version 1)\n(allow default)\n",
        "(version 1)\n(deny default)\n(allow everything)\n",
        "(version 1)\n(deny default)\n(allow file-read* (subpath \"/a)\n",
        "(version 1)\n(deny default)\n(allow file-read* (subpath \"/a\")\n",
        "(version 1)\n(deny default)\n(allow file-read* (sub \"/a\"))\n",
        "(version 1)\n(deny default)\nallow\n",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(is_profile(bad[i]));
}

static void arguments_go_behind_the_profile(void **state)
{
    char *argv[] = {(char *)"/usr/bin/python3", (char *)"-B", (char *)"-p", NULL};
    const char **all = seatbelt_argv("(version 1)", argv);

    (void)state;
    assert_non_null(all);
    assert_string_equal(all[0], "/usr/bin/sandbox-exec");
    assert_string_equal(all[1], "-p");
    assert_string_equal(all[2], "(version 1)");
    assert_ptr_equal(all[3], argv[0]);
    assert_ptr_equal(all[4], argv[1]);
    assert_ptr_equal(all[5], argv[2]);
    assert_null(all[6]);
    free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profiles_are_the_golden_ones),
        cmocka_unit_test(a_network_is_there_only_when_asked_for),
        cmocka_unit_test(paths_that_cannot_be_written_are_refused),
        cmocka_unit_test(a_path_cannot_add_a_rule),
        cmocka_unit_test(the_checker_sees_what_is_wrong),
        cmocka_unit_test(arguments_go_behind_the_profile),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
