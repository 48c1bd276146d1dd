/* SPDX-License-Identifier: MIT */
#include "http/api/mcp/resources.h"

#include <string.h>

#include "app/daemon/app.h"

void mcp_write_resources(const struct app *a, struct jw *w)
{
    (void)a;
    jw_key(w, "resources");
    jw_array(w);
    jw_array_end(w);
}

void mcp_write_resource_templates(struct jw *w)
{
    jw_key(w, "resourceTemplates");
    jw_array(w);
    jw_array_end(w);
}

void mcp_resource_read(struct mcp_exchange *x)
{
    mcp_fail(x, x->modern ? RPC_INVALID_PARAMS : RPC_NO_RESOURCE, NULL, "Resource not found");
}
