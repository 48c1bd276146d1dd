/* SPDX-License-Identifier: MIT */
/* The filters, run instruction by instruction: what the kernel would answer, without asking it. */
#include <cmocka.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "walls/seccomp.h"

#if defined __x86_64__
enum { HERE = AUDIT_ARCH_X86_64 };
#elif defined __aarch64__
enum { HERE = AUDIT_ARCH_AARCH64 };
#endif

static bool jumps(uint16_t code, uint32_t a, uint32_t k)
{
    switch (code) {
    case BPF_JMP | BPF_JEQ | BPF_K:
        return a == k;
    case BPF_JMP | BPF_JGT | BPF_K:
        return a > k;
    case BPF_JMP | BPF_JGE | BPF_K:
        return a >= k;
    case BPF_JMP | BPF_JSET | BPF_K:
        return a & k;
    default:
        fail_msg("jump %#x", code);
        return false;
    }
}

/* The answer of one program; what libseccomp writes has no other instructions. */
static uint32_t answer(const struct sock_fprog *p, const struct seccomp_data *d)
{
    uint32_t a = 0;

    for (size_t at = 0; at < p->len; at++) {
        const struct sock_filter *i = &p->filter[at];

        if (i->code == (BPF_LD | BPF_W | BPF_ABS))
            memcpy(&a, (const char *)d + i->k, sizeof a);
        else if (i->code == (BPF_ALU | BPF_AND | BPF_K))
            a &= i->k;
        else if (i->code == (BPF_RET | BPF_K))
            return i->k;
        else if (i->code == (BPF_JMP | BPF_JA))
            at += i->k;
        else
            at += jumps(i->code, a, i->k) ? i->jt : i->jf;
    }
    fail_msg("the end of a filter");
    return 0;
}

/* 0: allowed; else the errno. */
static int refused(const struct filters *f, int nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
    struct seccomp_data d = {
        .nr = nr, .arch = HERE, .args = {a0, a1, a2}
    };
    const struct sock_fprog *const both[] = {&f->base, &f->last};

    for (size_t i = 0; i < 2; i++) {
        uint32_t r = answer(both[i], &d);

        if (r != SECCOMP_RET_ALLOW)
            return (int)(r & SECCOMP_RET_DATA);
    }
    return 0;
}

static int start(void **state)
{
    static struct filters f;
    struct err e;

    *state = &f;
    return filters_build(&f, &e);
}

static int stop(void **state)
{
    filters_done(*state);
    return 0;
}

static void test_of_internet_sockets_only_streams_and_datagrams(void **state)
{
    static const int flags[] = {0, SOCK_CLOEXEC, SOCK_NONBLOCK | SOCK_CLOEXEC};
    static const int families[] = {AF_INET, AF_INET6};

    for (size_t f = 0; f < 2; f++)
        for (size_t i = 0; i < 3; i++)
            for (int type = 0; type < 16; type++) {
                int r = refused(*state, SYS_socket, (uint64_t)families[f],
                                (uint64_t)(type | flags[i]), 0);

                if (type == SOCK_STREAM || type == SOCK_DGRAM)
                    assert_int_equal(r, 0);
                else
                    assert_int_equal(r, type == SOCK_RAW ? EPERM : EPROTONOSUPPORT);
            }
    for (int type = 0; type < 16; type++) /* the family itself knows which it has */
        assert_int_equal(refused(*state, SYS_socket, AF_UNIX, (uint64_t)type, 0), 0);
}

static void test_of_internet_protocols_only_tcp_udp_and_icmp(void **state)
{
    for (uint64_t p = 0; p < 300; p++) {
        bool ok = p == 0 || p == IPPROTO_ICMP || p == IPPROTO_TCP || p == IPPROTO_UDP ||
                  p == IPPROTO_ICMPV6;

        assert_int_equal(refused(*state, SYS_socket, AF_INET, SOCK_STREAM, p),
                         ok ? 0 : EPROTONOSUPPORT);
        assert_int_equal(refused(*state, SYS_socket, AF_INET6, SOCK_DGRAM, p),
                         ok ? 0 : EPROTONOSUPPORT);
        if (p > 0) /* bits that the kernel does not look at never help */
            assert_int_not_equal(
                refused(*state, SYS_socket, AF_INET, SOCK_STREAM, p | (uint64_t)1 << 40), 0);
    }
    assert_int_equal(refused(*state, SYS_socket, AF_INET, SOCK_STREAM, (uint32_t)-1),
                     EPROTONOSUPPORT);
}

static void test_families_are_a_list_of_permissions(void **state)
{
    for (uint64_t family = 0; family < 64; family++) {
        bool ok =
            family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK;

        assert_int_equal(refused(*state, SYS_socket, family, SOCK_DGRAM, 0), ok ? 0 : EAFNOSUPPORT);
        assert_int_equal(refused(*state, SYS_socketpair, family, SOCK_DGRAM, 0),
                         family == AF_UNIX ? 0 : EAFNOSUPPORT);
        assert_int_equal(refused(*state, SYS_socket, family | (uint64_t)1 << 32, SOCK_DGRAM, 0),
                         EAFNOSUPPORT);
    }
    assert_int_equal(refused(*state, SYS_socket, AF_NETLINK, SOCK_RAW, 12), EAFNOSUPPORT);
}

/* Numbers, because neither the headers nor libseccomp of every host know the names. */
static void test_calls_that_an_old_libseccomp_does_not_know_are_refused(void **state)
{
    static const int numbers[] = {447, 451, 457, 458, 459, 460, 461};

    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        assert_int_equal(refused(*state, numbers[i], 0, 0, 0), ENOSYS);
    assert_int_equal(refused(*state, 462 /* mseal */, 0, 0, 0), 0);
    assert_int_equal(refused(*state, SYS_io_setup, 1, 0, 0), ENOSYS);
}

static void test_commands_that_load_modules_are_refused(void **state)
{
    static const uint64_t commands[] = {TIOCSETD,  SIOCGIFVLAN, SIOCSIFVLAN, SIOCGIFBR,
                                        SIOCSIFBR, SIOCBRADDBR, SIOCBRDELBR, TIOCSTI};

    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        assert_int_equal(refused(*state, SYS_ioctl, 0, commands[i], 0), EPERM);
        assert_int_equal(refused(*state, SYS_ioctl, 0, commands[i] | (uint64_t)1 << 32, 0), EPERM);
    }
    assert_int_equal(refused(*state, SYS_ioctl, 0, TIOCGWINSZ, 0), 0);
    assert_int_equal(refused(*state, SYS_ioctl, 0, SIOCGIFFLAGS, 0), 0);
}

static void test_what_makes_others_slower_or_timed_is_refused(void **state)
{
    assert_int_equal(refused(*state, SYS_prctl, 67 /* PR_SET_MEMORY_MERGE */, 1, 0), EPERM);
    assert_int_equal(refused(*state, SYS_prctl, 62 /* PR_SCHED_CORE */, 1, 0), EPERM);
    assert_int_equal(refused(*state, SYS_madvise, 0, 4096, 12 /* MADV_MERGEABLE */), EPERM);
    assert_int_equal(refused(*state, SYS_madvise, 0, 4096, 4 /* MADV_DONTNEED */), 0);
    assert_int_equal(refused(*state, SYS_prctl, PR_SET_NAME, 0, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_of_internet_sockets_only_streams_and_datagrams),
        cmocka_unit_test(test_of_internet_protocols_only_tcp_udp_and_icmp),
        cmocka_unit_test(test_families_are_a_list_of_permissions),
        cmocka_unit_test(test_calls_that_an_old_libseccomp_does_not_know_are_refused),
        cmocka_unit_test(test_commands_that_load_modules_are_refused),
        cmocka_unit_test(test_what_makes_others_slower_or_timed_is_refused),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
