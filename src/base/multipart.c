/* SPDX-License-Identifier: MIT */
#include "base/multipart.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static int broken(struct multipart *m, struct err *e, const char *words)
{
    m->state = MULTIPART_BROKEN;
    return err_set(e, ERR_CALLER, "multipart body: %s", words);
}

/* The value of a parameter of a header ("; name=value" or "; name=\"value\""). False: absent or too
 * long. */
static bool parameter(const char *header, const char *name, char *out, size_t out_max)
{
    size_t name_n = strlen(name), n = 0;
    const char *p = strchr(header, ';');

    while (p) {
        p += 1 + strspn(p + 1, " \t");
        bool wanted = strncasecmp(p, name, name_n) == 0 && p[name_n] == '=';

        p += strcspn(p, "=;");
        if (*p != '=') {
            p = strchr(p, ';');
            continue;
        }
        bool quoted = *++p == '"';

        for (p += quoted; *p && (quoted ? *p != '"' : *p != ';'); p++) {
            if (quoted && *p == '\\' && p[1] == '"')
                p++;
            if (wanted && n == out_max)
                return false;
            if (wanted)
                out[n++] = *p;
        }
        if (wanted) {
            while (!quoted && n > 0 && (out[n - 1] == ' ' || out[n - 1] == '\t'))
                n--;
            out[n] = '\0';
            return true;
        }
        p = strchr(p, ';');
    }
    return false;
}

int multipart_begin(struct multipart *m, const char *content_type,
                    const struct multipart_events *events, struct err *e)
{
    static const char type[] = "multipart/form-data";
    char boundary[MULTIPART_BOUNDARY_MAX + 1];

    *m = (struct multipart){.state = MULTIPART_PREAMBLE, .events = *events};
    if (strncasecmp(content_type, type, sizeof type - 1) != 0 ||
        !parameter(content_type, "boundary", boundary, sizeof boundary - 1) || !*boundary ||
        strpbrk(boundary, "\r\n"))
        return broken(m, e, "the content type has no boundary of at most 70 characters");
    m->delimiter_n = (size_t)snprintf(m->delimiter, sizeof m->delimiter, "\r\n--%s", boundary);
    m->matched = 2; /* the first delimiter may stand at the very beginning */
    return 0;
}

/* A line of a part's header is complete. */
static int header_line(struct multipart *m, const char *line, struct err *e)
{
    static const char wanted[] = "Content-Disposition:";
    const char *value = line + sizeof wanted - 1;

    if (strncasecmp(line, wanted, sizeof wanted - 1) != 0)
        return 0;
    value += strspn(value, " \t");
    if (strncasecmp(value, "form-data", 9) != 0)
        return broken(m, e, "a part is no form-data");
    if (!parameter(value, "name", m->part.name, MULTIPART_NAME_MAX))
        return broken(m, e, "a part has no name, or too long a one");
    m->part.has_filename = parameter(value, "filename", m->part.filename, MULTIPART_FILENAME_MAX);
    if (!m->part.has_filename && strcasestr(value, "filename="))
        return broken(m, e, "a file name is too long");
    return 0;
}

static int head_complete(struct multipart *m, struct err *e)
{
    char *line = m->head;

    if (memchr(m->head, '\0', m->head_n))
        return broken(m, e, "a part's header has a NUL");
    m->head[m->head_n - 2] = '\0';
    m->part = (struct multipart_part){0};
    for (char *end; line; line = end) {
        end = strstr(line, "\r\n");
        if (end) {
            *end = '\0';
            end += 2;
        }
        if (header_line(m, line, e) < 0)
            return -1;
    }
    if (!*m->part.name)
        return broken(m, e, "a part has no Content-Disposition");
    if (++m->parts > MULTIPART_PARTS_MAX)
        return broken(m, e, "it has more than 10000 parts");
    m->state = MULTIPART_CONTENT;
    return m->events.begin(m->events.user, &m->part, e);
}

/* One byte behind a delimiter or of a part's header. */
static int head_byte(struct multipart *m, char c, struct err *e)
{
    if (m->head_n == sizeof m->head)
        return broken(m, e, "a part's header is longer than 16 KiB");
    m->head[m->head_n++] = c;
    bool line_ends = m->head_n >= 2 && c == '\n' && m->head[m->head_n - 2] == '\r';

    if (m->state == MULTIPART_DELIMITED) {
        if (m->head_n == 2 && m->head[0] == '-' && c == '-') {
            m->state = MULTIPART_EPILOGUE;
        } else if (line_ends) {
            for (size_t i = 0; i < m->head_n - 2; i++)
                if (m->head[i] != ' ' && m->head[i] != '\t')
                    return broken(m, e, "a delimiter does not end its line");
            m->state = MULTIPART_HEAD;
            m->head_n = 0;
        }
        return 0;
    }
    if (!line_ends)
        return 0;
    if (m->head_n == 2)
        return broken(m, e, "a part has no header");
    if (m->head_n >= 4 && memcmp(m->head + m->head_n - 4, "\r\n\r\n", 4) == 0) {
        m->head_n -= 2;
        return head_complete(m, e);
    }
    return 0;
}

/* Bytes of a part, or of what stands before the first one. */
static int pass_on(struct multipart *m, const char *p, size_t n, struct err *e)
{
    if (m->state != MULTIPART_CONTENT || n == 0)
        return 0;
    return m->events.content(m->events.user, p, n, e);
}

/* Looks for a delimiter from *at on. */
static int search(struct multipart *m, const char *p, size_t n, size_t *at, struct err *e)
{
    size_t from = *at, i = from;

    while (i < n) {
        if (p[i] == m->delimiter[m->matched]) {
            i++;
            if (++m->matched < m->delimiter_n)
                continue;
            size_t before = i - from; /* the delimiter's own bytes of this piece among them */

            if (pass_on(m, p + from, before > m->delimiter_n ? before - m->delimiter_n : 0, e) < 0)
                return -1;
            bool ended = m->state == MULTIPART_CONTENT;

            m->state = MULTIPART_DELIMITED;
            m->matched = m->head_n = 0;
            *at = i;
            return ended ? m->events.end(m->events.user, e) : 0;
        }
        if (m->matched == 0) {
            const char *cr = memchr(p + i, '\r', n - i);

            i = cr ? (size_t)(cr - p) : n;
            continue;
        }
        size_t here = i - from; /* so many bytes of this piece are before the mismatch */

        /* What matched in earlier pieces was no delimiter. */
        if (m->matched > here && m->state == MULTIPART_CONTENT &&
            pass_on(m, m->delimiter, m->matched - here, e) < 0)
            return -1;
        m->matched = 0;
    }
    size_t held = m->matched < n - from ? m->matched : n - from;

    *at = n;
    return pass_on(m, p + from, n - from - held, e);
}

int multipart_feed(struct multipart *m, const char *p, size_t n, size_t *ret_used, struct err *e)
{
    size_t at = 0;
    int r = 0;

    while (at < n && r == 0 && !m->held)
        switch (m->state) {
        case MULTIPART_PREAMBLE:
        case MULTIPART_CONTENT:
            r = search(m, p, n, &at, e);
            break;
        case MULTIPART_DELIMITED:
        case MULTIPART_HEAD:
            r = head_byte(m, p[at++], e);
            break;
        case MULTIPART_EPILOGUE:
            at = n;
            break;
        case MULTIPART_BROKEN:
            r = err_set(e, ERR_CALLER, "multipart body: it is broken");
            break;
        }
    if (r < 0)
        m->state = MULTIPART_BROKEN;
    *ret_used = at;
    return r;
}

int multipart_end(struct multipart *m, struct err *e)
{
    return m->state == MULTIPART_EPILOGUE ? 0 : broken(m, e, "it ends before its last delimiter");
}
