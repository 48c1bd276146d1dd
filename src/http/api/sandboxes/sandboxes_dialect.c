/* SPDX-License-Identifier: MIT */
/* Persistent sandboxes by their id: the rows of the family. */
#include "http/api/koyeb/verbs.h"
#include "http/api/problem.h"
#include "http/api/sandboxes/contexts.h"
#include "http/api/sandboxes/files.h"

/* Uploads are bounded by the sandbox they go to. */
static uint64_t any_size(const struct app *a)
{
    (void)a;
    return UINT64_MAX;
}

/* clang-format off */
static const struct route sandboxes_rows[] = {
    SANDBOX_VERBS("/v1/sandboxes/*"),
    {"POST",   "/v1/sandboxes",      api_sandbox_create, ROUTE_AUTH | ROUTE_BODY, "sandboxes",
     "make a persistent sandbox", NULL, &create_shape,
     .example = "{\"name\": \"workbench\"}",
     .answer = {{201, "Sandbox"}}},
    {"GET",    "/v1/sandboxes",      api_sandboxes_list, ROUTE_AUTH, "sandboxes",
     "the persistent sandboxes there are",
     .answer = {{200, "Sandboxes"}}},
    {"GET",    "/v1/sandboxes/*",    api_sandbox_get,    ROUTE_AUTH, "sandboxes",
     "state, limits and usage of a sandbox",
     .answer = {{200, "Sandbox"}}},
    {"DELETE", "/v1/sandboxes/*",    api_sandbox_delete, ROUTE_AUTH, "sandboxes",
     "end a sandbox and everything in it",
     .answer = {{204}}},
    {"GET",    "/v1/sandboxes/*/files/**", api_raw_get,    ROUTE_AUTH | ROUTE_SIGNED | ROUTE_HEAD, "sandboxes",
     "a file of a sandbox, or a range of it; with ?archive=tar a directory",
     .answer = {{200, NULL, "application/octet-stream"}, {206, NULL, "application/octet-stream"}}, .query = "archive expires signature", .example_path = "workspace/notes.txt"},
    {"PUT",    "/v1/sandboxes/*/files/**", api_raw_put,    ROUTE_AUTH | ROUTE_SIGNED | ROUTE_BODY_STREAM, "sandboxes",
     "write a file of a sandbox, of any size; with ?archive=tar a directory", any_size,
     .answer = {{200, "FileWritten"}}, .query = "archive expires signature", .example_path = "workspace/notes.txt"},
    {"DELETE", "/v1/sandboxes/*/files/**", api_raw_delete, ROUTE_AUTH, "sandboxes",
     "remove a file, or with ?recursive=true a tree",
     .answer = {{204}}, .query = "recursive", .example_path = "workspace/notes.txt"},
    {"POST",   "/v1/sandboxes/*/files", api_files_upload, ROUTE_AUTH | ROUTE_BODY_STREAM, "sandboxes",
     "write many files below the directory `path`, as multipart/form-data", any_size,
     .answer = {{200, "FilesWritten"}}, .query = "path"},
    {"POST",   "/v1/sandboxes/*/files/stat", api_files_stat, ROUTE_AUTH | ROUTE_BODY, "sandboxes",
     "what a file is: type, size, mode, owner, times, where a link leads", NULL, &files_path_shape,
     .example = "{\"path\": \"notes.txt\"}",
     .answer = {{200, "FileEntry"}}},
    {"POST",   "/v1/sandboxes/*/files/exists", api_files_exists, ROUTE_AUTH | ROUTE_BODY, "sandboxes",
     "is there such a path", NULL, &files_path_shape,
     .example = "{\"path\": \"notes.txt\"}",
     .answer = {{200, "FileExists"}}},
    {"POST",   "/v1/sandboxes/*/files/list", api_files_list, ROUTE_AUTH | ROUTE_BODY, "sandboxes",
     "what is in a directory and below it, with attributes, in parts", NULL, &files_list_shape,
     .example = "{\"path\": \".\"}",
     .answer = {{200, "FileEntries"}}},
    {"POST",   "/v1/sandboxes/*/files/move", api_files_move, ROUTE_AUTH | ROUTE_BODY, "sandboxes",
     "move a file or a tree", NULL, &files_move_shape,
     .example = "{\"from\": \"notes.txt\", \"to\": \"old/notes.txt\"}",
     .answer = {{200, "FileEntry"}}},
    {"POST",   "/v1/sandboxes/*/files/copy", api_files_copy, ROUTE_AUTH | ROUTE_BODY, "sandboxes",
     "copy a file or a tree", NULL, &files_move_shape,
     .example = "{\"from\": \"notes.txt\", \"to\": \"copy.txt\"}",
     .answer = {{200, "FileEntry"}}},
    {"POST",   "/v1/sandboxes/*/files/watch", api_files_watch, ROUTE_AUTH | ROUTE_BODY | ROUTE_STREAM | ROUTE_FOLLOW, "sandboxes",
     "what happens in a directory, as events", NULL, &files_watch_shape,
     .example = "{\"path\": \".\"}",
     .answer = {{200, NULL, "text/event-stream"}}},
    {"POST",   "/v1/sandboxes/*/files/sign", api_files_sign, ROUTE_AUTH | ROUTE_BODY, "sandboxes",
     "a URL that reads or writes one file without the secret, until it expires", NULL, &files_sign_shape,
     .example = "{\"path\": \"notes.txt\"}",
     .answer = {{200, "FileUrl"}}},
    {"GET",    "/v1/sandboxes/*/ports/*/**", api_sandbox_port,
     ROUTE_AUTH | ROUTE_ANY_METHOD | ROUTE_BODY_STREAM | ROUTE_STREAM | ROUTE_FOLLOW, "sandboxes",
     "any request to a server that listens inside, WebSockets too", any_size,
     .answer = {{200, NULL, "application/octet-stream"}}, .example_path = "index.html"},
    {"POST",   "/v1/sandboxes/*/contexts", api_context_create, ROUTE_AUTH | ROUTE_BODY, "contexts",
     "start a live interpreter in a sandbox", NULL, &context_shape,
     .example = "{\"language\": \"bash\"}",
     .answer = {{201, "Context"}}},
    {"GET",    "/v1/sandboxes/*/contexts", api_contexts_list, ROUTE_AUTH, "contexts",
     "the interpreters of a sandbox",
     .answer = {{200, "Contexts"}}},
    {"GET",    "/v1/sandboxes/*/contexts/*", api_context_get, ROUTE_AUTH, "contexts",
     "state of an interpreter",
     .answer = {{200, "Context"}}},
    {"DELETE", "/v1/sandboxes/*/contexts/*", api_context_delete, ROUTE_AUTH, "contexts",
     "end an interpreter",
     .answer = {{204}}},
    {"POST",   "/v1/sandboxes/*/contexts/*/restart", api_context_restart, ROUTE_AUTH, "contexts",
     "end an interpreter and start it anew, without its state",
     .answer = {{200, "Context"}}},
    {"POST",   "/v1/sandboxes/*/contexts/*/interrupt", api_context_interrupt, ROUTE_AUTH, "contexts",
     "interrupt the cell that runs; the state stays",
     .answer = {{200, "Context"}}},
    {"POST",   "/v1/sandboxes/*/cells", api_cell, ROUTE_AUTH | ROUTE_BODY, "contexts",
     "run a cell in an interpreter; with Accept: text/event-stream its output as it comes", NULL, &cell_shape,
     .example = "{\"language\": \"bash\", \"code\": \"echo hello\"}",
     .answer = {{200, "CellResult"}}},
};
/* clang-format on */

const struct dialect sandboxes_dialect = {
    .name = "sandboxes",
    .title = "Sandboxes",
    .about = "Sandboxes that stay until they are removed: commands, files, background processes, "
             "ports, and live interpreters that run cells.",
    API_OURS(sandboxes_rows),
    .opens = files_are_signed,
};
