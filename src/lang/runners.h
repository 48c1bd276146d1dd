/* SPDX-License-Identifier: MIT */
/* The languages there are: one table behind the port. */
#pragma once

#include "core/port_lang.h"

enum lang_id { LANG_PYTHON, LANG_JAVASCRIPT, LANG_SHELL, LANG_COUNT };

extern const struct lang_ops lang_ops;
