/* SPDX-License-Identifier: MIT */
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "unit/pair_stage.h"

static bool is_cloexec(int fd)
{
    return fcntl(fd, F_GETFD) & FD_CLOEXEC;
}

static int setup(void **state)
{
    struct pair_stage *s = pair_stage_new(sizeof *s);

    assert_non_null(s);
    *state = s;
    assert_int_equal(fd_socketpair(SOCK_SEQPACKET, s->pair), 0);
    return 0;
}

static void descriptors_arrive_close_on_exec(void **state)
{
    struct pair_stage *s = *state;
    int pipefd[2], got[4] = {-1, -1, -1, -1};
    size_t n = 4;
    char msg[16], c;

    assert_int_equal(fd_pipe(pipefd), 0);
    assert_int_equal(fd_send(s->pair[0], "hello", 5, pipefd, 2), 0);
    assert_int_equal(fd_recv(s->pair[1], msg, sizeof msg, got, &n), 5);
    assert_int_equal(n, 2);
    assert_memory_equal(msg, "hello", 5);
    assert_true(is_cloexec(got[0]) && is_cloexec(got[1]));
    assert_int_equal(fd_write_all(got[1], "x", 1), 0);
    assert_int_equal(fd_read_full(pipefd[0], &c, 1), 1);
    assert_int_equal(c, 'x');
    fd_close_all(got, n);
    fd_close_all(pipefd, 2);
}

static void a_message_without_descriptors_needs_no_room(void **state)
{
    struct pair_stage *s = *state;
    char msg[4];

    assert_int_equal(fd_send(s->pair[0], "abcd", 4, NULL, 0), 0);
    assert_int_equal(fd_recv(s->pair[1], msg, sizeof msg, NULL, NULL), 4);
}

/* Sends n copies of a descriptor, also more than fd_send() would. */
static void send_raw(int sock, const char *msg, size_t msg_n, size_t n)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * 64)];
    } control = {0};
    struct iovec iov = {.iov_base = (void *)(uintptr_t)msg, .iov_len = msg_n};
    struct msghdr h = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = CMSG_SPACE(sizeof(int) * n)};

    control.align.cmsg_level = SOL_SOCKET;
    control.align.cmsg_type = SCM_RIGHTS;
    control.align.cmsg_len = CMSG_LEN(sizeof(int) * n);
    for (size_t i = 0; i < n; i++)
        memcpy(CMSG_DATA(&control.align) + i * sizeof(int), &sock, sizeof(int));
    assert_int_equal(sendmsg(sock, &h, 0), msg_n);
}

static void surplus_descriptors_are_closed(void **state)
{
    static const size_t sent[] = {3, 4, 5, 16, 17, 18, 40, 64};
    struct pair_stage *s = *state;
    int before = count_open();
    char msg[8];

    for (size_t i = 0; i < ARRAY_LEN(sent); i++) {
        int got[2] = {-1, -1};
        size_t n = 2;

        send_raw(s->pair[0], "m", 1, sent[i]);
        assert_int_equal(fd_recv(s->pair[1], msg, sizeof msg, got, &n), -EPROTO);
        assert_int_equal(n, 0);
        assert_int_equal(got[0], -1);
        assert_int_equal(count_open(), before);
    }
    send_raw(s->pair[0], "m", 1, 1);
    assert_int_equal(fd_recv(s->pair[1], msg, sizeof msg, NULL, NULL), -EPROTO);
    assert_int_equal(count_open(), before);
}

/* The kernel drops what the control buffer cannot hold; the message must not pass as complete. */
static void lost_descriptors_are_noticed(void **state)
{
    struct pair_stage *s = *state;
    int before = count_open(), got[FD_PASS_MAX];
    size_t n = FD_PASS_MAX;
    char msg[8];

    send_raw(s->pair[0], "m", 1, FD_PASS_MAX + 1);
    assert_int_equal(fd_recv(s->pair[1], msg, sizeof msg, got, &n), -EPROTO);
    assert_int_equal(count_open(), before);
    n = FD_PASS_MAX;
    send_raw(s->pair[0], "m", 1, FD_PASS_MAX);
    assert_int_equal(fd_recv(s->pair[1], msg, sizeof msg, got, &n), 1);
    assert_int_equal(n, FD_PASS_MAX);
    fd_close_all(got, n);
    assert_int_equal(fd_send(s->pair[0], "m", 1, got, FD_PASS_MAX + 1), -EINVAL);
}

static void long_messages_are_refused_with_their_descriptors(void **state)
{
    struct pair_stage *s = *state;
    int before = count_open(), got[2];
    size_t n = 2;
    char msg[4];

    send_raw(s->pair[0], "12345", 5, 2);
    assert_int_equal(fd_recv(s->pair[1], msg, sizeof msg, got, &n), -EPROTO);
    assert_int_equal(n, 0);
    assert_int_equal(count_open(), before);
}

static void empty_messages_are_not_sent_and_end_like_an_end(void **state)
{
    struct pair_stage *s = *state;
    int before = count_open(), got[2];
    size_t n = 2;
    char msg[4];

    assert_int_equal(fd_send(s->pair[0], "", 0, NULL, 0), -EINVAL);
    send_raw(s->pair[0], "", 0, 1); /* a hostile one, with a present */
    assert_int_equal(fd_recv(s->pair[1], msg, sizeof msg, got, &n), -EPROTO);
    assert_int_equal(count_open(), before);
    fd_close_all(s->pair, 1);
    n = 2;
    assert_int_equal(fd_recv(s->pair[1], msg, sizeof msg, got, &n), 0);
    assert_int_equal(n, 0);
}

static void exact_means_exact(void **state)
{
    static const struct {
        size_t bytes, fds;
        int want;
    } cases[] = {
        {4, 2, 1      },
        {3, 2, -EPROTO},
        {5, 2, -EPROTO},
        {4, 1, -EPROTO},
        {4, 3, -EPROTO},
        {4, 0, -EPROTO},
    };
    struct pair_stage *s = *state;
    int before = count_open();

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int got[2] = {-1, -1};
        char msg[4];

        if (cases[i].fds)
            send_raw(s->pair[0], "12345", cases[i].bytes, cases[i].fds);
        else
            assert_int_equal(fd_send(s->pair[0], "12345", cases[i].bytes, NULL, 0), 0);
        assert_int_equal(fd_recv_exact(s->pair[1], msg, sizeof msg, got, 2), cases[i].want);
        if (cases[i].want == 1)
            fd_close_all(got, 2);
        assert_int_equal(got[0], -1);
        assert_int_equal(count_open(), before);
    }
    fd_close_all(s->pair, 1);
    assert_int_equal(fd_recv_exact(s->pair[1], &(char){0}, 1, NULL, 0), 0);
}

static void a_dead_peer_is_an_error_not_a_signal(void **state)
{
    struct pair_stage *s = *state;

    fd_close_all(s->pair + 1, 1);
    assert_int_equal(fd_send(s->pair[0], "x", 1, NULL, 0), -EPIPE);
}

static void non_blocking_says_again(void **state)
{
    struct pair_stage *s = *state;
    char msg[4];
    int r = 0;

    assert_int_equal(fd_nonblock(s->pair[0], true), 0);
    assert_int_equal(fd_nonblock(s->pair[1], true), 0);
    assert_int_equal(fd_recv(s->pair[1], msg, sizeof msg, NULL, NULL), -EAGAIN);
    for (int i = 0; i < 100000 && r == 0; i++)
        r = fd_send(s->pair[0], "abcd", 4, NULL, 0);
    assert_int_equal(r, -EAGAIN);
    assert_int_equal(fd_nonblock(s->pair[0], false), 0);
    assert_false(fcntl(s->pair[0], F_GETFL) & O_NONBLOCK);
}

static void births_are_close_on_exec(void **state)
{
    struct pair_stage *s = *state;
    int copy = fd_dup(0);

    assert_true(copy >= 3 && is_cloexec(copy));
    assert_true(is_cloexec(s->pair[0]) && is_cloexec(s->pair[1]));
    (void)close(copy);
    assert_int_equal(fd_dup(copy), -EBADF);
    assert_int_equal(fd_nonblock(copy, true), -EBADF);
    assert_int_equal(fd_write_all(copy, "x", 1), -EBADF);
    assert_int_equal(fd_read_full(copy, &(char){0}, 1), -EBADF);
}

static void reads_are_whole_until_the_end(void **state)
{
    int p[2];
    char got[8];

    (void)state;
    assert_int_equal(fd_pipe(p), 0);
    assert_int_equal(fd_write_all(p[1], "abc", 3), 0);
    assert_int_equal(fd_write_all(p[1], "def", 3), 0);
    assert_int_equal(fd_read_full(p[0], got, 4), 4);
    fd_close_all(p + 1, 1);
    assert_int_equal(fd_read_full(p[0], got, 8), 2);
    assert_memory_equal(got, "ef", 2);
    fd_close_all(p, 2);
}

/* ---- beneath ---- */

struct tree {
    char path[64];
    int root;
};

static void make_file(int dir, const char *name)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL, 0600);

    assert_true(fd >= 0);
    (void)close(fd);
}

static int tree_setup(void **state)
{
    struct tree *t = calloc(1, sizeof *t);
    int base;

    assert_non_null(t);
    (void)snprintf(t->path, sizeof t->path, "/tmp/test_fd.XXXXXX");
    assert_non_null(mkdtemp(t->path));
    base = open(t->path, O_RDONLY | O_DIRECTORY);
    assert_true(base >= 0);
    make_file(base, "outside");
    assert_int_equal(mkdirat(base, "root", 0700), 0);
    t->root = openat(base, "root", O_RDONLY | O_DIRECTORY);
    assert_true(t->root >= 0);
    (void)close(base);
    assert_int_equal(mkdirat(t->root, "dir", 0700), 0);
    assert_int_equal(mkdirat(t->root, "dir/sub", 0700), 0);
    make_file(t->root, "file");
    make_file(t->root, "dir/file");
    make_file(t->root, "dir/sub/file.");
    assert_int_equal(symlinkat("dir/file", t->root, "inner"), 0);
    assert_int_equal(symlinkat("dir", t->root, "innerdir"), 0);
    assert_int_equal(symlinkat("../outside", t->root, "up"), 0);
    assert_int_equal(symlinkat("/etc", t->root, "abs"), 0);
    assert_int_equal(symlinkat("/proc/self/root", t->root, "magic"), 0);
    assert_int_equal(symlinkat("loop", t->root, "loop"), 0);
    *state = t;
    return 0;
}

static int tree_teardown(void **state)
{
    static const char *const names[] = {"file",  "inner", "innerdir", "up",      "abs",
                                        "magic", "loop",  "dir/file", "dir/new", "dir/sub/file."};
    struct tree *t = *state;
    char path[128];

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        (void)unlinkat(t->root, names[i], 0);
    (void)unlinkat(t->root, "dir/sub", AT_REMOVEDIR);
    (void)unlinkat(t->root, "dir", AT_REMOVEDIR);
    (void)close(t->root);
    (void)snprintf(path, sizeof path, "%s/root", t->path);
    (void)rmdir(path);
    (void)snprintf(path, sizeof path, "%s/outside", t->path);
    (void)unlink(path);
    assert_int_equal(rmdir(t->path), 0);
    free(t);
    return 0;
}

enum { OPENED = 1 };

/* What the three ways of opening say to a path. The walk knows no ".."; O_NOFOLLOW with O_PATH
 * opens a link itself. */
static const struct {
    const char *path;
    int flags;
    int inside, never, walk; /* OPENED or -errno */
} beneath[] = {
    {"file",              O_RDONLY,                  OPENED,   OPENED,   OPENED  },
    {"dir/file",          O_RDONLY,                  OPENED,   OPENED,   OPENED  },
    {"dir//sub/./file.",  O_RDONLY,                  OPENED,   OPENED,   OPENED  },
    {"./dir/sub",         O_RDONLY,                  OPENED,   OPENED,   OPENED  },
    {"dir/",              O_RDONLY,                  OPENED,   OPENED,   OPENED  },
    {"dir/.",             O_RDONLY,                  OPENED,   OPENED,   OPENED  },
    {".",                 O_RDONLY,                  OPENED,   OPENED,   OPENED  },
    {"",                  O_RDONLY,                  -ENOENT,  -ENOENT,  -ENOENT },
    {"none",              O_RDONLY,                  -ENOENT,  -ENOENT,  -ENOENT },
    {"none/x",            O_RDONLY,                  -ENOENT,  -ENOENT,  -ENOENT },
    {"file/",             O_RDONLY,                  -ENOTDIR, -ENOTDIR, -ENOTDIR},
    {"file/x",            O_RDONLY,                  -ENOTDIR, -ENOTDIR, -ENOTDIR},
    {"inner",             O_RDONLY,                  OPENED,   -ELOOP,   -ELOOP  },
    {"innerdir/file",     O_RDONLY,                  OPENED,   -ELOOP,   -ELOOP  },
    {"up",                O_RDONLY,                  -EXDEV,   -ELOOP,   -ELOOP  },
    {"abs",               O_RDONLY,                  -EXDEV,   -ELOOP,   -ELOOP  },
    {"abs/passwd",        O_RDONLY,                  -EXDEV,   -ELOOP,   -ELOOP  },
    {"magic/etc/passwd",  O_RDONLY,                  -EXDEV,   -ELOOP,   -ELOOP  },
    {"loop",              O_RDONLY,                  -ELOOP,   -ELOOP,   -ELOOP  },
    {"..",                O_RDONLY,                  -EXDEV,   -EXDEV,   -EXDEV  },
    {"../outside",        O_RDONLY,                  -EXDEV,   -EXDEV,   -EXDEV  },
    {"dir/../../outside", O_RDONLY,                  -EXDEV,   -EXDEV,   -EXDEV  },
    {"dir/../file",       O_RDONLY,                  OPENED,   OPENED,   -EXDEV  },
    {"/file",             O_RDONLY,                  -EXDEV,   -EXDEV,   -EXDEV  },
    {"/",                 O_RDONLY,                  -EXDEV,   -EXDEV,   -EXDEV  },
    {"dir/new",           O_RDWR | O_CREAT,          OPENED,   OPENED,   OPENED  },
    {"up",                O_RDWR | O_CREAT,          -EXDEV,   -ELOOP,   -ELOOP  },
    {"file",              O_RDWR | O_CREAT | O_EXCL, -EEXIST,  -EEXIST,  -EEXIST },
#ifdef O_PATH
    {"dir",               O_PATH,                    OPENED,   OPENED,   OPENED  },
    {"inner",             O_PATH,                    OPENED,   -ELOOP,   -ELOOP  },
    {"up",                O_PATH,                    -EXDEV,   -ELOOP,   -ELOOP  },
    {"up",                O_PATH | O_NOFOLLOW,       OPENED,   OPENED,   OPENED  },
#endif
};

static void expect(size_t row, const char *how, int got, int want)
{
    int said = got >= 0 ? OPENED : got;

    if (got >= 0 && !is_cloexec(got))
        fail_msg("'%s' %s: not close-on-exec", beneath[row].path, how);
    if (got >= 0)
        (void)close(got);
    if (said != want)
        fail_msg("'%s' %s: %d, expected %d", beneath[row].path, how, said, want);
}

static void nothing_leads_out(void **state)
{
    struct tree *t = *state;

    for (size_t i = 0; i < ARRAY_LEN(beneath); i++) {
        const char *p = beneath[i].path;
        int flags = beneath[i].flags;

        expect(i, "walk", fd_open_beneath_walk(t->root, p, flags, 0600), beneath[i].walk);
        expect(i, "inside", fd_open_beneath(t->root, p, flags, 0600, FD_LINKS_INSIDE),
               beneath[i].inside);
        expect(i, "never", fd_open_beneath(t->root, p, flags, 0600, FD_LINKS_NEVER),
               beneath[i].never);
    }
}

static void long_names_are_refused(void **state)
{
    struct tree *t = *state;
    char path[600];

    memset(path, 'a', sizeof path);
    path[256] = '\0';
    assert_int_equal(fd_open_beneath_walk(t->root, path, O_RDONLY, 0), -ENAMETOOLONG);
    assert_int_equal(fd_open_beneath(t->root, path, O_RDONLY, 0, FD_LINKS_NEVER), -ENAMETOOLONG);
    memcpy(path, "dir/", 4);
    path[256] = 'a';
    path[599] = '\0';
    assert_int_equal(fd_open_beneath_walk(t->root, path, O_RDONLY, 0), -ENAMETOOLONG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(descriptors_arrive_close_on_exec, setup,
                                        pair_stage_teardown),
        cmocka_unit_test_setup_teardown(a_message_without_descriptors_needs_no_room, setup,
                                        pair_stage_teardown),
        cmocka_unit_test_setup_teardown(surplus_descriptors_are_closed, setup, pair_stage_teardown),
        cmocka_unit_test_setup_teardown(lost_descriptors_are_noticed, setup, pair_stage_teardown),
        cmocka_unit_test_setup_teardown(long_messages_are_refused_with_their_descriptors, setup,
                                        pair_stage_teardown),
        cmocka_unit_test_setup_teardown(empty_messages_are_not_sent_and_end_like_an_end, setup,
                                        pair_stage_teardown),
        cmocka_unit_test_setup_teardown(exact_means_exact, setup, pair_stage_teardown),
        cmocka_unit_test_setup_teardown(a_dead_peer_is_an_error_not_a_signal, setup,
                                        pair_stage_teardown),
        cmocka_unit_test_setup_teardown(non_blocking_says_again, setup, pair_stage_teardown),
        cmocka_unit_test_setup_teardown(births_are_close_on_exec, setup, pair_stage_teardown),
        cmocka_unit_test_setup_teardown(reads_are_whole_until_the_end, setup, pair_stage_teardown),
        cmocka_unit_test_setup_teardown(nothing_leads_out, tree_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(long_names_are_refused, tree_setup, tree_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
