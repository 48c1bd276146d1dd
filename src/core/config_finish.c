/* SPDX-License-Identifier: MIT */
/* What follows from the values once every source has been read: aliases, closed sets, relations. */
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "core/config.h"

/* Strings with a closed set of values, in lower case. */
static const struct {
    enum config_index option;
    const char *const words[5]; /* NULL-terminated */
} choices[] = {
    {OPTION_auth_mode,       {"", "static", "pool", "none"}},
    {OPTION_isolation_level, {"full", "basic"}             },
    {OPTION_netns,           {"pool", "fresh"}             },
    {OPTION_log_format,      {"auto", "json", "text"}      },
    {OPTION_mcp_structured,  {"auto", "never"}             },
};

/* Where the daemon keeps something; "" is chosen at the start, and absolute. */
static const enum config_index places[] = {
    OPTION_state_dir,
    OPTION_workspace_path,
    OPTION_dependencies_path,
};

static int check_choice(struct config *c, size_t option, const char *const *words, struct err *e)
{
    char *value = (char *)c + config_options[option].at;
    char allowed[128] = "";

    for (const char *const *w = words; *w; w++) {
        if (strcasecmp(value, *w) == 0) {
            memcpy(value, *w, strlen(*w) + 1); /* everybody else may compare plainly */
            return 0;
        }
        if (**w)
            (void)snprintf(allowed + strlen(allowed), sizeof allowed - strlen(allowed), "%s%s",
                           *allowed ? ", " : "", *w);
    }
    return err_set(e, ERR_CALLER, "%s (%s): '%.64s' is none of: %s", config_options[option].name,
                   config_options[option].env, value, allowed);
}

/* Platforms set DISABLE_BWRAP where their containers cannot run bubblewrap. It allows that there is
 * no isolation, and asks for as much as there is: what native gives, even without limits. An
 * isolation that is named by the same source or a stronger one outweighs it. */
static void apply_disable_bwrap(struct config *c)
{
    unsigned char origin = c->origin[OPTION_disable_bwrap];

    if (!c->disable_bwrap ||
        (c->origin[OPTION_isolation] >= origin && c->origin[OPTION_isolation] != CONFIG_DEFAULT))
        return;
    (void)snprintf(c->isolation, sizeof c->isolation, "native,subprocess");
    c->origin[OPTION_isolation] = origin;
    if (c->origin[OPTION_isolation_level] != CONFIG_DEFAULT)
        return;
    (void)snprintf(c->isolation_level, sizeof c->isolation_level, "basic");
    c->origin[OPTION_isolation_level] = origin;
}

static void apply_container_id(struct config *c, char *const *envp)
{
    const char *name = config_env(envp, "HOSTNAME");

    if (!*c->container_id)
        (void)snprintf(c->container_id, sizeof c->container_id, "%s", name ? name : "unknown");
}

static void apply_pod_name(struct config *c)
{
    if (!*c->pod_name)
        (void)snprintf(c->pod_name, sizeof c->pod_name, "%s", c->container_id);
}

static void apply_log_level(struct config *c)
{
    enum log_level level;

    if (!log_level_parse(c->log_level, &level))
        (void)snprintf(c->log_level, sizeof c->log_level, "info"); /* never a reason to refuse */
}

static int check_places(const struct config *c, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        const struct config_option *o = &config_options[places[i]];
        const char *value = (const char *)c + o->at;

        if (*value && *value != '/')
            return err_set(e, ERR_CALLER, "%s: '%.300s' is not an absolute path", o->env, value);
    }
    return 0;
}

static int check_secret(const struct config *c, struct err *e)
{
    const char *given = *c->secret ? "SANDBOX_SECRET" : "SANDBOX_SECRET_FILE";

    if (strcmp(c->auth_mode, "static") == 0 && !*c->secret && !*c->secret_file)
        return err_set(e, ERR_CALLER,
                       "SANDBOX_AUTH_MODE=static needs SANDBOX_SECRET or SANDBOX_SECRET_FILE");
    if (*c->secret && *c->secret_file)
        return err_set(e, ERR_CALLER, "SANDBOX_SECRET and SANDBOX_SECRET_FILE exclude each other");
    if (strcmp(c->auth_mode, "pool") == 0 && (*c->secret || *c->secret_file))
        return err_set(e, ERR_CALLER, "SANDBOX_AUTH_MODE=pool and %s exclude each other", given);
    return 0;
}

bool config_has_own_workspace(const struct config *c)
{
    return c->session_id[0] && c->origin[OPTION_workspace_path] != CONFIG_DEFAULT &&
           c->workspace_path[0];
}

const char *config_workspaces(const struct config *c, char out[CONFIG_TEXT_MAX])
{
    bool below_state = config_has_own_workspace(c) || !c->workspace_path[0];

    (void)snprintf(out, CONFIG_TEXT_MAX, "%.1000s%s",
                   below_state ? c->state_dir : c->workspace_path,
                   below_state ? "/workspaces" : "");
    return out;
}

int config_finish(struct config *c, char *const *envp, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(choices); i++)
        if (check_choice(c, choices[i].option, choices[i].words, e) < 0)
            return -1;
    apply_disable_bwrap(c);
    apply_container_id(c, envp);
    apply_pod_name(c);
    apply_log_level(c);
    if (strncmp(c->workspace_path, "s3:", 3) == 0)
        (void)snprintf(c->workspace_path, sizeof c->workspace_path, "/workspace");
    /* A lower maximum lowers the defaults as well. */
    if (c->timeout_s > c->timeout_max_s)
        c->timeout_s = c->timeout_max_s;
    if (c->timeout_session_s > c->timeout_max_s)
        c->timeout_session_s = c->timeout_max_s;
    return check_places(c, e) < 0 ? -1 : check_secret(c, e);
}
