/* SPDX-License-Identifier: MIT */
#include "http/server/auth.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/os.h"
#include "base/random.h"
#include "base/secret.h"
#include "base/sha256.h"

enum {
    AUTH_SECRET_MAX = 8192, /* bytes; a head has no room for more anyway */
    AUTH_PATH_MAX = 4096,
    US_PER_MS = 1000,
};

struct auth {
    enum auth_mode mode;
    char *secret; /* owned; NULL: not claimed yet */
    size_t secret_n;
    char key[AUTH_KEY_MAX]; /* of the secret */
    char *path;             /* owned; pool only */
    /* the secret before this one, accepted until then (clock_us); owned; NULL: none */
    char *previous;
    size_t previous_n;
    char previous_key[AUTH_KEY_MAX];
    uint64_t previous_until;
    struct tickets tickets;
};

/* clang-format off */
static const char *const mode_names[] = {
    [AUTH_STATIC] = "static",
    [AUTH_POOL]   = "pool",
    [AUTH_NONE]   = "none",
};
/* clang-format on */
_Static_assert(ARRAY_LEN(mode_names) == AUTH_MODE_COUNT, "every mode has a name");

bool auth_mode_parse(const char *name, enum auth_mode *ret)
{
    for (size_t i = 0; i < ARRAY_LEN(mode_names); i++)
        if (strcasecmp(name, mode_names[i]) == 0) {
            *ret = (enum auth_mode)i;
            return true;
        }
    return false;
}

enum auth_mode auth_mode(const struct auth *a)
{
    return a->mode;
}

bool auth_has_secret(const struct auth *a)
{
    return a->secret != NULL;
}

void auth_key_of(const char *secret, char out[AUTH_KEY_MAX])
{
    static const char salt[] = "e2b key of ";
    char digest[SHA256_HEX], text[AUTH_SECRET_MAX + sizeof salt];

    (void)snprintf(text, sizeof text, "%s%s", salt, secret);
    sha256_hex(text, strlen(text), digest);
    (void)snprintf(out, AUTH_KEY_MAX, "e2b_%.40s", digest);
    explicit_bzero(text, sizeof text);
}

static int secret_set(struct auth *a, const char *p, size_t n, struct err *e)
{
    a->secret = strndup(p, n);
    if (!a->secret)
        return err_set(e, ERR_HOST, "out of memory");
    a->secret_n = n;
    auth_key_of(a->secret, a->key);
    return 0;
}

static void wipe(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

static void previous_forget(struct auth *a)
{
    wipe(take_ptr(&a->previous));
    a->previous_n = 0;
}

int auth_replace(struct auth *a, const char *secret, uint64_t overlap_ms, struct err *e)
{
    char *old = a->secret;
    size_t old_n = a->secret_n;

    if (a->mode != AUTH_STATIC || strcmp(old, secret) == 0)
        return 0;
    if (secret_set(a, secret, strlen(secret), e) < 0) {
        a->secret = old;
        return -1;
    }
    previous_forget(a);
    tickets_forget(&a->tickets);
    auth_key_of(old, a->previous_key);
    a->previous = old;
    a->previous_n = old_n;
    a->previous_until = clock_us() + overlap_ms * US_PER_MS;
    if (overlap_ms == 0)
        previous_forget(a);
    return 1;
}

/* mkdir -p of the directory part. Parents are open to all users: the user that the daemon becomes
 * has to pass. Only the last directory is private, and gets the owner. */
static int make_directory(const struct auth_conf *conf, struct err *e)
{
    char dir[AUTH_PATH_MAX];
    char *last = NULL;
    bool made = false;

    if (snprintf(dir, sizeof dir, "%s", conf->path) >= (int)sizeof dir)
        return err_set(e, ERR_CALLER, "secret path is too long");
    last = strrchr(dir, '/');
    if (!last || last == dir)
        return 0;
    *last = '\0';
    for (char *slash = strchr(dir + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash)
            *slash = '\0';
        made = mkdir(dir, slash ? 0755 : 0700) == 0;
        if (!made && errno != EEXIST)
            return err_sys(e, -errno, "make directory '%s'", dir);
        if (!slash)
            break;
        *slash = '/';
    }
    if (made && conf->uid != (uid_t)-1 && chown(dir, conf->uid, conf->gid) < 0)
        return err_sys(e, -errno, "give directory '%s' away", dir);
    return 0;
}

/* Reads an earlier claim. No file is no error. */
static int read_claim(struct auth *a, struct err *e)
{
    char text[AUTH_SECRET_MAX + 1];
    cleanup_close int fd = open(a->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    const char *p = text;
    ssize_t n;

    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0)
        return err_sys(e, -errno, "read secret file '%s'", a->path);
    n = read(fd, text, sizeof text);
    if (n < 0)
        return err_sys(e, -errno, "read secret file '%s'", a->path);
    if (n == sizeof text)
        return err_set(e, ERR_HOST, "secret file '%s' is too long", a->path);
    while (n > 0 && isspace((unsigned char)p[n - 1]))
        n--;
    while (n > 0 && isspace((unsigned char)*p)) {
        p++;
        n--;
    }
    if (n == 0)
        return err_set(e, ERR_HOST, "secret file '%s' is empty", a->path);
    return secret_set(a, p, (size_t)n, e);
}

static int open_pool(struct auth *a, const struct auth_conf *conf, struct err *e)
{
    if (conf->secret && *conf->secret)
        return err_set(e, ERR_CALLER, "pool mode takes no secret: the first caller brings it");
    if (!conf->path || !*conf->path)
        return err_set(e, ERR_CALLER, "pool mode needs a path for the secret");
    a->path = strdup(conf->path);
    if (!a->path)
        return err_set(e, ERR_HOST, "out of memory");
    if (make_directory(conf, e) < 0)
        return -1;
    return read_claim(a, e);
}

static int open_static(struct auth *a, const struct auth_conf *conf, struct err *e)
{
    if (!conf->secret || !*conf->secret)
        return err_set(e, ERR_CALLER, "static mode needs a secret");
    if (strlen(conf->secret) > AUTH_SECRET_MAX)
        return err_set(e, ERR_CALLER, "the secret is too long");
    return secret_set(a, conf->secret, strlen(conf->secret), e);
}

int auth_open(const struct auth_conf *conf, struct auth **ret, struct err *e)
{
    cleanup_with(auth_freep) struct auth *a = calloc(1, sizeof *a);

    if (!a)
        return err_set(e, ERR_HOST, "out of memory");
    a->mode = conf->mode;
    if (conf->mode == AUTH_POOL && open_pool(a, conf, e) < 0)
        return -1;
    if (conf->mode == AUTH_STATIC && open_static(a, conf, e) < 0)
        return -1;
    *ret = take_ptr(&a);
    return 0;
}

/* May we enter the directory, and, if it is the last one, make files in it? */
static int check_directory(const char *dir, bool last, const char *user, struct err *e)
{
    if (access(dir, last ? W_OK | X_OK : X_OK) == 0)
        return 0;
    return err_set(e, ERR_HOST,
                   "SANDBOX_SECRET_PATH: user '%.64s' cannot %s '%.200s' (%s): give it that "
                   "directory (chown), or choose another user (RUN_AS)",
                   user, last ? "make files in" : "enter", dir, strerror(errno));
}

int auth_claimable(const struct auth *a, const char *user, struct err *e)
{
    char dir[AUTH_PATH_MAX];

    if (a->mode != AUTH_POOL || a->secret)
        return 0;
    if (!strchr(a->path, '/'))
        return check_directory(".", true, user, e);
    for (const char *slash = strchr(a->path, '/'); slash; slash = strchr(slash + 1, '/')) {
        int n = slash == a->path ? 1 : (int)(slash - a->path);

        (void)snprintf(dir, sizeof dir, "%.*s", n, a->path);
        if (check_directory(dir, !strchr(slash + 1, '/'), user, e) < 0)
            return -1;
    }
    return 0;
}

void auth_free(struct auth *a)
{
    if (!a)
        return;
    wipe(a->secret);
    wipe(a->previous);
    free(a->path);
    free(a);
}

static int write_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t k = write(fd, p, n);

        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return -1;
        p += k;
        n -= (size_t)k;
    }
    return 0;
}

/* A reader sees the old state or the new one, and a crash leaves one of the two. */
static int persist(const char *path, const char *token, size_t n, struct err *e)
{
    char tmp[AUTH_PATH_MAX + 64], tag[17];
    const char *slash = strrchr(path, '/');
    int dir_n = slash ? (int)(slash + 1 - path) : 0;
    cleanup_close int fd = -1;

    random_hex(tag, 8);
    (void)snprintf(tmp, sizeof tmp, "%.*s.sandbox-secret-%s", dir_n, path, tag);
    fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_sys(e, -errno, "create '%s'", tmp);
    if (write_all(fd, token, n) < 0 || fsync(fd) < 0 || rename(tmp, path) < 0) {
        (void)err_sys(e, -errno, "keep the secret in '%s'", path);
        (void)unlink(tmp);
        return -1;
    }
    return 0;
}

static enum auth_verdict claim(struct auth *a, const char *token, size_t n, struct err *e)
{
    if (persist(a->path, token, n, e) < 0 || secret_set(a, token, n, e) < 0)
        return AUTH_BROKEN;
    return AUTH_OK;
}

/* ---- tickets and keys of sessions ---- */

bool auth_has_tickets(const struct auth *a)
{
    return a->mode != AUTH_NONE && a->secret;
}

int auth_ticket(struct auth *a, uint64_t valid_us, char out[TICKET_MAX])
{
    return auth_has_tickets(a) ? ticket_make(&a->tickets, valid_us, out) : -1;
}

bool auth_take_ticket(struct auth *a, const char *text)
{
    return ticket_take(&a->tickets, text);
}

int auth_session_key(const struct auth *a, int64_t until_s, char out[SESSION_KEY_MAX])
{
    return auth_has_tickets(a) ? session_key_make(a->secret, until_s, out) : -1;
}

/* ---- judging ---- */

/* The one before the last rotation, for as long as that was promised. */
static bool is_previous(struct auth *a, const char *token, size_t n)
{
    if (!a->previous)
        return false;
    if (clock_us() >= a->previous_until) {
        previous_forget(a);
        return false;
    }
    return secret_is(token, n, a->previous, a->previous_n) ||
           secret_text_is(token, a->previous_key) ||
           session_key_is(token, a->previous, (int64_t)time(NULL));
}

const char *auth_bearer(const char *authorization)
{
    return authorization && strncmp(authorization, "Bearer ", 7) == 0 ? authorization + 7 : NULL;
}

enum auth_verdict auth_check(struct auth *a, const char *token, struct err *e)
{
    size_t n;

    if (a->mode == AUTH_NONE)
        return AUTH_OK;
    if (!token)
        return AUTH_REFUSED;
    n = strlen(token);
    /* A blank first: more than one space after the scheme. */
    if (n == 0 || n > AUTH_SECRET_MAX || *token == ' ' || *token == '\t')
        return AUTH_REFUSED;
    /* A key of an earlier life must not become the secret of a pool. */
    if (!a->secret)
        return session_key_looks(token) ? AUTH_REFUSED : claim(a, token, n, e);
    if (secret_is(token, n, a->secret, a->secret_n) || secret_text_is(token, a->key) ||
        session_key_is(token, a->secret, (int64_t)time(NULL)))
        return AUTH_OK;
    return is_previous(a, token, n) ? AUTH_OK : AUTH_REFUSED;
}
