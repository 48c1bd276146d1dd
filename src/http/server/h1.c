/* SPDX-License-Identifier: MIT */
#include "http/server/h1.h"

#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

/* A cursor over the head; parsing functions advance it. */
struct cursor {
    char *p, *end;
};

/* RFC 9110 tchar, as a bitmap of the lower 128 characters. */
static bool is_tchar(unsigned char c)
{
    static const uint32_t set[4] = {0, 0x03ff6cfa, 0xc7fffffe, 0x57ffffff};

    return c < 128 && (set[c >> 5] >> (c & 31) & 1);
}

bool h1_is_token(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!is_tchar((unsigned char)s[i]))
            return false;
    return n > 0;
}

const char *h1_field(const struct h1_head *h, const char *name)
{
    for (size_t i = 0; i < h->fields_n; i++)
        if (strcasecmp(h->field[i].name, name) == 0)
            return h->field[i].value;
    return NULL;
}

/* Is `item` in a comma-separated list, in any case? */
static bool list_has(const char *s, const char *item)
{
    size_t n = strlen(item);

    for (s += strspn(s, ", \t"); *s; s += strspn(s, ", \t")) {
        size_t len = strcspn(s, ", \t");

        if (len == n && strncasecmp(s, item, n) == 0)
            return true;
        s += strcspn(s, ",");
    }
    return false;
}

ssize_t h1_head_end(const char *b, size_t n, size_t *scanned)
{
    size_t seen = n < H1_HEAD_MAX ? n : H1_HEAD_MAX;
    size_t from = *scanned > 3 ? *scanned - 3 : 0;
    const char *end = from < seen ? memmem(b + from, seen - from, "\r\n\r\n", 4) : NULL;

    if (end)
        return end + 4 - b;
    *scanned = seen;
    if (n > H1_TARGET_MAX + H1_METHOD_MAX && !memchr(b, '\r', H1_TARGET_MAX + H1_METHOD_MAX))
        return -414;
    return n >= H1_HEAD_MAX ? -431 : 0;
}

static int parse_method(struct cursor *c, struct h1_head *h)
{
    h->method = c->p;
    while (c->p < c->end && is_tchar((unsigned char)*c->p))
        c->p++;
    if (c->p == c->end || c->p == h->method || *c->p != ' ' || c->p - h->method > H1_METHOD_MAX)
        return 400;
    *c->p++ = '\0';
    return 0;
}

static int parse_target(struct cursor *c, struct h1_head *h)
{
    h->target = c->p;
    while (c->p<c->end && * c->p> 0x20 && *c->p < 0x7f)
        c->p++;
    if (c->p == c->end || c->p == h->target || *c->p != ' ')
        return 400;
    if (c->p - h->target > H1_TARGET_MAX)
        return 414;
    *c->p++ = '\0';
    return 0;
}

static int parse_version(struct cursor *c, struct h1_head *h)
{
    const char *p = c->p;

    if (c->end - p < 10 || memcmp(p, "HTTP/", 5) != 0 || p[5] < '0' || p[5] > '9' || p[6] != '.' ||
        p[7] < '0' || p[7] > '9' || p[8] != '\r' || p[9] != '\n')
        return 400;
    if (p[5] != '1' || p[7] > '1')
        return 505;
    h->minor = p[7] - '0';
    h->keep = h->minor == 1;
    c->p += 10;
    return 0;
}

/* One "name: value" line. A space before the colon and folded lines fail as bad names. */
static int parse_field(struct cursor *c, struct h1_field *ret)
{
    char *name = c->p, *value, *last;

    while (c->p < c->end && is_tchar((unsigned char)*c->p))
        c->p++;
    if (c->p == name || c->p == c->end || *c->p != ':')
        return 400;
    *c->p++ = '\0';
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\t'))
        c->p++;
    value = last = c->p;
    for (; c->p < c->end && (*c->p == '\t' || (unsigned char)*c->p >= 0x20) && *c->p != 0x7f;
         c->p++)
        if (*c->p != ' ' && *c->p != '\t')
            last = c->p + 1;
    if (c->end - c->p < 2 || c->p[0] != '\r' || c->p[1] != '\n')
        return 400;
    *last = '\0';
    c->p += 2;
    *ret = (struct h1_field){name, value};
    return 0;
}

/* What the fields that frame a message have said so far. */
struct framing {
    struct h1_head *head;
    unsigned hosts;
};

/* Only what may stand in an authority: anything else is refused. */
static int on_host(struct framing *f, const char *value)
{
    if (value[strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                            "0123456789-._~!$&'()*+,;=:[]%")])
        return 400;
    f->hosts++;
    return 0;
}

static int on_length(struct framing *f, const char *value)
{
    size_t digits = strspn(value, "0123456789");
    int64_t v = 0;

    if (f->head->length >= 0 || digits == 0 || value[digits])
        return 400;
    if (digits > H1_LENGTH_DIGITS_MAX)
        return 413;
    for (size_t i = 0; i < digits; i++)
        v = v * 10 + (value[i] - '0');
    f->head->length = v;
    return 0;
}

static int on_encoding(struct framing *f, const char *value)
{
    if (f->head->chunked || f->head->minor == 0)
        return 400;
    if (strcasecmp(value, "chunked") != 0)
        return 501;
    f->head->chunked = true;
    return 0;
}

static int on_connection(struct framing *f, const char *value)
{
    if (list_has(value, "close"))
        f->head->keep = false;
    else if (f->head->minor == 0 && list_has(value, "keep-alive"))
        f->head->keep = true;
    return 0;
}

static int on_expect(struct framing *f, const char *value)
{
    if (strcasecmp(value, "100-continue") != 0)
        return 417;
    f->head->expect = f->head->minor == 1;
    return 0;
}

static const struct {
    const char *name;
    int (*on)(struct framing *, const char *);
} framing_fields[] = {
    {"host",              on_host      },
    {"content-length",    on_length    },
    {"transfer-encoding", on_encoding  },
    {"connection",        on_connection},
    {"expect",            on_expect    },
};

static int frame_field(struct framing *f, const struct h1_field *field)
{
    for (size_t i = 0; i < ARRAY_LEN(framing_fields); i++)
        if (strcasecmp(field->name, framing_fields[i].name) == 0)
            return framing_fields[i].on(f, field->value);
    return 0;
}

static int parse_fields(struct cursor *c, struct framing *f)
{
    struct h1_head *h = f->head;
    int bad;

    while (c->p < c->end && *c->p != '\r') {
        if (h->fields_n == H1_FIELDS_MAX)
            return 431;
        bad = parse_field(c, &h->field[h->fields_n]);
        if (!bad)
            bad = frame_field(f, &h->field[h->fields_n]);
        if (bad)
            return bad;
        h->fields_n++;
    }
    return c->end - c->p == 2 && c->p[0] == '\r' && c->p[1] == '\n' ? 0 : 400;
}

static void head_init(struct h1_head *h)
{
    h->fields_n = 0;
    h->length = -1;
    h->minor = 0;
    h->chunked = h->keep = h->expect = false;
}

/* "HTTP/1.1 200 OK", with or without words behind the status. */
static bool parse_status(struct cursor *c, struct h1_answer *a)
{
    const char *p = c->p;

    if (c->end - p < 14 || memcmp(p, "HTTP/1.", 7) != 0 || p[7] < '0' || p[7] > '1' ||
        p[8] != ' ' || p[9] < '1' || p[9] > '5' || p[10] < '0' || p[10] > '9' || p[11] < '0' ||
        p[11] > '9' || (p[12] != ' ' && p[12] != '\r'))
        return false;
    a->head.minor = p[7] - '0';
    a->head.keep = a->head.minor == 1;
    a->status = (p[9] - '0') * 100 + (p[10] - '0') * 10 + (p[11] - '0');
    c->p += p[12] == ' ' ? 13 : 12;
    a->reason = c->p;
    while (c->p < c->end && ((unsigned char)*c->p >= 0x20 || *c->p == '\t') && *c->p != 0x7f)
        c->p++;
    if (c->end - c->p < 2 || c->p[0] != '\r' || c->p[1] != '\n')
        return false;
    *c->p = '\0';
    c->p += 2;
    return true;
}

bool h1_parse_answer(char *b, size_t n, struct h1_answer *ret)
{
    struct cursor c = {b, b + n};
    struct framing f = {.head = &ret->head};

    head_init(&ret->head);
    ret->head.method = ret->head.target = "";
    return parse_status(&c, ret) && parse_fields(&c, &f) == 0 &&
           !(ret->head.chunked && ret->head.length >= 0);
}

int h1_parse_head(char *b, size_t n, struct h1_head *ret)
{
    struct cursor c = {b, b + n};
    struct framing f = {.head = ret};
    int bad;

    head_init(ret);
    bad = parse_method(&c, ret);
    if (!bad)
        bad = parse_target(&c, ret);
    if (!bad)
        bad = parse_version(&c, ret);
    if (!bad)
        bad = parse_fields(&c, &f);
    if (bad)
        return bad;
    if (f.hosts > 1 || (ret->minor == 1 && f.hosts == 0) || (ret->chunked && ret->length >= 0))
        return 400;
    return 0;
}

static int hex_value(unsigned char ch)
{
    if (ch >= '0' && ch <= '9')
        return ch - '0';
    ch |= 0x20;
    return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

static int chunk_size(struct h1_chunks *c, unsigned char ch)
{
    int v = hex_value(ch);

    if (v >= 0) {
        if (++c->digits > H1_CHUNK_DIGITS_MAX)
            return -1;
        c->left = c->left * 16 + (uint64_t)v;
        return 0;
    }
    if (c->digits == 0 || (ch != ';' && ch != '\r'))
        return -1;
    c->state = ch == ';' ? H1_CHUNK_EXT : H1_CHUNK_SIZE_LF;
    return 0;
}

/* Bytes that are thrown away (extensions, trailers) must be text, and their number is limited. */
static int chunk_junk(struct h1_chunks *c, unsigned char ch)
{
    if ((ch < 0x20 && ch != '\t') || ch == 0x7f || ++c->junk > H1_CHUNK_JUNK_MAX)
        return -1;
    c->line++;
    return 0;
}

static int chunk_expect(struct h1_chunks *c, unsigned char ch, char want, enum h1_chunk_state next)
{
    if (ch != (unsigned char)want)
        return -1;
    c->state = next;
    c->line = 0;
    return 0;
}

/* One byte outside of the payload. */
static int chunk_byte(struct h1_chunks *c, unsigned char ch)
{
    switch (c->state) {
    case H1_CHUNK_SIZE:
        return chunk_size(c, ch);
    case H1_CHUNK_EXT:
        if (ch != '\r')
            return chunk_junk(c, ch);
        c->state = H1_CHUNK_SIZE_LF;
        return 0;
    case H1_CHUNK_SIZE_LF:
        return chunk_expect(c, ch, '\n', c->left > 0 ? H1_CHUNK_DATA : H1_CHUNK_TRAILER);
    case H1_CHUNK_DATA_CR:
        return chunk_expect(c, ch, '\r', H1_CHUNK_DATA_LF);
    case H1_CHUNK_DATA_LF:
        c->digits = 0;
        return chunk_expect(c, ch, '\n', H1_CHUNK_SIZE);
    case H1_CHUNK_TRAILER:
        if (ch != '\r')
            return chunk_junk(c, ch);
        c->state = c->line > 0 ? H1_CHUNK_TRAILER_LF : H1_CHUNK_END_LF;
        return 0;
    case H1_CHUNK_TRAILER_LF:
        return chunk_expect(c, ch, '\n', H1_CHUNK_TRAILER);
    case H1_CHUNK_END_LF:
        return chunk_expect(c, ch, '\n', H1_CHUNK_DONE);
    case H1_CHUNK_DATA:
    case H1_CHUNK_DONE:
    case H1_CHUNK_STATE_COUNT:
        break;
    }
    return -1;
}

ssize_t h1_chunk(struct h1_chunks *c, const char *in, size_t n, const char **ret_data,
                 size_t *ret_n)
{
    size_t used = 0;

    *ret_data = in;
    *ret_n = 0;
    while (used < n && c->state != H1_CHUNK_DONE) {
        if (c->state == H1_CHUNK_DATA) {
            size_t run = n - used < c->left ? n - used : (size_t)c->left;

            *ret_data = in + used;
            *ret_n = run;
            c->left -= run;
            if (c->left == 0)
                c->state = H1_CHUNK_DATA_CR;
            return (ssize_t)(used + run);
        }
        if (chunk_byte(c, (unsigned char)in[used++]) < 0)
            return -1;
    }
    return (ssize_t)used;
}
