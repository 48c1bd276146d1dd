// SPDX-License-Identifier: MIT
/*
 * WASI preview 1 for programs in WebAssembly: what they may ask of the world, and nothing else.
 *
 * A program sees one tree. Some directories in it are the sandbox's own (the workspace, /tmp), at
 * the same place and with whatever the kernel allows there; others are the runtime's library, in
 * memory and read-only; /dev has a few devices that are made here. The rest of the sandbox's files
 * does not exist for it. Paths are resolved here, link by link: one that leads out of the tree
 * leads nowhere. Nobody else works in the sandbox, so nothing changes under a path that was looked
 * at.
 *
 * Every pointer comes from the program. Reads and writes go through views of its memory, which
 * refuse what is outside; the exception becomes EFAULT.
 */
'use strict';

const fs = require('fs');
const { randomFillSync } = require('crypto');

const CREAT = 1, DIRECTORY = 2, EXCL = 4, TRUNC = 8; // of path_open
const NONBLOCK = 4; // of descriptors
const RIGHT_READ = 2n, RIGHT_WRITE = 0x40n;
const FDS_MAX = 1024;
const VECTORS_MAX = 1024; // pieces of one read or write, subscriptions of one poll
const FIRST_DIRECTORY = 3;
const C = fs.constants;

module.exports = function makeWasi(files) {
const { APPEND, Channel, Device, E, Folder, HostFile, Memory, errnoOf, fail, sleep, statOfFound } = files;

class Wasi {
    /* args: of the program; env: 'NAME=value'; tree; streams: descriptors 0, 1, 2 and more;
       exit(code) does not return. */
    constructor({ args, env, tree, streams, exit }) {
        this.args = args;
        this.env = env;
        this.tree = tree;
        this.fds = streams;
        this.exit = exit;
        this.devices = {}; // those that somebody else has made
        this.memory = null;
        this.decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true });
        const names = Object.getOwnPropertyNames(Wasi.prototype)
            .filter((name) => /^(args|environ|clock|fd|path|poll|proc|random|sched|sock)_/.test(name));
        this.imports = {};
        for (const name of names) {
            this.imports[name] = (...given) => {
                try {
                    return this[name](...given) || E.SUCCESS;
                } catch (e) {
                    return errnoOf(e);
                }
            };
        }
        this.imports.proc_exit = (code) => this.exit(code);
    }

    get view() {
        return new DataView(this.memory.buffer);
    }

    bytes(at, n) {
        return new Uint8Array(this.memory.buffer, at >>> 0, n >>> 0);
    }

    text(at, n) {
        const bytes = this.bytes(at, n);
        if (bytes.includes(0)) fail(E.INVAL);
        return this.decoder.decode(bytes);
    }

    get(fd) {
        return this.fds[fd] || fail(E.BADF);
    }

    folder(fd) {
        const f = this.get(fd);
        return f instanceof Folder ? f : fail(E.NOTDIR);
    }

    add(thing) {
        let fd = FIRST_DIRECTORY;
        while (this.fds[fd]) fd++;
        if (fd >= FDS_MAX) {
            thing.close();
            fail(E.MFILE);
        }
        this.fds[fd] = thing;
        return fd;
    }

    // strings in a row

    sizes(list, countAt, bytesAt) {
        this.view.setUint32(countAt, list.length, true);
        this.view.setUint32(bytesAt, list.reduce((n, s) => n + Buffer.byteLength(s) + 1, 0), true);
    }

    strings(list, pointers, at) {
        for (const s of list) {
            const bytes = Buffer.from(`${s}\0`);
            this.view.setUint32(pointers, at, true);
            this.bytes(at, bytes.length).set(bytes);
            pointers += 4;
            at += bytes.length;
        }
    }

    args_sizes_get(a, b) {
        this.sizes(this.args, a, b);
    }

    args_get(a, b) {
        this.strings(this.args, a, b);
    }

    environ_sizes_get(a, b) {
        this.sizes(this.env, a, b);
    }

    environ_get(a, b) {
        this.strings(this.env, a, b);
    }

    // time

    now(id) {
        if (id === 0) return BigInt(Math.round((performance.timeOrigin + performance.now()) * 1000)) * 1000n;
        if (id === 1) return process.hrtime.bigint();
        if (id > 3) fail(E.INVAL);
        const used = process.cpuUsage();
        return BigInt(used.user + used.system) * 1000n;
    }

    clock_res_get(id, at) {
        if (id > 3) fail(E.INVAL);
        this.view.setBigUint64(at, 1000n, true);
    }

    clock_time_get(id, precision, at) {
        this.view.setBigUint64(at, this.now(id), true);
    }

    // descriptors

    vectors(at, n) {
        const list = [];
        if (n >>> 0 > VECTORS_MAX) fail(E.INVAL);
        for (let i = 0; i < n; i++) {
            const view = this.view;
            list.push(this.bytes(view.getUint32(at + 8 * i, true), view.getUint32(at + 8 * i + 4, true)));
        }
        return list;
    }

    transfer(list, one) {
        let total = 0;
        for (const view of list) {
            if (view.length === 0) continue;
            const n = one(view, total);
            total += n;
            if (n < view.length) break;
        }
        return total;
    }

    fd_read(fd, iovs, n, ret) {
        const f = this.get(fd);
        if (f instanceof Folder) fail(E.ISDIR);
        this.view.setUint32(ret, this.transfer(this.vectors(iovs, n), (view) => f.read(view)), true);
    }

    fd_write(fd, iovs, n, ret) {
        const f = this.get(fd);
        if (f instanceof Folder) fail(E.BADF);
        this.view.setUint32(ret, this.transfer(this.vectors(iovs, n), (view) => f.write(view)), true);
    }

    file(fd) {
        const f = this.get(fd);
        return f.size ? f : fail(f instanceof Folder ? E.ISDIR : E.SPIPE);
    }

    fd_pread(fd, iovs, n, offset, ret) {
        const f = this.file(fd), from = this.offset(offset);
        this.view.setUint32(ret, this.transfer(this.vectors(iovs, n), (view, done) => f.read(view, from + done)), true);
    }

    fd_pwrite(fd, iovs, n, offset, ret) {
        const f = this.file(fd), from = this.offset(offset);
        this.view.setUint32(ret, this.transfer(this.vectors(iovs, n), (view, done) => f.write(view, from + done)), true);
    }

    offset(big) {
        const n = Number(BigInt.asIntN(64, big));
        return n >= 0 && Number.isSafeInteger(n) ? n : fail(E.INVAL);
    }

    fd_seek(fd, offset, whence, ret) {
        const f = this.file(fd);
        const base = [0, f.at, whence === 2 ? f.size() : 0][whence];
        if (base === undefined) fail(E.INVAL);
        const to = base + Number(BigInt.asIntN(64, offset));
        if (to < 0 || !Number.isSafeInteger(to)) fail(E.INVAL);
        f.at = to;
        this.view.setBigUint64(ret, BigInt(to), true);
    }

    fd_tell(fd, ret) {
        this.view.setBigUint64(ret, BigInt(this.file(fd).at), true);
    }

    fd_close(fd) {
        this.get(fd).close();
        this.fds[fd] = undefined;
    }

    fd_renumber(from, to) {
        const f = this.get(from);
        if (to >>> 0 >= FDS_MAX || !this.fds[to]) fail(E.BADF);
        if (from === to) return;
        this.fds[to].close();
        this.fds[to] = f;
        this.fds[from] = undefined;
    }

    fd_fdstat_get(fd, at) {
        const f = this.get(fd), view = this.view;
        view.setBigUint64(at, 0n, true);
        view.setUint8(at, f.type);
        view.setUint16(at + 2, f.flags, true);
        view.setBigUint64(at + 8, f.rights, true);
        view.setBigUint64(at + 16, f.rights, true);
    }

    fd_fdstat_set_flags(fd, flags) {
        const f = this.get(fd);
        f.flags = f.flags & APPEND | flags & NONBLOCK;
    }

    fd_fdstat_set_rights(fd) {
        this.get(fd);
    }

    fd_prestat_get(fd, at) {
        const f = this.get(fd);
        if (fd >= FIRST_DIRECTORY && !(f instanceof Folder) && f instanceof Channel) {
            this.view.setUint32(at, 1, true); // not a directory: a search for them goes on
            this.view.setUint32(at + 4, 0, true);
            return;
        }
        if (!f.preopen) fail(E.BADF);
        this.view.setUint32(at, 0, true);
        this.view.setUint32(at + 4, Buffer.byteLength(f.preopen), true);
    }

    fd_prestat_dir_name(fd, at, n) {
        const name = Buffer.from(this.get(fd).preopen || fail(E.BADF));
        if (n < name.length) fail(E.NAMETOOLONG);
        this.bytes(at, name.length).set(name);
    }

    fd_advise(fd) {
        this.get(fd);
    }

    fd_sync(fd) {
        const f = this.get(fd);
        if (f instanceof HostFile) fs.fsyncSync(f.fd);
    }

    fd_datasync(fd) {
        this.fd_sync(fd);
    }

    fd_allocate(fd, offset, n) {
        const f = this.hostFile(fd), end = this.offset(offset) + this.offset(n);
        if (f.size() < end) fs.ftruncateSync(f.fd, end);
    }

    hostFile(fd) {
        const f = this.get(fd);
        return f instanceof HostFile ? f : fail(E.INVAL);
    }

    fd_filestat_set_size(fd, n) {
        fs.ftruncateSync(this.hostFile(fd).fd, this.offset(n));
    }

    fd_filestat_get(fd, at) {
        this.putStat(at, this.get(fd).stat());
    }

    fd_filestat_set_times(fd, atime, mtime, which) {
        const f = this.hostFile(fd);
        const [a, m] = this.times(fs.fstatSync(f.fd, { bigint: true }), atime, mtime, which);
        fs.futimesSync(f.fd, a, m);
    }

    times(old, atime, mtime, which) {
        const pick = (given, now, value, before) =>
            Number(given ? BigInt.asUintN(64, value) : now ? this.now(0) : before) / 1e9;
        return [pick(which & 1, which & 2, atime, old.atimeNs), pick(which & 4, which & 8, mtime, old.mtimeNs)];
    }

    putStat(at, s) {
        const view = this.view;
        const put = (where, value) => view.setBigUint64(at + where, value || 0n, true);
        put(0, s.dev);
        put(8, s.ino);
        put(16, 0n);
        view.setUint8(at + 16, s.type);
        put(24, s.nlink || 1n);
        put(32, s.size);
        put(40, s.atime || s.mtime);
        put(48, s.mtime);
        put(56, s.ctime || s.mtime);
    }

    fd_readdir(fd, at, n, cookie, ret) {
        const f = this.folder(fd), out = this.bytes(at, n);
        if (cookie === 0n || f.list === null) f.list = f.entries();
        let used = 0;
        for (let i = Number(cookie); i < f.list.length && used < n; i++) {
            const name = Buffer.from(f.list[i][0]);
            const entry = Buffer.alloc(24 + name.length);
            entry.writeBigUInt64LE(BigInt(i + 1), 0);
            entry.writeBigUInt64LE(BigInt(i + 1), 8);
            entry.writeUInt32LE(name.length, 16);
            entry.writeUInt8(f.list[i][1], 20);
            name.copy(entry, 24);
            out.set(entry.subarray(0, n - used), used); // one that does not fit is asked for again
            used = Math.min(n, used + entry.length);
        }
        this.view.setUint32(ret, used, true);
    }

    // paths

    place(fd, at, n, follow) {
        return this.tree.resolve(this.folder(fd).names, this.text(at, n), follow);
    }

    path_create_directory(fd, at, n) {
        const names = this.place(fd, at, n, false);
        if (!this.tree.isMounted(names) && this.tree.look(names)) fail(E.EXIST);
        fs.mkdirSync(this.tree.mustBeMounted(names));
    }

    path_filestat_get(fd, flags, at, n, ret) {
        const found = this.tree.look(this.place(fd, at, n, flags & 1));
        if (!found) fail(E.NOENT);
        this.putStat(ret, statOfFound(found));
    }

    path_filestat_set_times(fd, flags, at, n, atime, mtime, which) {
        const path = this.tree.mustBeMounted(this.place(fd, at, n, flags & 1));
        const old = fs.lstatSync(path, { bigint: true });
        fs.lutimesSync(path, ...this.times(old, atime, mtime, which));
    }

    path_link(fromFd, flags, from, fromN, toFd, to, toN) {
        fs.linkSync(this.tree.mustBeMounted(this.place(fromFd, from, fromN, flags & 1)),
            this.tree.mustBeMounted(this.place(toFd, to, toN, false)));
    }

    path_symlink(target, targetN, fd, at, n) {
        fs.symlinkSync(this.text(target, targetN), this.tree.mustBeMounted(this.place(fd, at, n, false)));
    }

    path_readlink(fd, at, n, out, outN, ret) {
        const names = this.place(fd, at, n, false);
        if (!this.tree.isMounted(names)) fail(this.tree.look(names) ? E.INVAL : E.NOENT);
        const target = Buffer.from(fs.readlinkSync(`/${names.join('/')}`)).subarray(0, outN);
        this.bytes(out, target.length).set(target);
        this.view.setUint32(ret, target.length, true);
    }

    path_remove_directory(fd, at, n) {
        fs.rmdirSync(this.tree.mustBeMounted(this.place(fd, at, n, false)));
    }

    path_unlink_file(fd, at, n) {
        const path = this.tree.mustBeMounted(this.place(fd, at, n, false));
        const stat = fs.lstatSync(path);
        if (stat.isDirectory()) fail(E.ISDIR);
        fs.unlinkSync(path);
    }

    path_rename(fromFd, from, fromN, toFd, to, toN) {
        fs.renameSync(this.tree.mustBeMounted(this.place(fromFd, from, fromN, false)),
            this.tree.mustBeMounted(this.place(toFd, to, toN, false)));
    }

    path_open(dir, follow, at, n, open, rights, inheriting, flags, ret) {
        const names = this.place(dir, at, n, (follow & 1) && !(open & EXCL));
        const opened = this.tree.isMounted(names)
            ? this.openHost(names, follow, open, rights, flags)
            : this.openMade(names, open, rights);
        this.view.setUint32(ret, this.add(opened), true);
    }

    openMade(names, open, rights) {
        const found = this.tree.look(names);
        if (!found) fail(open & CREAT ? E.ACCES : E.NOENT);
        if (open & CREAT && open & EXCL) fail(E.EXIST);
        if (found.kind === 'made') return new Folder(this.tree, names);
        if (open & DIRECTORY) fail(E.NOTDIR);
        if (found.kind === 'memory') {
            if (open & TRUNC || rights & RIGHT_WRITE && !(rights & RIGHT_READ)) fail(E.ROFS);
            return new Memory(found.bytes);
        }
        const stream = ['stdin', 'stdout', 'stderr'].indexOf(found.name);
        if (stream >= 0) return this.get(stream);
        return this.devices[found.name] || new Device(found.name, this.tree);
    }

    openHost(names, follow, open, rights, flags) {
        const path = `/${names.join('/')}`;
        const stat = fs.lstatSync(path, { throwIfNoEntry: false });
        if (stat && stat.isDirectory()) {
            if (open & CREAT && open & EXCL) fail(E.EXIST);
            if (open & (CREAT | TRUNC) || (rights & RIGHT_WRITE) && !(open & DIRECTORY) && !(rights & 0x4000n)) fail(E.ISDIR);
            return new Folder(this.tree, names);
        }
        if (open & DIRECTORY) fail(stat ? E.NOTDIR : E.NOENT);
        if (stat && stat.isSymbolicLink()) fail(E.LOOP);
        if (stat && !stat.isFile()) fail(E.NOTSUP); // pipes would wait for ever
        const writes = (rights & RIGHT_WRITE) !== 0n, reads = (rights & RIGHT_READ) !== 0n;
        const mode = (writes ? reads ? C.O_RDWR : C.O_WRONLY : C.O_RDONLY) | C.O_NOFOLLOW |
            (open & CREAT ? C.O_CREAT : 0) | (open & EXCL ? C.O_EXCL : 0) |
            (open & TRUNC ? C.O_TRUNC : 0) | (flags & APPEND ? C.O_APPEND : 0);
        return new HostFile(fs.openSync(path, mode, 0o644), flags & APPEND);
    }

    // the rest

    /* Descriptors are always ready: reading them waits. */
    poll_oneoff(from, to, n, ret) {
        const view = this.view, events = [];
        let first = null;
        if (n === 0 || n >>> 0 > VECTORS_MAX) fail(E.INVAL);
        for (let i = 0; i < n; i++) {
            const at = from + 48 * i, user = view.getBigUint64(at, true), type = view.getUint8(at + 8);
            if (type > 2) fail(E.INVAL);
            if (type !== 0) {
                const bad = !this.fds[view.getUint32(at + 16, true)];
                events.push([user, bad ? E.BADF : 0, type]);
                continue;
            }
            const id = view.getUint32(at + 16, true), timeout = view.getBigUint64(at + 24, true);
            const absolute = view.getUint16(at + 40, true) & 1;
            const wait = absolute ? timeout - this.now(id) : timeout;
            if (first === null || wait < first.wait) first = { user, wait };
        }
        if (events.length === 0) {
            if (first.wait > 0n) sleep(Number(first.wait) / 1e6);
            events.push([first.user, 0, 0]);
        }
        events.forEach(([user, error, type], i) => {
            this.bytes(to + 32 * i, 32).fill(0);
            this.view.setBigUint64(to + 32 * i, user, true);
            this.view.setUint16(to + 32 * i + 8, error, true);
            this.view.setUint8(to + 32 * i + 10, type);
            this.view.setBigUint64(to + 32 * i + 16, 1n, true);
        });
        this.view.setUint32(ret, events.length, true);
    }

    proc_raise() {
        fail(E.NOSYS);
    }

    random_get(at, n) {
        randomFillSync(this.bytes(at, n));
    }

    sched_yield() {}

    sock_accept() {
        fail(E.NOSYS);
    }

    sock_recv() {
        fail(E.NOSYS);
    }

    sock_send() {
        fail(E.NOSYS);
    }

    sock_shutdown() {
        fail(E.NOSYS);
    }
}

return Wasi;
};
