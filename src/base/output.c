/* SPDX-License-Identifier: MIT */
#include "base/output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int output_end(const char *program, int status)
{
    const char *why;

    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    why = errno ? strerror(errno) : "not everything could be written"; /* it failed earlier */
    (void)fprintf(stderr, "%s: standard output: %s\n", program, why);
    return status != EXIT_SUCCESS ? status : EXIT_FAILURE;
}
