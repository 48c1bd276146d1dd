/* SPDX-License-Identifier: MIT */
/*
 * Stands in for libFuzzer: feeds every file of the folders (or files) named on the command line to
 * the target once and says how many there were. The sanitizers it is built with are the judge.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

enum { INPUT_MAX = 8 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(int dir, const char *name)
{
    cleanup_close int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    cleanup_free uint8_t *data = NULL;
    struct stat st;
    size_t n = 0;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > INPUT_MAX)
        return -1;
    /* Exactly as large as the input, so that a read beyond its end is seen. */
    data = malloc(st.st_size > 0 ? (size_t)st.st_size : 1);
    if (!data)
        return -1;
    while (n < (size_t)st.st_size) {
        ssize_t got = read(fd, data + n, (size_t)st.st_size - n);

        if (got <= 0)
            return -1;
        n += (size_t)got;
    }
    (void)LLVMFuzzerTestOneInput(data, n);
    return 0;
}

static int replay_folder(const char *path, int *count)
{
    DIR *d = opendir(path);
    struct dirent *entry;
    int r = 0;

    if (!d)
        return -1;
    for (entry = readdir(d); r == 0 && entry; entry = readdir(d)) {
        if (entry->d_name[0] == '.')
            continue;
        r = replay_file(dirfd(d), entry->d_name);
        if (r < 0)
            (void)fprintf(stderr, "%s/%s: cannot be replayed\n", path, entry->d_name);
        *count += 1;
    }
    (void)closedir(d);
    return r;
}

int main(int argc, char **argv)
{
    int count = 0;

    for (int i = 1; i < argc; i++) {
        struct stat st;
        int r = -1;

        if (stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode))
            r = replay_folder(argv[i], &count);
        else if (replay_file(AT_FDCWD, argv[i]) == 0)
            r = 0, count++;
        if (r < 0) {
            (void)fprintf(stderr, "%s: replay failed\n", argv[i]);
            return EXIT_FAILURE;
        }
    }
    (void)printf("%d inputs\n", count);
    return count > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
