/* SPDX-License-Identifier: MIT */
/* The pure part of function calls: requests, arguments, literals, packets, permissions. */
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/jw.h"
#include "function/args.h"
#include "function/changes.h"
#include "function/dirs.h"
#include "function/dispatch.h"
#include "function/literal.h"
#include "function/mount.h"
#include "function/outcome.h"
#include "function/perm.h"
#include "function/request.h"
#include "function/sip.h"

static struct json_value json(const char *text)
{
    struct json_value v = {0};
    struct err e;

    if (json_parse(text, strlen(text), 0, &v, &e) < 0)
        fail_msg("%s: %s", text, e.text);
    return v;
}

/* ---- vectors ---- */

static struct buf vectors_text = BUF_INIT(1 << 20);

static int vectors_open(void **state)
{
    FILE *f = fopen("tests/api/vectors/functions_units.json", "rbe");
    char part[4096];
    size_t n;

    (void)state;
    if (!f)
        return -1;
    while ((n = fread(part, 1, sizeof part, f)) > 0)
        (void)buf_put(&vectors_text, part, n);
    (void)fclose(f);
    return vectors_text.failed ? -1 : 0;
}

static int vectors_close(void **state)
{
    (void)state;
    buf_done(&vectors_text);
    return 0;
}

static struct json_value vectors(const char *name)
{
    struct json_value v;

    assert_true(json_get(json(vectors_text.p), name, &v));
    return v;
}

static struct json_value get(struct json_value object, const char *name)
{
    struct json_value v;

    if (!json_get(object, name, &v))
        fail_msg("no %s in %.*s", name, (int)object.n, object.p);
    return v;
}

static char *text_of(struct json_value v)
{
    struct buf b = BUF_INIT(v.n + 1);

    assert_int_equal(json_decode_string(v, 0, &b), 0);
    return b.p ? buf_take(&b, NULL) : calloc(1, 1);
}

/* ---- arguments ---- */

/* What the inspector says about the functions of the vectors. */
#define P(name, kind, index, required)                                                             \
    "{\"name\":\"" name "\",\"kind\":\"" kind "\",\"index\":" index ",\"required\":" required "}"

#define A   P("a", "positional", "0", "true")
#define AB  A "," P("b", "positional", "1", "true")
#define ABC AB "," P("c", "positional", "2", "false")

/* clang-format off */
static const struct {
    const char *parameters, *args, *kwargs; /* "": not given */
    const char *want_args, *want_kwargs;
} bindings[] = {
    {ABC, "[1,2]", "", "[1,2]", "{}"},
    {ABC, "{\"a\":1,\"b\":2,\"c\":3}", "", "[1,2,3]", "{}"},
    {ABC, "{\"c\":3,\"a\":1}", "", "[1]", "{\"c\":3}"},
    {AB, "[null,2]", "{\"a\":1}", "[1,2]", "{}"}, /* a null that is given by name is a hole */
    {AB, "[null,2]", "", "[null,2]", "{}"},
    {AB, "[{\"index\":1,\"value\":\"x\"}]", "{\"a\":1}", "[1,\"x\"]", "{}"},
    {AB, "{\"p\":{\"index\":1,\"value\":\"x\"},\"a\":0}", "", "[0,\"x\"]", "{}"},
    {A "," P("kw", "kwargs", "null", "false"), "{\"a\":1,\"z\":2}", "", "[1]", "{\"z\":2}"},
    {A, "", "{\"a\":1}", "[1]", "{}"},
    {A, "{\"a\":2}", "{\"a\":1}", "[2]", "{}"},
    {A, "[{\"index\":0,\"value\":1,\"extra\":2}]", "",
     "[{\"index\":0,\"value\":1,\"extra\":2}]", "{}"},
    {A "," P("b", "keyword", "null", "true"), "{\"a\":1,\"b\":2}", "", "[1]", "{\"b\":2}"},
    {A, "", "", "[]", "{}"},
    {"", "{\"q\":1}", "", "[]", "{\"q\":1}"},
    {AB, "[{\"index\":3,\"value\":\"far\"}]", "", "[null,null,null,\"far\"]", "{}"},
    {P("\\u00e9", "positional", "0", "true"), "{\"\xc3\xa9\":1}", "", "[1]", "{}"},
};
/* clang-format on */

static void arguments_find_their_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bindings); i++) {
        struct call_signature *s = calloc(1, sizeof *s);
        struct buf function = BUF_INIT(4096), args = BUF_INIT(4096), names = BUF_INIT(4096);
        struct json_value none = {0};
        struct call_args a;
        struct err e;

        (void)buf_printf(&function, "{\"parameters\":[%s]}", bindings[i].parameters);
        assert_int_equal(signature_from_function(s, json(function.p), &e), 0);
        assert_int_equal(call_args_collect(&a, bindings[i].args[0] ? json(bindings[i].args) : none,
                                           bindings[i].kwargs[0] ? json(bindings[i].kwargs) : none,
                                           &e),
                         0);
        assert_int_equal(call_args_bind(&a, s, CALL_KEYWORDS, &e), 0);
        call_args_json(&a, &args);
        call_names_json(&a, &names);
        assert_string_equal(args.p, bindings[i].want_args);
        assert_string_equal(names.p, bindings[i].want_kwargs);
        call_args_done(&a);
        buf_done(&function);
        buf_done(&args);
        buf_done(&names);
        free(s);
    }
}

static void strict_schemas_name_the_parameter(void **state)
{
    /* clang-format off */
    static const struct {
        const char *input, *args, *words;
    } rows[] = {
        {"[{\"name\":\"a\",\"required\":true}]", "[]", "'a'"},
        {"{\"b\":{\"type\":\"string\",\"index\":0}}", "[1]", "'b'"},
        {"{\"b\":{\"type\":\"integer\",\"index\":0}}", "[1.5]", "integer"},
        {"{\"b\":{\"enum\":[1,2],\"index\":0}}", "[3]", "'b'"},
        {"{\"b\":{\"type\":[\"string\",\"null\"],\"index\":0}}", "[null]", NULL},
        {"{\"b\":{\"type\":\"integer\",\"index\":0}}", "[2.0]", NULL},
    };
    /* clang-format on */

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct call_signature *s = calloc(1, sizeof *s);
        struct buf schema = BUF_INIT(1024);
        struct call_args a;
        struct err e = {0};
        int r;

        (void)buf_printf(&schema, "{\"input\":%s,\"strict\":true}", rows[i].input);
        assert_int_equal(signature_from_schema(s, json(schema.p), &e), 0);
        assert_int_equal(call_args_collect(&a, json(rows[i].args), (struct json_value){0}, &e), 0);
        assert_int_equal(call_args_bind(&a, s, CALL_KEYWORDS, &e), 0);
        r = call_args_check(&a, s, &e);
        assert_int_equal(r, rows[i].words ? -1 : 0);
        if (rows[i].words)
            assert_non_null(strstr(e.text, rows[i].words));
        call_args_done(&a);
        buf_done(&schema);
        free(s);
    }
}

static void numbers_are_exact_or_refused(void **state)
{
    static const struct {
        enum call_lang_id lang;
        const char *args;
        int want;
    } rows[] = {
        {CALL_JAVASCRIPT, "[9007199254740992,-9007199254740992,1e308,0.1]",  0 },
        {CALL_JAVASCRIPT, "[9007199254740994,1000000000000000000]",          0 },
        {CALL_JAVASCRIPT, "[1152921504606846976]",                           -1},
        {CALL_JAVASCRIPT, "[-9223372036854775808]",                          -1},
        {CALL_JAVASCRIPT, "[[0,-1e400]]",                                    -1},
        {CALL_RUBY,       "[1.5E+999]",                                      -1},
        {CALL_RUBY,       "[1e-999,\"1e999\"]",                              0 },
        {CALL_JAVASCRIPT, "[9007199254740993]",                              -1},
        {CALL_JAVASCRIPT, "[{\"a\":[\"9007199254740993\"]}]",                0 },
        {CALL_JAVASCRIPT, "[{\"a\":[123456789012345678901234567890123]}]",   -1},
        {CALL_PHP,        "[9223372036854775807,-9223372036854775808]",      0 },
        {CALL_PHP,        "[9223372036854775808]",                           -1},
        {CALL_PHP,        "[\"\\ud800\"]",                                   -1},
        {CALL_PHP,        "[\"\\ud83d\\ude80 \\\\ud800\"]",                  0 },
        {CALL_RUBY,       "[123456789012345678901234567890123]",             0 },
        {CALL_RUBY,       "[\"\\udc00\"]",                                   -1},
        {CALL_PYTHON,     "[\"\\udc00\",123456789012345678901234567890123]", 0 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct call_args a;
        struct err e;

        assert_int_equal(call_args_collect(&a, json(rows[i].args), (struct json_value){0}, &e), 0);
        assert_int_equal(call_args_representable(&a, call_lang(rows[i].lang), &e), rows[i].want);
        call_args_done(&a);
    }
}

/* ---- literals ---- */

static void literals_follow_the_vectors(void **state)
{
    static const struct {
        enum call_lang_id lang;
        const char *name;
    } langs[] = {
        {CALL_PYTHON, "python"},
        {CALL_RUBY,   "ruby"  },
        {CALL_PHP,    "php"   },
    };
    struct json_value all = vectors("inlineLiterals"), one;
    size_t at = 0, compared = 0;

    (void)state;
    while (json_array_next(all, &at, &one))
        for (size_t i = 0; i < ARRAY_LEN(langs); i++) {
            struct buf out = BUF_INIT(4096);
            char *want = text_of(get(one, langs[i].name));

            assert_int_equal(literal_put(langs[i].lang, get(one, "value"), &out), 0);
            /* the vectors' own # in Ruby would run code, and PHP knows neither \b nor \u0001 */
            if (!strchr(want, '#') && !(langs[i].lang == CALL_PHP && strstr(want, "\\u"))) {
                assert_string_equal(out.p, want);
                compared++;
            }
            free(want);
            buf_done(&out);
        }
    assert_true(compared >= 25);
}

static void literals_expand_nothing(void **state)
{
    static const struct {
        enum call_lang_id lang;
        const char *value, *want;
    } rows[] = {
        {CALL_RUBY,       "\"#{1} #$0 #@x\"",        "\"\\#{1} \\#\\$0 \\#@x\""   },
        {CALL_PHP,        "\"$x {$y} ${z}\\u0000\"", "\"\\$x {\\$y} \\${z}\\x00\""},
        {CALL_PHP,        "\"\\b\\u001b\"",          "\"\\x08\\x1b\""             },
        {CALL_PHP,        "[-9223372036854775808]",  "[(-9223372036854775807-1)]" },
        {CALL_PYTHON,     "\"\\ud83d\\ude80\\/\"",   "\"\xf0\x9f\x9a\x80/\""      },
        {CALL_PYTHON,     "\"\\ud800\"",             "\"\\ud800\""                },
        {CALL_JAVASCRIPT, "{\"__proto__\":1}",       "{[\"__proto__\"]: 1}"       },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf out = BUF_INIT(4096);

        assert_int_equal(literal_put(rows[i].lang, json(rows[i].value), &out), 0);
        assert_string_equal(out.p, rows[i].want);
        buf_done(&out);
    }
}

static void deep_values_are_left_to_json(void **state)
{
    struct buf text = BUF_INIT(1024), out = BUF_INIT(4096);

    (void)state;
    for (int i = 0; i < 100; i++)
        (void)buf_putc(&text, '[');
    for (int i = 0; i < 100; i++)
        (void)buf_putc(&text, ']');
    assert_int_equal(literal_put(CALL_PYTHON, json(text.p), &out), -1);
    assert_int_equal(literal_put(CALL_C, json("1"), &out), -1);
    buf_done(&text);
    buf_done(&out);
}

/* ---- packets ---- */

static void packets_follow_the_vectors(void **state)
{
    struct json_value all = vectors("sip"), one;
    size_t at = 0, n = 0;

    (void)state;
    for (; json_array_next(all, &at, &one); n++) {
        struct json_value payload = get(one, "payload");
        struct buf compact = BUF_INIT(8192), out = BUF_INIT(8192);
        char *head = text_of(get(one, "headerAscii")), *hex = text_of(get(one, "packetHex"));

        for (size_t i = 0; hex[i]; i += 2) {
            char two[3] = {hex[i], hex[i + 1], 0};

            (void)buf_putc(&compact, (char)strtol(two, NULL, 16));
        }
        (void)payload;
        assert_int_equal(sip_packet('A', compact.p + SIP_HEAD, compact.n - SIP_HEAD, &out), 0);
        assert_memory_equal(out.p, compact.p, compact.n);
        assert_memory_equal(out.p, head, SIP_HEAD);
        free(head);
        free(hex);
        buf_done(&compact);
        buf_done(&out);
    }
    assert_true(n > 0);
}

static void payloads_are_what_was_given(void **state)
{
    struct buf out = BUF_INIT(4096);
    struct call_args a;
    struct err e;

    (void)state;
    assert_int_equal(call_args_collect(&a, json("[1,2.50,null,{\"index\":5,\"value\":true}]"),
                                       json("{\"k\":\"v\"}"), &e),
                     0);
    sip_payload(
        &(struct sip_call){
            .function = {"add", 3},
              .file = "/w/u.py", .args = &a
    },
        &out);
    assert_string_equal(out.p,
                        "{\"functionName\":\"add\",\"args\":[1,2.50,null,null,null,true],"
                        "\"kwargs\":{\"k\":\"v\"},\"holes\":[3,4],\"filePath\":\"/w/u.py\"}");
    buf_clear(&out);
    sip_payload(
        &(struct sip_call){
            .function = {"f", 1},
              .args = &a, .token = "0123", .wall_ms = 500, .options_at = 2
    },
        &out);
    assert_string_equal(out.p, "{\"functionName\":\"f\",\"args\":[1,2.50,null,null,null,true],"
                               "\"kwargs\":{\"k\":\"v\"},\"holes\":[3,4],\"token\":\"0123\","
                               "\"timeout\":500,\"optionsAt\":2}");
    call_args_done(&a);
    buf_done(&out);
}

/* A call of a session says neither language nor code. */
static void turns_need_only_a_name(void **state)
{
    static const char whole[] = "{\"functionName\":\"f\",\"args\":[1],\"timeout\":0.5,"
                                "\"options\":{\"files\":{\"a\":\"1\"},"
                                "\"reporting\":{\"includeContents\":false}}}";
    static const struct call_reporting usual = {true, true, false};
    static const struct {
        const char *text, *words;
    } bad[] = {
        {"{}",                                                  "functionName"                   },
        {"{\"functionName\":\"\"}",                             "functionName"                   },
        {"{\"functionName\":\"f\",\"args\":1}",                 "args"                           },
        {"[]",                                                  "body"                           },
        {"{",                                                   ""                               },
        {"{\"functionName\":\"f\",\"options\":{\"files\":7}}",  "options.files"                  },
        {"{\"functionName\":\"f\",\"options\":{\"mount\":{}}}", "options.mount: is the session's"},
        {"{\"functionName\":\"f\",\"options\":{\"env\":{}}}",   "options.env"                    },
    };
    struct call_request r;
    struct err e;

    (void)state;
    assert_int_equal(call_request_parse_turn(&r, whole, strlen(whole), "/workspace", &usual, &e),
                     0);
    assert_string_equal(r.function.p, "f");
    assert_int_equal(r.wall_ms, 500);
    assert_int_equal(r.attached.n, 1);
    assert_string_equal(r.attached.files[0].path, "/workspace/a");
    assert_true(r.reporting.changes && !r.reporting.contents && !r.reporting.denied);
    call_request_done(&r);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(
            call_request_parse_turn(&r, bad[i].text, strlen(bad[i].text), "/workspace", &usual, &e),
            -1);
        assert_non_null(strstr(e.text, bad[i].words));
        call_request_done(&r);
    }
}

/* Half a million escapes: looking for the end of the string at each of them would take for ever. */
static void escapes_take_linear_time(void **state)
{
    enum { ESCAPES = 500000 };
    struct buf text = BUF_INIT(8 * ESCAPES);
    struct call_args a = {0};
    struct json_value v;
    struct err e;

    (void)state;
    (void)buf_puts(&text, "[\"");
    for (size_t i = 0; i < ESCAPES; i++)
        (void)buf_puts(&text, "\\u00e4");
    (void)buf_puts(&text, "\"]");
    assert_int_equal(json_parse(text.p, text.n, 0, &v, &e), 0);
    assert_int_equal(call_args_collect(&a, v, (struct json_value){0}, &e), 0);
    assert_int_equal(call_args_representable(&a, call_lang(CALL_RUBY), &e), 0);
    call_args_done(&a);
    buf_done(&text);
}

/* ---- permissions ---- */

static void permissions_follow_the_vectors(void **state)
{
    static const char *const names[] = {"read", "list", "create", "modify", "delete"};
    struct json_value all = vectors("permissions"), one, want;
    size_t at = 0, n = 0;

    (void)state;
    for (; json_array_next(all, &at, &one); n++) {
        char *path = text_of(get(one, "path"));
        struct perms p;
        struct err e;
        uint64_t steps = GLOB_STEPS_MAX;
        unsigned got;

        assert_int_equal(perms_parse(&p, get(one, "config"), &e), 0);
        if (!json_get(one, "want", &want))
            want = get(one, "out");
        got = perms_of(&p, path, "", &steps);
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
            bool yes;

            assert_true(json_to_bool(get(want, names[i]), &yes));
            if (yes != !!(got & BIT(i)))
                fail_msg("%s of %s with %.*s", names[i], path, (int)one.n, one.p);
        }
        perms_done(&p);
        free(path);
    }
    assert_true(n > 20);
}

static void rules_may_be_meant_from_the_mount(void **state)
{
    uint64_t steps = GLOB_STEPS_MAX;
    struct perms p;
    struct err e;

    (void)state;
    assert_int_equal(
        perms_parse(&p, json("{\"rules\":[{\"pattern\":\"out/**\",\"allow\":\"*\"}]}"), &e), 0);
    assert_int_equal(perms_of(&p, "/data/out/a", "/data", &steps), PERM_ALL);
    assert_int_equal(perms_of(&p, "/database/out/a", "/data", &steps), PERM_READ | PERM_LIST);
    perms_done(&p);
    assert_int_equal(perms_parse(&p, json("{\"rules\":[{\"allow\":\"*\"}]}"), &e), -1);
    perms_done(&p);
}

/* A rule that could not be asked denies what it would deny, and allows nothing. */
static void rules_that_are_not_known_count_against(void **state)
{
    uint64_t none = 0;
    struct perms p;
    struct err e;

    (void)state;
    assert_int_equal(perms_parse(&p,
                                 json("{\"default\":{\"create\":true,\"modify\":true},"
                                      "\"rules\":[{\"pattern\":\"**/*.php\",\"deny\":[\"create\"]},"
                                      "{\"pattern\":\"**/*.txt\",\"allow\":[\"delete\"]}]}"),
                                 &e),
                     0);
    assert_int_equal(perms_of(&p, "/data/a.txt", "/data", &none),
                     PERM_READ | PERM_LIST | PERM_MODIFY | PERM_UNKNOWN);
    perms_done(&p);
    assert_int_equal(perms_parse(&p, json("{\"exclude\":[\".git\"]}"), &e), 0);
    assert_int_equal(perms_of(&p, "/data/a.txt", "/data", &none), PERM_UNKNOWN);
    perms_done(&p);
    assert_int_equal(
        perms_parse(&p, json("{\"rules\":[{\"pattern\":\"{1..9999}\",\"deny\":\"*\"}]}"), &e), -1);
    assert_int_equal(e.kind, ERR_CALLER);
    perms_done(&p);
}

static void mounts_are_whole_directories(void **state)
{
    uint64_t steps = GLOB_STEPS_MAX;
    struct mount *m = calloc(1, sizeof *m);
    struct json_value none = {0};
    struct err e;

    (void)state;
    assert_int_equal(
        mount_parse(m, json("{\"dirs\":{\"/data/\":\"/h\",\"/data/sub\":\"/s\"}}"), none, &e), 0);
    assert_string_equal(mount_of(m, "/data/x")->host, "/h");
    assert_string_equal(mount_of(m, "/data/sub/x")->host, "/s");
    assert_null(mount_of(m, "/database"));
    assert_int_equal(mount_allows(m, "/data/x", "", &steps), PERM_READ | PERM_LIST);
    mount_done(m);
    assert_int_equal(mount_parse(m, json("{\"dirs\":{\"/a/../b\":\"/h\"}}"), none, &e), -1);
    mount_done(m);
    assert_int_equal(mount_parse(m, none, none, &e), 0);
    assert_int_equal(mount_allows(m, "/workspace/x", "", &steps), PERM_ALL);
    mount_done(m);
    free(m);
}

/* ---- requests ---- */

static void requests(void **state)
{
    static const char text[] =
        "{\"language\":\"python\",\"code\":\"x\",\"functionName\":null,\"resultOptions\":"
        "{\"includeChanges\":false},\"options\":{\"timeout\":5,\"argsMode\":\"file\",\"workdir\":"
        "\"/app/\",\"files\":{\"./a//b\":\"t\",\"/"
        "c\":{\"base64\":\"AAE=\"}},\"env\":{\"A\":\"1\"}},"
        "\"timeout\":0.25}";
    struct call_request r;
    struct err e;

    (void)state;
    assert_int_equal(call_request_parse(&r, text, sizeof text - 1, &e), 0);
    assert_null(r.function.p);
    assert_int_equal(r.wall_ms, 250);
    assert_int_equal(r.mode, CALL_MODE_FILE);
    assert_false(r.reporting.changes);
    assert_string_equal(r.workdir, "/app");
    assert_int_equal(r.attached.n, 2);
    assert_string_equal(r.attached.files[0].path, "/app/a/b");
    assert_string_equal(r.attached.files[1].path, "/c");
    assert_int_equal(r.attached.files[1].content.n, 2);
    assert_int_equal(r.vars_n, 1);
    call_request_done(&r);
}

static void directories(void **state)
{
    struct buf dirs = BUF_INIT(CALL_DIRS_MAX);
    struct err e;

    (void)state;
    assert_int_equal(call_dirs_add(&dirs, "/workspace/x", &e), 0);
    assert_int_equal(call_dirs_add(&dirs, "/tmp", &e), 0);
    assert_int_equal(dirs.n, 0);
    assert_int_equal(call_dirs_add(&dirs, "/app", &e), 0);
    assert_int_equal(call_dirs_add(&dirs, "/data/x/y", &e), 0);
    assert_int_equal(call_dirs_add(&dirs, "/app/z", &e), 0);
    assert_string_equal(dirs.p, "app/data");
    assert_int_equal(call_dirs_add(&dirs, "/etc/x", &e), -1);
    assert_int_equal(call_dirs_add(&dirs, "/", &e), -1);
    buf_done(&dirs);
}

/* ---- outcomes ---- */

static void outcome_of(struct run_result *r, struct call_outcome *o)
{
    const struct limits l = {.wall_ms = 1500, .result_max = 100};

    call_outcome_reach(r, &l, o);
}

static void outcomes_are_never_false_successes(void **state)
{
    const struct limits l = {.output_max = 100, .result_max = 100};
    struct run_result r;
    struct call_outcome o;

    (void)state;
    run_result_init(&r, &l);
    r.reason = END_EXIT;
    r.exit_code = 0;
    outcome_of(&r, &o);
    assert_string_equal(o.type, "NoResult");
    assert_int_equal(o.exit_code, 1);
    (void)buf_puts(&r.result, "not json");
    outcome_of(&r, &o);
    assert_string_equal(o.type, "ResultError");
    buf_clear(&r.result);
    (void)buf_puts(&r.result, "12345678901234567890");
    outcome_of(&r, &o);
    assert_int_equal(o.status, CALL_SUCCESS);
    r.exit_code = 3;
    outcome_of(&r, &o);
    assert_string_equal(o.type, "ExitError");
    assert_int_equal(o.exit_code, 3);
    r.reason = END_SIGNAL;
    r.signal = SIGSEGV;
    outcome_of(&r, &o);
    assert_int_equal(o.status, CALL_CRASH);
    assert_non_null(strstr(o.message, "SIGSEGV"));
    r.reason = END_TIMEOUT;
    outcome_of(&r, &o);
    assert_int_equal(o.status, CALL_TIMEOUT);
    assert_int_equal(o.exit_code, 124);
    assert_non_null(strstr(o.message, "1.5"));
    r.reason = END_CANCELLED;
    outcome_of(&r, &o);
    assert_int_equal(o.status, CALL_TERMINATED);
    assert_int_equal(o.exit_code, 143);
    run_result_done(&r);
}

static void changes(void **state)
{
    const struct call_file before[] = {
        {"/w/a", {"1", 1}},
        {"/w/b", {"2", 1}},
        {"/w/a", {"3", 1}},
    };
    struct changes c;

    (void)state;
    assert_int_equal(changes_init(&c, before, 3), 0);
    assert_int_equal(changes_saw(&c, "/w/a"), 2);
    assert_int_equal(changes_saw(&c, "/w/x"), -1);
    assert_non_null(changes_add(&c, CHANGE_CREATED, "/w/x", -1));
    changes_complete(&c);
    assert_int_equal(c.n, 2);
    assert_string_equal(c.v[0].path, "/w/b");
    assert_int_equal(c.v[0].type, CHANGE_DELETED);
    changes_done(&c);
}

/* ---- errors have the names that the public knows ---- */

static void errors_are_named_in_one_place(void **state)
{
    static const struct {
        enum err_kind kind, of;
        const char *type, *want;
    } rows[] = {
        {ERR_CALLER, ERR_NONE,   NULL,         "ValueError"           },
        {ERR_DENIED, ERR_NONE,   NULL,         "PermissionDeniedError"},
        {ERR_HOST,   ERR_NONE,   NULL,         "SandboxError"         },
        {ERR_CALLER, ERR_CALLER, "TypeError",  "TypeError"            },
        {ERR_HOST,   ERR_CALLER, "TypeError",  "SandboxError"         },
        {ERR_HOST,   ERR_NONE,   "MountError", "MountError"           },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct call_outcome o;
        struct err e;

        (void)err_set(&e, rows[i].kind, "words");
        if (rows[i].type)
            (void)err_type(&e, rows[i].of, rows[i].type);
        call_outcome_fail(&o, &e);
        assert_string_equal(o.type, rows[i].want);
        assert_string_equal(o.message, "words");
        assert_int_equal(o.status, CALL_ERROR);
        assert_int_equal(o.exit_code, 1);
    }
}

static void the_first_name_of_an_error_stays(void **state)
{
    struct err e;

    (void)state;
    (void)err_set(&e, ERR_CALLER, "words");
    (void)err_type(&e, ERR_NONE, "NameError");
    (void)err_type(&e, ERR_CALLER, "TypeError");
    assert_string_equal(e.type, "NameError");
    (void)err_set(&e, ERR_CALLER, "others");
    assert_null(e.type);
}

/* ---- a directory on the way to what a rule shows ---- */

static void rules_open_directories(void **state)
{
    static const struct {
        const char *rules, *dir;
        bool open;
    } rows[] = {
        {"[{\"pattern\":\"logs/**/*.log\",\"allow\":[\"read\",\"list\"]}]", "/m/logs/",     true },
        {"[{\"pattern\":\"logs/**/*.log\",\"allow\":[\"read\",\"list\"]}]", "/m/logs/a/b/", true },
        {"[{\"pattern\":\"logs/**/*.log\",\"allow\":[\"read\",\"list\"]}]", "/m/other/",    false},
        {"[{\"pattern\":\"/m/a/b/c\",\"allow\":\"*\"}]",                    "/m/a/",        true },
        {"[{\"pattern\":\"/m/a/b/c\",\"allow\":\"*\"}]",                    "/m/b/",        false},
        {"[{\"pattern\":\"{a,b}/c\",\"allow\":\"*\"}]",                     "/m/z/",        true },
        {"[{\"pattern\":\"**\",\"allow\":[\"modify\"]}]",                   "/m/a/",        false},
        {"[{\"pattern\":\"**\",\"allow\":[\"read\"]}]",                     "/m/a/",        false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf text = BUF_INIT(1024);
        struct perms p;
        struct err e;

        (void)buf_printf(&text, "{\"default\":{\"read\":false,\"list\":false},\"rules\":%s}",
                         rows[i].rules);
        assert_int_equal(perms_parse(&p, json(text.p), &e), 0);
        if (perms_open(&p, rows[i].dir, "/m") != rows[i].open)
            fail_msg("%s %s", rows[i].rules, rows[i].dir);
        perms_done(&p);
        buf_done(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_find_their_place),
        cmocka_unit_test(strict_schemas_name_the_parameter),
        cmocka_unit_test(numbers_are_exact_or_refused),
        cmocka_unit_test(literals_follow_the_vectors),
        cmocka_unit_test(literals_expand_nothing),
        cmocka_unit_test(deep_values_are_left_to_json),
        cmocka_unit_test(packets_follow_the_vectors),
        cmocka_unit_test(payloads_are_what_was_given),
        cmocka_unit_test(turns_need_only_a_name),
        cmocka_unit_test(escapes_take_linear_time),
        cmocka_unit_test(permissions_follow_the_vectors),
        cmocka_unit_test(rules_may_be_meant_from_the_mount),
        cmocka_unit_test(rules_that_are_not_known_count_against),
        cmocka_unit_test(mounts_are_whole_directories),
        cmocka_unit_test(requests),
        cmocka_unit_test(directories),
        cmocka_unit_test(outcomes_are_never_false_successes),
        cmocka_unit_test(changes),
        cmocka_unit_test(errors_are_named_in_one_place),
        cmocka_unit_test(the_first_name_of_an_error_stays),
        cmocka_unit_test(rules_open_directories),
    };

    return cmocka_run_group_tests(tests, vectors_open, vectors_close);
}
