/* SPDX-License-Identifier: MIT */
/*
 * In front of every source of the parsing library (-include). It counts the owners of a node with
 * locked instructions, twice for every node that it moves, so that trees can be shared by threads.
 * Here a tree is made, read and given back by one thread, and plain instructions count as well.
 */
#pragma once

#define __sync_add_and_fetch(p, n) (*(p) += (n))
#define __sync_sub_and_fetch(p, n) (*(p) -= (n))
