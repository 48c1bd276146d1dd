/* SPDX-License-Identifier: MIT */
/*
 * cli_docs man|bash|zsh|fish: what is built from the table of commands and installed beside sbx.
 * Runs at build time only.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/commands.h"

#ifndef SBX_VERSION
#define SBX_VERSION "0"
#endif

/* ---- the man page, in the language of man(7) ---- */

enum { MAN_FILL = 44 }; /* source lines of more columns end at the next blank */

/* Text that is only text: no line of it is a request, dashes stay dashes. fill: it may be broken
 * into other lines. */
static void man_put(const char *p, bool fill)
{
    bool fresh = true;

    for (size_t column = 0; *p; p++, column++) {
        if (fill && *p == ' ' && p[1] && column > MAN_FILL) {
            (void)putchar('\n');
            fresh = true;
            column = 0;
            continue;
        }
        column = *p == '\n' ? 0 : column;
        if (fresh && (*p == '.' || *p == '\''))
            (void)fputs("\\&", stdout);
        fresh = *p == '\n';
        if (*p == '\\')
            (void)fputs("\\e", stdout);
        else if (*p == '-')
            (void)fputs("\\-", stdout);
        else if (*p == '~')
            (void)fputs("\\(ti", stdout);
        else if (*p == '\'')
            (void)fputs("\\(aq", stdout);
        else
            (void)putchar(*p);
    }
}

static void man_text(const char *p)
{
    man_put(p, true);
}

static void man_option(const struct cmd_option *o)
{
    (void)fputs(".TP\n", stdout);
    if (o->letter)
        (void)printf("\\fB\\-%c\\fR, ", o->letter);
    (void)fputs("\\fB\\-\\-", stdout);
    man_text(o->name);
    (void)fputs("\\fR", stdout);
    if (o->value)
        (void)printf(" \\fI%s\\fR", o->value);
    (void)putchar('\n');
    man_text(o->help);
    (void)putchar('\n');
}

static void man_command(const struct command *c)
{
    struct cmd_option options[OPTIONS_MAX + 1];

    (void)printf(".SS \"sbx %s\"\n", c->name);
    (void)printf("\\fBsbx %s\\fR [\\fIoption\\fR...]%s", c->name, c->operands[0] ? " " : "");
    man_put(c->operands, false);
    (void)fputs("\n.PP\n", stdout);
    man_text(c->about);
    (void)putchar('\n');
    command_options(c, options);
    for (size_t i = 0; options[i].name; i++)
        if (strcmp(options[i].name, "help") != 0)
            man_option(&options[i]);
    for (const struct cmd_example *x = c->examples; x && x->line; x++) {
        (void)fputs(x == c->examples ? ".PP\nExamples:\n" : "", stdout);
        (void)fputs(".TP\n\\fB", stdout);
        man_put(x->line, false);
        (void)fputs("\\fR\n", stdout);
        man_text(x->about);
        (void)putchar('\n');
    }
}

static void man(void)
{
    static const char where[] =
        "The daemon's secret, or a file with it. Without them it is looked for where the daemon "
        "keeps its own: in $STATE_DIR, $XDG_STATE_HOME/sandbox-executor, "
        "~/.local/state/sandbox-executor and /var/lib/sandbox-executor.";
    static const char *const rest[][2] = {
        {"SANDBOX_URL",                         "Where the daemon is; else http://127.0.0.1:$EXECUTOR_PORT (8080)."},
        {"SANDBOX_SECRET, SANDBOX_SECRET_FILE", where                                                              },
        {"SBX_SANDBOX",                         "The sandbox that commands are about when none is named."          },
        {"NO_COLOR",                            "Anything in it: no colours, on a terminal either."                },
    };
    const struct command *c;

    (void)printf(".TH SBX 1 \"\" \"sandbox-executor %s\" \"User Commands\"\n", SBX_VERSION);
    (void)fputs(".SH NAME\nsbx \\- run code in sandboxes of sandbox\\-executor\n"
                ".SH SYNOPSIS\n\\fBsbx\\fR \\fIcommand\\fR [\\fIoption\\fR...] "
                "[\\fIargument\\fR...]\n.SH DESCRIPTION\n"
                "The command line of sandbox\\-executor, a daemon that runs untrusted code.\n"
                "Lists are tables for people; with \\fB\\-\\-json\\fR they are the\n"
                "answers of the daemon.\n.SH COMMANDS\n",
                stdout);
    for (size_t i = 0; (c = command(i)); i++)
        man_command(c);
    (void)fputs(".SH ENVIRONMENT\n", stdout);
    for (size_t i = 0; i < ARRAY_LEN(rest); i++) {
        (void)printf(".TP\n\\fB%s\\fR\n", rest[i][0]);
        man_text(rest[i][1]);
        (void)putchar('\n');
    }
    (void)fputs(".SH EXIT STATUS\n", stdout);
    man_text(
        "That of the program, where one is run. 2: called wrongly. 124: the program ran out of "
        "time. 125: the daemon could not be reached, or refused. 130: interrupted.\n");
}

/* ---- completions ---- */

/* The first word of names with two, each once. */
static bool is_first_of_group(size_t i)
{
    const struct command *c = command(i), *before;
    size_t n = strcspn(c->name, " ");

    for (size_t k = 0; k < i; k++) {
        before = command(k);
        if (strncmp(before->name, c->name, n + 1) == 0)
            return false;
    }
    return true;
}

static void words_of(const struct command *c)
{
    struct cmd_option options[OPTIONS_MAX + 1];

    command_options(c, options);
    for (size_t i = 0; options[i].name; i++)
        (void)printf("%s--%s", i ? " " : "", options[i].name);
}

/* What a shell calls to know sandboxes and processes. */
#define SANDBOXES "sbx sandbox ls -q 2>/dev/null"
#define PROCESSES "sbx ps 2>/dev/null | awk \"NR > 1 { print \\$1 }\""

static const char *operands_of(const struct command *c)
{
    return c->flags & COMMAND_SANDBOXES   ? "sandboxes"
           : c->flags & COMMAND_PROCESSES ? "processes"
           : c->flags & COMMAND_FILES     ? "files"
                                          : "none";
}

static void bash(void)
{
    const struct command *c;

    (void)fputs("# bash completion of sbx; made from its table of commands\n"
                "_sbx() {\n"
                "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
                "    local name=${COMP_WORDS[1]} options= operands=none\n"
                "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                "        mapfile -t COMPREPLY < <(compgen -W '",
                stdout);
    for (size_t i = 0; (c = command(i)); i++)
        if (is_first_of_group(i))
            (void)printf("%.*s ", (int)strcspn(c->name, " "), c->name);
    (void)fputs("--help --version' -- \"$word\")\n        return\n    fi\n"
                "    case $name in\n",
                stdout);
    for (size_t i = 0; (c = command(i)); i++) {
        size_t n = strcspn(c->name, " ");

        if (!c->name[n] || !is_first_of_group(i))
            continue;
        (void)printf("    %.*s)\n        if [ \"$COMP_CWORD\" -eq 2 ]; then\n"
                     "            mapfile -t COMPREPLY < <(compgen -W '",
                     (int)n, c->name);
        for (size_t k = i; command(k); k++)
            if (strncmp(command(k)->name, c->name, n + 1) == 0)
                (void)printf("%s ", command(k)->name + n + 1);
        (void)fputs("' -- \"$word\")\n            return\n        fi\n"
                    "        name=\"$name ${COMP_WORDS[2]}\" ;;\n",
                    stdout);
    }
    (void)fputs("    esac\n    case $name in\n", stdout);
    for (size_t i = 0; (c = command(i)); i++) {
        (void)printf("    '%s') operands=%s options='", c->name, operands_of(c));
        words_of(c);
        (void)fputs("' ;;\n", stdout);
    }
    (void)fputs("    esac\n"
                "    case $before in\n"
                "    -s | --sandbox) options=$(" SANDBOXES ") operands=none word=${word} ;;\n"
                "    *)\n"
                "        case $word in\n"
                "        -*) operands=none ;;\n"
                "        *)\n"
                "            options=\n"
                "            case $operands in\n"
                "            sandboxes) options=$(" SANDBOXES ") ;;\n"
                "            processes) options=$(" PROCESSES ") ;;\n"
                "            files) mapfile -t COMPREPLY < <(compgen -f -- \"$word\"); return ;;\n"
                "            esac ;;\n"
                "        esac ;;\n"
                "    esac\n"
                "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n"
                "}\n"
                "complete -o filenames -F _sbx sbx\n",
                stdout);
}

/* Text in single quotes; what else the shell's own descriptions take for signs gets a backslash. */
static void quoted(const char *p, const char *also)
{
    (void)putchar('\'');
    for (; *p; p++) {
        if (*p == '\'')
            (void)fputs("'\\''", stdout);
        else if (strchr(also, *p))
            (void)printf("\\%c", *p);
        else
            (void)putchar(*p == '\n' ? ' ' : *p);
    }
    (void)putchar('\'');
}

static const char *zsh_value(const struct cmd_option *o)
{
    return strcmp(o->name, "sandbox") == 0 ? ":sandbox:($(" SANDBOXES "))"
           : strcmp(o->name, "cwd") == 0   ? ":directory: "
           : o->value                      ? ":value: "
                                           : "";
}

static void zsh_option(const struct cmd_option *o)
{
    (void)fputs(" \\\n            ", stdout);
    (void)printf("'--%s%s[", o->name, o->value ? "=" : "");
    for (const char *p = o->help; *p; p++)
        if (*p == '\'')
            (void)fputs("'\\''", stdout);
        else if (strchr("[]:\\", *p))
            (void)printf("\\%c", *p);
        else
            (void)putchar(*p);
    (void)printf("]%s'", zsh_value(o));
}

static void zsh(void)
{
    const struct command *c;

    (void)fputs("#compdef sbx\n# zsh completion of sbx; made from its table of commands\n"
                "_sbx() {\n    local name\n    if (( CURRENT == 2 )); then\n"
                "        local -a all=(\n",
                stdout);
    for (size_t i = 0; (c = command(i)); i++) {
        size_t n = strcspn(c->name, " ");

        if (!is_first_of_group(i))
            continue;
        (void)printf("            %.*s:", (int)n, c->name);
        quoted(c->name[n] ? "persistent sandboxes" : c->summary, "");
        (void)putchar('\n');
    }
    (void)fputs("        )\n        _describe command all\n        return\n    fi\n"
                "    name=$words[2]\n",
                stdout);
    for (size_t i = 0; (c = command(i)); i++) {
        size_t n = strcspn(c->name, " ");

        if (!c->name[n] || !is_first_of_group(i))
            continue;
        (void)printf("    if [[ $name == %.*s ]]; then\n        if (( CURRENT == 3 )); then\n"
                     "            local -a verbs=(\n",
                     (int)n, c->name);
        for (size_t k = i; command(k); k++) {
            if (strncmp(command(k)->name, c->name, n + 1) != 0)
                continue;
            (void)printf("                %s:", command(k)->name + n + 1);
            quoted(command(k)->summary, "");
            (void)putchar('\n');
        }
        (void)fputs("            )\n            _describe command verbs\n            return\n"
                    "        fi\n        name=\"$words[2] $words[3]\"\n        shift words\n"
                    "        (( CURRENT-- ))\n    fi\n",
                    stdout);
    }
    (void)fputs("    shift words\n    (( CURRENT-- ))\n    case $name in\n", stdout);
    for (size_t i = 0; (c = command(i)); i++) {
        struct cmd_option options[OPTIONS_MAX + 1];

        (void)printf("    '%s')\n        _arguments -s", c->name);
        command_options(c, options);
        for (size_t k = 0; options[k].name; k++)
            zsh_option(&options[k]);
        (void)printf(" \\\n            '*:%s' ;;\n",
                     c->flags & COMMAND_SANDBOXES   ? "sandbox:($(" SANDBOXES "))"
                     : c->flags & COMMAND_PROCESSES ? "process:($(" PROCESSES "))"
                     : c->flags & COMMAND_FILES     ? "file:_files"
                                                    : "argument: ");
    }
    (void)fputs("    esac\n}\n_sbx \"$@\"\n", stdout);
}

static void fish_command(const struct command *c)
{
    size_t n = strcspn(c->name, " ");
    struct cmd_option options[OPTIONS_MAX + 1];
    char seen[2 * COMMAND_NAME_MAX + 96];

    if (c->name[n])
        (void)snprintf(seen, sizeof seen,
                       "__fish_seen_subcommand_from %.*s; and __fish_seen_subcommand_from %s",
                       (int)n, c->name, c->name + n + 1);
    else
        (void)snprintf(seen, sizeof seen, "__fish_seen_subcommand_from %s", c->name);
    command_options(c, options);
    for (size_t i = 0; options[i].name; i++) {
        (void)printf("complete -c sbx -n '%s' -l %s", seen, options[i].name);
        if (options[i].letter)
            (void)printf(" -s %c", options[i].letter);
        if (options[i].value)
            (void)fputs(strcmp(options[i].name, "sandbox") == 0 ? " -x -a '(" SANDBOXES ")'"
                                                                : " -x",
                        stdout);
        (void)fputs(" -d ", stdout);
        quoted(options[i].help, "");
        (void)putchar('\n');
    }
    if (c->flags & COMMAND_FILES)
        (void)printf("complete -c sbx -n '%s' -F\n", seen);
    if (c->flags & COMMAND_SANDBOXES)
        (void)printf("complete -c sbx -n '%s' -a '(" SANDBOXES ")'\n", seen);
    if (c->flags & COMMAND_PROCESSES)
        (void)printf("complete -c sbx -n '%s' -a '(sbx ps 2>/dev/null | tail -n +2 | string match "
                     "-r \"^\\\\d+\")'\n",
                     seen);
}

static void fish(void)
{
    const struct command *c;

    (void)fputs("# fish completion of sbx; made from its table of commands\n"
                "complete -c sbx -f\n",
                stdout);
    for (size_t i = 0; (c = command(i)); i++) {
        size_t n = strcspn(c->name, " ");

        if (is_first_of_group(i)) {
            (void)printf("complete -c sbx -n __fish_use_subcommand -a %.*s -d ", (int)n, c->name);
            quoted(c->name[n] ? "persistent sandboxes" : c->summary, "");
            (void)putchar('\n');
        }
        if (c->name[n]) {
            (void)printf("complete -c sbx -n '__fish_seen_subcommand_from %.*s' -a %s -d ", (int)n,
                         c->name, c->name + n + 1);
            quoted(c->summary, "");
            (void)putchar('\n');
        }
        fish_command(c);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*write)(void);
    } kinds[] = {
        {"man",  man },
        {"bash", bash},
        {"zsh",  zsh },
        {"fish", fish}
    };

    for (size_t i = 0; argc == 2 && i < ARRAY_LEN(kinds); i++) {
        if (strcmp(argv[1], kinds[i].name) == 0) {
            kinds[i].write();
            return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
        }
    }
    (void)fputs("usage: cli_docs man|bash|zsh|fish\n", stderr);
    return EXIT_FAILURE;
}
