/* SPDX-License-Identifier: MIT */
/*
 * The verbs of a persistent sandbox, as rows: of the default one at the root and where its SDKs
 * look for it, of any other below its id.
 */
#pragma once

#include "http/api/api.h"
#include "http/api/koyeb/koyeb.h"

/* clang-format off */
/* Only four of them insist on a method. */
#define VERB  (ROUTE_AUTH | ROUTE_BODY | ROUTE_ANY_METHOD)
#define FIXED (ROUTE_AUTH | ROUTE_BODY)
#define SANDBOX_VERBS(at) \
    {"POST", at "/run", api_run, VERB, "sandbox", "run a command and wait for it", NULL, &koyeb_command, \
     .example = "{\"cmd\": \"echo hello\"}", \
     .answer = {{200, "CommandResult"}}}, \
    {"POST", at "/run_streaming", api_run_streaming, VERB | ROUTE_STREAM, "sandbox", \
     "run a command, its output as events", NULL, &koyeb_command, \
     .example = "{\"cmd\": \"seq 3\"}", \
     .answer = {{200, NULL, "text/event-stream"}}}, \
    {"POST", at "/write_file", api_write_file, VERB, "sandbox", "write a file", koyeb_file_max, &koyeb_file, \
     .example = "{\"path\": \"notes.txt\", \"content\": \"hello\"}", \
     .answer = {{200, "Changed"}}}, \
    {"POST", at "/read_file", api_read_file, VERB, "sandbox", "read a file", NULL, &koyeb_path, \
     .example = "{\"path\": \"notes.txt\"}", \
     .answer = {{200, "FileContent"}}}, \
    {"POST", at "/delete_file", api_delete_file, VERB, "sandbox", "remove a file", NULL, &koyeb_path, \
     .example = "{\"path\": \"notes.txt\"}", \
     .answer = {{200, "Changed"}}}, \
    {"POST", at "/make_dir", api_make_dir, VERB, "sandbox", "make a directory and its parents", NULL, &koyeb_path, \
     .example = "{\"path\": \"data\"}", \
     .answer = {{200, "Changed"}}}, \
    {"POST", at "/delete_dir", api_delete_dir, VERB, "sandbox", "remove a tree", NULL, &koyeb_path, \
     .example = "{\"path\": \"data\"}", \
     .answer = {{200, "Changed"}}}, \
    {"POST", at "/list_dir", api_list_dir, VERB, "sandbox", "names in a directory", NULL, &koyeb_path, \
     .example = "{\"path\": \".\"}", \
     .answer = {{200, "Entries"}}}, \
    {"POST", at "/bind_port", api_bind_port, VERB, "sandbox", "lead the proxy to a port inside", NULL, &koyeb_port, \
     .example = "{\"port\": \"8000\"}", \
     .answer = {{200, "PortBound"}}}, \
    {"POST", at "/unbind_port", api_unbind_port, VERB, "sandbox", "lead it nowhere", \
     .answer = {{200, "PortBound"}}}, \
    {"POST", at "/start_process", api_start_process, FIXED, "sandbox", \
     "start a background process", NULL, &koyeb_command, \
     .example = "{\"cmd\": \"sleep 60\"}", \
     .answer = {{201, "ProcessStarted"}}}, \
    {"GET", at "/list_processes", api_list_processes, FIXED, "sandbox", \
     "background processes and their states", \
     .answer = {{200, "Processes"}}}, \
    {"POST", at "/kill_process", api_kill_process, FIXED, "sandbox", \
     "kill a background process and all it started", NULL, &koyeb_id, \
     .example = "{\"id\": \"00000000-0000-0000-0000-000000000000\"}", \
     .answer = {{200, "ProcessKilled"}}}, \
    {"GET", at "/process_logs_streaming", api_process_logs, FIXED | ROUTE_STREAM | ROUTE_FOLLOW, \
     "sandbox", "output of a background process as events", \
     .answer = {{200, NULL, "text/event-stream"}}, .query = "id!"}
/* clang-format on */
