/* SPDX-License-Identifier: MIT */
/*
 * A declarator is read from the outside in, which is the order in which it builds the type:
 *
 *   const char *names[3]    pointer(array(names)): const char ─▶ string ─▶ array of string
 *
 * Pointers become what JSON has for them: char * a string, T * an array of T. Names are looked up
 * among the standard ones and then among those that the source itself declares.
 */
#include "inspect/ctype.h"

#include <ctype.h>
#include <string.h>

enum { CHAIN_MAX = 8, ALIAS_MAX = 8, SPECIFIERS_MAX = 256 };

#define UNSUPPORTED(words) ((struct native){.class = NATIVE_UNSUPPORTED, .why = (words)})

/* ---- names ---- */

static const struct {
    const char *name;
    enum native_class class;
    unsigned bits;
    bool is_signed;
} known[] = {
    {"void",      NATIVE_VOID,    0,  false},
    {"bool",      NATIVE_BOOLEAN, 8,  false},
    {"_Bool",     NATIVE_BOOLEAN, 8,  false},
    {"char",      NATIVE_INTEGER, 8,  true },
    {"short",     NATIVE_INTEGER, 16, true },
    {"int",       NATIVE_INTEGER, 32, true },
    {"long",      NATIVE_INTEGER, 64, true },
    {"float",     NATIVE_NUMBER,  32, true },
    {"double",    NATIVE_NUMBER,  64, true },
    {"int8_t",    NATIVE_INTEGER, 8,  true },
    {"int16_t",   NATIVE_INTEGER, 16, true },
    {"int32_t",   NATIVE_INTEGER, 32, true },
    {"int64_t",   NATIVE_INTEGER, 64, true },
    {"uint8_t",   NATIVE_INTEGER, 8,  false},
    {"uint16_t",  NATIVE_INTEGER, 16, false},
    {"uint32_t",  NATIVE_INTEGER, 32, false},
    {"uint64_t",  NATIVE_INTEGER, 64, false},
    {"intptr_t",  NATIVE_INTEGER, 64, true },
    {"uintptr_t", NATIVE_INTEGER, 64, false},
    {"intmax_t",  NATIVE_INTEGER, 64, true },
    {"uintmax_t", NATIVE_INTEGER, 64, false},
    {"size_t",    NATIVE_INTEGER, 64, false},
    {"ssize_t",   NATIVE_INTEGER, 64, true },
    {"ptrdiff_t", NATIVE_INTEGER, 64, true },
    {"off_t",     NATIVE_INTEGER, 64, true },
    {"time_t",    NATIVE_INTEGER, 64, true },
    {"wchar_t",   NATIVE_INTEGER, 32, true },
    {"char8_t",   NATIVE_INTEGER, 8,  false},
    {"char16_t",  NATIVE_INTEGER, 16, false},
    {"char32_t",  NATIVE_INTEGER, 32, false},
    {"uint",      NATIVE_INTEGER, 32, false},
    {"ulong",     NATIVE_INTEGER, 64, false},
    {"ushort",    NATIVE_INTEGER, 16, false},
};

static bool find_known(struct slice name, struct native *ret)
{
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (slice_is(name, known[i].name)) {
            *ret = (struct native){
                .class = known[i].class, .bits = known[i].bits, .is_signed = known[i].is_signed};
            return true;
        }
    return false;
}

static void learn(struct ctypes *c, struct ctype_name n)
{
    if (n.name.n > 0 && c->n < CTYPE_NAMES_MAX)
        c->v[c->n++] = n;
}

static bool is_record(TSNode n)
{
    return node_is(n, "struct_specifier") || node_is(n, "union_specifier") ||
           node_is(n, "class_specifier");
}

void ctypes_learn(struct ctypes *c, TSNode n)
{
    TSNode type = is_record(n) || node_is(n, "enum_specifier") ? n : node_field(c->w, n, "type");
    struct slice tag = node_text(c->w, node_field(c->w, type, "name"));

    if (is_record(type) || node_is(type, "enum_specifier"))
        learn(c, (struct ctype_name){.name = tag, .is_enum = !is_record(type)});
    if (node_is(n, "type_definition")) {
        TSNode declarator = node_field(c->w, n, "declarator");

        learn(c, (struct ctype_name){.name = node_text(c->w, cdeclarator_name(c->w, declarator)),
                                     .type = n,
                                     .declarator = declarator});
    } else if (node_is(n, "alias_declaration")) {
        learn(c, (struct ctype_name){.name = node_text(c->w, node_field(c->w, n, "name")),
                                     .type = type,
                                     .declarator = node_field(c->w, type, "declarator")});
    }
}

/* ---- declarators ---- */

/* One step towards the name; null: this is it. */
static TSNode declarator_inner(struct walk *w, TSNode n)
{
    TSNode next = node_field(w, n, "declarator");

    if (ts_node_is_null(next) &&
        (node_is(n, "parenthesized_declarator") || node_is(n, "reference_declarator") ||
         node_is(n, "attributed_declarator") || node_is(n, "variadic_declarator")))
        next = node_first_named(w, n);
    return next;
}

TSNode cdeclarator_name(struct walk *w, TSNode declarator)
{
    TSNode n = declarator;

    for (unsigned i = 0; i < 2 * CHAIN_MAX && !ts_node_is_null(n); i++) {
        TSNode next = declarator_inner(w, n);

        if (ts_node_is_null(next) && strstr(ts_node_type(n), "declarator"))
            break; /* an abstract one */
        if (ts_node_is_null(next))
            return n;
        n = next;
    }
    return (TSNode){0};
}

TSNode cdeclarator_function(struct walk *w, TSNode declarator)
{
    TSNode n = declarator;

    for (unsigned i = 0; i < 2 * CHAIN_MAX && !ts_node_is_null(n); i++) {
        if (node_is(n, "function_declarator"))
            return n;
        if (node_is(n, "array_declarator"))
            break;
        n = declarator_inner(w, n);
    }
    return (TSNode){0};
}

/* ---- building ---- */

struct building {
    struct native t;
    struct buf text; /* of the type so far */
    bool plain_char; /* a pointer to it is a string */
    const char *reference;
    unsigned depth;
};

static const struct native *build(struct ctypes *c, TSNode declaration, TSNode declarator,
                                  unsigned depth);

static const struct native *keep(struct ctypes *c, const struct native *n)
{
    struct native *kept = arena_take(&c->w->m->arena, sizeof *kept);

    if (kept)
        *kept = *n;
    return kept;
}

/* unsigned long int: the words in any order. */
static void base_sized(struct ctypes *c, TSNode type, struct building *b)
{
    struct slice text = node_text(c->w, type);
    bool is_unsigned = memmem(text.p, text.n, "unsigned", 8) != NULL;
    bool is_char = memmem(text.p, text.n, "char", 4) != NULL;
    bool is_long = memmem(text.p, text.n, "long", 4) != NULL;
    bool is_short = memmem(text.p, text.n, "short", 5) != NULL;

    if (memmem(text.p, text.n, "double", 6))
        b->t = (struct native){.class = NATIVE_NUMBER, .bits = 128, .is_signed = true};
    else
        b->t = (struct native){.class = NATIVE_INTEGER,
                               .bits = is_char    ? 8
                                       : is_short ? 16
                                       : is_long  ? 64
                                                  : 32,
                               .is_signed = !is_unsigned};
}

static bool is_std(struct slice scope)
{
    return slice_is(scope, "std") || slice_is(scope, "::std");
}

/* The n-th type between the angle brackets; null: there is none. */
static TSNode template_argument(struct walk *w, TSNode template, size_t n)
{
    cleanup_with(kids_done) struct kids k = KIDS_NONE;
    TSNode child;

    for (kids_of(w, node_field(w, template, "arguments"), &k); kids_next(&k, &child);)
        if (node_is(child, "type_descriptor") && n-- == 0)
            return child;
    return (TSNode){0};
}

static void base_template(struct ctypes *c, TSNode type, struct building *b)
{
    struct slice name = node_text(c->w, node_field(c->w, type, "name"));
    bool map = slice_is(name, "map") || slice_is(name, "unordered_map");
    TSNode first = template_argument(c->w, type, 0), value = first;
    const struct native *key;

    if (!map && !slice_is(name, "vector")) {
        b->t = UNSUPPORTED("a template that has no equal in JSON");
        return;
    }
    if (map) {
        key = build(c, first, node_field(c->w, first, "declarator"), b->depth);
        value = template_argument(c->w, type, 1);
        if (!key || key->class != NATIVE_STRING || key->pointer) {
            b->t = UNSUPPORTED("a map whose keys are not std::string");
            return;
        }
    }
    b->t.of = build(c, value, node_field(c->w, value, "declarator"), b->depth);
    b->t.class = map ? NATIVE_MAP : NATIVE_ARRAY;
    if (!b->t.of || b->t.of->class == NATIVE_VOID)
        b->t = UNSUPPORTED("a container of nothing");
    else if (b->t.of->class == NATIVE_UNSUPPORTED)
        b->t = UNSUPPORTED(b->t.of->why);
    else if (b->t.of->class == NATIVE_ARRAY && b->t.of->pointer)
        b->t = UNSUPPORTED("a container of pointers");
}

static const struct ctype_name *find_name(const struct ctypes *c, struct slice name)
{
    for (size_t i = c->n; i-- > 0;)
        if (slice_same(c->v[i].name, name))
            return &c->v[i];
    return NULL;
}

static void base_named(struct ctypes *c, struct slice name, bool std, struct building *b)
{
    bool cpp = c->w->m->dialect == DIALECT_CPP;
    const struct ctype_name *own = std ? NULL : find_name(c, name);
    const struct native *means;

    if (!own && find_known(name, &b->t))
        return;
    if (!own && cpp && (slice_is(name, "string") || slice_is(name, "string_view"))) {
        b->t = (struct native){.class = NATIVE_STRING};
    } else if (!own) {
        b->t = UNSUPPORTED("a type that is not known here");
    } else if (own->is_enum) {
        b->t = (struct native){.class = NATIVE_INTEGER, .bits = 32, .is_signed = true};
    } else if (ts_node_is_null(own->type)) {
        b->t = UNSUPPORTED("a struct");
    } else {
        means = build(c, own->type, own->declarator, b->depth);
        b->t = means ? *means : UNSUPPORTED("a type that is not known here");
        b->plain_char = means && slice_is(means->text, "char");
    }
}

static void base_of(struct ctypes *c, TSNode type, struct building *b)
{
    struct slice text = node_text(c->w, type);

    if (node_is(type, "sized_type_specifier")) {
        base_sized(c, type, b);
    } else if (node_is(type, "primitive_type") || node_is(type, "type_identifier")) {
        b->plain_char = slice_is(text, "char");
        base_named(c, text, false, b);
    } else if (node_is(type, "enum_specifier")) {
        b->t = (struct native){.class = NATIVE_INTEGER, .bits = 32, .is_signed = true};
    } else if (is_record(type)) {
        b->t = UNSUPPORTED("a struct");
    } else if (node_is(type, "template_type")) {
        base_template(c, type, b);
    } else if (node_is(type, "qualified_identifier")) {
        TSNode name = node_field(c->w, type, "name");

        if (!is_std(node_text(c->w, node_field(c->w, type, "scope"))))
            b->t = UNSUPPORTED("a type that is not known here");
        else if (node_is(name, "template_type"))
            base_template(c, name, b);
        else
            base_named(c, node_text(c->w, name), true, b);
    } else if (node_is(type, "placeholder_type_specifier")) {
        b->t = UNSUPPORTED("auto");
    } else {
        b->t = UNSUPPORTED("a type that cannot be read");
    }
}

static void apply_pointer(struct ctypes *c, struct building *b)
{
    struct native inner = b->t;

    inner.text = arena_copy(&c->w->m->arena, b->text.p ? b->text.p : "", b->text.n);
    (void)buf_puts(&b->text,
                   inner.text.n > 0 && inner.text.p[inner.text.n - 1] == '*' ? "*" : " *");
    if (b->t.class == NATIVE_UNSUPPORTED)
        return;
    if (b->t.class == NATIVE_VOID) {
        b->t = UNSUPPORTED("a pointer to void");
    } else if (b->plain_char) {
        b->t = (struct native){.class = NATIVE_STRING, .pointer = true, .is_const = b->t.is_const};
    } else if (b->t.class == NATIVE_ARRAY || b->t.class == NATIVE_MAP ||
               (b->t.class == NATIVE_STRING && !b->t.pointer)) {
        b->t = UNSUPPORTED("a pointer to an object or to a pointer");
    } else {
        b->t = (struct native){.class = NATIVE_ARRAY,
                               .pointer = true,
                               .is_const = b->t.is_const,
                               .of = keep(c, &inner)};
    }
    b->plain_char = false;
}

static bool is_a(TSNode n, const char *plain, const char *abstract)
{
    return node_is(n, plain) || node_is(n, abstract);
}

static void apply_reference(struct ctypes *c, TSNode n, struct building *b)
{
    b->reference = node_has_child(c->w, n, "&&") ? "&&" : "&";
}

/* From the outside in, up to the name, or up to the function whose result this is. */
static void apply_declarator(struct ctypes *c, TSNode n, struct building *b)
{
    unsigned steps = 0;

    for (; !ts_node_is_null(n) && steps < CHAIN_MAX; steps++) {
        if (is_a(n, "pointer_declarator", "abstract_pointer_declarator") ||
            is_a(n, "array_declarator", "abstract_array_declarator") ||
            node_is(n, "pointer_type_declarator") || node_is(n, "array_type_declarator")) {
            apply_pointer(c, b);
        } else if (is_a(n, "reference_declarator", "abstract_reference_declarator")) {
            apply_reference(c, n, b);
        } else if (is_a(n, "function_declarator", "abstract_function_declarator")) {
            TSNode inside = declarator_inner(c->w, n);
            TSNode grouped = node_first_named(c->w, inside);

            if (b->depth > 0 || node_is(inside, "abstract_parenthesized_declarator") ||
                (node_is(inside, "parenthesized_declarator") && !ts_node_is_null(grouped) &&
                 strstr(ts_node_type(grouped), "declarator")))
                b->t = UNSUPPORTED("a pointer to a function");
            return;
        }
        n = declarator_inner(c->w, n);
    }
    if (steps == CHAIN_MAX)
        b->t = UNSUPPORTED("a type that is nested too deeply");
}

static bool has_const(struct walk *w, TSNode declaration)
{
    cleanup_with(kids_done) struct kids k = KIDS_NONE;
    TSNode child;

    for (kids_of(w, declaration, &k); kids_next(&k, &child);)
        if (node_is(child, "type_qualifier") && slice_is(node_text(w, child), "const"))
            return true;
    return false;
}

static bool is_word_char(char ch)
{
    return isalnum((unsigned char)ch) || ch == '_';
}

static bool has_word(struct slice s, struct slice word)
{
    const char *end = s.p + s.n, *at = s.p;

    for (; at && (at = memmem(at, (size_t)(end - at), word.p, word.n)); at += word.n)
        if ((at == s.p || !is_word_char(at[-1])) &&
            (at + word.n == end || !is_word_char(at[word.n])))
            return true;
    return false;
}

/* The grammar knows of no complex numbers and takes the word for a name, or for a mistake, so the
 * text is asked: all that is declared, without the parameters and the body of a function. */
static bool is_complex(struct ctypes *c, TSNode declaration, TSNode declarator)
{
    struct slice text = node_text(c->w, declaration);
    TSNode params = node_field(c->w, cdeclarator_function(c->w, declarator), "parameters");
    size_t before = ts_node_is_null(params)
                        ? text.n
                        : ts_node_start_byte(params) - ts_node_start_byte(declaration);

    if (before < text.n)
        text.n = before;
    if (text.n > SPECIFIERS_MAX)
        text.n = SPECIFIERS_MAX;
    return has_word(text, SLICE("_Complex")) ||
           (c->complex_is_type && has_word(text, SLICE("complex")));
}

static const struct native *build(struct ctypes *c, TSNode declaration, TSNode declarator,
                                  unsigned depth)
{
    TSNode type = node_field(c->w, declaration, "type");
    struct building b = {.text = BUF_INIT(INSPECT_TEXT_MAX), .depth = depth + 1};
    struct slice written = node_short(c->w, type);

    if (depth >= ALIAS_MAX || ts_node_is_null(type))
        b.t = UNSUPPORTED("a type that cannot be read");
    else if (is_complex(c, declaration, declarator))
        b.t = UNSUPPORTED("a complex number");
    else
        base_of(c, type, &b);
    b.t.is_const |= has_const(c->w, declaration);
    b.reference = "";
    if (b.t.is_const)
        (void)buf_puts(&b.text, "const ");
    (void)buf_put(&b.text, written.p ? written.p : "", written.n);
    b.depth = depth; /* a function at depth 0 may be what is being declared */
    apply_declarator(c, declarator, &b);
    b.t.text = arena_copy(&c->w->m->arena, b.text.p ? b.text.p : "", b.text.n);
    b.t.reference = b.reference;
    buf_done(&b.text);
    return keep(c, &b.t);
}

const struct native *ctype_of(struct ctypes *c, TSNode declaration, TSNode declarator)
{
    return build(c, declaration, declarator, 0);
}
