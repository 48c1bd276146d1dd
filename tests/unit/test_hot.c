/* SPDX-License-Identifier: MIT */
#include <cmocka.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "zygote/hot.h"

enum { PAGE = 4096, BLOCK = 2 << 20, PAGES = 8, FIRST = 2, SECOND = 5, UNTOUCHED = 3 };

struct stage {
    char *pages;
    struct hot hot;
};

static int setup(void **state)
{
    struct stage *s = calloc(1, sizeof *s);

    assert_non_null(s);
    s->pages = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(s->pages, MAP_FAILED);
    for (int i = 0; i < PAGES; i++)
        s->pages[i * PAGE] = 'a';
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    struct stage *s = *state;

    (void)munmap(s->pages, PAGES * PAGE);
    free(s);
    return 0;
}

static void trial(void *user)
{
    struct stage *s = user;

    s->pages[FIRST * PAGE] = 'b';
    s->pages[SECOND * PAGE] = 'b';
}

static bool is_in(const struct hot *h, const char *p)
{
    for (size_t i = 0; i < h->n; i++) {
        const char *from = h->runs[i].iov_base;

        if (p >= from && p < from + h->runs[i].iov_len)
            return true;
    }
    return false;
}

static void what_a_copy_writes_to_is_known(void **state)
{
    struct stage *s = *state;

    if (hot_try(&s->hot, NULL)) {
        trial(s);
        hot_tell(&s->hot);
    }
    assert_true(is_in(&s->hot, s->pages + FIRST * PAGE));
    assert_true(is_in(&s->hot, s->pages + SECOND * PAGE));
    assert_false(is_in(&s->hot, s->pages + UNTOUCHED * PAGE));
    assert_int_equal(s->pages[FIRST * PAGE], 'a');
}

static void of_a_trial_that_fails_nothing_is_known(void **state)
{
    struct stage *s = *state;

    if (hot_try(&s->hot, NULL)) {
        trial(s);
        _exit(1);
    }
    assert_int_equal(s->hot.n, 0);
    hot_pin(&s->hot);
}

/* Of a page that is there: has nobody else got it? */
static bool is_own(const char *page)
{
    const uint64_t own = UINT64_C(1) << 63 | UINT64_C(1) << 56;
    int fd = open("/proc/self/pagemap", O_RDONLY);
    uint64_t entry = 0;

    (void)!pread(fd, &entry, sizeof entry, (off_t)((uintptr_t)page / PAGE * sizeof entry));
    (void)close(fd);
    return (entry & own) == own;
}

/* Waits until the other has written to the same page, which must not matter. */
static void be_copy(struct stage *s, int gate)
{
    bool fine = is_own(s->pages + FIRST * PAGE) && is_own(s->pages + SECOND * PAGE) &&
                !is_own(s->pages + UNTOUCHED * PAGE);
    char c;

    trial(s);
    if (read(gate, &c, 1) != 1)
        _exit(3);
    _exit(s->pages[FIRST * PAGE] != 'b' ? 2 : !fine);
}

static void is_copied(struct stage *s)
{
    int p[2], status;
    pid_t pid;

    assert_int_equal(pipe(p), 0);
    pid = fork();
    if (pid == 0)
        be_copy(s, p[0]);
    s->pages[FIRST * PAGE] = 'c';
    assert_int_equal(write(p[1], "", 1), 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(s->pages[FIRST * PAGE], 'c');
    assert_int_equal(s->pages[SECOND * PAGE], 'a');
    (void)close(p[0]);
    (void)close(p[1]);
}

static pid_t no_copy(void)
{
    return -1;
}

static void nor_of_one_that_was_never_made(void **state)
{
    struct stage *s = *state;

    s->hot.n = 7;
    assert_false(hot_try(&s->hot, no_copy));
    assert_int_equal(s->hot.n, 0);
}

static void what_is_pinned_copies_have_at_once(void **state)
{
    struct io_uring_params params = {0};
    struct stage *s = *state;
    int ring = (int)syscall(SYS_io_uring_setup, 1, &params);

    if (ring < 0)
        skip(); /* not on this host: copies are made as always */
    (void)close(ring);
    s->hot = (struct hot){
        .runs = {{.iov_base = s->pages + FIRST * PAGE, .iov_len = PAGE},
                 {.iov_base = s->pages + SECOND * PAGE, .iov_len = PAGE}},
        .n = 2,
    };
    hot_pin(&s->hot);
    is_copied(s);
    is_copied(s);
}

static bool is_there(const char *p)
{
    unsigned char there;

    assert_int_equal(mincore((void *)(uintptr_t)p, PAGE, &there), 0);
    return there & 1;
}

/* Of the block that is pinned in part, and nothing of what somebody may need. */
static void pages_that_hold_nothing_are_given_back(void **state)
{
    struct stage *s = *state;
    char *raw = mmap(NULL, 2 * BLOCK, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    char *block;

    assert_ptr_not_equal(raw, MAP_FAILED);
    block = raw + (BLOCK - (uintptr_t)raw % BLOCK) % BLOCK;
    block[FIRST * PAGE + PAGE - 1] = 'a';
    s->hot = (struct hot){
        .runs = {{.iov_base = block + SECOND * PAGE, .iov_len = PAGE}},
        .n = 1,
    };
    hot_thin(&s->hot);
    assert_true(is_there(block + FIRST * PAGE));
    assert_int_equal(block[FIRST * PAGE + PAGE - 1], 'a');
    assert_true(is_there(block + SECOND * PAGE));
    assert_false(is_there(block + UNTOUCHED * PAGE));
    assert_false(is_there(block + BLOCK - PAGE));
    assert_int_equal(block[UNTOUCHED * PAGE], 0);
    (void)munmap(raw, 2 * BLOCK);
}

static void a_block_with_gaps_is_left_alone(void **state)
{
    struct stage *s = *state; /* its pages are few, so their block is not all there */

    memset(s->pages, 0, PAGES * PAGE);
    s->hot = (struct hot){
        .runs = {{.iov_base = s->pages + SECOND * PAGE, .iov_len = PAGE}},
        .n = 1,
    };
    hot_thin(&s->hot);
    assert_true(is_there(s->pages + UNTOUCHED * PAGE));
}

int main(void)
{
#define STAGED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        STAGED(what_a_copy_writes_to_is_known),
        STAGED(of_a_trial_that_fails_nothing_is_known),
        STAGED(nor_of_one_that_was_never_made),
        STAGED(what_is_pinned_copies_have_at_once),
        STAGED(pages_that_hold_nothing_are_given_back),
        STAGED(a_block_with_gaps_is_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
