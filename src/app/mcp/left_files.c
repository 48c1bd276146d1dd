/* SPDX-License-Identifier: MIT */
#include "app/mcp/left_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void left_files_init(struct left_files *all)
{
    TAILQ_INIT(&all->list);
    all->n = 0;
}

static void forget(struct left_files *all, struct left_file *f)
{
    TAILQ_REMOVE(&all->list, f, link);
    all->n--;
    free(f);
}

void left_files_done(struct left_files *all)
{
    while (!TAILQ_EMPTY(&all->list))
        forget(all, TAILQ_FIRST(&all->list));
}

static struct left_file *find(struct left_files *all, const char *sandbox, const char *path)
{
    struct left_file *f;

    TAILQ_FOREACH(f, &all->list, link)
    if (strcmp(f->sandbox, sandbox) == 0 && strcmp(f->path, path) == 0)
        return f;
    return NULL;
}

void left_files_note(struct left_files *all, uint64_t owner, const char *sandbox, const char *path,
                     uint64_t size)
{
    struct left_file *known = find(all, sandbox, path);
    size_t n = strlen(path) + 1;
    struct left_file *f = calloc(1, sizeof *f + n);

    if (!f)
        return;
    if (known)
        forget(all, known);
    else if (all->n >= LEFT_FILES_MAX)
        forget(all, TAILQ_LAST(&all->list, left_file_list));
    f->owner = owner;
    f->size = size;
    (void)snprintf(f->sandbox, sizeof f->sandbox, "%s", sandbox);
    memcpy(f->path, path, n);
    TAILQ_INSERT_HEAD(&all->list, f, link);
    all->n++;
}
