/* SPDX-License-Identifier: MIT */
/* The handlers of the route table, and what they share. */
#pragma once

#include "app/daemon/app.h"
#include "core/shape.h"
#include "http/server/dialect.h"
#include "http/server/http_call.h"
#include "http/server/route.h"

enum { API_JSON_MAX = 1 << 20 }; /* bodies made by the meta endpoints */
#define API_JSON "application/json"

api_fn api_root, api_health, api_info, api_metrics, api_openapi, api_docs, api_capabilities;
api_fn api_run, api_run_streaming, api_write_file, api_read_file, api_delete_file, api_make_dir;
api_fn api_delete_dir, api_list_dir, api_start_process, api_list_processes, api_kill_process;
api_fn api_koyeb_health, api_process_logs, api_bind_port, api_unbind_port;
api_fn api_sandbox_create, api_sandboxes_list, api_sandbox_get, api_sandbox_delete;
api_fn api_network_get, api_network_put;
api_fn api_sandbox_port, api_sandbox_pause, api_sandbox_resume, api_sandbox_lifetime;
api_fn api_raw_get, api_raw_put, api_raw_delete;
api_fn api_files_stat, api_files_exists, api_files_list, api_files_move, api_files_copy;
api_fn api_files_watch, api_files_sign, api_files_upload;
api_fn api_function_call, api_function_sync, api_inspect;
api_fn api_dependencies_sync;
api_fn api_workspaces_list, api_workspace_get, api_workspace_delete;
api_fn api_packages_create, api_packages_list, api_packages_get, api_packages_delete;
api_fn api_session_create, api_sessions_list, api_session_get, api_session_call;
api_fn api_session_reset, api_session_delete;
api_fn api_execute, api_execution_list, api_execution_get, api_execution_delete, api_artifact;

/* The body of POST /execute, shaped. */
struct execute_body {
    struct bytes execution_id, session_id, language, code, input, template, isolation, mode;
    struct json_value event, packages, webhook, network;
    struct shape_strings vars;
    struct shape_strings files;
    struct execute_limits {
        int64_t memory_mb, processes, output_bytes; /* 0: not given */
        double cpu_s;                               /* 0: not given */
    } limits;
    double timeout_s; /* 0: not given */
};
extern const struct shape execute_shape; /* its checks want the struct app as `user` */

extern const struct shape inspect_shape, sync_shape, reset_shape, create_shape, lifetime_shape;
extern const struct shape dependencies_shape, packages_shape;

/* Who answers what: one row per dialect; ends with NULL. */
extern const struct dialect *const api_dialects[];

/* Retry-After, as the queue of executions has it. */
void api_retry_after(struct http_call *c);
/* 503: a queue or a table is full. */
void api_reply_full(struct http_call *c, const struct err *e, const char *solution);
#define API_RETRY_AFTER "Try again after the time that Retry-After names."
/* 400 for an error that names the field which is wrong; any other as http_reply_error() does. */
void api_reply_wrong(struct http_call *c, const struct err *e);

/* The persistent sandbox that the path names; NULL: answered. */
struct persistent *api_sandbox(struct http_call *c);
/* [A-Za-z0-9._-]{1,128}, not starting with a dot. */
bool api_id_is_valid(const char *id, size_t n);
