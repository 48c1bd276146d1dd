/* SPDX-License-Identifier: MIT */
#pragma once

/* Ports of a sandbox's loopback that init opens for somebody outside, in the lower 16 bits. */
enum {
    NET_PROXY_PORT = 3128,    /* where programs find an HTTP and SOCKS proxy */
    NET_PORT_EVERY = 1 << 16, /* at every address of the sandbox, not only at 127.0.0.1 */
    NET_PORT_DATAGRAM = 1 << 17,
};
#define NET_PROXY_URL "http://127.0.0.1:3128"
