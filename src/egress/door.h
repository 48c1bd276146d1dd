/* SPDX-License-Identifier: MIT */
/* A door from inside: what door.c and connection.c share. */
#pragma once

#include <netinet/in.h>
#include <sys/queue.h>

#include "egress/account.h"
#include "egress/flow.h"
#include "egress/http_request.h"
#include "egress/names.h"
#include "wire/egress_words.h"

enum source_kind { SOURCE_DAEMON, SOURCE_DIALLER, SOURCE_LISTENER, SOURCE_NAMES, SOURCE_CONN };

/* What an event is of. */
struct source {
    enum source_kind kind;
    int fd; /* owned; -1: none */
    uint32_t armed;
    struct conn *conn; /* borrowed */
    uint16_t port;     /* of a listener */
};

enum conn_state {
    CONN_GREETING,  /* the proxy's port: SOCKS or HTTP? */
    CONN_SOCKS,     /* the request of SOCKS */
    CONN_HEAD,      /* the head of an HTTP request */
    CONN_HELLO,     /* the first message of TLS */
    CONN_DIALLING,  /* the dialler was asked */
    CONN_FLOWING,   /* bytes both ways */
    CONN_LINGERING, /* refused: it reads what it was told, then it is closed */
    CONN_DEAD,
};

/* How a refusal is said. */
enum conn_speech { SPEECH_NOTHING, SPEECH_HTTP, SPEECH_SOCKS, SPEECH_TLS };

struct conn {
    LIST_ENTRY(conn) link;
    struct door *door; /* borrowed */
    uint32_t id;
    enum conn_state state;
    enum conn_speech speech;
    struct source program, host;
    struct flow up, down;
    char name[EGRESS_NAME_MAX + 1];
    uint16_t port;
    bool named;          /* name and port are known */
    bool tunnel, socks;  /* asked for by CONNECT, by SOCKS; answered when the host is there */
    bool plain;          /* one HTTP request, which was looked at */
    bool awaits_upgrade; /* nothing more goes up before the host has agreed */
    struct egress_row *row;
    size_t looked;     /* bytes that were there when it was looked at last */
    uint64_t until_us; /* closed then */
};

enum { LISTENERS_MAX = EGRESS_PORTS_MAX + 4, LOOK_MAX = 32 * 1024 };

struct door {
    int ep;
    struct source daemon, dialler;
    struct source listener[LISTENERS_MAX];
    size_t listeners_n;
    struct egress_policy policy;
    uint32_t serial, serial_dialler;
    bool change_told, listening, full;
    struct names names;
    struct account account;
    LIST_HEAD(, conn) conns, dead;
    size_t conns_n;
    uint32_t next_id;
    char look[LOOK_MAX + 1]; /* what is being looked at; nothing of it outlives a callback */
    struct request request;
};

/* What is watched for; 0: nothing but a broken connection. */
void door_arm(struct door *d, struct source *s, uint32_t want);

/* ---- connection.c ---- */

void conn_open(struct door *d, int fd, uint16_t port);
/* One of its sockets has something. */
void conn_event(struct conn *c);
void conn_dialled(struct conn *c, enum egress_verdict v, int fd); /* fd: taken */
void conn_close(struct conn *c);
/* Is it still allowed? Else it is closed. */
void conn_judge(struct conn *c);
/* It has waited for too long, or as long as it may. */
void conn_expire(struct conn *c);
