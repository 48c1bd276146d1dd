/* SPDX-License-Identifier: MIT */
#include "app/sandbox/template.h"

#include <stdio.h>
#include <string.h>

#include "app/daemon/app.h"

bool template_find(const struct app *a, const char *name, char ret_set[PERSISTENT_NAME_MAX + 1])
{
    static const char *const built_in[] = {"base", "code-interpreter-v1"};
    size_t name_n = strlen(name);

    ret_set[0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(built_in); i++)
        if (strcmp(name, built_in[i]) == 0)
            return true;
    for (const char *p = a->config.sandbox_templates; name_n > 0 && *p; p += *p == ',') {
        size_t n = strcspn(p += strspn(p, " "), ","), key_n = strcspn(p, "=, ");

        if (key_n > n)
            key_n = n;
        if (key_n == name_n && memcmp(p, name, name_n) == 0) {
            if (p[key_n] == '=')
                (void)snprintf(ret_set, PERSISTENT_NAME_MAX + 1, "%.*s", (int)(n - key_n - 1),
                               p + key_n + 1);
            return true;
        }
        p += n;
    }
    return false;
}
