/* SPDX-License-Identifier: MIT */
/* To a server on the loopback device of the network we are in. */
#pragma once

#include <stdint.h>

#include "base/cleanup.h"

/* A connected socket that does not block, by IPv4 or else by IPv6; -errno: why not by IPv4. */
must_check int loopback_connect(uint16_t port);
