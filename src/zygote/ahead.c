/* SPDX-License-Identifier: MIT */
#include "zygote/ahead.h"

#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"

enum {
    TABLE = 16384,
    LINES_MAX = TABLE / 4, /* 256 KiB: what is more than that is better not asked for */
    STACK = 64 << 10,      /* for the registers of the largest processors */
    IMAGES_MAX = 64,
    NAME = 48, /* bits of an address */
};

/* ---- images ---- */

/* The program or a library. Where it is differs from time to time, what is in it does not. */
struct image {
    uintptr_t begin, end;
    uintptr_t name; /* a number made of it, where an address has none */
};

struct images {
    struct image of[IMAGES_MAX];
    size_t n;
};

static int measure(struct dl_phdr_info *info, size_t size, void *user)
{
    struct images *all = user;
    struct image i = {.begin = UINTPTR_MAX};

    (void)size;
    for (size_t k = 0; k < info->dlpi_phnum; k++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[k];
        uintptr_t at = info->dlpi_addr + p->p_vaddr;

        if (p->p_type != PT_LOAD)
            continue;
        i.begin = at < i.begin ? at & ~(uintptr_t)(AHEAD_LINE - 1) : i.begin;
        i.end = at + p->p_memsz > i.end ? at + p->p_memsz : i.end;
    }
    i.name = (uintptr_t)(uint16_t)hash_bytes(0, info->dlpi_name, strlen(info->dlpi_name)) << NAME;
    if (i.end > i.begin && all->n < IMAGES_MAX)
        all->of[all->n++] = i;
    return 0;
}

static struct images images_now(void)
{
    struct images all = {.n = 0};

    (void)dl_iterate_phdr(measure, &all);
    return all;
}

/* ---- steps ---- */

/* Whoever is called at each step finds it before the stack he has. */
struct notes {
    struct images images;
    uintptr_t lines[TABLE]; /* name and place in an image, and 1; hashed; 0: none */
    size_t lines_n;
    greg_t last[NGREG];
    char stack[STACK];
};

static void note(struct notes *n, const struct image *of, uintptr_t at)
{
    uintptr_t line = of->name | ((at - of->begin) & ~(uintptr_t)(AHEAD_LINE - 1)) | 1;
    size_t i = line / AHEAD_LINE % TABLE;

    while (n->lines[i] && n->lines[i] != line)
        i = (i + 1) % TABLE;
    if (n->lines[i] || n->lines_n == LINES_MAX)
        return;
    n->lines[i] = line;
    n->lines_n++;
}

static void look_at(struct notes *n, uintptr_t at)
{
    for (size_t i = 0; i < n->images.n; i++)
        if (at >= n->images.of[i].begin && at < n->images.of[i].end)
            note(n, &n->images.of[i], at);
}

#ifdef __x86_64__

enum { REGISTERS = REG_RIP + 1 }; /* those that can point somewhere, and where we are */

static void on_step(int number, siginfo_t *info, void *context)
{
    const ucontext_t *u = context;
    struct notes *n = (struct notes *)((char *)u->uc_stack.ss_sp - offsetof(struct notes, stack));

    (void)number, (void)info;
    for (size_t i = 0; i < REGISTERS; i++) {
        greg_t v = u->uc_mcontext.gregs[i];

        if (v != n->last[i])
            look_at(n, (uintptr_t)v);
        n->last[i] = v;
    }
}

/* The processor traps behind every instruction. What lies below the stack is the compiler's. */
static void steps_begin(void)
{
    __asm__ volatile("leaq -128(%%rsp), %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\t"
                     "popfq\n\tleaq 128(%%rsp), %%rsp" ::
                         : "memory", "cc");
}

static void steps_end(void)
{
    __asm__ volatile("leaq -128(%%rsp), %%rsp\n\tpushfq\n\tandq $~0x100, (%%rsp)\n\t"
                     "popfq\n\tleaq 128(%%rsp), %%rsp" ::
                         : "memory", "cc");
}

#else

static void on_step(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info, (void)context;
}

static void steps_begin(void)
{
}

static void steps_end(void)
{
}

#endif

/* ---- learning ---- */

static int by_number(const void *a, const void *b)
{
    const uintptr_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static void add(struct ahead *a, uintptr_t line)
{
    uintptr_t *last = a->n ? &a->runs[a->n - 1] : NULL;
    uintptr_t more = last ? *last % AHEAD_LINE + 1 : 0;

    if (last && more < AHEAD_LINE && *last - (more - 1) + more * AHEAD_LINE == line)
        ++*last;
    else if (a->n < AHEAD_RUNS_MAX)
        a->runs[a->n++] = line;
}

static int write_down(struct notes *n, int fd)
{
    struct ahead a = {.n = 0};

    qsort(n->lines, TABLE, sizeof *n->lines, by_number);
    for (size_t i = 0; i < TABLE; i++)
        if (n->lines[i])
            add(&a, n->lines[i] - 1); /* the name is in front, so that those of an image follow */
    return fd_write_all(fd, a.runs, a.n * sizeof *a.runs);
}

int ahead_learn(void (*work)(void *user), void *user, int fd)
{
    struct notes *n =
        mmap(NULL, sizeof *n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sigaction step = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    stack_t stack = {.ss_size = STACK};
    int r = 0;

    if (n == MAP_FAILED)
        return -errno;
    stack.ss_sp = n->stack;
    n->images = images_now();
    if (sigaltstack(&stack, NULL) < 0 || sigaction(SIGTRAP, &step, NULL) < 0)
        r = -errno;
    if (r == 0) {
        steps_begin();
        work(user);
        steps_end();
        r = write_down(n, fd);
    }
    (void)signal(SIGTRAP, SIG_DFL);
    stack.ss_flags = SS_DISABLE;
    (void)sigaltstack(&stack, NULL);
    (void)munmap(n, sizeof *n);
    return r;
}

/* ---- using it ---- */

/* 0: it is nowhere. */
static uintptr_t find(const struct images *all, uintptr_t run)
{
    uintptr_t at = run & (((uintptr_t)1 << NAME) - 1);

    for (size_t i = 0; i < all->n; i++)
        if (all->of[i].name == run - at && at < all->of[i].end - all->of[i].begin)
            return all->of[i].begin + at;
    return 0;
}

void ahead_load(struct ahead *a, int fd)
{
    ssize_t got = pread(fd, a->runs, sizeof a->runs, 0); /* others have read it before us */
    size_t n = got > 0 ? (size_t)got / sizeof *a->runs : 0;
    const struct images all = images_now();

    a->n = 0;
    for (size_t i = 0; i < n; i++) {
        uintptr_t at = find(&all, a->runs[i]);

        if (at)
            a->runs[a->n++] = at;
    }
}

void ahead_fetch(const struct ahead *a)
{
    for (size_t i = 0; i < a->n; i++) {
        const char *line = (const char *)(a->runs[i] & ~(uintptr_t)(AHEAD_LINE - 1));

        for (size_t left = a->runs[i] % AHEAD_LINE + 1; left > 0; left--, line += AHEAD_LINE)
            __builtin_prefetch(line, 0, 2); /* near, not nearest: it is more than fits there */
    }
}
