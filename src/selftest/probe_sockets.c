/* SPDX-License-Identifier: MIT */
/* Socket families and protocols: each has been the door of some kernel exploit. */
#include <errno.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include "selftest/probe.h"

enum { HIGH = 32 }; /* bits the kernel does not look at and a filter might */

static const struct socket_row {
    char id[20];
    long nr, family, type, protocol;
    int beyond; /* an errno that only comes from behind the wall */
} rows[] = {
    {"packet-raw",        SYS_socket, AF_PACKET,               SOCK_RAW,             0x300                                                         },
    {"packet-datagram",   SYS_socket, AF_PACKET,               SOCK_DGRAM,           0x300                                                         },
    {"vsock",             SYS_socket, 40,                      SOCK_STREAM,          0                                                             },
    {"alg",               SYS_socket, 38,                      SOCK_SEQPACKET,       0                                                             },
    {"bluetooth",         SYS_socket, 31,                      SOCK_RAW,             1                                                             },
    {"can",               SYS_socket, 29,                      SOCK_RAW,             1                                                             },
    {"pf-key",            SYS_socket, 15,                      SOCK_RAW,             2                                                             },
    {"xdp",               SYS_socket, 44,                      SOCK_RAW,             0                                                             },
    {"tipc",              SYS_socket, 30,                      SOCK_SEQPACKET,       0                                                             },
    {"smc",               SYS_socket, 43,                      SOCK_STREAM,          0                                                             },
    {"rds",               SYS_socket, 21,                      SOCK_SEQPACKET,       0                                                             },
    {"netfilter",         SYS_socket, AF_NETLINK,              SOCK_RAW,             NETLINK_NETFILTER                                             },
    {"netlink-audit",     SYS_socket, AF_NETLINK,              SOCK_RAW,             NETLINK_AUDIT                                                 },
    {"netlink-uevent",    SYS_socket, AF_NETLINK,              SOCK_RAW,             NETLINK_KOBJECT_UEVENT                                        },
    {"netlink-generic",   SYS_socket, AF_NETLINK,              SOCK_RAW,             NETLINK_GENERIC                                               },
    {"netlink-xfrm",      SYS_socket, AF_NETLINK,              SOCK_RAW,             NETLINK_XFRM                                                  },
    {"netlink-crypto",    SYS_socket, AF_NETLINK,              SOCK_RAW,             NETLINK_CRYPTO                                                },
    {"netlink-diag",      SYS_socket, AF_NETLINK,              SOCK_RAW,             NETLINK_SOCK_DIAG                                             },
    {"packet-high-bits",  SYS_socket, AF_PACKET | 1l << HIGH,  SOCK_RAW,             0x300                                                         },
    {"netlink-high-bits", SYS_socket, AF_NETLINK | 1l << HIGH, SOCK_RAW,             NETLINK_NETFILTER                                             },
    {"inet-packet",       SYS_socket, AF_INET,                 10 /* SOCK_PACKET */, 0x300,                                                          EPERM},
    {"inet-dccp-type",                   SYS_socket,              AF_INET,         6 /* SOCK_DCCP */,         0,                                              ESOCKTNOSUPPORT},
    {"inet6-seqpacket",    SYS_socket,              AF_INET6,                     SOCK_SEQPACKET,                            0,                        ESOCKTNOSUPPORT},
    {"raw-icmp",                  SYS_socket,             AF_INET,                                    SOCK_RAW,                    1                               },
    {"raw-ip",           SYS_socket,                    AF_INET,        SOCK_RAW,  255            },
    {"raw-ipv6",           SYS_socket,                  AF_INET6,                                  SOCK_RAW,                                            58                                                                         },
    {"sctp",           SYS_socket,                   AF_INET,         SOCK_STREAM,132},
    {"dccp",        SYS_socket,               AF_INET,                              6,                                                                 33                                                                                                                                                                },
    {"l2tp",                  SYS_socket,                          AF_INET,                    SOCK_DGRAM,115},
    {"mptcp",         SYS_socket,                AF_INET,                    SOCK_STREAM,                                                                262                                                                                                                                                                                                                                                                      },
    {"socketpair-tipc",        SYS_socketpair,               30,                   SOCK_SEQPACKET,0},
    {"socketpair-netlink",     SYS_socketpair,              AF_NETLINK,                   SOCK_RAW,                                                             NETLINK_NETFILTER                                                                                                                                                                                                                                                                                                                                                                              },
};

/* What a kernel without the family says. */
static int is_without(long r)
{
    return r == -EAFNOSUPPORT || r == -EPROTONOSUPPORT || r == -ESOCKTNOSUPPORT || is_refusal(r);
}

static void try_socket(const struct probe *p, const struct socket_row *s)
{
    int pair[2];
    char text[24];
    long r;

    if (p->fake)
        fake_success(s->nr);
    r = TRY(p, s->nr, s->family, s->type, s->protocol, ADDRESS(pair));
    if (r > 0 && !p->fake)
        was_breached_holding(p, "a socket", "fd", r);
    if (!is_without(r) ||
        (s->beyond && r == -s->beyond)) /* EOPNOTSUPP and the like come from the family itself */
        was_breached(p, say_result(r, text));
    was_held(p, r);
}

/* Routing netlink may be read; here it is asked to change something. */
struct request {
    struct nlmsghdr head;
    union {
        struct ifinfomsg link;
        struct ifaddrmsg address;
        struct tcmsg qdisc;
    };
    struct rtattr at;
    char value[16];
};

struct answer {
    struct nlmsghdr head;
    struct nlmsgerr error;
    char room[512];
};

/* Both live as long as it may be asked again. */
static long exchange(const struct probe *p, struct request *q, struct answer *answer)
{
    static const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    long fd = TRY(p, SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), n;

    if (fd < 0)
        return fd;
    n = TRY(p, SYS_sendto, fd, ADDRESS(q), q->head.nlmsg_len, 0, ADDRESS(&kernel), sizeof kernel);
    if (n < 0)
        return n;
    n = TRY_NEXT(p, SYS_recvfrom, fd, ADDRESS(answer), sizeof *answer, 0, 0, 0);
    return n < 0 ? n : answer->head.nlmsg_type == NLMSG_ERROR ? answer->error.error : 0;
}

static int fill_request(const char *id, struct request *q)
{
    *q = (struct request){.head = {.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK}};
    q->head.nlmsg_len = NLMSG_LENGTH(sizeof q->link);
    if (text_same(id, "link-change")) {
        q->head.nlmsg_type = RTM_NEWLINK;
        q->link = (struct ifinfomsg){
            .ifi_index = 1, .ifi_flags = IFF_ALLMULTI, .ifi_change = IFF_ALLMULTI};
    } else if (text_same(id, "address-add")) {
        q->head.nlmsg_type = RTM_NEWADDR;
        q->head.nlmsg_flags |= NLM_F_CREATE;
        q->address = (struct ifaddrmsg){AF_INET, 8, 0, 0, 1};
        q->head.nlmsg_len = NLMSG_LENGTH(sizeof q->address) + RTA_LENGTH(4);
        /* attributes follow the shorter message at once */
        ((struct rtattr *)(&q->address + 1))->rta_len = RTA_LENGTH(4);
        ((struct rtattr *)(&q->address + 1))->rta_type = IFA_LOCAL;
        ((char *)(&q->address + 1))[4] = 10;
    } else if (text_same(id, "qdisc-add")) {
        q->head.nlmsg_type = RTM_NEWQDISC;
        q->head.nlmsg_flags |= NLM_F_CREATE;
        q->qdisc = (struct tcmsg){.tcm_ifindex = 1, .tcm_parent = 0xffffffff};
        q->head.nlmsg_len = NLMSG_LENGTH(sizeof q->qdisc);
    } else {
        return 0;
    }
    return 1;
}

void probe_sockets(const struct probe *p)
{
    struct request q;
    struct answer answer;
    char text[24];
    long r;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (text_same(rows[i].id, p->id))
            try_socket(p, &rows[i]);
    if (!fill_request(p->id, &q))
        return;
    r = exchange(p, &q, &answer);
    if (!is_refusal(r))
        was_breached(p, say_result(r, text));
    was_held(p, r);
}
