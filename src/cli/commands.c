/* SPDX-License-Identifier: MIT */
#include "cli/commands.h"

#include <string.h>

#include "cli/cmds.h"

#define OPTIONS(...)  ((const struct cmd_option[]){__VA_ARGS__, {0}})
#define EXAMPLES(...) ((const struct cmd_example[]){__VA_ARGS__, {0}})

/* clang-format off */
#define CWD     {'C', "cwd", "DIRECTORY", "where it begins; default: the sandbox's own"}
#define ENV     {'e', "env", "NAME=VALUE", "a variable; may be repeated"}
#define CELL    {'c', "code", "CODE", "run this as one cell"}, {'x', "context", "ID", "of a live interpreter; default: one of its own"}
#define NETWORK {'N', "network", "RULES", "what it may reach: none, public, or an object in JSON; default: nothing"}
#define TIMEOUT {'t', "timeout", "SECONDS", "after which it is killed"}

static const struct command rows[] = {
{"run", cmd_run, "FILE|-",
 "run a file (or - for standard input) in a fresh sandbox",
 "Runs a program in a sandbox that exists for this one run, as if it had run\n"
 "here: its output comes as it is written, its exit status is ours (124: out of\n"
 "time, 125: it could not be run), and what a handler returns is printed last.\n"
 "Ctrl-C cancels the run.",
 COMMAND_DAEMON | COMMAND_JSON | COMMAND_FILES,
 OPTIONS({'l', "language", "LANGUAGE", "python, javascript or shell; default: by the ending of FILE"},
         {'e', "event", "JSON", "object for the handler"},
         {'E', "env", "NAME=VALUE", "a variable; may be repeated"},
         {'t', "timeout", "SECONDS", "wall time"}, NETWORK),
 EXAMPLES({"sbx run hello.py", "runs it; the language is known by .py"},
          {"echo 'echo hi' | sbx run -l shell -", "runs what comes from a pipe"},
          {"sbx run -e '{\"name\": \"world\"}' handler.js", "calls handler() with an event"})},

{"exec", cmd_exec, "PROGRAM [ARGUMENT...]",
 "run a program in a persistent sandbox",
 "Runs a program in a sandbox that stays. Standard input, output and error are\n"
 "those of the program, its exit status is ours. Ctrl-C is sent to it as SIGINT,\n"
 "the third one as SIGKILL.",
 COMMAND_DAEMON | COMMAND_JSON | COMMAND_SANDBOX | COMMAND_STOPS,
 OPTIONS(CWD, ENV, TIMEOUT,
         {'d', "detach", NULL, "print its id and leave it running; see ps, logs and kill"}),
 EXAMPLES({"sbx exec ls -l", "in the sandbox 'default'"},
          {"sbx exec -s build make -j4", "in the sandbox 'build'"},
          {"tar -c src | sbx exec tar -x", "with standard input"},
          {"sbx exec -d python3 -m http.server 8000", "a server that goes on"})},

{"sh", cmd_sh, "[PROGRAM [ARGUMENT...]]",
 "a terminal in a persistent sandbox",
 "Opens a login shell, or a program, in a terminal inside the sandbox. Keys,\n"
 "the size of the window and colours work as in a terminal here. It ends with\n"
 "its program; Enter ~ . leaves it at any time.",
 COMMAND_DAEMON | COMMAND_SANDBOX | COMMAND_STOPS,
 OPTIONS(CWD, {'a', "attach", "PROCESS", "go back to the terminal of a process"},
         {'k', "keep", NULL, "when the connection ends, the program goes on"}),
 EXAMPLES({"sbx sh", "a shell in the sandbox 'default'"},
          {"sbx sh -s build htop", "a program in the sandbox 'build'"},
          {"sbx sh --attach 17", "back to process 17, as sbx ps shows it"})},

{"cp", cmd_cp, "SOURCE TARGET",
 "copy files and directories into a sandbox and out of it",
 "One side is here, the other one in a sandbox: SANDBOX:PATH, or :PATH for the\n"
 "sandbox of --sandbox. Directories are copied with all they hold. Into a\n"
 "directory that is there they are copied under their own names. '-' is standard\n"
 "input or output. What comes out of a sandbox stays below TARGET, whatever links\n"
 "it has.",
 COMMAND_DAEMON | COMMAND_JSON | COMMAND_SANDBOX | COMMAND_FILES, NULL,
 EXAMPLES({"sbx cp data.csv :", "into the directory where commands begin"},
          {"sbx cp src build:/workspace/", "a directory into the sandbox 'build'"},
          {"sbx cp build:out results", "back again"},
          {"sbx cp :notes.txt -", "prints a file"})},

{"call", cmd_call, "FILE [FUNCTION [ARGUMENT|NAME=VALUE]...]",
 "call a function of a file in a fresh sandbox",
 "Calls a function of a file and prints what it returns, as JSON. What is JSON\n"
 "itself is given as such, anything else as a text. Without a name the only\n"
 "function there is is called.",
 COMMAND_DAEMON | COMMAND_JSON | COMMAND_FILES,
 OPTIONS({'l', "language", "LANGUAGE", "default: by the ending of FILE"},
         {'t', "timeout", "SECONDS", "wall time"},
         {'g', "engine", "ENGINE", "native, or wasm"}),
 EXAMPLES({"sbx call area.py area 3 height=4", "area(3, height=4)"},
          {"sbx call words.js count '[\"a\", \"b\"]'", "with an array"})},

{"inspect", cmd_inspect, "FILE",
 "the functions of a file, which is not run",
 "Lists the functions of a file with their lines, parameters and first words of\n"
 "their documentation; with --json as tool definitions for a language model, too.",
 COMMAND_DAEMON | COMMAND_JSON | COMMAND_FILES,
 OPTIONS({'l', "language", "LANGUAGE", "default: by the ending of FILE"}),
 EXAMPLES({"sbx inspect tools.py", "what can be called"})},

{"python", cmd_python, "",
 "a live Python interpreter in a sandbox",
 "Lines become cells of a live interpreter (IPython) in a sandbox that stays;\n"
 "variables are kept. A block ends with an empty line, Ctrl-C interrupts, Ctrl-D\n"
 "ends. Without a terminal all of standard input is one cell.",
 COMMAND_DAEMON | COMMAND_JSON | COMMAND_SANDBOX,
 OPTIONS(CELL),
 EXAMPLES({"sbx python", "a conversation in the sandbox 'default'"},
          {"sbx python -c 'print(6 * 7)'", "one cell"})},

{"node", cmd_node, "",
 "a live JavaScript interpreter in a sandbox",
 "The same with JavaScript: declarations stay, await stands at the top.",
 COMMAND_DAEMON | COMMAND_JSON | COMMAND_SANDBOX,
 OPTIONS(CELL),
 EXAMPLES({"sbx node -c '[1, 2].map((x) => x * 2)'", "one cell"})},

{"port", cmd_port, "[LOCAL:]PORT",
 "a port of this host that leads to a server in a sandbox",
 "Listens on the loopback and carries requests of HTTP, WebSockets too, to a\n"
 "port that a program in the sandbox listens on, until Ctrl-C. LOCAL 0 is any\n"
 "port that is free.",
 COMMAND_DAEMON | COMMAND_JSON | COMMAND_SANDBOX, NULL,
 EXAMPLES({"sbx port 8000", "http://127.0.0.1:8000 is port 8000 inside"},
          {"sbx port 9000:8000 -s web", "another one here, of the sandbox 'web'"})},

{"ps", cmd_ps, "",
 "processes of a sandbox",
 "Lists the processes of a sandbox that run, or with --all those that have\n"
 "ended, too.",
 COMMAND_DAEMON | COMMAND_JSON | COMMAND_SANDBOX,
 OPTIONS({'a', "all", NULL, "also those that have ended"}),
 EXAMPLES({"sbx ps --all", "all of the sandbox 'default'"})},

{"logs", cmd_logs, "PROCESS",
 "what a process has written",
 "Prints what a process of a sandbox has written, by its number, id or tag; the\n"
 "newest 1 MiB are kept.",
 COMMAND_DAEMON | COMMAND_JSON | COMMAND_SANDBOX | COMMAND_PROCESSES,
 OPTIONS({'f', "follow", NULL, "and what it writes from now on, until it ends"}),
 EXAMPLES({"sbx logs -f 17", "of process 17, as sbx ps shows it"})},

{"kill", cmd_kill, "PROCESS...",
 "end processes of a sandbox, or send them a signal",
 "Kills processes and everything they started. With --signal that signal is\n"
 "sent to the process and its group instead.",
 COMMAND_DAEMON | COMMAND_JSON | COMMAND_SANDBOX | COMMAND_PROCESSES,
 OPTIONS({'S', "signal", "SIGNAL", "TERM, HUP, 15, ..."}),
 EXAMPLES({"sbx kill 17", "ends process 17"},
          {"sbx kill -S HUP server", "a signal to the process with the tag 'server'"})},

{"sandbox create", cmd_sandbox_create, "[NAME]",
 "make a persistent sandbox",
 "Makes a sandbox that stays until it is removed, has been idle for too long or\n"
 "the daemon ends, and prints its name.",
 COMMAND_DAEMON | COMMAND_JSON,
 OPTIONS(ENV,
         {'m', "memory", "MIB", "at most so much memory"},
         {'d', "disk", "MIB", "room for files"},
         {'p', "pids", "NUMBER", "processes and threads"},
         {'t', "timeout", "SECONDS", "idle time after which it is removed; 0: never"},
         {'L', "lifetime", "SECONDS", "after which its life ends; 0: never"},
         {'T', "template", "NAME", "what it is made from"},
         {'P', "packages", "SET", "a set of packages"},
         NETWORK,
         {'i', "isolation", "JAIL", "a jail that the operator allows"},
         {'M', "metadata", "NAME=VALUE", "a label; may be repeated"}),
 EXAMPLES({"sbx sandbox create build -m 1024", "with 1 GiB of memory"})},

{"sandbox ls", cmd_sandbox_ls, "",
 "the persistent sandboxes there are",
 "Lists the persistent sandboxes.",
 COMMAND_DAEMON | COMMAND_JSON,
 OPTIONS({'q', "quiet", NULL, "names only"},
         {'S', "state", "STATE", "running or paused"},
         {'M', "metadata", "NAME=VALUE", "those with this label"}),
 EXAMPLES({"sbx sandbox ls -q", "their names"})},

{"sandbox rm", cmd_sandbox_rm, "SANDBOX...",
 "remove sandboxes, with everything in them",
 "Ends everything in the sandboxes and removes them and their files.",
 COMMAND_DAEMON | COMMAND_JSON | COMMAND_SANDBOXES, NULL,
 EXAMPLES({"sbx sandbox rm build", "removes one"})},

{"sandbox pause", cmd_sandbox_pause, "SANDBOX...",
 "stop the processes of sandboxes; they keep their memory",
 "Stops all processes of the sandboxes at once. They use no processor time until\n"
 "they are resumed.",
 COMMAND_DAEMON | COMMAND_JSON | COMMAND_SANDBOXES, NULL,
 EXAMPLES({"sbx sandbox pause build", "pauses one"})},

{"sandbox resume", cmd_sandbox_resume, "SANDBOX...",
 "let the processes of paused sandboxes go on",
 "Lets the processes of paused sandboxes go on.",
 COMMAND_DAEMON | COMMAND_JSON | COMMAND_SANDBOXES, NULL,
 EXAMPLES({"sbx sandbox resume build", "resumes one"})},

{"console", cmd_console, "",
 "an address that opens the console in a browser",
 "Prints the address of the console with a ticket that opens it once, within an\n"
 "hour. A browser that has it may do what the secret allows.",
 COMMAND_DAEMON | COMMAND_JSON,
 NULL, EXAMPLES({"sbx console", "an address for a browser on this host"})},

{"mcp", cmd_mcp, "",
 "tools for a language model, on standard input and output",
 "A server of the Model Context Protocol on standard input and output. Where no\n"
 "daemon was named and none is found, it starts one of its own and ends it when\n"
 "it ends.",
 COMMAND_DAEMON,
 OPTIONS({'p', "private", NULL, "start a daemon of its own in any case"}), NULL},

{"top", cmd_top, "",
 "what the daemon and its sandboxes do, live",
 "Shows executions and sandboxes with their use of processor, memory and disk,\n"
 "until q or Ctrl-C; once where there is no terminal.",
 COMMAND_DAEMON | COMMAND_JSON,
 OPTIONS({'n', "every", "SECONDS", "between two looks; default 2"},
         {'1', "once", NULL, "one look"}),
 EXAMPLES({"sbx top", "live"})},

{"bench", cmd_bench, "",
 "how long a fresh sandbox takes, beside a bare interpreter",
 "Runs small programs in fresh sandboxes, one after the other, and starts the\n"
 "interpreters of this host that do nothing. Medians, and what 90 of 100 took at\n"
 "most.",
 COMMAND_DAEMON | COMMAND_JSON,
 OPTIONS({'n', "runs", "NUMBER", "of each; default 50"}),
 EXAMPLES({"sbx bench -n 200", "200 runs of each"})},

{"config", cmd_config, "",
 "which daemon is asked, and how it is set",
 "Says where the daemon is, whether its secret is known, which sandbox is meant,\n"
 "and every setting of the daemon.",
 COMMAND_DAEMON | COMMAND_JSON | COMMAND_SANDBOX, NULL, NULL},

{"doctor", cmd_doctor, "[OPTION OF sandbox-executor...]",
 "what this host can and cannot isolate, and how to fix it",
 "Says what this host can isolate with these options, and what is in the way of\n"
 "more. sandbox-executor --help lists the options.",
 COMMAND_PASSES, NULL, NULL},

{"selftest", cmd_selftest, "[OPTION OF sandbox-executor...]",
 "attack the sandboxes of this host and tell what holds",
 "Attacks the sandboxes of this host from inside, with a witness outside, and\n"
 "does ordinary work in them. Options that are not listed are the daemon's.",
 COMMAND_PASSES,
 OPTIONS({0, "json", NULL, "print JSON"},
         {0, "jail", "NAME", "of which jail"},
         {0, "only", "TEXT", "attacks whose name has this text"},
         {0, "slow", "N", "the machine is so many times slower than usual"},
         {0, "witness-check", NULL, "carry the attacks out without a jail: each must be seen"},
         {0, "list", NULL, "name the attacks"}), NULL},
};
/* clang-format on */

const struct command *command(size_t i)
{
    return i < ARRAY_LEN(rows) ? &rows[i] : NULL;
}

const struct command *command_find(int argc, char **argv, int *ret_words)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *name = rows[i].name, *second = strchr(name, ' ');
        size_t n = second ? (size_t)(second - name) : strlen(name);
        bool found = argc > 0 && strlen(argv[0]) == n && strncmp(argv[0], name, n) == 0;

        if (!found || (second && (argc < 2 || strcmp(argv[1], second + 1) != 0)))
            continue;
        *ret_words = second ? 2 : 1;
        return &rows[i];
    }
    return NULL;
}
