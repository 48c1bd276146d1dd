/* SPDX-License-Identifier: MIT */
#include "zygote/text.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"

enum { HUGE_PAGE = 2 << 20, WORTH_IT = HUGE_PAGE / 2, SEGMENTS_MAX = 16, LINES = 8192 };

struct segment {
    uintptr_t begin, end; /* as the kernel mapped it, in pages of any size */
    int prot;
};

struct segments {
    struct segment of[SEGMENTS_MAX];
    size_t n;
};

static uintptr_t round_up(uintptr_t at, uintptr_t to)
{
    return (at + to - 1) & ~(to - 1);
}

/* Of the program itself, which comes first. */
static int collect(struct dl_phdr_info *info, size_t size, void *user)
{
    struct segments *s = user;

    (void)size;
    for (size_t i = 0; i < info->dlpi_phnum && s->n < SEGMENTS_MAX; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t at = info->dlpi_addr + p->p_vaddr;

        if (p->p_type == PT_LOAD)
            s->of[s->n++] = (struct segment){
                .begin = at & ~(uintptr_t)4095,
                .end = round_up(at + p->p_memsz, 4096),
                .prot = (p->p_flags & PF_R ? PROT_READ : 0) | (p->p_flags & PF_W ? PROT_WRITE : 0) |
                        (p->p_flags & PF_X ? PROT_EXEC : 0),
            };
    }
    return 1;
}

/* Alone on its huge pages, large enough, and never written to? */
static bool can_move(const struct segments *s, size_t i)
{
    const struct segment *g = &s->of[i];
    uintptr_t end = round_up(g->end, HUGE_PAGE);

    return !(g->prot & PROT_WRITE) && g->begin % HUGE_PAGE == 0 && g->end - g->begin >= WORTH_IT &&
           (i + 1 == s->n || s->of[i + 1].begin >= end);
}

static void move(const struct segment *g)
{
    size_t n = round_up(g->end - g->begin, HUGE_PAGE);
    char *raw =
        mmap(NULL, n + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *copy;

    if (raw == MAP_FAILED)
        return;
    copy = (char *)round_up((uintptr_t)raw, HUGE_PAGE);
    (void)madvise(copy, n, MADV_HUGEPAGE);
    memcpy(copy, (const void *)g->begin, g->end - g->begin);
    if (mprotect(copy, n, g->prot) < 0 ||
        mremap(copy, n, n, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)g->begin) == MAP_FAILED)
        (void)munmap(copy, n);
    if (copy > raw)
        (void)munmap(raw, (size_t)(copy - raw));
    if (copy < raw + HUGE_PAGE)
        (void)munmap(copy + n, (size_t)(raw + HUGE_PAGE - copy));
}

static void join(struct segment g, int prot)
{
    g.begin &= ~(uintptr_t)4095;
    (void)mprotect((void *)g.begin, round_up(g.end, 4096) - g.begin, prot);
}

/* What is not written to is code all of it; what was closed after relocation is data again. */
static int join_library(struct dl_phdr_info *info, size_t size, void *user)
{
    bool *seen_program = user;

    (void)size;
    for (size_t i = 0; *seen_program && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        struct segment g = {.begin = info->dlpi_addr + p->p_vaddr};

        g.end = g.begin + p->p_memsz;
        if (p->p_type == PT_LOAD && !(p->p_flags & PF_W))
            join(g, PROT_READ | PROT_EXEC);
        else if (p->p_type == PT_GNU_RELRO)
            join(g, PROT_READ | PROT_WRITE);
    }
    *seen_program = true;
    return 0;
}

void text_join(void)
{
    bool seen_program = false;

    (void)dl_iterate_phdr(join_library, &seen_program);
}

/* The rest of its last huge page must be nobody's. It is never given back: what is moved there
 * brings its own. KERNEL 4.17: it would be mapped elsewhere if it is taken. */
static bool take_rest(uintptr_t from)
{
    size_t n = round_up(from, HUGE_PAGE) - from;

    return n == 0 || mmap((void *)from, n, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == (void *)from;
}

/* What is written to begins on a huge page of its own, behind what was closed after relocation. */
static void move_data(struct segment g)
{
    g.begin = round_up(g.begin, HUGE_PAGE);
    if (g.prot & PROT_WRITE && g.end > g.begin && g.end - g.begin >= WORTH_IT / 2 &&
        take_rest(g.end))
        move(&g);
}

void text_settle(void)
{
    struct segments s = {0};

    (void)dl_iterate_phdr(collect, &s);
    for (size_t i = 0; i < s.n; i++)
        if (can_move(&s, i))
            move(&s.of[i]);
    if (s.n > 0)
        move_data(s.of[s.n - 1]);
}

/* ---- what nobody needs any more ---- */

struct mapping {
    unsigned long begin, end;
    bool of_file; /* that is only read */
};

/* A line of /proc/self/smaps. What was relocated in a mapping, or moved into its place, is our own
 * and would be lost. */
static void release(struct mapping *m, const char *line)
{
    struct mapping next;
    unsigned long inode, own;
    char how[5];

    if (sscanf(line, "%lx-%lx %4s %*x %*s %lu", &next.begin, &next.end, how, &inode) == 4) {
        next.of_file = inode != 0 && how[1] == '-' && how[3] == 'p';
        *m = next;
    } else if (m->of_file && sscanf(line, "Anonymous: %lu", &own) == 1 && own == 0) {
        (void)madvise((void *)m->begin, m->end - m->begin, MADV_DONTNEED);
    }
}

/* Without malloc: what it has is settled by now. */
void text_release(void)
{
    cleanup_close int fd = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC);
    struct mapping m = {0};
    char text[LINES];
    size_t n = 0;
    ssize_t got;

    while (fd >= 0 && (got = read(fd, text + n, sizeof text - 1 - n)) > 0) {
        char *line = text, *end;

        n += (size_t)got;
        text[n] = '\0';
        for (; (end = strchr(line, '\n')); line = end + 1) {
            *end = '\0';
            release(&m, line);
        }
        n -= (size_t)(line - text);
        memmove(text, line, n);
    }
}
