/* SPDX-License-Identifier: MIT */
/*
 * E2B's wire, so that E2B's SDKs work unchanged: four dialects, because it speaks of errors in four
 * ways, and one for what browsers ask before the SDK's request.
 *
 *   e2b              the control plane, at /sandboxes, /v2/sandboxes, /templates, …
 *   e2b_envd         port 49983 of a sandbox: files (REST) and RPC in the Connect protocol
 *   e2b_interpreter  port 49999 of a sandbox: cells, one JSON object per line
 *   e2b_ports        any other port of a sandbox: a reverse proxy
 *   e2b_preflight    OPTIONS of a web page for one of the first three (browser.h)
 *
 * What is for a sandbox is claimed by its Host or headers before any path is looked at (target.h):
 * POST /execute, GET /health and GET /metrics mean something else without them. A request is
 * admitted when its head is there, so a body is never read for someone without the token.
 */
#pragma once

#include "app/sandbox/sandboxes.h"
#include "http/api/api.h"
#include "http/server/http_call.h"

/*
 * The sandbox that a call to envd or to the interpreter is about. NULL: it has ended since the call
 * was admitted, and the call is answered.
 */
struct persistent *e2b_sandbox(struct http_call *c);

/* {"code":STATUS,"message":TEXT}: errors of the control plane and of envd's /files. */
void e2b_reply_status(struct http_call *c, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* 502: the only status by which the SDKs understand that a sandbox is gone. */
void e2b_reply_gone(struct http_call *c, const char *id);
/* 502: nothing listens there. */
void e2b_reply_closed_port(struct http_call *c, const char *id, uint16_t port);
/* The interpreter's errors: text that the user sees. */
void e2b_reply_text(struct http_call *c, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* e2b: the control plane */
api_fn e2b_create, e2b_create_old, e2b_list, e2b_list_old, e2b_info, e2b_kill, e2b_timeout;
api_fn e2b_refresh, e2b_connect, e2b_resume, e2b_pause, e2b_metrics, e2b_logs, e2b_template_alias;
api_fn e2b_no_snapshots, e2b_no_templates, e2b_no_volumes, e2b_no_rules;

/* e2b_envd: RPC; each is one row of e2b_dialect.c. */
api_fn e2b_process_start, e2b_process_connect, e2b_process_list, e2b_process_send_input;
api_fn e2b_process_close_stdin, e2b_process_send_signal, e2b_process_update;
api_fn e2b_process_stream_input;
api_fn e2b_fs_stat, e2b_fs_make_dir, e2b_fs_move, e2b_fs_list_dir, e2b_fs_remove, e2b_fs_watch_dir;
api_fn e2b_fs_create_watcher, e2b_fs_get_watcher_events, e2b_fs_remove_watcher;
/* e2b_envd: REST */
api_fn e2b_health, e2b_files_get, e2b_files_post, e2b_envs;
/* e2b_interpreter */
api_fn e2b_execute, e2b_contexts_create, e2b_contexts_list, e2b_context_delete;
api_fn e2b_context_restart, e2b_interpreter_health;
/* e2b_ports */
api_fn e2b_port;
/* e2b_preflight */
api_fn e2b_preflight;
