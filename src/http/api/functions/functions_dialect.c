/* SPDX-License-Identifier: MIT */
/* Function calls, inspection and function sessions: the rows of the family. */
#include "function/request.h"
#include "http/api/api.h"
#include "http/api/problem.h"

static uint64_t body_max(const struct app *a)
{
    return a->config.body_max_functions;
}

/* clang-format off */
static const struct route functions_rows[] = {
    {"POST",   "/v1/functions/call", api_function_call, ROUTE_AUTH | ROUTE_BODY, "functions",
     "call one function of a piece of code in a fresh sandbox", body_max, &call_shape,
     .example = "{\"language\": \"python\", \"code\": \"def add(a, b):\\n    return a + b\", \"functionName\": \"add\", \"args\": [1, 2]}",
     .answer = {{200, "FunctionResult"}}},
    {"POST",   "/v1/functions/sync", api_function_sync, ROUTE_AUTH | ROUTE_BODY, "functions",
     "write what a call changed in its mounts back to them", NULL, &sync_shape,
     .example = "{\"callId\": \"call_0123456789abcdef\"}",
     .answer = {{200, "SyncReport"}}},
    {"POST",   "/v1/functions/inspect", api_inspect, ROUTE_AUTH | ROUTE_BODY, "functions",
     "every function of a piece of code, with signature and JSON Schema; never runs it", body_max, &inspect_shape,
     .example = "{\"language\": \"python\", \"code\": \"def add(a: int, b: int = 2) -> int:\\n    return a + b\"}",
     .answer = {{200, "Inspection"}}},
    {"POST",   "/v1/sessions",       api_session_create, ROUTE_AUTH | ROUTE_BODY, "sessions",
     "load code once, to call its functions often", body_max, &session_shape,
     .example = "{\"language\": \"python\", \"code\": \"n = 0\\ndef count():\\n    global n\\n    n += 1\\n    return n\"}",
     .answer = {{201, "FunctionResult"}}},
    {"GET",    "/v1/sessions",       api_sessions_list,  ROUTE_AUTH, "sessions",
     "the function sessions there are",
     .answer = {{200, "Sessions"}}},
    {"GET",    "/v1/sessions/*",     api_session_get,    ROUTE_AUTH, "sessions",
     "state, limits and usage of a function session",
     .answer = {{200, "Session"}}},
    {"POST",   "/v1/sessions/*/call", api_session_call,  ROUTE_AUTH | ROUTE_BODY, "sessions",
     "call a function of a session; text/event-stream: each item of a generator as an event", body_max, &turn_shape,
     .example = "{\"functionName\": \"count\"}",
     .answer = {{200, "FunctionResult"}}},
    {"POST",   "/v1/sessions/*/reset", api_session_reset, ROUTE_AUTH | ROUTE_BODY, "sessions",
     "load the code of a session anew; hard: in another sandbox", NULL, &reset_shape,
     .example = "{\"level\": \"soft\"}",
     .answer = {{200, "FunctionResult"}}},
    {"DELETE", "/v1/sessions/*",     api_session_delete, ROUTE_AUTH, "sessions",
     "end a function session and everything in it",
     .answer = {{204}}},
};
/* clang-format on */

const struct dialect functions_dialect = {
    .name = "functions",
    .title = "Functions",
    .about = "Call one function of a piece of code, look at what it defines, or load it once and "
             "call it often.",
    API_OURS(functions_rows),
};
