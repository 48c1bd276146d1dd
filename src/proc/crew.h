/* SPDX-License-Identifier: MIT */
/*
 * A persistent sandbox as the daemon holds it: its init, and the workers inside that
 * do what is asked, one thing at a time each (init/worker.h).
 *
 *   take ──▶ busy ──DONE──▶ idle ──▶ taken again
 *              └─let go──▶ lingering ──DONE──▶ idle
 *
 * One worker is kept idle ahead of need. What a worker says was written inside the
 * sandbox: it is checked, and believed only as far as it concerns that sandbox.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/time.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "core/admission.h"
#include "core/port_jail.h"
#include "wire/wire.h"

struct event_base;
struct crew;
struct worker;

/* The sandbox is gone; called once, from the loop. */
typedef void crew_dead_fn(void *user);

struct crew_conf {
    struct event_base *base; /* borrowed */
    struct jail *jail;       /* borrowed */
    struct limits limits;
    bool host_network;
    unsigned queue_max; /* requests of each kind that wait for a worker; beyond that ERR_BUSY */
    unsigned wait_ms;   /* how long one of them waits */
    unsigned answer_ms; /* a tenant can stop workers: nobody waits longer for one */
    crew_dead_fn *dead;
    void *user;
};

/* A sandbox of its own. Usable at once; whether it could be made shows later. */
must_check int crew_open(const struct crew_conf *conf, struct crew **ret, struct err *e);
/* Everything inside dies; users of workers hear of it soon. */
void crew_kill(struct crew *c);
/* The same at once, and users of workers are not told. NULL is fine. */
void crew_close(struct crew *c);
DEFINE_FREEP(struct crew, crew_close)

bool crew_is_dead(const struct crew *c);
const char *crew_failure(const struct crew *c); /* why, or "" */
unsigned crew_writable(const struct crew *c);   /* set of OVERLAY_*, once it is ready */
bool crew_busy(const struct crew *c);           /* one of them does something */
void crew_usage(const struct crew *c, struct usage *ret);
/* So many times as long as an answer may take. */
struct timeval crew_patience(const struct crew *c, unsigned times);
struct event_base *crew_base(const struct crew *c);
unsigned crew_traits(const struct crew *c);
/*
 * Who may take a worker now. A command needs two processes of the sandbox's limit, a brief request
 * (files, ports, usage) one; a share of them is the brief requests' alone, so that files can be
 * read while every place for commands is taken.
 */
enum crew_kind { CREW_COMMAND, CREW_BRIEF, CREW_KINDS };
struct admission *crew_admission(struct crew *c, enum crew_kind kind);
/* Nobody is granted a place any more: the sandbox is being freed. */
void crew_refuse(struct crew *c);
struct timeval crew_wait(const struct crew *c); /* how long a request waits for a place */
/* Room to read into; only until the callback returns. */
enum { CREW_SCRATCH = 64 * 1024 };
char *crew_scratch(struct crew *c);

/*
 * What a worker said. DONE is the last message: the worker is not the caller's any more when it
 * comes. m == NULL: it died, and bytes == NULL then: before it had read the request. A descriptor
 * that came along is closed unless *fd is set to -1.
 */
typedef void worker_fn(void *user, const struct init_msg *m, const char *bytes, int *fd);

must_check int crew_take(struct crew *c, worker_fn *fn, void *user, struct worker **ret,
                         struct err *e);
/* One request: m->name_n is set by the caller; `n` bytes follow. The descriptors are taken, also on
 * failure: they are kept until the first answer, in case another worker has to be asked. */
must_check int worker_send(struct worker *w, const struct init_msg *m, const void *bytes, size_t n,
                           int *fds, size_t fds_n);
/* Everything it started ends; it still says DONE, or it is made to. */
void worker_kill(struct worker *w);
/* The caller does not want to hear of it any more; it goes on until DONE. */
void worker_let(struct worker *w);
