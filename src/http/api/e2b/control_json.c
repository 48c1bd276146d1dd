/* SPDX-License-Identifier: MIT */
/* Sandboxes as the control plane shows them. Members that nobody reads are there because the Python
 * SDK insists on them. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/daemon/app.h"
#include "http/api/e2b/control.h"
#include "http/server/server.h"

enum {
    ONE_MAX = 8 * 1024,
    ESCAPE_FACTOR = 6,
    DOMAIN_ROOM = 512,
    MB = 20, /* bits */
    MS_PER_S = 1000,
    NS_PER_MS = 1000000,
};

size_t control_json_max(const struct persistent *p)
{
    size_t n = ONE_MAX;

    for (size_t i = 0; i < p->label.pairs_n; i++)
        n += (strlen(p->label.pairs[i].key) + strlen(p->label.pairs[i].value)) * ESCAPE_FACTOR + 8;
    return n;
}

/* Under it every name leads here. */
static const char *domain_of(const struct app *a, char room[DOMAIN_ROOM])
{
    if (a->config.sandbox_domain[0])
        return a->config.sandbox_domain;
    (void)snprintf(room, DOMAIN_ROOM, "localhost:%u",
                   a->http ? (unsigned)http_server_port(a->http) : 0);
    return room;
}

static const char *template_of(const struct persistent *p)
{
    return p->label.template[0] ? p->label.template : "base";
}

static void write_names(struct jw *w, const struct persistent *p)
{
    jw_kv_string(w, "templateID", template_of(p));
    jw_kv_string(w, "alias", template_of(p));
    jw_kv_string(w, "sandboxID", p->id);
    jw_kv_string(w, "clientID", "local");
    jw_kv_string(w, "envdVersion", ENVD_VERSION);
}

void control_write_made(struct jw *w, const struct app *a, const struct persistent *p)
{
    char room[DOMAIN_ROOM];

    jw_object(w);
    write_names(w, p);
    jw_kv_string(w, "envdAccessToken", p->access.token);
    jw_kv_string(w, "trafficAccessToken", p->access.traffic);
    jw_kv_string(w, "domain", domain_of(a, room));
    jw_object_end(w);
}

static void write_time(struct jw *w, const char *key, int64_t ms)
{
    char text[CLOCK_ISO_MAX];

    jw_kv_string(w, key, clock_iso_at(ms / MS_PER_S, ms % MS_PER_S * NS_PER_MS, text));
}

static void write_detail(struct jw *w, const struct persistent *p)
{
    char room[DOMAIN_ROOM];

    jw_kv_string(w, "envdAccessToken", p->access.token);
    jw_kv_string(w, "domain", domain_of(p->all->app, room));
    jw_key(w, "network");
    jw_object(w);
    jw_kv_bool(w, "allowPublicTraffic", !p->access.private_ports);
    jw_object_end(w);
    jw_key(w, "lifecycle");
    jw_object(w);
    jw_kv_string(w, "onTimeout", p->life.pause_at_end ? "pause" : "kill");
    jw_kv_bool(w, "autoResume", p->life.wakes);
    jw_object_end(w);
}

void control_write_info(struct jw *w, const struct persistent *p, bool detail)
{
    const struct life *l = &p->life;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);

    jw_object(w);
    write_names(w, p);
    write_time(w, "startedAt", l->created_ms);
    write_time(w, "endAt", l->ends_us ? l->ends_ms : l->created_ms + INT32_MAX * (int64_t)MS_PER_S);
    jw_kv_int(w, "cpuCount", cpus > 0 ? cpus : 1);
    jw_kv_int(w, "memoryMB", (int64_t)(p->limits.memory_max >> MB));
    jw_kv_int(w, "diskSizeMB", (int64_t)(p->limits.workspace_max >> MB));
    jw_kv_string(w, "state", p->state == PERSISTENT_PAUSED ? "paused" : "running");
    jw_key(w, "metadata");
    jw_object(w);
    for (size_t i = 0; i < p->label.pairs_n; i++)
        jw_kv_string(w, p->label.pairs[i].key, p->label.pairs[i].value);
    jw_object_end(w);
    jw_key(w, "volumeMounts");
    jw_array(w);
    jw_array_end(w);
    if (detail)
        write_detail(w, p);
    jw_object_end(w);
}
