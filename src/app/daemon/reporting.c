/* SPDX-License-Identifier: MIT */
#include "app/daemon/reporting.h"

#include <string.h>

#include "app/daemon/app.h"
#include "app/daemon/boot.h"
#include "net/callback.h"
#include "net/spool.h"

/* Whoever wants a control plane to trust its executors gives them a token of their own. */
static const char token_default[] = "dev_token_only_for_testing";

enum { MS_PER_S = 1000 };

int report_check(const struct config *c, struct err *e)
{
    if (!c->control_plane_url[0])
        return 0;
    if (c->results_path[0] != '/')
        return err_set(e, ERR_CALLER, "RESULTS_PATH: '%.300s' is not an absolute path",
                       c->results_path);
    return callback_check(c->control_plane_url, c->callback_prefix, e);
}

int report_prepare(const struct app *a, const struct boot_identity *who, struct err *e)
{
    if (report_check(&a->config, e) < 0)
        return -1;
    if (!a->config.control_plane_url[0])
        return 0;
    return spool_prepare(a->config.results_path, who->uid, who->gid, e);
}

int report_open(struct app *a, struct err *e)
{
    const struct config *c = &a->config;
    const struct callback_conf conf = {
        .url = c->control_plane_url,
        .prefix = c->callback_prefix,
        .token = c->internal_token,
        .results_path = c->results_path,
        .spool_bytes_max = c->spool_bytes_max,
        .spool_age_s = c->spool_s,
        .spool_retry_ms = c->spool_retry_ms,
        .attempts = (uint32_t)c->callback_attempts,
        .base_ms = (uint32_t)c->callback_base_ms,
        .cap_ms = (uint32_t)c->callback_cap_ms,
        .connect_ms = (uint32_t)c->callback_connect_ms,
        .answer_ms = (uint32_t)c->callback_answer_ms,
        .connections_max = (uint32_t)c->callback_connections,
        .beat_ms = (uint32_t)c->heartbeat_s * MS_PER_S,
    };

    if (!c->control_plane_url[0])
        return 0;
    if (strcmp(c->internal_token, token_default) == 0)
        log_event(&a->log, LOG_WARN, "default_token",
                  LOG_STR("hint", "set INTERNAL_API_TOKEN to what the control plane expects"));
    return callback_open(a->base, &conf, a->work, &a->log, &a->report, e);
}

void report_close(struct app *a)
{
    callback_close(a->report);
    a->report = NULL;
}
