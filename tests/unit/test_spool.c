/* SPDX-License-Identifier: MIT */
/* The spool on a real directory, with real workers and a real loop. */
#include <cmocka.h>
#include <event2/event.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/fd.h"
#include "net/spool.h"
#include "store/work_threads.h"

enum { PATH_BYTES = 256, BYTES_MAX = 8192 };

struct stage {
    char top[PATH_BYTES], path[PATH_BYTES];
    struct event_base *base;
    struct work_pool *pool;
    struct spool *spool;
    int told;        /* callbacks so far */
    bool on_disk;    /* of the last put */
    struct buf file; /* of the last read */
    struct bytes body;
};

static void open_spool(struct stage *s, uint64_t age_s)
{
    struct spool_conf conf = {.path = s->path,
                              .option = "RESULTS_PATH",
                              .told = "http://x",
                              .bytes_max = BYTES_MAX,
                              .age_max_s = age_s};
    struct err e;

    assert_int_equal(spool_open(&conf, s->pool, &s->spool, &e), 0);
}

static int setup(void **state)
{
    struct stage *s = calloc(1, sizeof *s);
    struct err e;

    assert_non_null(s);
    (void)snprintf(s->top, sizeof s->top, "/tmp/test-spool-XXXXXX");
    assert_non_null(mkdtemp(s->top));
    (void)snprintf(s->path, sizeof s->path, "%.200s/a/results", s->top);
    assert_int_equal(spool_prepare(s->path, "RESULTS_PATH", geteuid(), getegid(), &e), 0);
    s->base = event_base_new();
    assert_int_equal(work_pool_open(s->base, &s->pool, &e), 0);
    open_spool(s, 3600);
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    struct stage *s = *state;
    char command[PATH_BYTES + 16];

    work_pool_close(s->pool);
    spool_close(s->spool);
    event_base_free(s->base);
    buf_done(&s->file);
    (void)snprintf(command, sizeof command, "%s", s->top);
    if (fork() == 0)
        execl("/bin/rm", "rm", "-rf", command, (char *)NULL);
    (void)wait(NULL);
    free(s);
    return 0;
}

static void on_put(void *user, struct spool_entry *e, const char *why)
{
    struct stage *s = user;

    (void)why;
    s->told++;
    s->on_disk = e->on_disk;
    e->user = NULL;
}

static void on_read(void *user, struct buf *file, struct bytes body)
{
    struct stage *s = user;

    s->told++;
    buf_done(&s->file);
    s->file = *file;
    *file = BUF_INIT(0);
    s->body = body;
}

static void wait_told(struct stage *s, int n)
{
    while (s->told < n)
        assert_true(event_base_loop(s->base, EVLOOP_ONCE) >= 0);
}

static struct spool_entry *put(struct stage *s, const char *id, const char *body)
{
    int before = s->told;
    struct spool_entry *e = spool_put(s->spool, &(struct spool_order){
                                                    .id = id,
                                                    .members = "",
                                                    .body = {.p = body, .n = strlen(body)},
                                                    .done = on_put,
                                                    .user = s
    });

    if (e)
        wait_told(s, before + 1);
    return e;
}

/* What is done without a callback has been done when a later read is. */
static void settle(struct stage *s, const struct spool_entry *any)
{
    int before = s->told;

    assert_int_equal(spool_read(s->spool, any, on_read, s), 0);
    wait_told(s, before + 1);
}

static bool exists(const struct stage *s, const char *name)
{
    char path[PATH_BYTES * 2];
    struct stat st;

    (void)snprintf(path, sizeof path, "%s/%s", s->path, name);
    return stat(path, &st) == 0;
}

static void write_file(const struct stage *s, const char *name, const char *text)
{
    char path[PATH_BYTES * 2];
    int fd;

    (void)snprintf(path, sizeof path, "%s/%s", s->path, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
    (void)close(fd);
}

static void reopen(struct stage *s, uint64_t age_s)
{
    spool_close(s->spool);
    open_spool(s, age_s);
}

static void what_is_put_can_be_read_in_the_next_life(void **state)
{
    struct stage *s = *state;
    struct spool_entry *e = put(s, "exec_1", "{\"status\":\"success\"}");

    assert_non_null(e);
    assert_true(s->on_disk);
    assert_true(exists(s, "exec_1.json"));
    reopen(s, 3600);
    e = spool_next(s->spool);
    assert_non_null(e);
    assert_string_equal(e->id, "exec_1");
    settle(s, e);
    assert_int_equal(s->body.n, strlen("{\"status\":\"success\"}"));
    assert_memory_equal(s->body.p, "{\"status\":\"success\"}", s->body.n);
}

static void files_are_private(void **state)
{
    struct stage *s = *state;
    char path[PATH_BYTES * 2];
    struct stat st;

    assert_non_null(put(s, "p", "{}"));
    (void)snprintf(path, sizeof path, "%s/p.json", s->path);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(stat(s->path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
}

static void names_that_are_no_ids_are_refused(void **state)
{
    static const char *const names[] = {"", ".", "..", ".x", "a/b", "../x", "a b", "\xc3\xbc"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_null(put(*state, names[i], "{}"));
}

static void bytes_are_bounded_and_given_back(void **state)
{
    struct stage *s = *state;
    char body[BYTES_MAX / 2];
    struct spool_entry *e;

    (void)snprintf(body, sizeof body, "{\"x\":\"%0*d\"}", BYTES_MAX / 2 - 20, 0);
    e = put(s, "one", body);
    assert_non_null(e);
    assert_null(put(s, "two", body));
    spool_drop(s->spool, e);
    e = put(s, "two", body);
    assert_non_null(e);
    assert_false(exists(s, "one.json"));
}

static void the_oldest_comes_first_unless_it_was_tried(void **state)
{
    struct stage *s = *state;
    struct spool_entry *a = put(s, "a", "{}"), *b = put(s, "b", "{}");

    assert_ptr_equal(spool_next(s->spool), a);
    spool_postpone(s->spool, a);
    assert_ptr_equal(spool_next(s->spool), b);
    b->user = s; /* somebody works on it */
    assert_ptr_equal(spool_next(s->spool), a);
    b->user = NULL;
}

static void the_refused_are_put_aside_and_stay_there(void **state)
{
    struct stage *s = *state;
    struct spool_entry *a = put(s, "a", "{}"), *b = put(s, "b", "{}");
    struct spool_counts n;

    spool_reject(s->spool, a);
    settle(s, b);
    assert_true(exists(s, "rejected/a.json"));
    assert_false(exists(s, "a.json"));
    reopen(s, 3600);
    spool_counts(s->spool, &n);
    assert_int_equal(n.files, 1);
    assert_int_equal(n.rejected, 1);
}

static void a_newer_result_of_the_same_id_wins(void **state)
{
    struct stage *s = *state;
    struct spool_entry *old = put(s, "same", "{\"n\":1}"), *new = put(s, "same", "{\"n\":2}");
    struct spool_counts n;

    spool_drop(s->spool, old); /* its delivery succeeded: the file is the other one's */
    settle(s, new);
    assert_memory_equal(s->body.p, "{\"n\":2}", s->body.n);
    spool_counts(s->spool, &n);
    assert_int_equal(n.files, 1);
}

static void the_old_are_dropped(void **state)
{
    struct stage *s = *state;
    struct spool_entry *b;

    assert_non_null(put(s, "a", "{}"));
    assert_int_equal(spool_expire(s->spool, spool_now_s() + 3500), 0);
    assert_int_equal(spool_expire(s->spool, spool_now_s() + 3700), 1);
    b = put(s, "b", "{}");
    settle(s, b);
    assert_false(exists(s, "a.json"));
}

static void age_of(const struct stage *s, const char *name, int64_t seconds)
{
    const struct timespec then = {.tv_sec = time(NULL) - seconds};
    char path[PATH_BYTES * 2];

    (void)snprintf(path, sizeof path, "%s/%s", s->path, name);
    assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[2]){then, then}, 0), 0);
}

/* Files know the clock on the wall, which may have been wrong, or be wrong now. */
static void a_clock_that_was_set_makes_no_result_old(void **state)
{
    struct stage *s = *state;
    static const char text[] = "{\"execution_id\":\"x\",\"result\":{}}";
    struct spool_counts n;

    write_file(s, "old.json", text);
    age_of(s, "old.json", 4000);
    write_file(s, "young.json", text);
    age_of(s, "young.json", 3000);
    write_file(s, "unborn.json", text);
    age_of(s, "unborn.json", -1000000000);
    reopen(s, 3600);
    assert_int_equal(spool_expire(s->spool, spool_now_s()), 1);
    spool_counts(s->spool, &n);
    assert_int_equal(n.files, 2);
    assert_int_equal(spool_expire(s->spool, spool_now_s() + 700), 1);
    assert_int_equal(spool_expire(s->spool, spool_now_s() + 3500), 0);
    assert_int_equal(spool_expire(s->spool, spool_now_s() + 3700), 1);
}

static void rubbish_is_no_result(void **state)
{
    static const char *const texts[] = {
        "",
        "{",
        "[]",
        "{\"execution_id\":\"other\",\"result\":{}}",
        "{\"execution_id\":\"r\"}",
        "{\"execution_id\":\"r\",\"result\":[]}",
        "{\"execution_id\":\"r\",\"result\":{}} tail",
        "\xff\xfe",
    };
    struct stage *s = *state;

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        write_file(s, "r.json", texts[i]);
        reopen(s, 3600);
        settle(s, spool_next(s->spool));
        assert_null(s->body.p);
    }
}

static void half_written_files_and_strangers_are_not_results(void **state)
{
    struct stage *s = *state;

    write_file(s, ".new-3", "{");
    write_file(s, "notes.txt", "hello");
    write_file(s, ".json", "{}");
    reopen(s, 3600);
    assert_null(spool_next(s->spool));
    assert_false(exists(s, ".new-3"));
    assert_true(exists(s, "notes.txt"));
}

static void a_file_that_grew_is_not_read(void **state)
{
    struct stage *s = *state;
    struct spool_entry *e = put(s, "g", "{}");
    char longer[BYTES_MAX];

    (void)snprintf(longer, sizeof longer,
                   "{\"execution_id\":\"g\",\"result\":{},\"x\":\"%04000d\"}", 0);
    write_file(s, "g.json", longer);
    settle(s, e);
    assert_null(s->body.p);
}

static void many_at_once_are_one_batch_after_the_other(void **state)
{
    struct stage *s = *state;
    char id[16];

    for (int i = 0; i < 20; i++) {
        (void)snprintf(id, sizeof id, "m%d", i);
        assert_non_null(spool_put(
            s->spool,
            &(struct spool_order){
                .id = id, .members = "", .body = {.p = "{}", .n = 2},
                        .done = on_put, .user = s
        }));
    }
    wait_told(s, 20);
    reopen(s, 3600);
    for (int i = 0; i < 20; i++) {
        (void)snprintf(id, sizeof id, "m%d.json", i);
        assert_true(exists(s, id));
    }
}

static void a_spool_has_one_owner(void **state)
{
    struct stage *s = *state;
    struct spool_conf conf = {.path = s->path,
                              .option = "RESULTS_PATH",
                              .told = "",
                              .bytes_max = BYTES_MAX,
                              .age_max_s = 3600};
    struct spool *second = NULL;
    struct err e;

    assert_int_equal(spool_open(&conf, s->pool, &second, &e), -1);
    assert_non_null(strstr(e.text, "in use"));
}

static void a_directory_others_can_write_is_refused(void **state)
{
    struct stage *s = *state;
    struct err e;

    assert_int_equal(chmod(s->path, 0777), 0);
    assert_int_equal(spool_prepare(s->path, "RESULTS_PATH", geteuid(), getegid(), &e), -1);
    assert_int_equal(spool_prepare("relative", "RESULTS_PATH", geteuid(), getegid(), &e), -1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(what_is_put_can_be_read_in_the_next_life),
        T(files_are_private),
        T(names_that_are_no_ids_are_refused),
        T(bytes_are_bounded_and_given_back),
        T(the_oldest_comes_first_unless_it_was_tried),
        T(the_refused_are_put_aside_and_stay_there),
        T(a_newer_result_of_the_same_id_wins),
        T(the_old_are_dropped),
        T(a_clock_that_was_set_makes_no_result_old),
        T(rubbish_is_no_result),
        T(half_written_files_and_strangers_are_not_results),
        T(a_file_that_grew_is_not_read),
        T(many_at_once_are_one_batch_after_the_other),
        T(a_spool_has_one_owner),
        T(a_directory_others_can_write_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
