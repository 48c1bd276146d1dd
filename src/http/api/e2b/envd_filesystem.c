/* SPDX-License-Identifier: MIT */
/* filesystem.Filesystem: what is in a sandbox's file system, and what happens there. */
#include "http/api/e2b/connect.h"
#include "http/api/e2b/e2b.h"

#define NOT_YET(name)                                                                              \
    void name(struct http_call *c)                                                                 \
    {                                                                                              \
        connect_refuse(c, CONNECT_UNIMPLEMENTED, "this method is not there yet");                  \
    }

NOT_YET(e2b_fs_stat)
NOT_YET(e2b_fs_make_dir)
NOT_YET(e2b_fs_move)
NOT_YET(e2b_fs_list_dir)
NOT_YET(e2b_fs_remove)
NOT_YET(e2b_fs_watch_dir)
NOT_YET(e2b_fs_create_watcher)
NOT_YET(e2b_fs_get_watcher_events)
NOT_YET(e2b_fs_remove_watcher)
