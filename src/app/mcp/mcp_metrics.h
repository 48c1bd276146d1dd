/* SPDX-License-Identifier: MIT */
/* What /metrics tells of the Model Context Protocol. Labels are small closed sets. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/metric.h"

struct mcp_sessions;

enum mcp_outcome {
    MCP_CANCELLED, /* there was no answer */
    MCP_OK,
    MCP_TOOL_ERROR, /* a result with isError */
    MCP_ERROR,      /* an error of the protocol */
    MCP_OUTCOMES
};
const char *mcp_outcome_name(enum mcp_outcome o);

enum { MCP_METHODS_MAX = 16, MCP_TOOLS_MAX = 24 };

struct mcp_metrics {
    struct {
        const char *method;          /* borrowed: static */
        uint64_t n[2][MCP_OUTCOMES]; /* by era: handshake, modern */
    } requests[MCP_METHODS_MAX];
    struct {
        const char *tool; /* borrowed: static */
        struct histogram seconds;
    } tools[MCP_TOOLS_MAX];
    uint64_t streams; /* open now: events of requests, and notifications */
};

/* A request has ended. The name is counted as "other" unless it is one of the methods there are. */
void mcp_count_request(struct mcp_metrics *m, const char *method, bool modern, enum mcp_outcome o);
/* `tool`: static. */
void mcp_count_tool(struct mcp_metrics *m, const char *tool, uint64_t took_us);
void mcp_metrics_write(const struct mcp_sessions *s, struct buf *out);
