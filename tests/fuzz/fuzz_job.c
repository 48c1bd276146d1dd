/* SPDX-License-Identifier: MIT */
/*
 * What travels to the launcher's side as bytes: the head and strings of a job, as a worker takes
 * them apart, and the name of a kept workspace, as the launcher does. First byte: which of them.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "init/runner.h"
#include "launcher/kept.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void inside(const struct job *j, const char *s)
{
    assert(s >= j->strings && s + strlen(s) < j->strings + j->head.strings_n);
}

static void job(const uint8_t *data, size_t n)
{
    struct job j = {0};
    size_t at = 0;

    if (n < sizeof j.head)
        return;
    memcpy(&j.head, data, sizeof j.head);
    j.strings = malloc(n - sizeof j.head + 1);
    assert(j.strings);
    memcpy(j.strings, data + sizeof j.head, n - sizeof j.head);
    if (j.head.strings_n == n - sizeof j.head && runner_split(&j, &at) == 0) {
        inside(&j, j.cwd);
        for (uint32_t i = 0; i < j.head.argc; i++)
            inside(&j, j.argv[i]);
        for (uint32_t i = 0; i < j.head.envc; i++)
            inside(&j, j.envp[i]);
        assert(!j.argv[j.head.argc] && !j.envp[j.head.envc] && at <= j.head.strings_n);
    }
    free(j.argv);
    free(j.envp);
    free(j.strings);
}

/* There is no directory of workspaces: a name that passes is refused for that reason only. */
static void name(const uint8_t *data, size_t n)
{
    struct kept k = {.root.dir = -1, .own.dir = -1};
    size_t max = LAUNCH_WORKSPACE_MAX;
    char *text = calloc(1, max);
    struct err e = {0};
    uid_t uid;
    int tree;

    assert(text);
    memcpy(text, data, n < max ? n : max);
    if (kept_open(&k, text, max, &tree, &uid, &e) == 0)
        abort();
    if (e.kind == ERR_HOST)
        assert(memchr(text, '\0', max) && text[0] != '.' && text[0] && !strchr(text, '/'));
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    if (data[0] == 'n')
        name(data + 1, n - 1);
    else
        job(data + 1, n - 1);
    return 0;
}
