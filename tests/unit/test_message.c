/* SPDX-License-Identifier: MIT */
/* Messages between processes. */
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "unit/pair_stage.h"

enum { LARGE = 65536 + 200, MANY = 50 };

struct stage {
    struct pair_stage at; /* first */
    char sent[LARGE], got[LARGE + 1];
};

static int setup(void **state)
{
    struct stage *s = pair_stage_new(sizeof *s);

    assert_non_null(s);
    *state = s;
    for (size_t i = 0; i < sizeof s->sent; i++)
        s->sent[i] = (char)(i * 7 + i / 251);
    assert_int_equal(fd_message_pair(s->at.pair), 0);
    return 0;
}

static void sizes_and_order_are_kept(void **state)
{
    static const size_t sizes[] = {1, 2, 3, 4, 5, 127, 1500, 4096, 30000};
    struct stage *s = *state;

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        assert_int_equal(fd_send(s->at.pair[0], s->sent + i, sizes[i], NULL, 0), 0);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        assert_int_equal(fd_recv(s->at.pair[1], s->got, sizeof s->got, NULL, NULL), sizes[i]);
        assert_memory_equal(s->got, s->sent + i, sizes[i]);
    }
    fd_close_all(s->at.pair, 1);
    assert_int_equal(fd_recv(s->at.pair[1], s->got, sizeof s->got, NULL, NULL), 0);
}

static void *read_all(void *user)
{
    struct stage *s = user;
    size_t n = 0;

    while (fd_recv(s->at.pair[1], s->got, sizeof s->got, NULL, NULL) == LARGE &&
           memcmp(s->got, s->sent, LARGE) == 0)
        n++;
    return (void *)(uintptr_t)n;
}

/* More than any buffer holds, so that both sides wait for each other. */
static void large_ones_arrive_whole(void **state)
{
    struct stage *s = *state;
    pthread_t reader;
    void *n;

    assert_int_equal(pthread_create(&reader, NULL, read_all, s), 0);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(fd_send(s->at.pair[0], s->sent, LARGE, NULL, 0), 0);
    fd_close_all(s->at.pair, 1);
    assert_int_equal(pthread_join(reader, &n), 0);
    assert_int_equal((uintptr_t)n, MANY);
}

static void descriptors_come_with_their_own_message(void **state)
{
    struct stage *s = *state;
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC), many[FD_PASS_MAX], got[FD_PASS_MAX];
    size_t n;

    for (size_t i = 0; i < FD_PASS_MAX; i++)
        many[i] = null;
    assert_int_equal(fd_send(s->at.pair[0], "a", 1, many, FD_PASS_MAX), 0);
    assert_int_equal(fd_send(s->at.pair[0], "bb", 2, NULL, 0), 0);
    assert_int_equal(fd_send(s->at.pair[0], s->sent, LARGE, many, 2), 0);
    for (int i = 0; i < 3; i++) {
        static const size_t bytes[] = {1, 2, LARGE}, fds[] = {FD_PASS_MAX, 0, 2};

        n = FD_PASS_MAX;
        assert_int_equal(fd_recv(s->at.pair[1], s->got, sizeof s->got, got, &n), bytes[i]);
        assert_int_equal(n, fds[i]);
        for (size_t k = 0; k < n; k++)
            assert_true(fcntl(got[k], F_GETFD) & FD_CLOEXEC);
        fd_close_all(got, n);
    }
    (void)close(null);
}

/* Whatever was too much is gone, and the next message is not. */
static void too_much_is_refused_and_passed_over(void **state)
{
    struct stage *s = *state;
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC), both[2] = {null, null}, got[2];
    size_t n = 1;

    assert_int_equal(fd_send(s->at.pair[0], s->sent, 5000, both, 2), 0);
    assert_int_equal(fd_send(s->at.pair[0], "x", 1, both, 2), 0);
    assert_int_equal(fd_send(s->at.pair[0], "next", 4, both, 1), 0);
    assert_int_equal(fd_recv(s->at.pair[1], s->got, 100, got, &n), -EPROTO);
    assert_int_equal(n, 0);
    n = 1;
    assert_int_equal(fd_recv(s->at.pair[1], s->got, 100, got, &n), -EPROTO);
    n = 1;
    assert_int_equal(fd_recv(s->at.pair[1], s->got, 100, got, &n), 4);
    assert_int_equal(n, 1);
    assert_memory_equal(s->got, "next", 4);
    fd_close_all(got, n);
    (void)close(null);
    assert_int_equal(fd_send(s->at.pair[0], "", 0, NULL, 0), -EINVAL);
}

static void who_does_not_wait_is_told(void **state)
{
    struct stage *s = *state;
    size_t sent = 0, came = 0;
    int r = 0;

    assert_int_equal(fd_nonblock(s->at.pair[0], true), 0);
    assert_int_equal(fd_nonblock(s->at.pair[1], true), 0);
    assert_int_equal(fd_recv(s->at.pair[1], s->got, sizeof s->got, NULL, NULL), -EAGAIN);
    for (; sent < 100000 && r == 0; sent += r == 0)
        r = fd_send(s->at.pair[0], s->sent, 1200, NULL, 0);
    assert_int_equal(r, -EAGAIN);
    while (fd_recv(s->at.pair[1], s->got, sizeof s->got, NULL, NULL) == 1200)
        came++;
    assert_int_equal(came, sent);
    assert_int_equal(fd_recv(s->at.pair[1], s->got, sizeof s->got, NULL, NULL), -EAGAIN);
}

static void a_peer_that_is_gone_is_an_error_not_a_signal(void **state)
{
    struct stage *s = *state;

    fd_close_all(s->at.pair + 1, 1);
    assert_int_equal(fd_send(s->at.pair[0], "x", 1, NULL, 0), -EPIPE);
    assert_int_equal(fd_recv(s->at.pair[0], s->got, sizeof s->got, NULL, NULL), 0);
}

/* What it did not read is told by the way it ends: a request may be given to another one. */
static void a_peer_that_left_something_unread_is_told(void **state)
{
    struct stage *s = *state;

    assert_int_equal(fd_send(s->at.pair[0], "x", 1, NULL, 0), 0);
    fd_close_all(s->at.pair + 1, 1);
    assert_int_equal(fd_recv(s->at.pair[0], s->got, sizeof s->got, NULL, NULL), -ECONNRESET);
}

#ifdef ON_A_STREAM
/* ---- what an enemy may write ---- */

static void put(const struct stage *s, uint32_t head, size_t body)
{
    assert_int_equal(write(s->at.pair[0], &head, sizeof head), sizeof head);
    assert_int_equal(write(s->at.pair[0], s->sent, body), body);
}

static void expect_the_end(struct stage *s)
{
    assert_int_equal(fd_recv(s->at.pair[1], s->got, 100, NULL, NULL), -EPROTO);
    assert_int_equal(fd_recv(s->at.pair[1], s->got, 100, NULL, NULL), 0);
    assert_int_equal(fd_send(s->at.pair[1], "x", 1, NULL, 0), -EPIPE);
}

static void a_length_that_cannot_be_ends_it(void **state)
{
    static const uint32_t heads[] = {0, UINT32_MAX, (1 << 20) + 1};
    struct stage *s = *state;

    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        put(s, heads[i], 0);
        expect_the_end(s);
        fd_close_all(s->at.pair, 2);
        assert_int_equal(fd_message_pair(s->at.pair), 0);
    }
}

/* The one who does not want to wait does so only for a moment. */
static void half_a_message_ends_it(void **state)
{
    struct stage *s = *state;

    assert_int_equal(fd_nonblock(s->at.pair[1], true), 0);
    put(s, 50, 49);
    expect_the_end(s);
}

static void half_a_message_and_an_end(void **state)
{
    struct stage *s = *state;

    put(s, 50, 49);
    fd_close_all(s->at.pair, 1);
    assert_int_equal(fd_recv(s->at.pair[1], s->got, 100, NULL, NULL), -EPROTO);
}

static void *send_late(void *user)
{
    const struct stage *s = user;
    const uint32_t head = 8;

    for (size_t i = 0; i < sizeof head; i++) {
        (void)poll(NULL, 0, 2);
        (void)!write(s->at.pair[0], (const char *)&head + i, 1);
    }
    (void)poll(NULL, 0, 2);
    (void)!write(s->at.pair[0], "in parts", 8);
    return NULL;
}

static void what_comes_in_parts_is_whole(void **state)
{
    struct stage *s = *state;
    pthread_t writer;

    assert_int_equal(pthread_create(&writer, NULL, send_late, s), 0);
    assert_int_equal(fd_recv(s->at.pair[1], s->got, 100, NULL, NULL), 8);
    assert_memory_equal(s->got, "in parts", 8);
    assert_int_equal(pthread_join(writer, NULL), 0);
}

/* A reader that never reads does not hold a writer for ever: some message goes in half. */
static void a_reader_that_never_reads_loses_the_connection(void **state)
{
    struct stage *s = *state;
    int r = 0;

    assert_int_equal(fd_nonblock(s->at.pair[0], true), 0);
    for (int i = 0; i < 1000 && r == 0; i++)
        r = fd_send(s->at.pair[0], s->sent, LARGE, NULL, 0);
    assert_true(r == -EPIPE || r == -EAGAIN);
}
#endif

#define ROW(name) cmocka_unit_test_setup_teardown(name, setup, pair_stage_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW(sizes_and_order_are_kept),
        ROW(large_ones_arrive_whole),
        ROW(descriptors_come_with_their_own_message),
        ROW(too_much_is_refused_and_passed_over),
        ROW(who_does_not_wait_is_told),
        ROW(a_peer_that_is_gone_is_an_error_not_a_signal),
        ROW(a_peer_that_left_something_unread_is_told),
#ifdef ON_A_STREAM
        ROW(a_length_that_cannot_be_ends_it),
        ROW(half_a_message_ends_it),
        ROW(half_a_message_and_an_end),
        ROW(what_comes_in_parts_is_whole),
        ROW(a_reader_that_never_reads_loses_the_connection),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
