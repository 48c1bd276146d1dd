/* SPDX-License-Identifier: MIT */
/*
 * Who may run now: so many places, then a queue in order of arrival, then "busy". Pure.
 *
 * A ticket is embedded in whatever wants to run. Of one lane at most `max` tickets are queued or
 * granted, in the order of arrival; the others wait in the lane, so a long lane delays no other.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/err.h"

/* A place became free for a queued ticket. Called from admission_leave() of another one. */
typedef void ticket_grant_fn(void *user);

enum ticket_state {
    TICKET_NONE,
    TICKET_BEHIND, /* waits for others of its lane */
    TICKET_QUEUED,
    TICKET_GRANTED,
};

TAILQ_HEAD(ticket_head, ticket);

/* Those who share something: at most `max` of them run at the same time. */
struct lane {
    size_t max, ahead; /* ahead: queued or granted */
    size_t behind_n;
    struct ticket_head behind;
};
void lane_init(struct lane *l, size_t max);

struct ticket {
    enum ticket_state state;
    struct lane *lane; /* borrowed; NULL: none */
    ticket_grant_fn *grant;
    void *user;
    TAILQ_ENTRY(ticket) link;
};

struct admission {
    size_t places, queue_max; /* limits */
    size_t lane_max;          /* waiting in one lane */
    size_t granted, queued;   /* now; those behind others count as queued */
    bool granting;
    struct ticket_head queue;
};

void admission_init(struct admission *a, size_t places, size_t queue_max);

/* Leaves the ticket granted or queued, or refuses it with ERR_BUSY. */
must_check int admission_ask(struct admission *a, struct ticket *t, struct err *e);
/* Gives the place or the place in the queue back; fine for a ticket that has neither. */
void admission_leave(struct admission *a, struct ticket *t);
/* Seconds after which a refused caller might try again: a guess from the length of the queue. */
unsigned admission_retry_s(const struct admission *a);
