/* SPDX-License-Identifier: MIT */
#include "selftest/probe.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>

enum { LINE_MAX_BYTES = 400, HOLD_S = 20, AGAIN_NS = 10000000, AGAIN_MAX = 2000 };

/* The kernel enters here: the stack has the number of arguments and their addresses. */
#if defined __x86_64__
__asm__(
    ".globl _start\n_start:\n xor %ebp,%ebp\n mov %rsp,%rdi\n and $-16,%rsp\n call probe_main\n");
#elif defined __aarch64__
__asm__(".globl _start\n_start:\n mov x29,#0\n mov x0,sp\n bl probe_main\n");
#endif
__attribute__((noreturn, used)) void probe_main(const long *stack);

long sys6(long nr, const long a[6])
{
#if defined __x86_64__
    register long r10 __asm__("r10") = a[3];
    register long r8 __asm__("r8") = a[4];
    register long r9 __asm__("r9") = a[5];
    long r;

    __asm__ volatile("syscall"
                     : "=a"(r)
                     : "a"(nr), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return r;
#else
    register long x8 __asm__("x8") = nr;
    register long x0 __asm__("x0") = a[0];
    register long x1 __asm__("x1") = a[1];
    register long x2 __asm__("x2") = a[2];
    register long x3 __asm__("x3") = a[3];
    register long x4 __asm__("x4") = a[4];
    register long x5 __asm__("x5") = a[5];

    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
#endif
}

long try_next(const struct probe *p, long nr, const long a[6])
{
    struct tried *t = p->tried;

    if (t->n < TRIED_MAX) {
        t->call[t->n].nr = nr;
        for (int i = 0; i < 6; i++)
            t->call[t->n].a[i] = a[i];
        t->n++;
    }
    return sys6(nr, a);
}

long try_call(const struct probe *p, long nr, const long a[6])
{
    p->tried->n = 0;
    return try_next(p, nr, a);
}

enum { FOREIGN_GETPID = 20 };

static long call_foreign(void)
{
    long r = -ENOSYS;

#if defined __x86_64__
    __asm__ volatile("int $0x80" : "=a"(r) : "a"((long)FOREIGN_GETPID) : "memory");
#endif
    return r;
}

long try_foreign(const struct probe *p)
{
    *p->tried = (struct tried){.n = 1, .foreign = 1};
    p->tried->call[0].nr = FOREIGN_GETPID;
    return call_foreign();
}

/* The compiler may ask for these even where no library is. */
void *memset(void *p, int c, size_t n);
void *memcpy(void *p, const void *from, size_t n);

void *memset(void *p, int c, size_t n)
{
    volatile unsigned char *to = p;

    while (n-- > 0)
        *to++ = (unsigned char)c;
    return p;
}

void *memcpy(void *p, const void *from, size_t n)
{
    volatile unsigned char *to = p;
    const unsigned char *at = from;

    while (n-- > 0)
        *to++ = *at++;
    return p;
}

int text_same(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

void say_line(const char *const words[])
{
    char line[LINE_MAX_BYTES];
    size_t n = 0;

    for (size_t i = 0; words[i]; i++)
        for (const char *c = words[i]; *c && n < sizeof line - 1; c++)
            line[n++] = *c;
    line[n++] = '\n';
    (void)SYS(SYS_write, 1, ADDRESS(line), (long)n);
}

static const char *number(long r, char out[24])
{
    char digits[24];
    size_t n = 0, at = 0;
    unsigned long v = r < 0 ? 0ul - (unsigned long)r : (unsigned long)r;

    do
        digits[n++] = (char)('0' + v % 10);
    while (v /= 10);
    if (r < 0)
        out[at++] = '-';
    while (n > 0)
        out[at++] = digits[--n];
    out[at] = '\0';
    return out;
}

const char *say_result(long r, char out[24])
{
    static const struct {
        int error;
        char name[16];
    } names[] = {
        {EPERM,           "EPERM"          },
        {ENOSYS,          "ENOSYS"         },
        {EACCES,          "EACCES"         },
        {EINVAL,          "EINVAL"         },
        {EAFNOSUPPORT,    "EAFNOSUPPORT"   },
        {EPROTONOSUPPORT, "EPROTONOSUPPORT"},
        {ESOCKTNOSUPPORT, "ESOCKTNOSUPPORT"},
        {ENOENT,          "ENOENT"         },
        {ESRCH,           "ESRCH"          },
        {EROFS,           "EROFS"          },
        {ENODEV,          "ENODEV"         },
        {EBADF,           "EBADF"          },
        {EFAULT,          "EFAULT"         },
        {EOPNOTSUPP,      "EOPNOTSUPP"     },
        {EBUSY,           "EBUSY"          },
        {EIO,             "EIO"            },
        {ENOTTY,          "ENOTTY"         },
    };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (r == -names[i].error)
            return names[i].name;
    return number(r, out);
}

__attribute__((noreturn)) void leave(int status)
{
    for (;;)
        (void)SYS(SYS_exit_group, status);
}

__attribute__((noreturn)) static void hold(const char *what, long n)
{
    const long nap[2] = {HOLD_S, 0};
    char text[24];

    SAY("HOLD ", what, " ", number(n, text));
    (void)SYS(SYS_nanosleep, ADDRESS(nap));
    leave(0);
}

__attribute__((noreturn)) static void repeat(const struct tried *t)
{
    const long nap[2] = {0, AGAIN_NS};
    char text[24];

    SAY("HOLD call ", number(t->call[t->n - 1].nr, text), " ");
    for (int times = 0; times < AGAIN_MAX; times++) {
        (void)SYS(SYS_nanosleep, ADDRESS(nap));
        if (t->foreign)
            (void)call_foreign();
        for (int i = 0; i < t->n && !t->foreign; i++)
            (void)sys6(t->call[i].nr, t->call[i].a);
    }
    leave(0);
}

__attribute__((noreturn)) static void be_looked_at(const struct probe *p)
{
    if (p->again && p->tried->n > 0)
        repeat(p->tried);
    if (p->hold || p->again)
        hold("look", 0);
    leave(0);
}

void was_held(const struct probe *p, long r)
{
    char text[24];

    SAY("HELD ", say_result(r, text));
    be_looked_at(p);
}

void was_breached(const struct probe *p, const char *words)
{
    SAY("BREACH ", words);
    be_looked_at(p);
}

void was_breached_holding(const struct probe *p, const char *words, const char *what, long n)
{
    if (p->again)
        was_breached(p, words);
    SAY("BREACH ", words);
    hold(what, n);
}

int is_refusal(long r)
{
    return r == -EPERM || r == -ENOSYS || r == -EACCES;
}

void fake_success(long nr)
{
    const struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)nr, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {
        .len = sizeof code / sizeof code[0],
        .filter = (struct sock_filter *)(uintptr_t)code,
    };

    (void)SYS(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1);
    (void)SYS(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, ADDRESS(&program));
}

static long to_number(const char *s)
{
    long v = 0;

    for (; *s >= '0' && *s <= '9'; s++)
        v = v * 10 + (*s - '0');
    return v;
}

void probe_main(const long *stack)
{
    const char *const *argv = (const char *const *)(stack + 1);
    const char *how = stack[0] > 5 ? argv[5] : "";
    struct tried tried = {0};
    struct probe p;

    if (stack[0] < 5) {
        SAY("usage: probe ID MARK DIRECTORY VICTIM [hold|again|fake]");
        leave(2);
    }
    p = (struct probe){
        .id = argv[1],
        .mark = argv[2],
        .dir = argv[3],
        .victim = to_number(argv[4]),
        .fake = text_same(how, "fake"),
        .hold = text_same(how, "hold"),
        .again = text_same(how, "again") || text_same(how, "fake"),
        .tried = &tried,
    };
    probe_calls(&p);
    probe_sockets(&p);
    probe_processes(&p);
    probe_roots(&p);
    SAY("no such attack: ", p.id);
    leave(2);
}
