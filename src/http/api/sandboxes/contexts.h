/* SPDX-License-Identifier: MIT */
/* The endpoints of contexts, for the rows of the family. */
#pragma once

#include "core/shape.h"
#include "http/server/route.h"

api_fn api_context_create, api_contexts_list, api_context_get, api_context_delete;
api_fn api_context_restart, api_context_interrupt, api_cell;
extern const struct shape context_shape, cell_shape;
