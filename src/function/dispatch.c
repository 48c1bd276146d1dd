/* SPDX-License-Identifier: MIT */
#include "function/dispatch.h"

#include <stdio.h>
#include <string.h>

static const char anonymous[] = "__anonymous_wrapper__";

/* ---- what the inspector said ---- */

static bool is_class(struct json_value native, const char *name)
{
    struct json_value c = json_member(native, "class");

    return c.p && c.type == JSON_STRING && json_key_is(c, name);
}

static int bits_of(struct json_value native)
{
    struct json_value v = json_member(native, "bits");
    int64_t n;

    return v.p && json_to_int(v, &n) && (n == 8 || n == 16 || n == 32 || n == 64) ? (int)n : 64;
}

static bool flag_of(struct json_value native, const char *name)
{
    struct json_value v = json_member(native, name);
    bool b = false;

    return v.p && json_to_bool(v, &b) && b;
}

static bool is_name(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)p[i];

        if (!(c == '_' || c == ':' || c >= 0x80 || (c >= '0' && c <= '9' && i > 0) ||
              (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')))
            return false;
    }
    return n > 0;
}

/* The type as it is written in the program; what is no type there is an error of the compiler. */
static void put_type(struct json_value native, struct buf *out)
{
    struct json_value text = json_member(native, "text");

    if (text.p && text.type == JSON_STRING && json_decode_string(text, JSON_LENIENT_UTF8, out) < 0)
        out->failed = true;
}

static void put_param_name(const struct call_param *p, struct buf *out)
{
    if (p->name.n > 2 && is_name(p->name.p + 1, p->name.n - 2))
        (void)buf_put(out, p->name.p + 1, p->name.n - 2);
    else
        (void)buf_printf(out, "%d", p->index);
}

/* ---- C ---- */

/* An expression for one value; `at` names it. */
static int put_c_value(struct json_value native, const char *at, const struct call_param *p,
                       struct buf *out)
{
    if (is_class(native, "boolean"))
        (void)buf_printf(out, "sandbox_bool(%s, \"", at);
    else if (is_class(native, "number"))
        (void)buf_printf(out, "sandbox_double(%s, \"", at);
    else if (is_class(native, "string"))
        (void)buf_printf(out, "sandbox_string(%s, \"", at);
    else if (is_class(native, "integer"))
        (void)buf_printf(out, "sandbox_%s(%s, \"",
                         flag_of(native, "signed") ? "signed" : "unsigned", at);
    else
        return -1;
    put_param_name(p, out);
    if (is_class(native, "integer"))
        return buf_printf(out, "\", %d)", bits_of(native));
    return buf_puts(out, "\")");
}

static void put_element_type(struct json_value of, struct buf *out)
{
    if (is_class(of, "integer"))
        (void)buf_printf(out, "%sint%d_t", flag_of(of, "signed") ? "" : "u", bits_of(of));
    else if (is_class(of, "number"))
        (void)buf_puts(out, bits_of(of) == 32 ? "float" : "double");
    else if (is_class(of, "boolean"))
        (void)buf_puts(out, "bool");
    else
        (void)buf_puts(out, "char *");
}

static int put_c_array(const struct call_param *p, size_t i, struct buf *out)
{
    struct json_value of = json_member(p->native, "of");
    char at[64];

    (void)buf_puts(out, "    ");
    put_element_type(of, out);
    (void)buf_printf(out, " *a%zu = ", i);
    (void)buf_puts(out, "(");
    put_element_type(of, out);
    (void)buf_printf(out, " *)sandbox_array(&args[%zu], \"", i);
    put_param_name(p, out);
    (void)buf_printf(out,
                     "\", sizeof *a%zu);\n    for (size_t k = 0; a%zu && k < args[%zu].n; k++)\n"
                     "        a%zu[k] = (__typeof__(*a%zu))",
                     i, i, i, i, i);
    (void)snprintf(at, sizeof at, "&args[%zu].items[k]", i);
    if (put_c_value(of, at, p, out) < 0)
        return -1;
    return buf_puts(out, ";\n");
}

static int put_c_param(const struct call_param *p, size_t i, struct buf *out)
{
    char at[64];

    if (is_class(p->native, "array"))
        return put_c_array(p, i, out);
    (void)buf_printf(out, "    __auto_type a%zu = ", i);
    (void)snprintf(at, sizeof at, "&args[%zu]", i);
    if (put_c_value(p->native, at, p, out) < 0)
        return -1;
    return buf_puts(out, ";\n");
}

static void put_arguments(const struct call_signature *s, size_t n, bool cpp, struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        struct json_value reference = json_member(s->params[i].native, "reference");

        if (i > 0)
            (void)buf_puts(out, ", ");
        if (cpp && reference.p && json_key_is(reference, "&&"))
            (void)buf_printf(out, "std::move(a%zu)", i);
        else if (cpp)
            (void)buf_printf(out, "a%zu", i);
        else {
            (void)buf_puts(out, "(");
            put_type(s->params[i].native, out);
            (void)buf_printf(out, ")a%zu", i);
        }
    }
}

static bool wants_raw(const struct dispatch *d)
{
    struct json_value type = json_member(d->output, "type");

    return type.p && type.type == JSON_STRING &&
           (json_key_is(type, "object") || json_key_is(type, "array"));
}

/* How the value is written down, around the call itself. */
static int put_c_result(const struct dispatch *d, const char **ret_close, struct buf *out)
{
    struct json_value r = d->signature->result;

    *ret_close = ");\n";
    if (is_class(r, "void")) {
        *ret_close = ";\n    sandbox_puts(out, \"null\");\n";
        return buf_puts(out, "    ");
    }
    if (is_class(r, "boolean"))
        return buf_puts(out, "    sandbox_put_bool(out, ");
    if (is_class(r, "string"))
        return buf_puts(out,
                        wants_raw(d) ? "    sandbox_puts(out, " : "    sandbox_put_text(out, ");
    if (is_class(r, "integer"))
        return buf_printf(out, "    sandbox_put_%s(out, ",
                          flag_of(r, "signed") ? "signed" : "unsigned");
    if (!is_class(r, "number"))
        return -1;
    *ret_close = bits_of(r) == 32 ? ", 9);\n" : ", 17);\n";
    return buf_puts(out, "    sandbox_put_double(out, ");
}

/* The inspector guessed which of several definitions is compiled: with the types of another one a
 * call would succeed with a wrong value, so the compiler is asked. Qualifiers inside of types that
 * the inspector leaves out can only make it refuse. */
static void put_c_check(const struct dispatch *d, struct buf *out)
{
    const struct call_signature *s = d->signature;

    (void)buf_puts(out, "    _Static_assert(__builtin_types_compatible_p(__typeof__(");
    (void)buf_put(out, d->function.p, d->function.n);
    (void)buf_puts(out, "), ");
    put_type(s->result, out);
    (void)buf_puts(out, s->n > 0 ? "(" : "(void");
    for (size_t i = 0; i < s->n; i++) {
        (void)buf_puts(out, i > 0 ? ", " : "");
        put_type(s->params[i].native, out);
    }
    (void)buf_puts(out,
                   ")), \"the function is defined more than once with different types, and not the "
                   "last definition is compiled: keep only the one that is meant\");\n");
}

static int put_c_call(const struct dispatch *d, struct buf *out)
{
    const struct call_signature *s = d->signature;
    const char *close;

    if (s->contested)
        put_c_check(d, out);
    for (size_t i = 0; i < s->n; i++)
        if (put_c_param(&s->params[i], i, out) < 0)
            return -1;
    if (put_c_result(d, &close, out) < 0)
        return -1;
    (void)buf_put(out, d->function.p, d->function.n);
    (void)buf_putc(out, '(');
    put_arguments(s, s->n, false, out);
    (void)buf_putc(out, ')');
    return buf_puts(out, close);
}

/* ---- C++ ---- */

static void put_cpp_param(const struct call_param *p, size_t i, struct buf *out)
{
    struct json_value of = json_member(p->native, "of");
    bool elements = is_class(p->native, "array") && flag_of(p->native, "pointer");

    (void)buf_printf(out, "        auto a%zu = ", i);
    if (elements) {
        (void)buf_puts(out, "sandbox_elements<");
        put_type(of, out);
        (void)buf_puts(out, ">(");
    } else {
        (void)buf_puts(out, "sandbox_as<std::decay<");
        put_type(p->native, out);
        (void)buf_puts(out, ">::type>::get(");
    }
    (void)buf_printf(out, "&args[%zu], \"", i);
    put_param_name(p, out);
    (void)buf_puts(out, "\");\n");
}

/* One branch for each number of arguments that the defaults allow. */
static void put_cpp_branch(const struct dispatch *d, size_t n, struct buf *out)
{
    const struct call_signature *s = d->signature;

    (void)buf_printf(out, "    if (n == %zu) {\n", n);
    for (size_t i = 0; i < n; i++)
        put_cpp_param(&s->params[i], i, out);
    if (is_class(s->result, "void")) {
        /* another definition may be the one that is compiled; what it returns would be lost */
        (void)buf_puts(out, "        static_assert(std::is_void<decltype(");
        (void)buf_put(out, d->function.p, d->function.n);
        (void)buf_putc(out, '(');
        put_arguments(s, n, true, out);
        (void)buf_puts(out,
                       "))>::value, \"the function is defined more than once, and not the last "
                       "definition is compiled: keep only the one that is meant\");\n        ");
        (void)buf_put(out, d->function.p, d->function.n);
        (void)buf_putc(out, '(');
        put_arguments(s, n, true, out);
        (void)buf_puts(out, ");\n        sandbox_puts(out, \"null\");\n    }\n");
        return;
    }
    (void)buf_puts(out, "        auto r = ");
    (void)buf_put(out, d->function.p, d->function.n);
    (void)buf_putc(out, '(');
    put_arguments(s, n, true, out);
    (void)buf_puts(out, ");\n");
    (void)buf_puts(out, wants_raw(d) ? "        sandbox_puts(out, std::string(r).c_str());\n    }\n"
                                     : "        sandbox_as<decltype(r)>::put(out, r);\n    }\n");
}

static size_t required(const struct call_signature *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++)
        if (s->params[i].required)
            n = i + 1;
    return n;
}

/* ---- all together ---- */

static void put_counts(const struct dispatch *d, struct buf *out)
{
    const struct call_signature *s = d->signature;
    size_t least = d->cpp ? required(s) : s->n;

    for (size_t i = 0; i < least; i++) {
        (void)buf_printf(out,
                         "    if (n < %zu)\n        sandbox_failf(\"TypeError\", "
                         "\"missing argument %zu: '",
                         i + 1, i + 1);
        put_param_name(&s->params[i], out);
        (void)buf_puts(out, "'\");\n");
    }
    (void)buf_printf(out,
                     "    if (n > %zu)\n        sandbox_failf(\"TypeError\", "
                     "\"takes %zu arguments, %%zu were given\", n);\n",
                     s->n, s->n);
    (void)buf_puts(out, "    (void)args;\n");
}

static int check(const struct dispatch *d, struct err *e)
{
    const struct call_signature *s = d->signature;

    if (!is_name(d->function.p, d->function.n))
        return err_set(e, ERR_CALLER, "'%.64s' is not the name of a function", d->function.p);
    for (size_t i = 0; i < s->n; i++) {
        const struct call_param *p = &s->params[i];
        int shown = p->name.n > 66 ? 64 : (int)p->name.n - 2;

        if (p->kind != PARAM_POSITIONAL && p->kind != PARAM_POSITIONAL_ONLY)
            return err_set(e, ERR_CALLER, "functions with variable arguments cannot be called");
        if (!p->native.p || is_class(p->native, "unsupported"))
            return err_set(e, ERR_CALLER, "parameter '%.*s' has a type that JSON cannot become",
                           shown, p->name.p + 1);
    }
    if (!d->cpp && (!s->result.p || is_class(s->result, "unsupported")))
        return err_set(e, ERR_CALLER, "the function returns a type that has no JSON form");
    return 0;
}

/* A function that calls the one that is meant; `name` is its own. */
static int put_dispatcher(const struct dispatch *d, const char *name, struct buf *out,
                          struct err *e)
{
    if (check(d, e) < 0)
        return -1;
    (void)buf_printf(out,
                     "static void %s(const struct sandbox_value *args, size_t n,\n"
                     "    struct sandbox_text *out)\n{\n",
                     name);
    put_counts(d, out);
    if (d->cpp) {
        for (size_t n = required(d->signature); n <= d->signature->n; n++)
            put_cpp_branch(d, n, out);
    } else if (put_c_call(d, out) < 0) {
        return err_set(e, ERR_CALLER, "the function has a type that JSON cannot become");
    }
    return buf_puts(out, "}\n\n");
}

int dispatch_write(const struct dispatch *d, struct buf *out, struct err *e)
{
    if (put_dispatcher(d, "sandbox_dispatch", out, e) < 0 && !out->failed)
        return -1;
    (void)buf_puts(out, d->cpp ? "int main()\n{\n    sandbox_run_guarded();\n    return 0;\n}\n"
                               : "int main(void)\n{\n    sandbox_run();\n    return 0;\n}\n");
    return out->failed ? err_set(e, ERR_CALLER, "the function has too many parameters") : 0;
}

/* ---- all functions of a program ---- */

enum { NAME_MAX_BYTES = 256 };

/* What a function is called in the program; false: not to be called from outside. */
static bool function_name(struct json_value f, char out[NAME_MAX_BYTES])
{
    struct json_value full = json_member(f, "qualifiedName"),
                      name = full.p ? full : json_member(f, "name");

    if (!name.p || name.type != JSON_STRING || name.n < 3 || name.n - 2 >= NAME_MAX_BYTES ||
        !is_name(name.p + 1, name.n - 2))
        return false;
    memcpy(out, name.p + 1, name.n - 2);
    out[name.n - 2] = '\0';
    return strcmp(out, "main") != 0;
}

/* Is it the one that a call by this name means? A declaration and its definition are two. */
static bool is_meant(struct json_value inspected, struct json_value f, const char *name)
{
    struct call_found found;
    struct err e;

    return signature_find(inspected, name, strlen(name), &found, &e) == 0 &&
           found.function.p == f.p && !json_member(f, "refused").p;
}

int dispatch_session(bool cpp, struct json_value inspected, struct buf *out, struct err *e)
{
    cleanup_with(buf_done) struct buf table = BUF_INIT(out->max);
    cleanup_free struct call_signature *s = calloc(1, sizeof *s);
    struct json_value functions = json_member(inspected, "functions"), f;
    char name[NAME_MAX_BYTES], own[64];
    size_t at = 0, n = 0;

    if (!s)
        return err_set(e, ERR_HOST, "out of memory");
    while (functions.p && functions.type == JSON_ARRAY && json_array_next(functions, &at, &f)) {
        struct dispatch d = {.cpp = cpp, .signature = s};
        size_t mark = out->n;

        if (!function_name(f, name) || !is_meant(inspected, f, name) ||
            signature_from_function(s, f, e) < 0)
            continue;
        d.function = (struct bytes){name, strlen(name)};
        (void)snprintf(own, sizeof own, "sandbox_dispatch_%zu", n++);
        if (put_dispatcher(&d, own, out, e) < 0) {
            if (!out->failed) /* one that cannot be called is no reason to refuse the others */
                out->n = mark;
            continue;
        }
        (void)buf_printf(&table,
                         "    if (strcmp(sandbox_function, \"%s\") == 0) {\n"
                         "        %s(args, n, out);\n        return;\n    }\n",
                         name, own);
    }
    (void)buf_puts(out, "static void sandbox_dispatch(const struct sandbox_value *args, size_t n,\n"
                        "    struct sandbox_text *out)\n{\n");
    (void)buf_put(out, table.p ? table.p : "", table.n);
    (void)buf_printf(out,
                     "    sandbox_failf(\"NameError\", \"Function '%%s' not found\", "
                     "sandbox_function);\n}\n\nint main(%s)\n{\n    sandbox_serve(sandbox_call);\n"
                     "    return 0;\n}\n",
                     cpp ? "" : "void");
    return out->failed || table.failed ? err_set(e, ERR_CALLER, "the code has too many functions")
                                       : 0;
}

/* The lines before the first statement of a body, if they have directives: headers cannot be
 * included inside of a function. */
static struct bytes preamble(struct bytes code)
{
    bool continued = false;
    size_t end = 0;

    for (size_t at = 0, next; at < code.n; at = next) {
        const char *newline = memchr(code.p + at, '\n', code.n - at);
        size_t first = at;

        next = newline ? (size_t)(newline - code.p) + 1 : code.n;
        while (first < next && memchr(" \t\r\n", code.p[first], 4))
            first++;
        if (continued || (first < next && code.p[first] == '#'))
            end = next;
        else if (first < next && (next - first < 2 || memcmp(code.p + first, "//", 2) != 0))
            break;
        continued = end == next && newline && next >= 2 && code.p[next - 2] == '\\';
    }
    return (struct bytes){code.p, end};
}

static const char *body_type(const struct dispatch *d)
{
    struct json_value type = json_member(d->output, "type");

    if (d->cpp)
        return "static auto";
    if (type.p && type.type == JSON_STRING && json_key_is(type, "string"))
        return "static const char *";
    return type.p && type.type == JSON_STRING && json_key_is(type, "number") ? "static double"
                                                                             : "int";
}

void dispatch_code(const struct dispatch *d, struct bytes code, struct buf *out)
{
    struct bytes head = preamble(code);

    if (!d->body) {
        (void)buf_put(out, code.p, code.n);
        (void)buf_puts(out, "\n");
        return;
    }
    (void)buf_put(out, head.p, head.n);
    if (head.n > 0 && head.p[head.n - 1] != '\n')
        (void)buf_putc(out, '\n');
    /* In the line of the first statement: all of them keep their numbers. */
    (void)buf_printf(out, "%s %s(%s) {", body_type(d), anonymous, d->cpp ? "" : "void");
    (void)buf_put(out, code.p + head.n, code.n - head.n);
    (void)buf_puts(out, "\n}\n");
}

int dispatch_bind(struct call_args *a, const struct call_signature *s, struct err *e)
{
    if (a->names_n > 0)
        return err_set(e, ERR_CALLER, "there is no parameter %.*s",
                       a->names[0].key.n < 66 ? (int)a->names[0].key.n : 66, a->names[0].key.p);
    for (size_t i = 0; i < a->n; i++) {
        if (a->at[i].p)
            continue;
        if (i < s->n && s->params[i].fallback.p)
            a->at[i] = s->params[i].fallback;
        else
            return err_set(e, ERR_CALLER, "missing argument %zu: '%.*s'", i + 1,
                           i < s->n && s->params[i].name.n < 66 ? (int)s->params[i].name.n - 2 : 0,
                           i < s->n ? s->params[i].name.p + 1 : "");
    }
    return 0;
}

struct json_value dispatch_body_result(struct json_value schema)
{
    static const char whole[] = "{\"class\":\"integer\",\"bits\":32,\"signed\":true}";
    static const char number[] = "{\"class\":\"number\",\"bits\":64}";
    static const char text[] = "{\"class\":\"string\"}";
    struct json_value type = json_member(json_member(schema, "output"), "type");

    if (type.p && type.type == JSON_STRING && json_key_is(type, "string"))
        return (struct json_value){JSON_OBJECT, text, sizeof text - 1};
    if (type.p && type.type == JSON_STRING && json_key_is(type, "number"))
        return (struct json_value){JSON_OBJECT, number, sizeof number - 1};
    return (struct json_value){JSON_OBJECT, whole, sizeof whole - 1};
}
