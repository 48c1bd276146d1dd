/* SPDX-License-Identifier: MIT */
/*
 * A path, opened beneath a tree full of links that lead up, out, around and nowhere. Whatever is
 * reached must belong to that tree, by openat2() and by walking alike.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

enum { INSIDE_MAX = 32, PATH_BYTES = 512 };

struct tree {
    int root;
    ino_t inside[INSIDE_MAX];
    dev_t dev;
    size_t n;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char *const directories[] = {"a", "a/b", "a/b/c", "-d"};
static const char *const ordinary[] = {"f", "a/f", "a/b/f", "a/b/c/f"};
/* where, and what it says */
static const char *const links[][2] = {
    {"up",      ".."              },
    {"a/up",    ".."              },
    {"a/upup",  "../.."           },
    {"root",    "/"               },
    {"etc",     "/etc"            },
    {"loop",    "loop"            },
    {"a/in",    "b/c"             },
    {"a/b/out", "../../../outside"},
    {"self",    "/proc/self/root" },
    {"nowhere", "x/y"             },
    {"a/here",  "."               },
};

static void remember(struct tree *t, const char *path)
{
    struct stat st;

    if (fstatat(t->root, path, &st, AT_SYMLINK_NOFOLLOW) < 0 || t->n == INSIDE_MAX)
        abort();
    t->inside[t->n++] = st.st_ino;
    t->dev = st.st_dev;
}

static void make_file(struct tree *t, const char *path)
{
    cleanup_close int fd = openat(t->root, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert(fd >= 0);
    remember(t, path);
}

/* Below a directory that only we see: it is made once and goes with the machine's /tmp. */
static void plant(struct tree *t)
{
    char dir[] = "/tmp/fuzz-path-XXXXXX", inner[64];

    if (!mkdtemp(dir))
        abort();
    (void)snprintf(inner, sizeof inner, "%s/outside", dir);
    assert(mkdir(inner, 0700) == 0);
    (void)snprintf(inner, sizeof inner, "%s/root", dir);
    assert(mkdir(inner, 0700) == 0);
    t->root = open(inner, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert(t->root >= 0);
    remember(t, ".");
    for (size_t i = 0; i < ARRAY_LEN(directories); i++) {
        assert(mkdirat(t->root, directories[i], 0700) == 0);
        remember(t, directories[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(ordinary); i++)
        make_file(t, ordinary[i]);
    for (size_t i = 0; i < ARRAY_LEN(links); i++) {
        assert(symlinkat(links[i][1], t->root, links[i][0]) == 0);
        remember(t, links[i][0]);
    }
}

static void check(const struct tree *t, int fd)
{
    struct stat st;
    bool found = false;

    if (fd < 0)
        return;
    assert(fstat(fd, &st) == 0 && st.st_dev == t->dev);
    for (size_t i = 0; i < t->n; i++)
        found |= t->inside[i] == st.st_ino;
    assert(found);
    (void)close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct tree t;
    char path[PATH_BYTES];

    if (t.n == 0)
        plant(&t);
    if (n >= sizeof path)
        return 0;
    memcpy(path, data, n);
    path[n] = '\0';
    check(&t, fd_open_beneath(t.root, path, O_RDONLY, 0, FD_LINKS_INSIDE));
    check(&t, fd_open_beneath(t.root, path, O_RDONLY, 0, FD_LINKS_NEVER));
    check(&t, fd_open_beneath(t.root, path, O_PATH, 0, FD_LINKS_NEVER));
    check(&t, fd_open_beneath_walk(t.root, path, O_RDONLY, 0));
    return 0;
}
