/* SPDX-License-Identifier: MIT */
/* What the files of the callbacks share: callback.c (opening and ending), callback_result.c
 * (results) and callback_tell.c (heartbeats and life-cycle events). */
#pragma once

#include <event2/event_struct.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "net/callback.h"
#include "net/http_client.h"
#include "net/spool.h"

enum { CALLBACK_URL_MAX = 2048 };

/* One result on its way. */
struct delivery {
    struct callback *cb; /* borrowed */
    char id[SPOOL_ID_MAX + 1];
    struct buf text;           /* owned: the body, or the file around it */
    struct bytes body;         /* view into text */
    struct spool_entry *entry; /* the spool's; NULL: not saved */
    bool saving, backlog;
    uint32_t attempts;
    struct http_post *post; /* under way */
    struct event again;
    report_fn *kept; /* NULL: told */
    void *user;
    char url[CALLBACK_URL_MAX];
    TAILQ_ENTRY(delivery) link;
};

struct report_beat {
    struct callback *cb; /* borrowed */
    struct buf body;     /* owned */
    struct http_post *post;
    struct report_beat **slot; /* the caller's */
    char url[CALLBACK_URL_MAX];
    LIST_ENTRY(report_beat) link;
};

/* One life-cycle event. */
struct telling {
    struct callback *cb; /* borrowed */
    struct buf body;     /* owned */
    struct http_post *post;
    struct event again;
    bool active;
    uint32_t attempts;
    uint32_t heard; /* "ready": answers that show that it was understood */
    report_fn *done;
    void *user;
    char url[CALLBACK_URL_MAX];
};

struct callback {
    struct report report;
    struct event_base *base;                                /* borrowed */
    const struct log *log;                                  /* borrowed */
    struct callback_conf conf;                              /* its strings are not kept */
    char root[CALLBACK_URL_MAX];                            /* address and prefix */
    struct http_client *client, *beat_client, *last_client; /* owned */
    struct spool *spool;                                    /* owned */
    struct report_counts counts;
    uint64_t held; /* bytes of bodies in memory */
    TAILQ_HEAD(delivery_list, delivery) deliveries;
    LIST_HEAD(beat_list, report_beat) beats;
    struct telling events[REPORT_EVENT_COUNT];
    struct delivery *uploading; /* the one of the backlog */
    uint64_t backlog_ms;        /* the pause after the next failure */
    struct event backlog_timer, expire_timer;
    report_fn *quiet; /* set: the end is near */
    void *quiet_user;
};

void callback_arm(struct event *ev, uint64_t ms);
/* As callback_delay_ms(), with the pauses that are configured. */
uint64_t callback_pause_ms(const struct callback *cb, uint32_t attempt, uint32_t after_s);
/* Calls the waiting function once nothing is under way any more. */
void callback_quiet_check(struct callback *cb);

/* ---- callback_write.c ---- */
void callback_write(const struct report_result *r, struct buf *out);

/* ---- callback_result.c ---- */
void callback_result(struct report *r, const char *id, struct buf *body, report_fn *kept,
                     void *user);
void callback_results_init(struct callback *cb);
/* Sends what an earlier life left. */
void callback_results_start(struct callback *cb);
/* Looks at the backlog after so long, or earlier if that was planned. */
void callback_backlog_soon(struct callback *cb, uint64_t ms);
void callback_results_done(struct callback *cb);

/* ---- callback_tell.c ---- */
void callback_beat(struct report *r, const char *id, struct buf *body, struct report_beat **slot);
void callback_beat_cancel(struct report *r, struct report_beat **slot);
void callback_event(struct report *r, enum report_event what, struct buf *body, report_fn *done,
                    void *user);
void callback_tell_init(struct callback *cb);
void callback_tell_done(struct callback *cb);
