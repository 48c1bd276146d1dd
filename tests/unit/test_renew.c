/* SPDX-License-Identifier: MIT */
/* Kernel objects of a warmed process: copies have their own, with what was in them. */
#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "zygote/renew.h"

enum { FROM = 200 }; /* above whatever the test program has open itself */

struct objects {
    int epoll, event, pipe[2], null;
    struct renew renew;
};

static int raise_fd(int fd)
{
    int high = fcntl(fd, F_DUPFD_CLOEXEC, FROM);

    assert_true(fd >= 0 && high >= FROM);
    (void)close(fd);
    return high;
}

static int open_objects(void **state)
{
    static const char token[] = "*!";
    struct objects *o = calloc(1, sizeof *o);
    struct epoll_event watched = {.events = EPOLLIN};
    int p[2];

    if (!o || pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
        return -1;
    o->epoll = raise_fd(epoll_create1(EPOLL_CLOEXEC));
    o->event = raise_fd(eventfd(5, EFD_CLOEXEC | EFD_NONBLOCK));
    o->pipe[0] = raise_fd(p[0]);
    o->pipe[1] = raise_fd(p[1]);
    o->null = raise_fd(open("/dev/null", O_RDONLY | O_CLOEXEC));
    watched.data.fd = o->event;
    assert_int_equal(epoll_ctl(o->epoll, EPOLL_CTL_ADD, o->event, &watched), 0);
    assert_int_equal(write(o->pipe[1], token, 2), 2);
    *state = o;
    return 0;
}

static int close_objects(void **state)
{
    (void)close_range(FROM, ~0u, 0);
    free(*state);
    return 0;
}

static bool are_equal(const struct objects *o)
{
    struct epoll_event seen = {0};
    uint64_t count = 0;
    char bytes[8];

    return epoll_wait(o->epoll, &seen, 1, 0) == 1 && seen.data.fd == o->event &&
           read(o->event, &count, sizeof count) == sizeof count && count == 5 &&
           read(o->pipe[0], bytes, sizeof bytes) == 2 && bytes[0] == '*' && bytes[1] == '!' &&
           fcntl(o->event, F_GETFL) & O_NONBLOCK && fcntl(o->pipe[0], F_GETFL) & O_NONBLOCK &&
           fcntl(o->null, F_GETFD) == FD_CLOEXEC && epoll_wait(o->epoll, &seen, 1, 0) == 0;
}

static void test_copies_have_their_own(void **state)
{
    struct objects *o = *state;
    struct err e = {0};
    int status = 0;

    assert_int_equal(renew_note(&o->renew, FROM, &e), 0);
    for (int i = 0; i < 2; i++) { /* the second finds what the first has not touched */
        pid_t pid = fork();

        if (pid == 0) {
            (void)close_range(FROM, ~0u, 0);
            _exit(renew_make(&o->renew) == 0 && are_equal(o) ? 0 : 1);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
    assert_true(are_equal(o));
}

static void test_signals_are_as_they_were(void **state)
{
    struct objects *o = *state;
    struct err e = {0};
    int status = 0;
    pid_t pid;

    (void)signal(SIGUSR2, SIG_IGN);
    assert_int_equal(renew_note(&o->renew, FROM, &e), 0);
    (void)signal(SIGUSR2, SIG_DFL);
    pid = fork();
    if (pid == 0) {
        (void)close_range(FROM, ~0u, 0);
        if (renew_make(&o->renew) == 0)
            (void)raise(SIGUSR2);
        _exit(7);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void test_what_cannot_be_made_again_is_refused(void **state)
{
    struct objects *o = *state;
    struct err e = {0};
    int sock = raise_fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));

    assert_int_equal(renew_note(&o->renew, FROM, &e), -1);
    assert_non_null(strstr(e.text, "socket"));
    (void)close(sock);
    (void)close(o->pipe[1]); /* half a pipe is somebody else's */
    assert_int_equal(renew_note(&o->renew, FROM, &e), -1);
}

static void test_memory_kept_from_forks_is_copied(void **state)
{
    long page = sysconf(_SC_PAGESIZE);
    struct err e = {0};
    int status = 0;
    char *p = mmap(NULL, (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pid_t pid;

    (void)state;
    assert_ptr_not_equal(p, MAP_FAILED);
    assert_int_equal(madvise(p, (size_t)page, MADV_DONTFORK), 0);
    *p = 42;
    assert_int_equal(renew_memory(&e), 0);
    pid = fork();
    if (pid == 0)
        _exit(*p == 42 ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    (void)munmap(p, (size_t)page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_copies_have_their_own, open_objects, close_objects),
        cmocka_unit_test_setup_teardown(test_signals_are_as_they_were, open_objects, close_objects),
        cmocka_unit_test_setup_teardown(test_what_cannot_be_made_again_is_refused, open_objects,
                                        close_objects),
        cmocka_unit_test(test_memory_kept_from_forks_is_copied),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
