/* SPDX-License-Identifier: MIT */
#include "cli/connected.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/http_inner.h"

struct connected {
    CURL *curl; /* owned */
    int fd;
};

int connected_open(const struct daemon_at *at, struct connected **ret, struct err *e)
{
    struct connected *c = calloc(1, sizeof *c);
    char why[CURL_ERROR_SIZE] = "";
    curl_socket_t fd = CURL_SOCKET_BAD;
    CURLcode code = CURLE_OUT_OF_MEMORY;
    long sys = 0;

    if (c)
        c->curl = curl_easy_init();
    if (c && c->curl) {
        http_set_common(c->curl);
        (void)curl_easy_setopt(c->curl, CURLOPT_ERRORBUFFER, why);
        (void)curl_easy_setopt(c->curl, CURLOPT_CONNECT_ONLY, 1L);
        (void)curl_easy_setopt(c->curl, CURLOPT_CONNECTTIMEOUT_MS, (long)HTTP_CONNECT_MS);
        (void)curl_easy_setopt(c->curl, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
        (void)curl_easy_setopt(c->curl, CURLOPT_URL, at->url);
        code = curl_easy_perform(c->curl);
        (void)curl_easy_getinfo(c->curl, CURLINFO_OS_ERRNO, &sys);
        if (code == CURLE_OK)
            code = curl_easy_getinfo(c->curl, CURLINFO_ACTIVESOCKET, &fd);
        (void)curl_easy_setopt(c->curl, CURLOPT_ERRORBUFFER, NULL);
    }
    if (code != CURLE_OK || fd == CURL_SOCKET_BAD) {
        connected_close(c);
        return http_why_not(at->url, code, sys, why, e);
    }
    c->fd = fd;
    *ret = c;
    return 0;
}

void connected_close(struct connected *c)
{
    if (c && c->curl)
        curl_easy_cleanup(c->curl);
    free(c);
}

int connected_fd(const struct connected *c)
{
    return c->fd;
}

static ssize_t moved(CURLcode code, size_t n)
{
    return code == CURLE_OK ? (ssize_t)n : code == CURLE_AGAIN ? -EAGAIN : -EIO;
}

ssize_t connected_read(struct connected *c, void *p, size_t room)
{
    size_t n = 0;

    CURLcode code = curl_easy_recv(c->curl, p, room, &n);

    return moved(code, n);
}

ssize_t connected_write(struct connected *c, const void *p, size_t n)
{
    size_t sent = 0;

    CURLcode code = curl_easy_send(c->curl, p, n, &sent);

    return moved(code, sent);
}

int connected_write_all(struct connected *c, const void *p, size_t n)
{
    const char *at = p;

    while (n > 0) {
        struct pollfd ready = {.fd = c->fd, .events = POLLOUT};
        ssize_t sent = connected_write(c, at, n);

        if (sent == -EAGAIN)
            (void)poll(&ready, 1, -1);
        else if (sent < 0)
            return -EIO;
        else
            at += sent, n -= (size_t)sent;
    }
    return 0;
}

static const char *authority(const struct daemon_at *at)
{
    const char *p = strstr(at->url, "://");

    return p ? p + 3 : at->url;
}

void connected_lines(const struct daemon_at *at, struct buf *head)
{
    const char *host = authority(at);

    (void)buf_printf(head, "Host: %.*s\r\n", (int)strcspn(host, "/"), host);
    if (at->secret[0])
        (void)buf_printf(head, "Authorization: Bearer %s\r\n", at->secret);
}

const char *connected_prefix(const struct daemon_at *at)
{
    const char *host = authority(at);

    return host + strcspn(host, "/");
}
