/* SPDX-License-Identifier: MIT */
/*
 * The witness: things of the host that an attack may touch, and an eye on each of them.
 *
 *   a directory with canaries   one to be read, one to be written, one to be removed
 *   listeners                   TCP on IPv4 and IPv6, UDP, unix by path, unix by abstract name
 *   a victim                    a process that does nothing and must go on doing so
 *   shared memory, a queue      with the same secret in them
 *   names of the host           host name, places where a file of that mark must never appear
 *
 * The secret is new for each run and in nothing but the canaries: a sandbox that prints it has read
 * one.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/jw.h"

struct witness;

enum { WITNESS_MARK_MAX = 32, WITNESS_SECRET_MAX = 40 };

/* How the kernel treats this very process, before any attack. */
enum { WITNESS_PROGRAMS_MAX = 256 };

struct witness_usual {
    int score; /* how ready it is to be killed when memory runs out */
    int nice, policy;
    char programs[WITNESS_PROGRAMS_MAX]; /* where the programs of the service are; "": unknown */
};

/* Plants everything. `secret` was made with witness_secret() before any process of a jail was
 * started, and is in our environment. */
must_check int witness_open(const char *secret, struct witness **ret, struct err *e);
void witness_close(struct witness *w); /* NULL is fine; removes all of it */
DEFINE_FREEP(struct witness, witness_close)
void witness_secret(char out[WITNESS_SECRET_MAX]);

/* What a program has to know to find it, as members of an object. */
void witness_tell(const struct witness *w, struct jw *j);
const char *witness_mark(const struct witness *w);
const char *witness_dir(const struct witness *w);
pid_t witness_victim(const struct witness *w);
const struct witness_usual *witness_usual(const struct witness *w);

/* Is the secret, or the name of the host, in that text? Says which. */
const char *witness_reads(const struct witness *w, const char *text, size_t n);
/* Has anything been touched since the last time? Says what, and makes it good. */
bool witness_look(struct witness *w, char *out, size_t n);
