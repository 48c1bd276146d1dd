/* SPDX-License-Identifier: MIT */
/* The endpoints of processes and terminals: the rows' handlers, and what their files share. */
#pragma once

#include "app/sandbox/process.h"
#include "app/sandbox/process_ask.h"
#include "base/jw.h"
#include "core/shape.h"
#include "http/server/route.h"

api_fn api_process_create, api_processes_list, api_process_get, api_process_delete;
api_fn api_process_input, api_process_input_end, api_process_signal, api_process_resize;
api_fn api_process_output, api_terminal_open, api_terminal_attach;
extern const struct shape process_shape, process_signal_shape, process_size_shape;

enum { PROCESS_TERMINAL_MAX = 65535 }; /* columns or rows */

/* The process of the path: by number, else by id or tag. NULL: answered. */
struct process *process_of(struct http_call *c);

/* One process as an object; its room in a buffer. */
void process_write_json(struct jw *w, const struct process *p);
size_t process_json_room(const struct process *p);

/* "SIGTERM", "TERM", "15"; 0: none. */
int process_signal_number(const char *text, size_t n);
/* Why one could not be started. */
void process_reply_fault(struct http_call *c, enum run_fault at, const char *words);

/* Follows a process on a WebSocket, which answers the call. ends_it: the process ends with it. */
void process_attach_websocket(struct http_call *c, struct process *p, bool ends_it);
