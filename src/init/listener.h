/* SPDX-License-Identifier: MIT */
/* Listening sockets in the network of the sandbox, for somebody outside. */
#pragma once

#include <stdint.h>

/* Opens one as INIT_LISTEN says and sends it, or why there is none. No process inside ever holds
 * it, so none can change what it does. */
void listener_hand_out(int ctl, int64_t port);
