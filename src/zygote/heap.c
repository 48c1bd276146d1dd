/* SPDX-License-Identifier: MIT */
#define PY_SSIZE_T_CLEAN
#include "zygote/heap.h"

#include <Python.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/cleanup.h"

enum { HUGE_PAGE = 2 << 20, REGION = 256 << 20 };

/* Of malloc: what the interpreter and its modules take in all is a quarter of it. The threshold is
 * glibc's own, which no longer moves once anything was set. */
enum { BREAK = 16 << 20, MMAP_THRESHOLD = 128 << 10 };
/* Chunks up to CACHED_MAX are put aside when they are freed and not joined with others. */
enum { GAP_MAX = 64 << 10, CACHED_MAX = 1032, CHUNK_HEAD = 8 };

/* Of CPython's allocator for small objects (Objects/obmalloc.c of 3.10 and later). */
enum { POOL = 16 << 10, POOL_HEAD = 48, SMALL_STEP = 16, SMALL_MAX = 512, BLOCKS_MAX = 1 << 20 };

/* Handed to the allocator as its context, so that no global is needed. */
struct region {
    char *base, *next, *end;
};

static void *arena_alloc(void *ctx, size_t n)
{
    struct region *r = ctx;
    void *p;

    if ((size_t)(r->end - r->next) >= n) {
        p = r->next;
        r->next += n;
        return p;
    }
    p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void arena_free(void *ctx, void *p, size_t n)
{
    struct region *r = ctx;
    char *at = p;

    if (at >= r->base && at < r->end)
        (void)madvise(p, n, MADV_DONTNEED); /* the address stays ours */
    else
        (void)munmap(p, n);
}

/*
 * Malloc grows from the break. Takes more from there at once than it will need and
 * gives it back to malloc, which keeps it, as huge pages; but for what lies before
 * the first one, which is never touched.
 */
static void huge_break(void)
{
    char *p, *volatile plug; /* volatile: the compiler knows that nobody will use it */
    uintptr_t from;

    (void)mallopt(M_MMAP_THRESHOLD, 2 * BREAK);
    (void)mallopt(M_TRIM_THRESHOLD, 2 * BREAK);
    p = malloc(BREAK);
    from = ((uintptr_t)p + HUGE_PAGE - 1) & ~((uintptr_t)HUGE_PAGE - 1);
    if (p)
        (void)madvise((void *)from, BREAK - HUGE_PAGE, MADV_HUGEPAGE);
    free(p);
    plug = malloc((size_t)(from - (uintptr_t)p) + CHUNK_HEAD);
    (void)plug; /* stays */
    (void)mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD);
}

void heap_prepare(void)
{
    /*
     * The context must live as long as the process and is the last thing in its own region. What
     * the interpreter makes first is what every child writes to: it fits one huge page, and only
     * that one is taken apart.
     */
    char *raw = mmap(NULL, REGION + HUGE_PAGE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    PyObjectArenaAllocator a = {.alloc = arena_alloc, .free = arena_free};
    struct region *r;
    char *base;

    (void)mallopt(M_ARENA_MAX, 1);
    huge_break();
    if (raw == MAP_FAILED)
        return;
    base = (char *)(((uintptr_t)raw + HUGE_PAGE - 1) & ~((uintptr_t)HUGE_PAGE - 1));
    (void)madvise(base, REGION, MADV_HUGEPAGE);
    r = (struct region *)(base + REGION) - 1;
    (void)madvise(base + REGION - 4096, 4096, MADV_NOHUGEPAGE);
    *r = (struct region){.base = base, .next = base, .end = base + REGION - 4096};
    a.ctx = r;
    PyObject_SetArenaAllocator(&a);
}

static char *huge_end(const char *p)
{
    return (char *)(((uintptr_t)p + HUGE_PAGE - 1) & ~((uintptr_t)HUGE_PAGE - 1));
}

/*
 * Takes what is left of the half-used pools, and of those below. A child that allocates from one
 * would get its own copy of everything that lies there, or of a part of a huge page; from a new one
 * it gets an empty page. The first block above stays, too: an arena without any is given back.
 */
static void plug_pools(const char *above)
{
    for (size_t n = SMALL_MAX; n >= SMALL_STEP; n -= SMALL_STEP)
        for (size_t i = 0; i < BLOCKS_MAX; i++) {
            char *p = PyObject_Malloc(n);

            if (p && (p < above || (uintptr_t)p % POOL > POOL_HEAD))
                continue;
            if (n < SMALL_MAX)
                PyObject_Free(p); /* the first of a new pool */
            break;
        }
}

/* Where malloc goes on when it has no gap left that is large enough. */
static char *break_top(void)
{
    return (char *)sbrk(0) - mallinfo2().keepcost;
}

/* The same for malloc: whatever is free below. */
static void plug_gaps(void)
{
    const char *top = break_top();

    for (size_t n = GAP_MAX; n >= SMALL_STEP; n -= SMALL_STEP) {
        char *p;

        do
            p = malloc(n);
        while (p && p < top);
        if (n > CACHED_MAX)
            free(p); /* joins the rest; a smaller one would be put aside */
    }
}

/* A child's own memory begins with a small page behind the last huge one. */
static void plug_break(void)
{
    char *top, *above, *volatile plug; /* volatile: the compiler knows that nobody will use it */
    size_t rest;

    plug_gaps();
    top = break_top();
    above = huge_end(top + 1); /* what malloc knows of its rest is at the top itself */
    rest = mallinfo2().keepcost;
    if ((size_t)(above - top) + GAP_MAX > rest)
        return;
    /* Before malloc writes a word there, else that would be on a huge page again. */
    rest -= (size_t)(above - top);
    (void)madvise(above, rest, MADV_DONTNEED);
    (void)madvise(above, rest, MADV_NOHUGEPAGE);
    (void)mallopt(M_MMAP_THRESHOLD, 2 * BREAK); /* it must come from there, however large it is */
    plug = malloc((size_t)(above - top) - CHUNK_HEAD);
    (void)plug; /* stays */
    (void)mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD);
}

void heap_settle(void)
{
    PyObjectArenaAllocator a;
    struct region *r;
    char *from;

    PyObject_GetArenaAllocator(&a);
    r = a.ctx;
    if (a.alloc != arena_alloc)
        return;
    from = huge_end(r->next);
    if (from < r->end)
        (void)madvise(from, (size_t)(r->end - from), MADV_NOHUGEPAGE);
    (void)PyGC_Collect(); /* objects that are kept for reuse lie anywhere */
    plug_pools(from);
    plug_break();
}
