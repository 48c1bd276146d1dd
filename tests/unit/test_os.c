/* SPDX-License-Identifier: MIT */
/* base/os.h */
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/os.h"

enum { TUBE_BYTES = 4 << 20, PART = 4096 };

static void assert_born_well(int fd)
{
    assert_true(fd >= 0);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
}

static void sockets_are_born_well(void **state)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int listener = os_socket(AF_INET, SOCK_STREAM, 0), client = os_socket(AF_INET, SOCK_STREAM, 0);
    int got;

    (void)state;
    assert_born_well(listener);
    assert_int_equal(bind(listener, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&a, &n), 0);
    assert_int_equal(os_accept(listener), -1);
    assert_true(errno == EAGAIN);
    assert_int_equal(fd_nonblock(client, false), 0);
    assert_int_equal(connect(client, (struct sockaddr *)&a, sizeof a), 0);
    got = os_accept(listener);
    assert_born_well(got);
    os_patience(got, 1000);
    (void)close(got);
    (void)close(client);
    (void)close(listener);
}

static void a_file_in_memory_has_no_name(void **state)
{
    int fd = os_memory_file("job");
    struct stat st;
    char back[4];

    (void)state;
    assert_true(fd >= 0);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(fd_write_all(fd, "abcd", 4), 0);
    assert_int_equal(pread(fd, back, 4, 0), 4);
    assert_memory_equal(back, "abcd", 4);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_nlink, 0);
    os_write_back(fd);
    (void)close(fd);
}

static void many_wakes_are_one(void **state)
{
    int in, out;
    char many[64];

    (void)state;
    assert_int_equal(os_wake_open(&in, &out), 0);
    assert_born_well(in);
    for (int i = 0; i < 100000; i++) /* more than a pipe holds: never waits */
        os_wake(out);
    os_wake_take(in);
    assert_int_equal(read(in, many, sizeof many), -1);
    os_wake(out);
    os_wake_take(in);
    assert_int_equal(read(in, many, sizeof many), -1);
    if (out != in)
        (void)close(out);
    (void)close(in);
}

/* Nothing is lost on the way, also when the receiver has no room. */
static void bytes_move_whole(void **state)
{
    int from[2], to[2], tube[2];
    size_t sent = 0, held = 0, got = 0;
    unsigned char part[PART];

    (void)state;
    assert_int_equal(fd_socketpair(SOCK_STREAM, from), 0);
    assert_int_equal(fd_socketpair(SOCK_STREAM, to), 0);
    assert_int_equal(os_tube(tube), 0);
    for (int i = 0; i < 2; i++)
        assert_true(fd_nonblock(from[i], true) == 0 && fd_nonblock(to[i], true) == 0);
    while (got < TUBE_BYTES) {
        ssize_t n;

        for (size_t i = 0; i < PART; i++)
            part[i] = (unsigned char)((sent + i) * 7 / 5);
        n = sent < TUBE_BYTES ? write(from[0], part, PART) : -1;
        sent += n > 0 ? (size_t)n : 0;
        n = os_move(from[1], tube[1], PART * 3);
        held += n > 0 ? (size_t)n : 0;
        n = held > 0 ? os_move(tube[0], to[0], held) : 0;
        held -= n > 0 ? (size_t)n : 0;
        n = read(to[1], part, got % 3 == 0 ? PART : 100);
        for (ssize_t i = 0; i < n; i++)
            assert_int_equal(part[i], (unsigned char)((got + (size_t)i) * 7 / 5));
        got += n > 0 ? (size_t)n : 0;
    }
    (void)close(from[0]);
    assert_int_equal(os_move(from[1], tube[1], PART), 0);
    fd_close_all(from + 1, 1);
    fd_close_all(to, 2);
    fd_close_all(tube, 2);
}

static void what_nobody_wants_is_gone(void **state)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int pair[2];
    size_t gone = 0;
    ssize_t n;

    (void)state;
    assert_int_equal(fd_pipe(pair), 0);
    os_pipe_grow(pair[1], 1 << 16);
    assert_int_equal(fd_nonblock(pair[0], true), 0);
    assert_int_equal(fd_write_all(pair[1], (char[PART]){0}, PART), 0);
    while ((n = os_discard(pair[0], null, 1 << 20)) > 0)
        gone += (size_t)n;
    assert_int_equal(gone, PART);
    assert_true(errno == EAGAIN);
    (void)close(pair[1]);
    assert_int_equal(os_discard(pair[0], null, 1 << 20), 0);
    (void)close(pair[0]);
    (void)close(null);
}

static void everything_above_is_closed(void **state)
{
    int pair[2], status = -1;
    pid_t pid;

    (void)state;
    assert_int_equal(fd_pipe(pair), 0);
    pid = fork();
    if (pid == 0) {
        bool closed = fd_close_from(3) == 0 && fcntl(pair[0], F_GETFD) < 0 &&
                      fcntl(pair[1], F_GETFD) < 0 && fcntl(2, F_GETFD) >= 0;

        _exit(closed ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    fd_close_all(pair, 2);
}

static void directories_and_names(void **state)
{
    char made[] = "/tmp/test-os-XXXXXX", before[4096], found[4096];
    struct timespec now = os_file_clock();
    int dir;

    (void)state;
    assert_non_null(mkdtemp(made));
    assert_non_null(getcwd(before, sizeof before));
    dir = open(made, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_non_null(getcwd(found, sizeof found)); /* where we are has not changed */
    assert_string_equal(found, before);
    assert_true(now.tv_sec > 0);
    assert_int_equal(mkdirat(dir, "a", 0700) | mkdirat(dir, "b", 0700), 0);
    assert_int_equal(fd_rename_new(dir, "a", "b"), -EEXIST);
    assert_int_equal(fd_rename_new(dir, "a", "c"), 0);
    assert_int_equal(unlinkat(dir, "b", AT_REMOVEDIR) | unlinkat(dir, "c", AT_REMOVEDIR), 0);
    assert_int_equal(rmdir(made), 0);
    assert_int_equal(fd_move(dir, 200), 0);
    assert_true(fcntl(200, F_GETFD) & FD_CLOEXEC);
    fd_close_all((int[]){dir, 200}, 2);
}

static void facts(void **state)
{
    char path[4096] = "";

    (void)state;
    assert_int_equal(os_beside("test_os", path, sizeof path), 0);
    assert_true(path[0] == '/' && access(path, X_OK) == 0);
    assert_int_equal(os_beside("test_os", path, 4), -ENAMETOOLONG);
    assert_true(os_processors() >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sockets_are_born_well),     cmocka_unit_test(a_file_in_memory_has_no_name),
        cmocka_unit_test(many_wakes_are_one),        cmocka_unit_test(bytes_move_whole),
        cmocka_unit_test(what_nobody_wants_is_gone), cmocka_unit_test(everything_above_is_closed),
        cmocka_unit_test(directories_and_names),     cmocka_unit_test(facts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
