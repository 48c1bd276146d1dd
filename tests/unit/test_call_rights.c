/* SPDX-License-Identifier: MIT */
/* From rules about names to rights of directories: never less than the rules allow. */
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "function/rights.h"

enum { NOTHING = 0, DELETE = PLAN_DELETE, ALL = PLAN_EVERYTHING };

static const struct call_file files[] = {
    {"/data/a",       {"1", 1}},
    {"/data/out/b",   {"2", 1}},
    {"/data/in/x/c",  {"3", 1}},
    {"/workspace/w",  {"4", 1}},
    {"/app/deep/f/g", {"5", 1}},
};
static const char *const made[] = {"/data/", "/data/empty/"};

/* What each directory may, in this order. */
static const char *const dirs[] = {"/data/",      "/data/empty/", "/data/in/",
                                   "/data/in/x/", "/data/out/",   "/workspace/"};

/* clang-format off */
static const struct {
    const char *permissions;
    unsigned want[ARRAY_LEN(dirs)];
} rows[] = {
    {"{}", {NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING}},
    {"{'default':{'create':true}}", {ALL, ALL, ALL, ALL, ALL, ALL}},
    {"{'default':{'modify':true}}", {NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING}},
    {"{'default':{'delete':true}}", {DELETE, NOTHING, NOTHING, DELETE, DELETE, DELETE}},
    {"{'rules':[{'pattern':'data/out/**','allow':'*'}]}",
     {NOTHING, NOTHING, NOTHING, NOTHING, ALL, NOTHING}},
    {"{'rules':[{'pattern':'/data/out/new.txt','allow':['create']}]}",
     {NOTHING, NOTHING, NOTHING, NOTHING, ALL, NOTHING}},
    {"{'rules':[{'pattern':'data/later/**','allow':['create']}]}",
     {ALL, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING}},
    {"{'rules':[{'pattern':'*.txt','allow':['create']}]}", {ALL, ALL, ALL, ALL, ALL, ALL}},
    {"{'rules':[{'pattern':'in/x/a','allow':['delete']}]}",
     {NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING}},
    {"{'rules':[{'pattern':'in/x/c','allow':['delete']}]}",
     {NOTHING, NOTHING, NOTHING, DELETE, NOTHING, NOTHING}},
    {"{'default':{'create':true},'rules':[{'pattern':'in/**','deny':'*'}]}",
     {ALL, ALL, NOTHING, NOTHING, ALL, ALL}},
    {"{'default':{'create':true},'rules':[{'pattern':'**','deny':['create']}]}",
     {NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING}},
    {"{'default':{'create':true},'rules':[{'pattern':'*','deny':['create']}]}",
     {ALL, ALL, ALL, ALL, ALL, ALL}},
    {"{'default':{'create':true},'rules':[{'pattern':'**','deny':['create']},"
     "{'pattern':'out/*.log','allow':['create'],'priority':1}]}",
     {NOTHING, NOTHING, NOTHING, NOTHING, ALL, ALL}},
    {"{'rules':[{'pattern':'{out,in}/**','allow':['create']}]}", {ALL, ALL, ALL, ALL, ALL, ALL}},
    {"{'rules':[{'pattern':'!out/**','allow':['create']}]}", {ALL, ALL, ALL, ALL, ALL, ALL}},
};
/* clang-format on */

static struct json_value parse(const char *text, char *copy, size_t max)
{
    struct json_value v;
    struct err e;

    (void)snprintf(copy, max, "%s", text);
    for (char *p = copy; *p; p++)
        if (*p == '\'')
            *p = '"';
    assert_int_equal(json_parse(copy, strlen(copy), 0, &v, &e), 0);
    return v;
}

static void find(const char *permissions, struct mount *m, struct call_rights *r)
{
    char mount_text[128], perm_text[512];
    uint64_t steps = GLOB_STEPS_MAX;
    struct rights_ask ask = {m,    "/workspace",    files, ARRAY_LEN(files),
                             made, ARRAY_LEN(made), &steps};
    struct err e;

    assert_int_equal(mount_parse(m, parse("{'dirs':{'/data':'/srv'}}", mount_text, 128),
                                 parse(permissions, perm_text, sizeof perm_text), &e),
                     0);
    assert_int_equal(rights_find(&ask, r, &e), 0);
}

static unsigned rights_of(const struct call_rights *r, const char *dir)
{
    for (size_t i = 0; i < r->dirs_n; i++)
        if (strcmp(r->dirs[i], dir) == 0)
            return r->dir_rights[i];
    fail_msg("%s is not in the list", dir);
    return 0;
}

static void rules_become_rights_of_directories(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct call_rights r;
        struct mount m;

        find(rows[i].permissions, &m, &r);
        for (size_t k = 0; k < ARRAY_LEN(dirs); k++)
            if (rights_of(&r, dirs[k]) != rows[i].want[k])
                fail_msg("%s: %s has %u", rows[i].permissions, dirs[k], rights_of(&r, dirs[k]));
        rights_done(&r);
        mount_done(&m);
    }
}

static void every_directory_is_there_and_tmp_is_open(void **state)
{
    struct call_rights r;
    struct mount m;

    (void)state;
    find("{}", &m, &r);
    assert_int_equal(rights_of(&r, "/tmp/"), ALL);
    assert_int_equal(rights_of(&r, "/dev/"), ALL);
    assert_int_equal(rights_of(&r, "/app/deep/f/"), NOTHING);
    for (size_t i = 1; i < r.dirs_n; i++)
        assert_true(strcmp(r.dirs[i - 1], r.dirs[i]) < 0);
    for (size_t i = 0; i < r.dirs_n; i++)
        assert_int_equal(rights_dir(&r, i).mode, r.dir_rights[i] ? 0755 : 0555);
    rights_done(&r);
    mount_done(&m);
}

static void files_have_the_right_to_be_modified(void **state)
{
    struct call_rights r;
    struct mount m;

    (void)state;
    find("{'rules':[{'pattern':'out/*','allow':['modify']}]}", &m, &r);
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        assert_int_equal(r.files[i], i == 1 ? PLAN_MODIFY : 0);
    rights_done(&r);
    mount_done(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_become_rights_of_directories),
        cmocka_unit_test(every_directory_is_there_and_tmp_is_open),
        cmocka_unit_test(files_have_the_right_to_be_modified),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
