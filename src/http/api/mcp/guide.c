/* SPDX-License-Identifier: MIT */
#include "http/api/mcp/guide.h"

#include "app/daemon/app.h"

enum { MIB = 20 /* bits */, S_PER_MIN = 60 };

typedef unsigned long long number;

static void write_languages(const struct app *a, struct buf *out)
{
    const struct lang_fact *f;

    (void)buf_puts(out, "## Languages\n\n");
    for (size_t i = 0; (f = a->languages.ops->fact(i)); i++)
        if (f->available)
            (void)buf_printf(out, "- %s%s%s\n", f->name, a->languages.versions[i][0] ? ": " : "",
                             a->languages.versions[i]);
    (void)buf_puts(
        out,
        "\nrun_code takes python, javascript and shell; run_command reaches every program there "
        "is. Python cells are cells of IPython: `await`, `%magic` and `!command` work. numpy, "
        "pandas and matplotlib can be imported where they are installed; `python3 -m pip list` "
        "(run_command) shows all packages. Nothing can be installed: there is no network.\n\n");
}

static void write_limits(const struct app *a, struct buf *out)
{
    const struct config *c = &a->config;

    (void)buf_printf(out,
                     "## Limits\n\n"
                     "- memory of a sandbox, its files included: %llu MiB\n"
                     "- disk: %llu MiB in /workspace, and as much elsewhere\n"
                     "- processes and threads: %llu\n"
                     "- time: 30 s for code, 120 s for commands, unless timeout_seconds says "
                     "otherwise (at most %llu)\n"
                     "- a command that runs for %llu s goes on in the background\n"
                     "- output shown: %llu characters of each stream; the whole is kept in a file "
                     "that the result names\n"
                     "- a sandbox is deleted after %llu idle minutes\n\n",
                     (number)c->sandbox_memory_mb, (number)c->sandbox_disk_mb,
                     (number)c->sandbox_pids, (number)c->timeout_max_s, (number)c->mcp_yield_s,
                     (number)c->mcp_output_chars, (number)(c->mcp_sandbox_idle_s / S_PER_MIN));
}

void mcp_write_guide(const struct app *a, struct buf *out)
{
    (void)buf_puts(out, "# The sandboxes of this server\n\n"
                        "Each sandbox is an isolated Linux system with files in /workspace, live "
                        "interpreters and processes of its own.\n\n");
    write_languages(a, out);
    write_limits(a, out);
    (void)buf_puts(
        out,
        "## Rules\n\n"
        "- Pass the handle that a result names as `sandbox` to keep files, variables and "
        "processes.\n"
        "- When a handle is unknown, the sandbox is gone: go on without it and rebuild what you "
        "need.\n"
        "- Pictures (PNG, JPEG, GIF, WebP) that a run leaves in /workspace are shown, up to 4 of "
        "at most 3 MiB each.\n"
        "- Start servers, watchers and long jobs with run_command and background: true; follow "
        "them with manage_process.\n"
        "- Data comes in with write_file and goes out with read_file, or as the resource "
        "`sbx://sandboxes/SANDBOX/files/workspace/NAME`.\n");
}
