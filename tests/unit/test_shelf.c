/* SPDX-License-Identifier: MIT */
#include <cmocka.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "store/shelf.h"
#include "store/tree.h"
#include "store/work_threads.h"

struct world {
    char root[32];
    struct event_base *base;
    struct work_pool *pool;
    struct shelf *shelf;
    size_t added, refused, published;
    char head[64];
    struct err err;
};

static void world_open(struct world *w)
{
    struct err e;

    if (!w->root[0]) {
        (void)snprintf(w->root, sizeof w->root, "/tmp/shelf-XXXXXX");
        assert_non_null(mkdtemp(w->root));
    }
    w->base = event_base_new();
    assert_int_equal(work_pool_open(w->base, &w->pool, &e), 0);
    assert_int_equal(shelf_open(w->root, w->pool, &w->shelf, &e), 0);
}

static void world_close(struct world *w, bool remove)
{
    work_pool_close(w->pool);
    shelf_stop(w->shelf);
    shelf_close(w->shelf);
    event_base_free(w->base);
    if (remove)
        assert_int_equal(tree_remove(AT_FDCWD, w->root), 0);
}

static void on_added(void *user, bool ok, const char *path, const char *head, size_t head_n)
{
    struct world *w = user;

    (void)path;
    *(ok ? &w->added : &w->refused) += 1;
    if (head_n > 0)
        (void)snprintf(w->head, sizeof w->head, "%.*s", (int)head_n, head);
}

static void on_published(void *user, const struct err *e)
{
    struct world *w = user;

    w->published++;
    w->err = *e;
}

/* Lets the workers be heard until the condition holds. */
#define settle(w, condition)                                                                       \
    for (uint64_t end_ = clock_us() + 20 * 1000000ull; !(condition) && clock_us() < end_;)         \
        (void)event_base_loop((w)->base, EVLOOP_NONBLOCK);                                         \
    assert_true(condition)

static void add(struct world *w, struct shelf_build *b, const char *path, const char *text)
{
    size_t before = w->added + w->refused;
    struct shelf_file f = {.path = path,
                           .mode = 0700,
                           .mtime_s = 1000,
                           .fd = memfd_create("x", MFD_CLOEXEC),
                           .size = strlen(text),
                           .head = true};

    assert_true(f.fd >= 0);
    assert_int_equal(fd_write_all(f.fd, text, strlen(text)), 0);
    assert_int_equal(shelf_build_add(b, &f, on_added, w), 0);
    settle(w, w->added + w->refused > before);
}

static void publish(struct world *w, const char *owner, const char *path, const char *text)
{
    size_t before = w->published;
    struct shelf_build *b;
    struct err e;

    assert_int_equal(shelf_build_new(w->shelf, &b, &e), 0);
    if (path)
        add(w, b, path, text);
    shelf_build_publish(b, owner, on_published, w);
    settle(w, w->published > before);
    assert_int_equal(w->err.kind, ERR_NONE);
}

static bool exists(const struct world *w, const char *name)
{
    char path[256];

    (void)snprintf(path, sizeof path, "%s/%s", w->root, name);
    return access(path, F_OK) == 0;
}

static void files_arrive_as_they_were(void **state)
{
    struct world w = {0};
    struct stat st;
    char path[256];

    (void)state;
    world_open(&w);
    assert_null(shelf_hold(w.shelf, "s-a"));
    publish(&w, "s-a", "pkg/deep/x.py", "hello");
    assert_string_equal(w.head, "hello");
    (void)snprintf(path, sizeof path, "%s/s-a/1/pkg/deep/x.py", w.root);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0755);
    assert_int_equal(st.st_mtime, 1000);
    assert_int_equal(st.st_size, 5);
    world_close(&w, true);
}

static void names_that_lead_out_are_refused(void **state)
{
    static const char *const bad[] = {"",     "/x", "../x", "a/../x", "a/..", ".",
                                      "a//b", "a/", "./x",  "..",     "a/./b"};
    struct world w = {0};
    struct shelf_build *b;
    struct err e;

    (void)state;
    world_open(&w);
    assert_int_equal(shelf_build_new(w.shelf, &b, &e), 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        add(&w, b, bad[i], "x");
    assert_int_equal(w.refused, ARRAY_LEN(bad));
    add(&w, b, "file", "x");
    add(&w, b, "file", "again");   /* nothing is ever changed */
    add(&w, b, "file/x", "below"); /* nor is a file a directory */
    add(&w, b, ".hidden/..x", "x");
    assert_int_equal(w.refused, ARRAY_LEN(bad) + 2);
    assert_int_equal(w.added, 2);
    shelf_build_drop(b);
    world_close(&w, true);
}

static void what_is_held_stays(void **state)
{
    struct shelf_item *one, *again, *two;
    struct world w = {0};

    (void)state;
    world_open(&w);
    publish(&w, "s-a", "x", "1");
    one = shelf_hold(w.shelf, "s-a");
    again = shelf_hold(w.shelf, "s-a");
    assert_ptr_equal(one, again);
    assert_string_equal(shelf_item_name(one), "s-a/1");
    publish(&w, "s-a", "x", "2");
    publish(&w, "s-a", NULL, NULL);
    two = shelf_hold(w.shelf, "s-a");
    assert_string_equal(shelf_item_name(two), "s-a/3");
    settle(&w, !exists(&w, "s-a/2"));
    shelf_release(one);
    assert_true(exists(&w, "s-a/1/x"));
    shelf_release(again);
    settle(&w, !exists(&w, "s-a/1"));
    shelf_release(two);
    shelf_release(NULL);
    assert_true(exists(&w, "s-a/3"));
    world_close(&w, true);
}

static void the_next_start_removes_what_was_left(void **state)
{
    static const char *const left[] = {"s-a/1", "s-a/3", ".new-x", ".new-x/y", "s-b", "s-b/2"};
    struct world w = {0};
    struct shelf_item *i;
    char path[256];

    (void)state;
    world_open(&w);
    publish(&w, "s-a", "x", "1");
    i = shelf_hold(w.shelf, "s-a"); /* as if the daemon were killed while it is used */
    publish(&w, "s-a", "x", "2");
    assert_non_null(i);
    for (size_t k = 1; k < ARRAY_LEN(left); k++) {
        (void)snprintf(path, sizeof path, "%s/%s", w.root, left[k]);
        assert_int_equal(mkdir(path, 0755), 0);
    }
    world_close(&w, false);
    world_open(&w);
    settle(&w, !exists(&w, "s-a/1") && !exists(&w, "s-a/2") && !exists(&w, ".new-x"));
    assert_true(exists(&w, "s-a/3") && exists(&w, "s-b/2"));
    world_close(&w, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_arrive_as_they_were),
        cmocka_unit_test(names_that_lead_out_are_refused),
        cmocka_unit_test(what_is_held_stays),
        cmocka_unit_test(the_next_start_removes_what_was_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
