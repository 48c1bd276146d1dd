/* SPDX-License-Identifier: MIT */
/* One language, "fake", whose plans are empty; code "refuse" cannot be planned. */
#pragma once

#include "core/port_lang.h"

extern const struct lang_ops fake_lang_ops;
