# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Ordinary work with programs that must go on under the same walls. $WORK names it.
have() {
    for program; do
        command -v "$program" >/dev/null || { echo "ABSENT $program"; exit 0; }
    done
}

case $WORK in
sh-pipeline) seq 3 | awk '{s+=$1} END {print s}' | sed 's/6/OK/' | sort ;;
sh-gcc)
    have gcc
    cat >a.c <<'C'
#include <pthread.h>
#include <stdio.h>
static void *f(void *p) { puts("OK"); return p; }
int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); return pthread_join(t, 0); }
C
    gcc -O1 -o a a.c -pthread && ./a
    ;;
sh-git)
    have git
    export HOME=$PWD GIT_CONFIG_NOSYSTEM=1
    git init -q repo && cd repo && echo x >f && git add f &&
        git -c user.email=a@b.c -c user.name=n commit -qm m &&
        git clone -q . ../copy && cat ../copy/f >/dev/null && echo OK
    ;;
sh-make) have make; printf 'all:\n\t@echo OK\n' >Makefile; make -s ;;
sh-perl) have perl; perl -e 'print "OK\n"' ;;
sh-tar) echo x >f; tar czf a.tgz f; mkdir o; tar xzf a.tgz -C o; cmp f o/f && echo OK ;;
sh-jobs) sleep 0 & wait $! && cat <(echo OK) ;;
sh-fifo) mkfifo p; echo OK >p & cat p ;;
sh-who) id -un >/dev/null && [ "$(id -u)" != 0 ] && echo OK ;;
sh-script) printf '#!/bin/sh\necho OK\n' >s; chmod +x s; ./s ;;
sh-dates) TZ=Europe/Berlin date >/dev/null && printf '%s\n' b a | LC_ALL=C sort -c 2>/dev/null || echo OK ;;
*) echo "FAILED: no such work '$WORK'" ;;
esac
