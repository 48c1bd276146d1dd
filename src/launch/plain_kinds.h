/* SPDX-License-Identifier: MIT */
/* The kinds of keepers whose sandboxes have no walls of ours. */
#pragma once

#include "launch/keeper.h"

extern const struct keeper_kind keeper_plain;
/* The same with macOS's sandbox around every program (seatbelt.h). */
extern const struct keeper_kind keeper_seatbelt;
