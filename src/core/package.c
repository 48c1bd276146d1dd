/* SPDX-License-Identifier: MIT */
#include "core/package.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/os.h"

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define DIGITS  "0123456789"

enum { PORT_HTTP = 80, PORT_HTTPS = 443, PORT_DIGITS_MAX = 5, PORT_MAX = 65535 };

/* What is left to read; NUL-terminated, so that looking one ahead is always possible. */
struct reader {
    const char *p;
};

static void skip_blanks(struct reader *r)
{
    r->p += strspn(r->p, " \t");
}

static bool take(struct reader *r, const char *text)
{
    size_t n = strlen(text);

    if (strncmp(r->p, text, n) != 0)
        return false;
    r->p += n;
    return true;
}

/* ---- requirements ---- */

/* Letters, digits, '.', '_', '-'; the first and the last a letter or a digit. */
static bool take_name(struct reader *r)
{
    size_t n = strspn(r->p, LETTERS DIGITS "._-");

    if (n == 0 || n > PACKAGE_NAME_MAX || !isalnum((unsigned char)r->p[0]) ||
        !isalnum((unsigned char)r->p[n - 1]))
        return false;
    r->p += n;
    return true;
}

static bool take_extras(struct reader *r)
{
    if (!take(r, "["))
        return true;
    skip_blanks(r);
    while (!take(r, "]")) {
        if (!take_name(r))
            return false;
        skip_blanks(r);
        if (*r->p == ']')
            continue;
        if (!take(r, ","))
            return false;
        skip_blanks(r);
    }
    return true;
}

/* The longer ones first: none is taken for the beginning of another. */
static bool take_operator(struct reader *r)
{
    static const char *const operators[] = {"===", "==", "~=", "!=", "<=", ">=", "<", ">"};

    for (size_t i = 0; i < ARRAY_LEN(operators); i++)
        if (take(r, operators[i]))
            return true;
    return false;
}

static bool take_versions(struct reader *r)
{
    bool inside = take(r, "(");

    do {
        size_t n;

        skip_blanks(r);
        if (!take_operator(r))
            return false;
        skip_blanks(r);
        n = strspn(r->p, LETTERS DIGITS ".*+!_-");
        if (n == 0)
            return false;
        r->p += n;
        skip_blanks(r);
    } while (take(r, ","));
    return !inside || take(r, ")");
}

static bool take_address(struct reader *r)
{
    if (!take(r, "https://") && !take(r, "http://"))
        return false;
    if (!isalnum((unsigned char)*r->p) && *r->p != '[')
        return false;
    r->p += strcspn(r->p, " \t");
    return true;
}

/* Its meaning is the installer's business; it cannot be an option or a path. */
static bool take_marker(struct reader *r)
{
    skip_blanks(r);
    if (!take(r, ";"))
        return true;
    skip_blanks(r);
    if (!*r->p)
        return false;
    r->p += strlen(r->p);
    return true;
}

static bool take_requirement(struct reader *r)
{
    if (!take_name(r))
        return false;
    skip_blanks(r);
    if (!take_extras(r))
        return false;
    skip_blanks(r);
    if (take(r, "@")) {
        skip_blanks(r);
        return take_address(r) && take_marker(r);
    }
    if (*r->p && *r->p != ';' && !take_versions(r))
        return false;
    return take_marker(r);
}

static bool is_printable(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((p[i] < ' ' && p[i] != '\t') || p[i] > '~')
            return false;
    return true;
}

/* An address may carry a password: then the words do without it. */
static int refuse(struct err *e, const char *spec, const char *why)
{
    if (strstr(spec, "://"))
        return err_set(e, ERR_CALLER, "a dependency is refused: %s", why);
    return err_set(e, ERR_CALLER, "dependency '%.100s' is refused: %s", spec, why);
}

int package_spec_check(const char *spec, size_t n, struct err *e)
{
    char text[PACKAGE_SPEC_MAX + 1];
    struct reader r = {.p = text};

    if (n > PACKAGE_SPEC_MAX)
        return err_set(e, ERR_CALLER, "a dependency is longer than %d bytes", PACKAGE_SPEC_MAX);
    if (!is_printable(spec, n))
        return err_set(e, ERR_CALLER, "a dependency contains bytes that are not printable ASCII");
    memcpy(text, spec, n);
    text[n] = '\0';
    skip_blanks(&r);
    if (*r.p == '-')
        return refuse(e, text, "it looks like an option");
    if (*r.p == '/' || *r.p == '.' || *r.p == '~')
        return refuse(e, text, "it looks like a path");
    if (strncmp(r.p, "http", 4) == 0 && strstr(r.p, "://")) {
        if (take_address(&r) && !*r.p)
            return 0;
        return refuse(e, text, "this is not an http or https address");
    }
    if (!take_requirement(&r) || *r.p)
        return refuse(
            e, text,
            "want 'name', 'name>=1.0', 'name[extra]==1.0; marker' or 'name @ https://...'");
    return 0;
}

/* A part of a name: it begins with no dot, dash or underscore. */
static bool take_npm_part(struct reader *r)
{
    size_t n = strspn(r->p, LETTERS DIGITS "._-");

    if (n == 0 || n > PACKAGE_NAME_MAX || !isalnum((unsigned char)r->p[0]))
        return false;
    r->p += n;
    return true;
}

static bool take_npm(struct reader *r)
{
    if (take(r, "@") && (!take_npm_part(r) || !take(r, "/")))
        return false;
    if (!take_npm_part(r))
        return false;
    if (!take(r, "@"))
        return true;
    if (!*r->p)
        return false;
    r->p += strspn(r->p, LETTERS DIGITS " .^~<>=|*+-");
    return true;
}

int package_npm_check(const char *spec, size_t n, struct err *e)
{
    char text[PACKAGE_SPEC_MAX + 1];
    struct reader r = {.p = text};

    if (n > PACKAGE_SPEC_MAX)
        return err_set(e, ERR_CALLER, "a dependency is longer than %d bytes", PACKAGE_SPEC_MAX);
    if (!is_printable(spec, n))
        return err_set(e, ERR_CALLER, "a dependency contains bytes that are not printable ASCII");
    memcpy(text, spec, n);
    text[n] = '\0';
    if (!take_npm(&r) || *r.p)
        return refuse(e, text, "want 'name', '@scope/name', 'name@1.2' or 'name@^1.0'");
    return 0;
}

/* ---- hosts ---- */

/* Of a port only digits, and not too many of them; "" is no port. */
static bool port_parse(const char *p, size_t n, uint16_t *ret)
{
    unsigned value = 0;

    if (n == 0 || n > PORT_DIGITS_MAX || strspn(p, DIGITS) < n)
        return false;
    for (size_t i = 0; i < n; i++)
        value = value * 10 + (unsigned)(p[i] - '0');
    if (value == 0 || value > PORT_MAX)
        return false;
    *ret = (uint16_t)value;
    return true;
}

bool package_host_parse(const char *p, size_t n, struct package_host *ret)
{
    bool literal = n > 0 && p[0] == '[';
    const char *end = literal ? memchr(p, ']', n) : memchr(p, ':', n);
    const char *name = p + literal;
    size_t name_n = end ? (size_t)(end - name) : n - literal;
    const char *rest = end ? end + literal : p + n;
    const char *allowed = literal ? DIGITS "abcdefABCDEF:." : LETTERS DIGITS "._-";
    struct package_host h = {.port = 0};

    if ((literal && !end) || name_n == 0 || name_n > PACKAGE_HOST_MAX)
        return false;
    for (size_t i = 0; i < name_n; i++) {
        if (!name[i] || !strchr(allowed, name[i]))
            return false;
        h.name[i] = (char)(tolower)((unsigned char)name[i]); /* the function: the macro nests */
    }
    if (rest < p + n &&
        (*rest != ':' || !port_parse(rest + 1, (size_t)(p + n - rest - 1), &h.port)))
        return false;
    *ret = h;
    return true;
}

int package_hosts_parse(const char *text, struct package_host *ret, size_t max, struct err *e)
{
    size_t count = 0;

    for (const char *p = text; *p;) {
        size_t n = strcspn(p, ", \t");

        if (n > 0 && count == max)
            return err_set(e, ERR_CALLER, "more than %zu hosts", max);
        if (n > 0 && !package_host_parse(p, n, &ret[count++]))
            return err_set(e, ERR_CALLER, "'%.*s' is not a host or host:port", (int)n, p);
        p += n;
        p += *p != '\0';
    }
    return (int)count;
}

/* ---- the index ---- */

int package_index_parse(const char *url, size_t n, struct package_index *ret, struct err *e)
{
    struct package_index i = {.tls = false};
    const char *at, *host, *end;

    if (n == 0 || n > PACKAGE_URL_MAX)
        return err_set(e, ERR_CALLER, "the address of the index has no or more than %d bytes",
                       PACKAGE_URL_MAX);
    if (!is_printable(url, n) || memchr(url, ' ', n) || memchr(url, '\t', n))
        return err_set(e, ERR_CALLER, "the address of the index contains blanks or control bytes");
    memcpy(i.url, url, n);
    i.tls = strncasecmp(i.url, "https://", 8) == 0;
    if (!i.tls && strncasecmp(i.url, "http://", 7) != 0)
        return err_set(e, ERR_CALLER, "the address of the index is neither http nor https");
    if (strpbrk(i.url, "?#\\"))
        return err_set(e, ERR_CALLER,
                       "the address of the index has a query, fragment or backslash");
    host = strstr(i.url, "://") + 3;
    end = host + strcspn(host, "/");
    for (at = end; at > host && *at != '@'; at--)
        ;
    if (*at == '@' && at < end) {
        if ((size_t)(at - host) > PACKAGE_USER_MAX)
            return err_set(e, ERR_CALLER,
                           "the user information of the index is longer than %d bytes",
                           PACKAGE_USER_MAX);
        memcpy(i.user_info, host, (size_t)(at - host));
        host = at + 1;
    }
    if (!package_host_parse(host, (size_t)(end - host), &i.host))
        return err_set(e, ERR_CALLER, "the address of the index names no proper host");
    if (i.host.port == 0)
        i.host.port = i.tls ? PORT_HTTPS : PORT_HTTP;
    *ret = i;
    return 0;
}

/* ---- what packages say ---- */

static bool header_take(const char *line, size_t n, const char *name, char *out, size_t max)
{
    size_t k = strlen(name);

    if (out[0] || n <= k || strncasecmp(line, name, k) != 0)
        return true;
    line += k, n -= k;
    while (n > 0 && (*line == ' ' || *line == '\t'))
        line++, n--;
    while (n > 0 && strchr(" \t\r", line[n - 1]))
        n--;
    if (n == 0 || n > max || !is_printable(line, n) || memchr(line, ' ', n) ||
        memchr(line, '\t', n))
        return false;
    memcpy(out, line, n);
    out[n] = '\0';
    return true;
}

bool package_metadata_parse(const char *text, size_t n, struct package_dist *ret)
{
    struct package_dist d = {0};

    for (const char *p = text, *end = text + n; p < end;) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        size_t len = (size_t)((newline ? newline : end) - p);

        if (len == 0 || (len == 1 && *p == '\r'))
            break; /* the description follows */
        if (!header_take(p, len, "Name:", d.name, PACKAGE_NAME_MAX) ||
            !header_take(p, len, "Version:", d.version, PACKAGE_VERSION_MAX))
            return false;
        p += len + 1;
    }
    if (!d.name[0] || !d.version[0])
        return false;
    *ret = d;
    return true;
}

static bool member_take(struct json_value object, const char *name, char *out, size_t max)
{
    struct buf text = BUF_INIT(max);
    struct json_value v = json_member(object, name);
    bool good = v.p && v.type == JSON_STRING && json_decode_string(v, 0, &text) == 0 &&
                text.n > 0 && is_printable(text.p, text.n);

    if (good) {
        memcpy(out, text.p, text.n);
        out[text.n] = '\0';
    }
    buf_done(&text);
    return good;
}

bool package_json_parse(const char *text, size_t n, struct package_dist *ret)
{
    struct package_dist d = {.npm = true};
    struct json_value v;
    struct err e;

    if (json_parse(text, n, 0, &v, &e) < 0 || v.type != JSON_OBJECT ||
        !member_take(v, "name", d.name, PACKAGE_NAME_MAX) ||
        !member_take(v, "version", d.version, PACKAGE_VERSION_MAX))
        return false;
    *ret = d;
    return true;
}

/* ---- secrets ---- */

static void decode_percent(const char *from, char *out)
{
    for (; *from; from++) {
        char hex[3] = {0};

        if (from[0] == '%' && isxdigit((unsigned char)from[1]) &&
            isxdigit((unsigned char)from[2])) {
            memcpy(hex, from + 1, 2);
            *out++ = (char)strtol(hex, NULL, 16);
            from += 2;
        } else {
            *out++ = *from;
        }
    }
    *out = '\0';
}

/* Every spelling: as written, decoded, the password of both, and as a header would carry it. */
enum { SPELLINGS = 5, SPELLING_MAX = BASE64_LENGTH(PACKAGE_USER_MAX) + 1 };
struct spellings {
    char text[SPELLINGS][SPELLING_MAX];
};

static void spell(const struct package_index *index, struct spellings *s)
{
    struct buf b64 = BUF_INIT(SPELLING_MAX - 1);
    const char *colon;

    (void)snprintf(s->text[0], SPELLING_MAX, "%s", index->user_info);
    decode_percent(index->user_info, s->text[1]);
    colon = strchr(s->text[0], ':');
    (void)snprintf(s->text[2], SPELLING_MAX, "%s", colon ? colon + 1 : "");
    colon = strchr(s->text[1], ':');
    (void)snprintf(s->text[3], SPELLING_MAX, "%s", colon ? colon + 1 : "");
    if (base64_encode(s->text[1], strlen(s->text[1]), &b64) == 0 && b64.n > 0)
        (void)snprintf(s->text[4], SPELLING_MAX, "%s", b64.p);
    buf_done(&b64);
}

void package_scrub(const struct package_index *index, const char *text, size_t n, struct buf *out)
{
    struct spellings s = {0};

    if (index->user_info[0])
        spell(index, &s);
    for (size_t i = 0; i < n;) {
        size_t hidden = 0;

        for (size_t k = 0; k < SPELLINGS; k++) {
            size_t len = strlen(s.text[k]);

            if (len > hidden && len <= n - i && memcmp(text + i, s.text[k], len) == 0)
                hidden = len;
        }
        if (hidden > 0)
            (void)buf_puts(out, "****");
        else
            (void)buf_putc(out, text[i]);
        i += hidden ? hidden : 1;
    }
    explicit_bzero(&s, sizeof s);
}
