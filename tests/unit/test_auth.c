/* SPDX-License-Identifier: MIT */
/* cmocka.h needs the others before it */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "http/server/auth.h"

struct place {
    char dir[64], below[80], path[128];
};

static int set_up(void **state)
{
    struct place *p = calloc(1, sizeof *p);

    assert_non_null(p);
    (void)snprintf(p->dir, sizeof p->dir, "/tmp/test-auth-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    (void)snprintf(p->below, sizeof p->below, "%s/a", p->dir);
    (void)snprintf(p->path, sizeof p->path, "%s/b/secret", p->below);
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;
    char dir[128];

    (void)snprintf(dir, sizeof dir, "%s/b", p->below);
    (void)unlink(p->path);
    (void)rmdir(dir);
    (void)rmdir(p->below);
    assert_int_equal(rmdir(p->dir), 0); /* no temporary file is left */
    free(p);
    return 0;
}

static struct auth_conf conf_of(enum auth_mode mode, const char *secret, const char *path)
{
    return (struct auth_conf){mode, secret, path, (uid_t)-1, (gid_t)-1};
}

static struct auth *open_pool(const struct place *p)
{
    struct auth_conf conf = conf_of(AUTH_POOL, "", p->path);
    struct auth *a = NULL;
    struct err e;

    if (auth_open(&conf, &a, &e) < 0)
        fail_msg("%s", e.text);
    return a;
}

static enum auth_verdict judge(struct auth *a, const char *authorization, struct err *e)
{
    return auth_check(a, auth_bearer(authorization), e);
}

static void put_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    (void)close(fd);
}

static void only_the_exact_token_passes(void **state)
{
    static const char *const bad[] = {
        "",
        "Bearer",
        "Bearer ",
        "bearer s3cret",
        "Bearer  s3cret",
        "Basic s3cret",
        "Bearer s3cre",
        "s3cret",
        "Bearer s3crets",
        "Bearer S3cret",
        "Bearer\ts3cret",
        "Bearer s3cret x",
        "Bearer \xff",
    };
    struct auth_conf conf = conf_of(AUTH_STATIC, "s3cret", NULL);
    struct auth *a = NULL;
    struct err e;

    (void)state;
    assert_int_equal(auth_open(&conf, &a, &e), 0);
    assert_int_equal(judge(a, "Bearer s3cret", &e), AUTH_OK);
    assert_int_equal(judge(a, NULL, &e), AUTH_REFUSED);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(judge(a, bad[i], &e), AUTH_REFUSED);
    auth_free(a);
}

static void bad_settings_are_refused_at_the_start(void **state)
{
    const struct place *p = *state;
    struct auth_conf conf = conf_of(AUTH_STATIC, "", NULL);
    struct auth *a = NULL;
    enum auth_mode m;
    struct err e;

    assert_int_equal(auth_open(&conf, &a, &e), -1);
    conf = conf_of(AUTH_POOL, "x", p->path);
    assert_int_equal(auth_open(&conf, &a, &e), -1);
    conf = conf_of(AUTH_POOL, NULL, "");
    assert_int_equal(auth_open(&conf, &a, &e), -1);
    assert_null(a);
    assert_true(auth_mode_parse("PooL", &m) && m == AUTH_POOL);
    assert_false(auth_mode_parse("open", &m));
}

static void nobody_is_asked_in_mode_none(void **state)
{
    struct auth_conf conf = conf_of(AUTH_NONE, NULL, NULL);
    struct auth *a = NULL;
    struct err e;

    (void)state;
    assert_int_equal(auth_open(&conf, &a, &e), 0);
    assert_int_equal(judge(a, NULL, &e), AUTH_OK);
    auth_free(a);
}

static void the_first_caller_claims_for_good(void **state)
{
    const struct place *p = *state;
    struct auth *a = open_pool(p);
    struct stat st;
    struct err e;

    assert_int_equal(judge(a, NULL, &e), AUTH_REFUSED);
    assert_int_equal(judge(a, "Bearer ", &e), AUTH_REFUSED);
    assert_int_equal(judge(a, "Token mine", &e), AUTH_REFUSED);
    assert_int_equal(access(p->path, F_OK), -1);
    assert_int_equal(judge(a, "Bearer mine", &e), AUTH_OK);
    assert_int_equal(judge(a, "Bearer other", &e), AUTH_REFUSED);
    assert_int_equal(stat(p->path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(st.st_size, 4);
    assert_int_equal(stat(p->below, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0755);
    auth_free(a);
    a = open_pool(p);
    assert_int_equal(judge(a, "Bearer other", &e), AUTH_REFUSED);
    assert_int_equal(judge(a, "Bearer mine", &e), AUTH_OK);
    auth_free(a);
}

static void a_kept_secret_is_trimmed_and_must_not_be_empty(void **state)
{
    const struct place *p = *state;
    struct auth_conf conf = conf_of(AUTH_POOL, NULL, p->path);
    struct auth *a = open_pool(p), *none = NULL;
    struct err e;

    auth_free(a);
    put_file(p->path, " \n kept\r\n");
    a = open_pool(p);
    assert_int_equal(judge(a, "Bearer kept", &e), AUTH_OK);
    auth_free(a);
    put_file(p->path, " \n");
    assert_int_equal(auth_open(&conf, &none, &e), -1);
    assert_null(none);
}

static void a_claim_that_cannot_be_kept_is_none(void **state)
{
    const struct place *p = *state;
    struct auth *a = open_pool(p);
    char dir[128];
    struct err e;

    (void)snprintf(dir, sizeof dir, "%s/b", p->below);
    assert_int_equal(rmdir(dir), 0);
    assert_int_equal(judge(a, "Bearer mine", &e), AUTH_BROKEN);
    assert_int_equal(mkdir(dir, 0700), 0);
    assert_int_equal(judge(a, "Bearer other", &e), AUTH_OK);
    assert_int_equal(judge(a, "Bearer mine", &e), AUTH_REFUSED);
    auth_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_exact_token_passes),
        cmocka_unit_test_setup_teardown(bad_settings_are_refused_at_the_start, set_up, tear_down),
        cmocka_unit_test(nobody_is_asked_in_mode_none),
        cmocka_unit_test_setup_teardown(the_first_caller_claims_for_good, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_kept_secret_is_trimmed_and_must_not_be_empty, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_claim_that_cannot_be_kept_is_none, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
