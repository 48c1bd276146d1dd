/* SPDX-License-Identifier: MIT */
#pragma once

#include "zygote/napi.h"

/* Puts every text under its name. */
void zygote_node_texts(napi_env env, napi_value object);
