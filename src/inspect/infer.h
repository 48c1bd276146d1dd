/* SPDX-License-Identifier: MIT */
/* What all languages do with a collected function: comments, defaults and types become text that
 * can be written. */
#pragma once

#include "inspect/doc.h"
#include "inspect/walk.h"

/* Once per function, after its parameters. `doc` is its docstring or cleaned comment. */
void infer_function(struct walk *w, struct function *f, struct slice doc);
