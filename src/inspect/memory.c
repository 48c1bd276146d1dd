/* SPDX-License-Identifier: MIT */
#include "inspect/memory.h"

#include <string.h>
#include <tree_sitter/api.h>
#include <unistd.h>

#include "base/os.h"

enum { BLOCK_ALIGN = 16, ROOM_FIRST = 256 * 1024, ROOM_MORE = 4 << 20, TAKE_MAX = 1 << 30 };

struct block {
    size_t size; /* of what follows */
    _Alignas(BLOCK_ALIGN) char bytes[];
};

/* What the kernel gave in one piece. Never given back: the process ends soon. */
struct room {
    struct room *after; /* NULL: the last one of this thread */
    char *end;
    _Alignas(BLOCK_ALIGN) char bytes[];
};

/* The library tells its allocator nothing but sizes, so where the memory of a thread goes on is the
 * one writable object of this program. */
static _Thread_local struct {
    struct room *at; /* NULL: none yet */
    char *next, *end;
} here;

__attribute__((noreturn)) static void out_of_memory(void)
{
    _exit(MEMORY_EXIT);
}

static void room_enter(struct room *r)
{
    here.at = r;
    here.next = r->bytes;
    here.end = r->end;
}

/* The first one is small, for most texts are. */
static struct room *room_new(size_t n)
{
    size_t size = here.at ? ROOM_MORE : ROOM_FIRST;
    struct room *r;

    if (size < n + sizeof *r)
        size = n + sizeof *r;
    r = os_memory(size);
    if (!r)
        out_of_memory();
    r->end = (char *)r + size;
    r->after = here.at ? here.at->after : NULL;
    if (here.at)
        here.at->after = r;
    return r;
}

/* On to where there is room for `n` bytes. What is left here is lost until the next return. */
static void room_next(size_t n)
{
    struct room *r = here.at ? here.at->after : NULL;

    room_enter(r && (size_t)(r->end - r->bytes) >= n ? r : room_new(n));
}

static void *take(size_t n)
{
    struct block *b;

    if (n > TAKE_MAX)
        out_of_memory();
    n = (n + sizeof *b + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
    if ((size_t)(here.end - here.next) < n)
        room_next(n);
    b = (void *)here.next;
    here.next += n;
    b->size = n - sizeof *b;
    return b->bytes;
}

static void *take_zeroed(size_t count, size_t n)
{
    if (n > 0 && count > TAKE_MAX / n)
        out_of_memory();
    return memset(take(count * n), 0, count * n);
}

static void *take_again(void *p, size_t n)
{
    struct block *b = p ? (struct block *)((char *)p - offsetof(struct block, bytes)) : NULL;
    void *grown;

    if (b && n <= b->size)
        return p;
    grown = take(n);
    if (b)
        memcpy(grown, p, b->size);
    return grown;
}

static void keep(void *p)
{
    (void)p;
}

static struct inspect_mark mark(void)
{
    if (!here.at)
        room_next(0);
    return (struct inspect_mark){here.at, here.next};
}

static void return_to(struct inspect_mark m)
{
    room_enter(m.room);
    here.next = m.next;
}

const struct inspect_memory memory_marks = {.mark = mark, .return_to = return_to};

void memory_install(void)
{
    ts_set_allocator(take, take_zeroed, take_again, keep);
}
