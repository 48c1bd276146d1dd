/* SPDX-License-Identifier: MIT */
#include "cli/daemon_at.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { PATH_ROOM = 1024 };

/* As the daemon reads it: without white space around it. */
static void trim(char *text)
{
    static const char blank[] = " \t\r\n\v\f";
    size_t skip = strspn(text, blank), n = strlen(text + skip);

    while (n > 0 && strchr(blank, text[skip + n - 1]))
        n--;
    memmove(text, text + skip, n);
    text[n] = '\0';
}

static bool secret_from(const char *directory, const char *below, char out[DAEMON_SECRET_MAX])
{
    char path[PATH_ROOM];
    FILE *f;
    bool found;

    if (!directory || !*directory)
        return false;
    (void)snprintf(path, sizeof path, "%s%s", directory, below);
    f = fopen(path, "re");
    if (!f)
        return false;
    found = fgets(out, DAEMON_SECRET_MAX, f) != NULL;
    (void)fclose(f);
    if (!found)
        out[0] = '\0';
    trim(out);
    return found;
}

static void secret_find(char out[DAEMON_SECRET_MAX])
{
    const char *given = getenv("SANDBOX_SECRET"), *file = getenv("SANDBOX_SECRET_FILE");

    out[0] = '\0';
    if (given && *given)
        (void)snprintf(out, DAEMON_SECRET_MAX, "%s", given);
    else if (!secret_from(file, "", out) && !secret_from(getenv("STATE_DIR"), "/secret", out) &&
             !secret_from(getenv("XDG_STATE_HOME"), "/sandbox-executor/secret", out) &&
             !secret_from(getenv("HOME"), "/.local/state/sandbox-executor/secret", out))
        (void)secret_from("/var/lib/sandbox-executor", "/secret", out);
    if (out[strcspn(out, "\r\n")])
        out[0] = '\0'; /* it could not be sent */
}

/* Length of what is in front of the host; 0: that is none of ours. */
static size_t scheme_n(const char *url)
{
    return strncasecmp(url, "http://", 7) == 0 ? 7 : strncasecmp(url, "https://", 8) == 0 ? 8 : 0;
}

int daemon_at_find(const char *url, struct daemon_at *ret, struct err *e)
{
    const char *port = getenv("EXECUTOR_PORT"), *env = getenv("SANDBOX_URL");
    struct daemon_at at = {.said = (url && *url) || (env && *env) || (port && *port)};
    size_t n;

    if (!url || !*url)
        url = env;
    if (url && *url)
        n = (size_t)snprintf(at.url, sizeof at.url, "%s", url);
    else
        n = (size_t)snprintf(at.url, sizeof at.url, "http://127.0.0.1:%.16s",
                             port && *port ? port : "8080");
    if (n >= sizeof at.url || scheme_n(at.url) == 0)
        return err_set(e, ERR_CALLER, "'%.*s' is not http://HOST:PORT", DAEMON_URL_MAX / 4, url);
    while (n > 0 && at.url[n - 1] == '/')
        at.url[--n] = '\0';
    if (n <= scheme_n(at.url))
        return err_set(e, ERR_CALLER, "'%.*s' is not http://HOST:PORT", DAEMON_URL_MAX / 4, url);
    secret_find(at.secret);
    *ret = at;
    return 0;
}
