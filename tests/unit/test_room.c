/* SPDX-License-Identifier: MIT */
/* Where paths of a plan lead in a sandbox without mounts. */
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "init/room.h"
#include "init/room_map.h"

struct scene {
    char base[64], room[ROOM_PATH_MAX];
};

static int setup(void **state)
{
    struct scene *s = calloc(1, sizeof *s);

    assert_non_null(s);
    (void)snprintf(s->base, sizeof s->base, "/tmp/test-room-XXXXXX");
    assert_non_null(mkdtemp(s->base));
    (void)snprintf(s->room, sizeof s->room, "%s/r", s->base);
    assert_int_equal(room_make(s->room, "app/data", -1, geteuid(), getegid()), 0);
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    struct scene *s = *state;

    room_remove(s->base);
    assert_int_equal(access(s->base, F_OK), -1);
    free(s);
    return 0;
}

static void assert_led(const char *room, const char *path, const char *tail)
{
    char given[256], want[512];
    char *got;

    (void)snprintf(given, sizeof given, "%s", path);
    (void)snprintf(want, sizeof want, "%s%s", tail ? room : "", tail ? tail : path);
    got = room_path(room, given);
    assert_non_null(got);
    assert_string_equal(got, want);
    free(got);
}

static void paths_that_the_room_has_lead_there(void **state)
{
    const struct scene *s = *state;

    assert_led(s->room, "/workspace", "/workspace");
    assert_led(s->room, "/workspace/a/b", "/workspace/a/b");
    assert_led(s->room, "/tmp/x", "/tmp/x");
    assert_led(s->room, "/data/deep/er", "/data/deep/er");
    assert_led(s->room, "/", "/");
}

static void other_paths_are_the_host_s(void **state)
{
    const struct scene *s = *state;

    assert_led(s->room, "/usr/bin/python3", NULL);
    assert_led(s->room, "/workspaces", NULL);
    assert_led(s->room, "/tmpfile", NULL);
    assert_led(s->room, "workspace/a", NULL);
    assert_led(s->room, "//workspace", NULL);
}

static void arguments_and_variables_are_moved_and_texts_are_not(void **state)
{
    const struct scene *s = *state;
    char cc[] = "/usr/bin/cc", include[] = "-I/workspace", file[] = "/tmp/call/main.c";
    char words[] = "cat /workspace/x", text[] = "/workspace\nis text";
    char home[] = "HOME=/workspace", list[] = "P=/workspace/a:/usr/lib:/tmp";
    char see[] = "T=see /workspace", empty[] = "E=";
    char *argv[] = {cc, include, file, words, text, NULL};
    char *envp[] = {home, list, see, empty, NULL};
    struct job j = {.argv = argv, .envp = envp, .cwd = "/workspace/sub"};
    char want[512];

    assert_int_equal(room_map(s->room, &j), 0);
    (void)snprintf(want, sizeof want, "%s/workspace/sub", s->room);
    assert_string_equal(j.cwd, want);
    assert_string_equal(argv[0], "/usr/bin/cc");
    (void)snprintf(want, sizeof want, "-I%s/workspace", s->room);
    assert_string_equal(argv[1], want);
    (void)snprintf(want, sizeof want, "%s/tmp/call/main.c", s->room);
    assert_string_equal(argv[2], want);
    assert_string_equal(argv[3], "cat /workspace/x");
    assert_string_equal(argv[4], "/workspace\nis text");
    (void)snprintf(want, sizeof want, "HOME=%s/workspace", s->room);
    assert_string_equal(envp[0], want);
    (void)snprintf(want, sizeof want, "P=%s/workspace/a:/usr/lib:%s/tmp", s->room, s->room);
    assert_string_equal(envp[1], want);
    assert_string_equal(envp[2], "T=see /workspace");
    assert_string_equal(envp[3], "E=");
    char *moved[] = {(char *)(uintptr_t)j.cwd, argv[0], argv[1], argv[2], envp[0], envp[1]};
    for (size_t i = 0; i < sizeof moved / sizeof *moved; i++)
        free(moved[i]);
}

static void names_that_are_no_directories_of_their_own_are_refused(void **state)
{
    static const char *const names[] = {"..", "a/../b", ".hidden", "/", "workspace"};
    const struct scene *s = *state;
    char room[ROOM_PATH_MAX];

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        (void)snprintf(room, sizeof room, "%s/n%zu", s->base, i);
        assert_true(room_make(room, names[i], -1, geteuid(), getegid()) < 0);
    }
}

static void a_kept_workspace_is_led_to_and_not_removed(void **state)
{
    const struct scene *s = *state;
    char kept[128], room[ROOM_PATH_MAX];
    struct stat st, seen;
    int dir, tree;

    (void)snprintf(kept, sizeof kept, "%s/kept", s->base);
    (void)snprintf(room, sizeof room, "%s/k", s->base);
    assert_int_equal(mkdir(kept, 0700), 0);
    dir = open(kept, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(room_make(room, "", dir, geteuid(), getegid()), 0);
    tree = room_tree(room, false);
    assert_true(tree >= 0);
    assert_int_equal(fstat(tree, &seen), 0);
    assert_int_equal(fstat(dir, &st), 0);
    assert_int_equal(st.st_ino, seen.st_ino);
    room_remove(room);
    assert_int_equal(access(room, F_OK), -1);
    assert_int_equal(access(kept, F_OK), 0);
    (void)close(tree);
    (void)close(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(paths_that_the_room_has_lead_there, setup, teardown),
        cmocka_unit_test_setup_teardown(other_paths_are_the_host_s, setup, teardown),
        cmocka_unit_test_setup_teardown(arguments_and_variables_are_moved_and_texts_are_not, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(names_that_are_no_directories_of_their_own_are_refused,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_kept_workspace_is_led_to_and_not_removed, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
