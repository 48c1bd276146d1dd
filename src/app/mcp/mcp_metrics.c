/* SPDX-License-Identifier: MIT */
#include "app/mcp/mcp_metrics.h"

#include <stdio.h>
#include <string.h>

#include "app/mcp/sessions.h"

enum { LABELS_MAX = 160 };

static const char *const outcomes[] = {
    [MCP_CANCELLED] = "cancelled",
    [MCP_OK] = "ok",
    [MCP_TOOL_ERROR] = "tool_error",
    [MCP_ERROR] = "error",
};
_Static_assert(ARRAY_LEN(outcomes) == MCP_OUTCOMES, "every outcome has a name");

/* What a client may ask for; the last one stands for all others. */
static const char *const methods[] = {
    "initialize",           "ping",           "server/discover",          "tools/list",
    "tools/call",           "resources/list", "resources/templates/list", "resources/read",
    "subscriptions/listen", "other",
};
_Static_assert(ARRAY_LEN(methods) <= MCP_METHODS_MAX, "every method has a row");

static const char *const eras[] = {"handshake", "modern"};

const char *mcp_outcome_name(enum mcp_outcome o)
{
    return outcomes[o];
}

void mcp_count_request(struct mcp_metrics *m, const char *method, bool modern, enum mcp_outcome o)
{
    size_t i = 0;

    while (i < ARRAY_LEN(methods) - 1 && strcmp(methods[i], method) != 0)
        i++;
    m->requests[i].method = methods[i];
    m->requests[i].n[modern][o]++;
}

void mcp_count_tool(struct mcp_metrics *m, const char *tool, uint64_t took_us)
{
    size_t i = 0;

    while (i < MCP_TOOLS_MAX - 1 && m->tools[i].tool && strcmp(m->tools[i].tool, tool) != 0)
        i++;
    if (!m->tools[i].tool)
        m->tools[i].tool = tool;
    histogram_add(&m->tools[i].seconds, took_us);
}

static void write_requests(const struct mcp_metrics *m, struct buf *out)
{
    static const char name[] = "mcp_requests_total";
    char labels[LABELS_MAX];

    metric_head(out, name, "counter", "requests of the Model Context Protocol that have ended");
    for (size_t i = 0; i < MCP_METHODS_MAX; i++)
        for (size_t era = 0; era < ARRAY_LEN(eras); era++)
            for (size_t o = 0; o < MCP_OUTCOMES; o++) {
                if (m->requests[i].n[era][o] == 0)
                    continue;
                (void)snprintf(labels, sizeof labels, "method=\"%s\",era=\"%s\",outcome=\"%s\"",
                               m->requests[i].method, eras[era], outcomes[o]);
                metric_value(out, name, labels, (double)m->requests[i].n[era][o]);
            }
}

static void write_tools(const struct mcp_metrics *m, struct buf *out)
{
    static const char name[] = "mcp_tool_seconds";
    char labels[LABELS_MAX];

    metric_head(out, name, "histogram", "time that calls of tools took");
    for (size_t i = 0; i < MCP_TOOLS_MAX && m->tools[i].tool; i++) {
        (void)snprintf(labels, sizeof labels, "tool=\"%s\"", m->tools[i].tool);
        metric_histogram(out, name, labels, &m->tools[i].seconds);
    }
}

void mcp_metrics_write(const struct mcp_sessions *s, struct buf *out)
{
    metric_head(out, "mcp_sessions", "gauge", "sessions of clients of the Model Context Protocol");
    metric_value(out, "mcp_sessions", "", (double)s->n);
    metric_head(out, "mcp_streams", "gauge", "its streams of events that are open");
    metric_value(out, "mcp_streams", "", (double)s->metrics.streams);
    write_requests(&s->metrics, out);
    write_tools(&s->metrics, out);
}
