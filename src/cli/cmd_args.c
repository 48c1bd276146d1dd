/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cmds.h"
#include "cli/commands.h"

enum { HELP_COLUMN = 26, BY_NAME = 256 };

struct arg_seen {
    const char *name, *value; /* borrowed */
};

static const struct cmd_option sandbox_option = {
    's', "sandbox", "SANDBOX", "id or name of the sandbox; default $SBX_SANDBOX, or 'default'"};
static const struct cmd_option json_option = {'j', "json", NULL, "print JSON"};
static const struct cmd_option url_option = {
    'u', "url", "URL",
    "of the daemon; default $SANDBOX_URL, or http://127.0.0.1:$EXECUTOR_PORT (8080)"};
static const struct cmd_option help_option = {'h', "help", NULL, "say this"};

void command_options(const struct command *c, struct cmd_option out[OPTIONS_MAX + 1])
{
    size_t n = 0;

    for (const struct cmd_option *o = c->options; o && o->name && n < OPTIONS_MAX - 4; o++)
        out[n++] = *o;
    if (c->flags & COMMAND_SANDBOX)
        out[n++] = sandbox_option;
    if (c->flags & COMMAND_JSON)
        out[n++] = json_option;
    if (c->flags & COMMAND_DAEMON)
        out[n++] = url_option;
    out[n++] = help_option;
    out[n] = (struct cmd_option){0};
}

/* ---- help ---- */

/* Text behind the column, in lines of at most 78. */
static void put_help(FILE *out, const char *text)
{
    size_t column = HELP_COLUMN;

    while (*text) {
        size_t n = strcspn(text, " ");

        if (column > HELP_COLUMN && column + n + 1 > 78) {
            (void)fprintf(out, "\n%*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
        }
        (void)fprintf(out, "%s%.*s", column > HELP_COLUMN ? " " : "", (int)n, text);
        column += n + (column > HELP_COLUMN);
        text += n + strspn(text + n, " ");
    }
    (void)fputc('\n', out);
}

static void put_option(FILE *out, const struct cmd_option *o)
{
    char head[64];
    int n = snprintf(head, sizeof head, "  %s%c%c --%s%s%s", o->letter ? "-" : " ",
                     o->letter ? o->letter : ' ', o->letter ? ',' : ' ', o->name,
                     o->value ? " " : "", o->value ? o->value : "");

    if (n + 1 < HELP_COLUMN)
        (void)fprintf(out, "%-*s", HELP_COLUMN, head);
    else
        (void)fprintf(out, "%s\n%*s", head, HELP_COLUMN, "");
    put_help(out, o->help);
}

static void put_usage(const struct command *c, FILE *out)
{
    (void)fprintf(out, "usage: sbx %s %s%s%s\n", c->name, "[OPTION...]", c->operands[0] ? " " : "",
                  c->operands);
}

void command_help(const struct command *c, FILE *out)
{
    struct cmd_option options[OPTIONS_MAX + 1];

    put_usage(c, out);
    (void)fprintf(out, "\n%s\n\n", c->about);
    command_options(c, options);
    for (size_t i = 0; options[i].name; i++)
        put_option(out, &options[i]);
    if (c->flags & COMMAND_DAEMON)
        (void)fputs("\nThe secret is $SANDBOX_SECRET, what is in the file $SANDBOX_SECRET_FILE, or "
                    "what\nthe daemon keeps in its state directory.\n",
                    out);
    for (const struct cmd_example *x = c->examples; x && x->line; x++)
        (void)fprintf(out, "%s  %s\n      %s\n", x == c->examples ? "\nExamples:\n" : "", x->line,
                      x->about);
}

/* ---- reading ---- */

static void see(struct args *a, const char *name, const char *value)
{
    a->seen[a->seen_n++] = (struct arg_seen){name, value ? value : ""};
}

enum args_end args_read(const struct command *c, int argc, char **argv, struct args *ret)
{
    char called[COMMAND_NAME_MAX + 8], letters[2 * OPTIONS_MAX + 4] = "+";
    struct option longs[OPTIONS_MAX + 1] = {0};
    struct cmd_option options[OPTIONS_MAX + 1];
    char **copy = calloc((size_t)argc + 1, sizeof *copy);
    size_t n = c->flags & COMMAND_STOPS ? 1 : 0;
    enum args_end end = ARGS_GOOD;
    int got, index = 0;

    *ret = (struct args){.command = c, .seen = calloc((size_t)argc + 1, sizeof *ret->seen)};
    if (!copy || !ret->seen) {
        free(copy);
        return ARGS_WRONG;
    }
    (void)snprintf(called, sizeof called, "sbx %s", c->name);
    memcpy(copy, argv, (size_t)argc * sizeof *copy);
    copy[0] = called;
    command_options(c, options);
    for (int i = 0; options[i].name; i++) {
        longs[i] = (struct option){
            options[i].name, options[i].value ? required_argument : no_argument, NULL, BY_NAME + i};
        if (options[i].letter)
            letters[n++] = options[i].letter;
        if (options[i].letter && options[i].value)
            letters[n++] = ':';
    }
    letters[n] = '\0';
    optind = 0;
    while (end == ARGS_GOOD && (got = getopt_long(argc, copy, letters, longs, &index)) != -1) {
        for (int i = 0; got < BY_NAME && options[i].name; i++)
            if (options[i].letter == got)
                got = BY_NAME + i;
        if (got == '?')
            end = ARGS_WRONG;
        else if (strcmp(options[got - BY_NAME].name, "help") == 0)
            end = ARGS_HELP;
        else
            see(ret, longs[got - BY_NAME].name, optarg);
    }
    memcpy(argv + 1, copy + 1, ((size_t)argc - 1) * sizeof *copy); /* operands are last now */
    ret->operand = argv + optind;
    ret->n = argc - optind;
    free(copy);
    if (end == ARGS_HELP)
        command_help(c, stdout);
    else if (end == ARGS_WRONG)
        (void)args_wrong(ret, NULL);
    return end;
}

void args_done(struct args *a)
{
    free(a->seen);
    a->seen = NULL;
}

const char *args_next(const struct args *a, const char *name, size_t *at)
{
    while (*at < a->seen_n) {
        const struct arg_seen *s = &a->seen[(*at)++];

        if (strcmp(s->name, name) == 0)
            return s->value;
    }
    return NULL;
}

const char *args_option(const struct args *a, const char *name)
{
    const char *found = NULL, *value;

    for (size_t at = 0; (value = args_next(a, name, &at));)
        found = value;
    return found;
}

int args_number(const struct args *a, const char *name, long least, long most, long otherwise,
                long *ret)
{
    const char *text = args_option(a, name);
    char *end = NULL;
    long v;

    *ret = otherwise;
    if (!text)
        return 0;
    errno = 0;
    v = strtol(text, &end, 10);
    if (errno || end == text || *end || v < least || v > most) {
        (void)fprintf(stderr, "sbx: --%s: '%s' is no whole number from %ld to %ld\n", name, text,
                      least, most);
        return -1;
    }
    *ret = v;
    return 0;
}

int args_wrong(const struct args *a, const char *why)
{
    if (why)
        (void)fprintf(stderr, "sbx: %s\n", why);
    put_usage(a->command, stderr);
    (void)fprintf(stderr, "sbx %s --help tells more.\n", a->command->name);
    return CMD_USAGE;
}
