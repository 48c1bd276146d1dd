/* SPDX-License-Identifier: MIT */
/*
 * The probe: attacks that need system calls and nothing else.
 *
 * A program without a C library, because it has to run in any root, because a library would turn
 * some of these calls into others, and because its few kilobytes can be carried through any
 * interface of the daemon.
 *
 *   probe ID MARK DIRECTORY VICTIM [hold|again|fake]
 *
 * It says on standard output what it got, in words that src/selftest/carry.c reads:
 *
 *   HELD ...     refused; the words say how
 *   BREACH ...   it went through
 *   HOLD WHAT N  something is being held: look at this process from outside, then kill it
 *   HOLD call N  the system call N is being made again and again: see what the kernel answers
 *
 * With `hold` it says HOLD in any case: whether the program believes that it got somewhere or not,
 * the kernel is asked from outside. With `again` it repeats what it tried last, for a refused call
 * leaves nothing but its answer. With `fake` a filter of its own lets the attacked call succeed
 * without being carried out, and it is repeated as well: it shows that a success would be noticed
 * which no throw-away namespace can give it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

enum { TRIED_MAX = 2 };

/* What was tried last: a call, or a request and the call that reads its answer. */
struct tried {
    int n;
    int foreign; /* by the 32-bit table */
    struct {
        long nr, a[6];
    } call[TRIED_MAX];
};

struct probe {
    const char *id, *mark, *dir;
    long victim; /* pid of a process on the host */
    int fake;
    int hold;  /* wait to be looked at, whatever came of it */
    int again; /* repeat it meanwhile */
    struct tried *tried;
};

/* ---- probe.c ---- */

long sys6(long nr, const long a[6]);
#define SYS(nr, ...) sys6(nr, (const long[6]){__VA_ARGS__})
#define ADDRESS(p)   ((long)(uintptr_t)(p))
/* The call that is the attack. */
long try_call(const struct probe *p, long nr, const long a[6]);
#define TRY(p, nr, ...) try_call(p, nr, (const long[6]){__VA_ARGS__})
/* One that belongs to the call tried before. */
long try_next(const struct probe *p, long nr, const long a[6]);
#define TRY_NEXT(p, nr, ...) try_next(p, nr, (const long[6]){__VA_ARGS__})
/* getpid() by the 32-bit table, where there is one. */
long try_foreign(const struct probe *p);

int text_same(const char *a, const char *b);
/* NULL-terminated list of strings on one line of standard output. */
void say_line(const char *const words[]);
#define SAY(...) say_line((const char *const[]){__VA_ARGS__, NULL})
/* Number or the name of a negative errno; the text lives in out. */
const char *say_result(long r, char out[24]);

__attribute__((noreturn)) void leave(int status);
/* Says HELD with the result and ends, after it was looked at if that is wanted. */
__attribute__((noreturn)) void was_held(const struct probe *p, long r);
/* Says BREACH and ends likewise. */
__attribute__((noreturn)) void was_breached(const struct probe *p, const char *words);
/* Says BREACH, then HOLD, and always waits to be looked at. */
__attribute__((noreturn)) void was_breached_holding(const struct probe *p, const char *words,
                                                    const char *what, long n);
/* Is it one of the answers of a wall? */
int is_refusal(long r);
/* From now on the call `nr` answers 0 and does nothing. */
void fake_success(long nr);

/* ---- one function per file: runs the attack and ends, or returns when it has no such id ---- */

void probe_calls(const struct probe *p);
void probe_sockets(const struct probe *p);
void probe_processes(const struct probe *p);
void probe_roots(const struct probe *p);
