/* SPDX-License-Identifier: MIT */
#include "app/daemon/reporting.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "app/daemon/app.h"
#include "app/daemon/boot.h"
#include "net/callback.h"
#include "net/spool.h"
#include "net/webhook.h"

/* A control plane that is to trust its executors needs a token of its own in CONTROL_PLANE_TOKEN.
 */
static const char token_default[] = "dev_token_only_for_testing";

enum { MS_PER_S = 1000 };

static int check_webhooks(const struct config *c, struct err *e)
{
    struct webhook_rules rules;
    char signature[WEBHOOK_SIGNATURE_MAX];

    if (webhook_rules_parse(c->webhook_hosts, &rules, e) < 0)
        return -1;
    if (c->webhook_secret[0] &&
        (strlen(c->webhook_secret) > WEBHOOK_SECRET_MAX ||
         webhook_sign(c->webhook_secret, "", 0, (struct bytes){"", 0}, signature) < 0))
        return err_set(e, ERR_CALLER,
                       "WEBHOOK_SECRET: longer than %d bytes, or no base64 behind 'whsec_'",
                       WEBHOOK_SECRET_MAX);
    return 0;
}

int report_check(const struct config *c, struct err *e)
{
    if (check_webhooks(c, e) < 0)
        return -1;
    if (!c->control_plane_url[0])
        return 0;
    if (c->results_path[0] != '/')
        return err_set(e, ERR_CALLER, "RESULTS_PATH: '%.300s' is not an absolute path",
                       c->results_path);
    return callback_check(c->control_plane_url, c->callback_prefix, e);
}

/* "" where the path is too long, which the spool then refuses. */
static const char *webhook_path(const struct config *c, char out[PATH_MAX])
{
    if (snprintf(out, PATH_MAX, "%s/webhooks", c->state_dir) >= PATH_MAX)
        out[0] = '\0';
    return out;
}

int report_prepare(const struct app *a, const struct boot_identity *who, struct err *e)
{
    char path[PATH_MAX];

    if (report_check(&a->config, e) < 0)
        return -1;
    if (a->config.webhook_hosts[0] &&
        spool_prepare(webhook_path(&a->config, path), "STATE_DIR", who->uid, who->gid, e) < 0)
        return -1;
    if (!a->config.control_plane_url[0])
        return 0;
    return spool_prepare(a->config.results_path, "RESULTS_PATH", who->uid, who->gid, e);
}

static int webhooks_begin(struct app *a, struct err *e)
{
    const struct config *c = &a->config;
    char path[PATH_MAX];
    const struct webhooks_conf conf = {
        .path = webhook_path(c, path),
        .hosts = c->webhook_hosts,
        .secret = c->webhook_secret,
        .bytes_max = c->webhook_bytes_max,
        .age_max_s = c->webhook_s,
        .count_max = (uint32_t)c->webhook_max,
        .base_ms = (uint32_t)c->webhook_base_ms,
        .cap_ms = (uint32_t)c->webhook_cap_ms,
        .answer_ms = (uint32_t)c->webhook_answer_ms,
        .connections_max = (uint32_t)c->webhook_connections,
    };

    if (!c->webhook_hosts[0])
        return 0;
    return webhooks_open(a->base, &conf, a->work, &a->log, &a->webhooks, e);
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

    if (webhooks_begin(a, e) < 0)
        return -1;
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
    webhooks_close(a->webhooks);
    a->webhooks = NULL;
}

void report_count_webhooks(struct app *a)
{
    struct metrics *m = &a->metrics;
    struct webhook_counts n;

    if (!a->webhooks)
        return;
    webhooks_count(a->webhooks, &n);
    m->webhooks_delivered = n.delivered;
    m->webhooks_failed = n.failed;
    m->webhooks_unknown = n.unknown;
    m->webhooks_given_up = n.given_up;
    m->webhooks_lost = n.lost;
    m->webhooks_waiting = n.waiting;
    m->webhook_bytes = n.bytes;
}
