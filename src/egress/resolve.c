/* SPDX-License-Identifier: MIT */
#include "egress/resolve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"

enum { STACK = 256 * 1024, LINE = 1024 };

STAILQ_HEAD(lookups, lookup);

struct host_line {
    char host[EGRESS_NAME_MAX + 1];
    struct address address;
};

struct resolver {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct lookups asked, done;
    int wake[2];
    struct host_line *lines; /* owned: of the file; never changed once there are threads */
    size_t lines_n;
};

static bool address_read(const char *text, struct address *ret)
{
    struct sockaddr_in *four = (struct sockaddr_in *)&ret->at;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&ret->at;

    *ret = (struct address){0};
    if (inet_pton(AF_INET, text, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        ret->n = sizeof *four;
    } else if (inet_pton(AF_INET6, text, &six->sin6_addr) == 1) {
        six->sin6_family = AF_INET6;
        ret->n = sizeof *six;
    }
    return ret->n > 0;
}

/* ---- the file ---- */

static int line_add(struct resolver *r, const char *host, const struct address *a)
{
    struct host_line *grown = realloc(r->lines, (r->lines_n + 1) * sizeof *grown);

    if (!grown)
        return -1;
    r->lines = grown;
    grown[r->lines_n].address = *a;
    if (egress_host_read(host, strlen(host), grown[r->lines_n].host) == EGRESS_HOST_NAME)
        r->lines_n++;
    return 0;
}

static int file_read(struct resolver *r, const char *path, struct err *e)
{
    FILE *f = fopen(path, "re");
    char line[LINE], *rest, *word;
    struct address a;
    int bad = 0;

    if (!f)
        return err_sys(e, -errno, "EGRESS_HOSTS_FILE '%.300s'", path);
    while (bad == 0 && fgets(line, sizeof line, f)) {
        line[strcspn(line, "#\r\n")] = '\0';
        word = strtok_r(line, " \t", &rest);
        if (!word || !address_read(word, &a))
            continue;
        while (bad == 0 && (word = strtok_r(NULL, " \t", &rest)))
            bad = line_add(r, word, &a);
    }
    (void)fclose(f);
    return bad ? err_set(e, ERR_HOST, "no memory for names") : 0;
}

/* ---- looking up ---- */

static void look_up(const struct resolver *r, struct lookup *l)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;

    l->n = 0;
    if (address_read(l->host, &l->v[0])) {
        l->n = 1;
        return;
    }
    for (size_t i = 0; i < r->lines_n && l->n < RESOLVE_MAX; i++)
        if (strcmp(r->lines[i].host, l->host) == 0)
            l->v[l->n++] = r->lines[i].address;
    if (l->n > 0 || getaddrinfo(l->host, NULL, &hints, &list) != 0)
        return;
    for (const struct addrinfo *a = list; a && l->n < RESOLVE_MAX; a = a->ai_next) {
        if (a->ai_addrlen > sizeof l->v[0].at)
            continue;
        memcpy(&l->v[l->n].at, a->ai_addr, a->ai_addrlen);
        l->v[l->n++].n = a->ai_addrlen;
    }
    freeaddrinfo(list);
}

static void *serve(void *user)
{
    struct resolver *r = user;
    struct lookup *l;

    for (;;) {
        (void)pthread_mutex_lock(&r->lock);
        while (STAILQ_EMPTY(&r->asked))
            (void)pthread_cond_wait(&r->more, &r->lock);
        l = STAILQ_FIRST(&r->asked);
        STAILQ_REMOVE_HEAD(&r->asked, link);
        (void)pthread_mutex_unlock(&r->lock);
        look_up(r, l);
        (void)pthread_mutex_lock(&r->lock);
        STAILQ_INSERT_TAIL(&r->done, l, link);
        (void)pthread_mutex_unlock(&r->lock);
        os_wake(r->wake[1]);
    }
    return NULL;
}

int resolver_open(const char *file, struct resolver **ret, struct err *e)
{
    struct resolver *r = calloc(1, sizeof *r);

    if (!r || os_wake_open(&r->wake[0], &r->wake[1]) < 0)
        return err_set(e, ERR_HOST, "no memory for a resolver");
    STAILQ_INIT(&r->asked);
    STAILQ_INIT(&r->done);
    *ret = r;
    return file[0] ? file_read(r, file, e) : 0;
}

int resolver_start(struct resolver *r, struct err *e)
{
    pthread_attr_t attr;
    pthread_t thread;
    int bad = 0;

    (void)pthread_mutex_init(&r->lock, NULL);
    (void)pthread_cond_init(&r->more, NULL);
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, STACK);
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    for (int i = 0; i < RESOLVE_THREADS && bad == 0; i++)
        bad = pthread_create(&thread, &attr, serve, r);
    (void)pthread_attr_destroy(&attr);
    return bad ? err_sys(e, -bad, "threads of the resolver") : 0;
}

int resolver_fd(const struct resolver *r)
{
    return r->wake[0];
}

void resolver_ask(struct resolver *r, struct lookup *l)
{
    (void)pthread_mutex_lock(&r->lock);
    STAILQ_INSERT_TAIL(&r->asked, l, link);
    (void)pthread_cond_signal(&r->more);
    (void)pthread_mutex_unlock(&r->lock);
}

struct lookup *resolver_take(struct resolver *r)
{
    struct lookup *l;

    os_wake_take(r->wake[0]);
    (void)pthread_mutex_lock(&r->lock);
    l = STAILQ_FIRST(&r->done);
    if (l)
        STAILQ_REMOVE_HEAD(&r->done, link);
    (void)pthread_mutex_unlock(&r->lock);
    return l;
}
