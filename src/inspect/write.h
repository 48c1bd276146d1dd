/* SPDX-License-Identifier: MIT */
/* The model as the answer: JSON with everything a caller, a binder or a language model wants. */
#pragma once

#include "inspect/model.h"

void model_write(const struct model *m, struct buf *out);
