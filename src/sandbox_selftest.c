/* SPDX-License-Identifier: MIT */
/*
 * sandbox-selftest: attacks the sandboxes that this host makes with the daemon's configuration, and
 * tells what held (selftest/selftest.h). A program of its own, started by `sbx selftest` and by
 * `sandbox-executor --selftest`: it opens no port, and nothing of it is linked into the daemon.
 */
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/output.h"
#include "base/privilege.h"
#include "lang/runners.h"
#include "selftest/selftest.h"

#ifndef SBX_VERSION
#define SBX_VERSION "0"
#endif

static int attack(const struct config *c)
{
    const struct log log = {.fd = STDERR_FILENO, .level = LOG_ERROR};
    struct event_base *base = event_base_new();
    int status;

    if (!base) {
        (void)fprintf(stderr, "sandbox-selftest: no event loop\n");
        return EXIT_FAILURE;
    }
    privilege_all_files();
    status = selftest_main(
        &(struct selftest){.config = c, .log = &log, .langs = &lang_ops, .base = base});
    event_base_free(base);
    return status;
}

static int run(const struct config *c)
{
    if (c->mode == CONFIG_VERSION) {
        (void)printf("sandbox-selftest %s\n", SBX_VERSION);
        return EXIT_SUCCESS;
    }
    if (c->mode == CONFIG_RUN || c->mode == CONFIG_SELFTEST)
        return attack(c);
    return selftest_usage(c->mode == CONFIG_HELP ? stdout : stderr);
}

int main(int argc, char **argv, char **envp)
{
    struct config *c = calloc(1, sizeof *c);
    struct err e = {0};
    int status = EXIT_FAILURE;

    if (c && config_load(c, argc, argv, envp, &e) == 0) {
        config_hide_arguments(argc, argv);
        config_hide_variables(envp);
        status = run(c);
    } else {
        (void)fprintf(stderr, "sandbox-selftest: %s\n", c ? e.text : "no memory");
    }
    free(c);
    return output_end("sandbox-selftest", status);
}
