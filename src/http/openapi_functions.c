/* SPDX-License-Identifier: MIT */
/* What /v1/functions/call and /v1/sessions take and give (docs/functions.md, function-sessions.md).
 */
#include "http/api.h"
#include "http/openapi.h"

#define T_REF(name) "{\"$ref\":\"#/components/schemas/" name "\"}"
#define T_STATUS                                                                                   \
    "{\"type\":\"string\",\"enum\":[\"success\",\"error\",\"crash\",\"timeout\",\"terminated\"]}"
#define T_ENGINE "{\"type\":\"string\",\"enum\":[\"native\",\"wasm\"]}"
#define T_MODE   "{\"type\":\"string\",\"enum\":[\"auto\",\"inline\",\"stdin\",\"file\"]}"
#define T_LEVEL  "{\"type\":\"string\",\"enum\":[\"soft\",\"module\",\"hard\",\"context\"]}"
#define T_ARGS   "{\"type\":[\"array\",\"object\"]}"
#define T_STATE                                                                                    \
    "{\"type\":\"string\",\"enum\":[\"loading\",\"idle\",\"busy\",\"collecting\",\"stopping\","    \
    "\"down\"]}"

#define LANGUAGE                                                                                   \
    {                                                                                              \
        "language", T_STRING, "python, javascript, ruby, php, c, cpp, perl; or an alias"           \
    }
#define CODE                                                                                       \
    {                                                                                              \
        "code", T_STRING, "source text"                                                            \
    }
#define ENGINE                                                                                     \
    {                                                                                              \
        "engine", T_ENGINE, "what runs it; native"                                                 \
    }
#define ISOLATION                                                                                  \
    {                                                                                              \
        "isolation", T_STRING, "name of another jail that is allowed"                              \
    }
#define FUNCTION                                                                                   \
    {                                                                                              \
        "functionName", T_STRING, "which function"                                                 \
    }
#define ARGS                                                                                       \
    {                                                                                              \
        "args", T_ARGS, "by position, by name, or {index, value}"                                  \
    }
#define KWARGS                                                                                     \
    {                                                                                              \
        "kwargs", T_OBJECT, "by name"                                                              \
    }
#define SCHEMA                                                                                     \
    {                                                                                              \
        "schema", T_OBJECT, "input, output, strict, variadic, acceptsKwargs"                       \
    }
#define TIMEOUT                                                                                    \
    {                                                                                              \
        "timeout", T_NUMBER, "seconds of wall time"                                                \
    }

/* clang-format off */
static const struct openapi_member call_members[] = {
    LANGUAGE, CODE, ENGINE, ISOLATION, FUNCTION, ARGS, KWARGS, SCHEMA, TIMEOUT,
    {"argsMode", T_MODE, "how arguments travel"},
    {"autoModeThreshold", T_INT, "bytes of arguments from which auto means file"},
    {"stdin", T_STRING, "standard input of a module"},
    {"options", T_REF("FunctionOptions"), ""},
};

static const struct openapi_member option_members[] = {
    {"files", T_OBJECT, "path to text, or to {base64}"},
    {"mount", T_OBJECT, "dirs, permissions, loading, sync, security, onPermissionDenied"},
    {"workdir", T_STRING, "working directory; /workspace"},
    {"permissions", T_OBJECT, "default, rules, exclude"},
    {"reporting", T_REF("FunctionReporting"), ""},
    {"env", T_OBJECT, "environment variables"},
    {"std", T_STRING, "of C and C++: the standard, such as c17"},
};

static const struct openapi_member reporting_members[] = {
    {"includeChanges", T_BOOL, "files; true"},
    {"includeContents", T_BOOL, "content and oldContent of changes; true"},
    {"includeDenied", T_BOOL, "what was not allowed; true"},
};

static const struct openapi_member session_members[] = {
    LANGUAGE, CODE, ENGINE, ISOLATION,
    {"timeout", T_NUMBER, "seconds for loading the code, and for each call that names none"},
    {"idleTimeout", T_NUMBER, "seconds without a call after which it is deleted; 0: never"},
    {"options", T_REF("FunctionOptions"), ""},
};

static const struct openapi_member turn_members[] = {
    FUNCTION, ARGS, KWARGS, SCHEMA, TIMEOUT,
    {"options", T_REF("SessionCallOptions"), ""},
};

static const struct openapi_member turn_option_members[] = {
    {"files", T_OBJECT, "path to text, or to {base64}; there before the call"},
    {"reporting", T_REF("FunctionReporting"), ""},
};

static const struct openapi_member reset_members[] = {
    {"level", T_LEVEL, "soft, module: the code once more; hard, context: another process"},
};

static const struct openapi_member files_members[] = {
    {"created", T_OBJECTS, "type, path, content, size, timestamp"},
    {"modified", T_OBJECTS, "the same, and oldContent"},
    {"deleted", T_OBJECTS, "type, path, oldContent"},
    {"denied", T_OBJECTS, "path, operation"},
    {"leftOut", T_INT, "changes that are not listed, if there are any"},
};

static const struct openapi_member result_members[] = {
    {"status", T_STATUS, "what became of it"},
    {"success", T_BOOL, "status is success"},
    {"result", T_ANY, "what the function returned, any JSON value"},
    {"error", T_OBJECT, "type, message, stack"},
    {"stdout", T_STRING, "exactly what was written"},
    {"stderr", T_STRING, "the same"},
    {"exitCode", T_INT, "0; 1 after an error, 124 a timeout, 143 cancelled"},
    {"files", T_REF("FunctionFiles"), "what it changed"},
    {"sync", T_OBJECT, "synced, failed, skipped, rolledBack, events"},
    {"meta", T_OBJECT, "duration, signatureSource, callId, engine, language, functionName, argsMode, loading, loadingReason"},
    {"session", T_OBJECT, "of a session: id, generation, call, restarted, reason, interrupted, reset"},
    {"id", T_STRING, "of a session that was created"},
    {"items", T_INT, "of a stream: how many there were"},
    {"termination", T_OBJECT, "reason, and signal, limit, limit_value, hint if known"},
    {"isolation", T_OBJECT, "jail, warm, traits"},
    {"timings", T_OBJECT, "queue_ms, start_ms, run_ms, collect_ms, total_ms"},
};

static const struct openapi_member info_members[] = {
    {"id", T_STRING, ""},
    {"language", T_STRING, ""},
    {"engine", T_ENGINE, ""},
    {"isolation", T_STRING, "name of its jail"},
    {"state", T_STATE, "down: there is no process until the next call"},
    {"createdAt", T_STRING, "UTC"},
    {"generation", T_INT, "processes so far"},
    {"calls", T_INT, "begun so far"},
    {"queued", T_INT, "calls that wait"},
    {"timeout", T_NUMBER, "of a call that names none"},
    {"idleTimeout", T_NUMBER, "0: never"},
    {"idleFor", T_NUMBER, "seconds, while it rests"},
    {"lost", T_STRING, "why its state was lost, until a call has told"},
    {"limits", T_OBJECT, "memoryMb, workspaceMb, pids, outputBytes, resultBytes, queue"},
    {"usage", T_OBJECT, "cpuMs, memoryPeakBytes"},
};

static const struct openapi_member list_members[] = {
    {"sessions", "{\"type\":\"array\",\"items\":" T_REF("Session") "}", "those there are"},
};

#define SCHEMA_OF(name, members, required) {name, members, ARRAY_LEN(members), required}
const struct openapi_schema openapi_functions[] = {
    SCHEMA_OF("FunctionCall", call_members, "[\"language\",\"code\"]"),
    SCHEMA_OF("FunctionOptions", option_members, NULL),
    SCHEMA_OF("FunctionReporting", reporting_members, NULL),
    SCHEMA_OF("FunctionFiles", files_members, NULL),
    SCHEMA_OF("FunctionResult", result_members, "[\"status\",\"success\"]"),
    SCHEMA_OF("SessionCreate", session_members, "[\"language\",\"code\"]"),
    SCHEMA_OF("SessionCall", turn_members, "[\"functionName\"]"),
    SCHEMA_OF("SessionCallOptions", turn_option_members, NULL),
    SCHEMA_OF("SessionReset", reset_members, NULL),
    SCHEMA_OF("Session", info_members, NULL),
    SCHEMA_OF("Sessions", list_members, NULL),
};
/* clang-format on */
const size_t openapi_functions_n = ARRAY_LEN(openapi_functions);

static const struct {
    api_fn *handler;
    const char *body, *answer;
} routed[] = {
    {api_function_call,  "FunctionCall",  "FunctionResult"},
    {api_session_create, "SessionCreate", "FunctionResult"},
    {api_session_call,   "SessionCall",   "FunctionResult"},
    {api_session_reset,  "SessionReset",  "FunctionResult"},
    {api_session_get,    NULL,            "Session"       },
    {api_sessions_list,  NULL,            "Sessions"      },
};

const char *openapi_function_body(const struct route *r)
{
    for (size_t i = 0; i < ARRAY_LEN(routed); i++)
        if (routed[i].handler == r->handler)
            return routed[i].body;
    return NULL;
}

const char *openapi_function_answer(const struct route *r)
{
    for (size_t i = 0; i < ARRAY_LEN(routed); i++)
        if (routed[i].handler == r->handler)
            return routed[i].answer;
    return NULL;
}
