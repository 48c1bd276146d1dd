// SPDX-License-Identifier: MIT
/*
 * The files that a program in WebAssembly sees, and what it holds open of them: see wasi.js.
 */
'use strict';

const fs = require('fs');
const { randomFillSync } = require('crypto');

const E = {
    SUCCESS: 0, ACCES: 2, AGAIN: 6, BADF: 8, BUSY: 10, EXIST: 20, FAULT: 21, FBIG: 22, INTR: 27, INVAL: 28, IO: 29,
    ISDIR: 31, LOOP: 32, MFILE: 33, NAMETOOLONG: 37, NOENT: 44, NOMEM: 48, NOSPC: 51, NOSYS: 52,
    NOTDIR: 54, NOTEMPTY: 55, NOTSUP: 58, PERM: 63, PIPE: 64, ROFS: 69, SPIPE: 70, TXTBSY: 74,
    XDEV: 75, NOTCAPABLE: 76, DQUOT: 19,
};
const TYPE = { UNKNOWN: 0, CHARACTER: 2, DIRECTORY: 3, FILE: 4, SOCKET: 6, LINK: 7 };
const ALL_RIGHTS = 0x1fffffffn;
const STREAM_RIGHTS = 0x8n | 0x2n | 0x40n | 0x200000n | 0x8000000n; // no seek, no tell
const APPEND = 1; // of descriptors
const LINKS_MAX = 32;
const PATH_MAX = 4096;

class Failure {
    constructor(errno) {
        this.errno = errno;
    }
}

function fail(errno) {
    throw new Failure(errno);
}

function errnoOf(e) {
    if (e instanceof Failure) return e.errno;
    if (e instanceof RangeError && !/call stack/.test(e.message)) return E.FAULT; // a pointer beyond the memory
    const name = e && typeof e.code === 'string' ? e.code.slice(1) : '';
    if (Object.hasOwn(E, name)) return E[name];
    if (e && typeof e.errno === 'number') return E.IO;
    throw e;
}

// ---- the tree ----

/* A directory of the runtime's: { name: Uint8Array or another such map }. */
class Library {
    constructor() {
        this.root = new Map();
    }

    put(path, content) {
        const names = path.split('/').filter(Boolean);
        let at = this.root;
        for (const name of names.slice(0, -1)) {
            if (!at.has(name)) at.set(name, new Map());
            at = at.get(name);
        }
        at.set(names[names.length - 1], content);
    }

    find(names) {
        let at = this.root;
        for (const name of names) {
            if (!(at instanceof Map) || !at.has(name)) return undefined;
            at = at.get(name);
        }
        return at;
    }
}

/* clock: a write of a number there sleeps for so many seconds; remove: the file of that name
   goes. Not every runtime has other means. hold: see host.js. */
const DEVICES = ['null', 'zero', 'urandom', 'random', 'stdin', 'stdout', 'stderr', 'clock', 'remove',
    'hold', 'channel'];

class Tree {
    /* library: files that are always there. */
    constructor(library) {
        this.library = library;
        this.mounts = [];
        this.base = null;
    }

    /* Directories of the sandbox that the program has: ['/workspace', '/tmp']. */
    mount(paths) {
        this.mounts = paths.map((path) => path.split('/').filter(Boolean));
    }

    /* For programs that know no working directory: what is not at the top is looked for here. The
       C library of WASI makes no difference between "/a" and "a". */
    startAt(path) {
        this.base = path.split('/').filter(Boolean);
    }

    isKnown(name) {
        return name === '' || name === '.' || name === '..' || this.below([]).includes(name);
    }

    isMounted(names) {
        return this.mounts.some((m) => m.length <= names.length && m.every((x, i) => x === names[i]));
    }

    /* What is there, without following a last link: { kind, ... } or undefined. */
    look(names) {
        if (this.isMounted(names)) {
            const path = `/${names.join('/')}`;
            const stat = fs.lstatSync(path, { throwIfNoEntry: false, bigint: true });
            return stat && { kind: 'host', path, stat };
        }
        if (names[0] === 'dev' && names.length === 2 && DEVICES.includes(names[1])) {
            return { kind: 'device', name: names[1] };
        }
        const found = this.library.find(names);
        if (found !== undefined && !(found instanceof Map)) return { kind: 'memory', bytes: found };
        if (found !== undefined || this.below(names).length > 0) return { kind: 'made', names };
        return undefined;
    }

    /* Names in a directory that is not the sandbox's own. */
    below(names) {
        const found = this.library.find(names);
        const list = new Set(found instanceof Map ? found.keys() : []);
        for (const m of this.mounts) {
            if (m.length > names.length && names.every((x, i) => x === m[i])) list.add(m[names.length]);
        }
        if (names.length === 0) list.add('dev');
        if (names.length === 1 && names[0] === 'dev') DEVICES.forEach((name) => list.add(name));
        return [...list];
    }

    /* Names of the place a path leads to. follow: a link at its end, too. */
    resolve(from, path, follow) {
        let todo = path.split('/');
        let names = path.startsWith('/') ? [] : [...from];
        let links = 0;
        if (this.base && names.length === 0 && !this.isKnown(todo[0])) names = [...this.base];
        if (path.length === 0) fail(E.NOENT);
        if (path.length > PATH_MAX) fail(E.NAMETOOLONG);
        const wantsDirectory = path.endsWith('/');
        while (todo.length > 0) {
            const name = todo.shift();
            if (name === '' || name === '.') continue;
            if (name === '..') {
                names.pop();
                continue;
            }
            names.push(name);
            if (!this.isMounted(names)) continue;
            if (todo.length === 0 && !follow && !wantsDirectory) continue;
            const here = `/${names.join('/')}`;
            const stat = fs.lstatSync(here, { throwIfNoEntry: false });
            if (stat === undefined && todo.some((x) => x !== '')) fail(E.NOENT);
            if (stat !== undefined && !stat.isDirectory() && !stat.isSymbolicLink() &&
                todo.some((x) => x !== '')) fail(E.NOTDIR);
            if (stat === undefined || !stat.isSymbolicLink()) continue;
            if (++links > LINKS_MAX) fail(E.LOOP);
            const target = fs.readlinkSync(here);
            names.pop();
            if (target.startsWith('/')) names = [];
            todo = target.split('/').concat(todo);
        }
        return names;
    }

    mustBeMounted(names) {
        if (!this.isMounted(names)) fail(this.look(names) ? E.ROFS : E.ACCES);
        return `/${names.join('/')}`;
    }
}

// ---- descriptors ----

function typeOfMode(stat) {
    if (stat.isDirectory()) return TYPE.DIRECTORY;
    if (stat.isFile()) return TYPE.FILE;
    if (stat.isSymbolicLink()) return TYPE.LINK;
    return TYPE.UNKNOWN;
}

/* Waits without spinning. */
const pause = new Int32Array(new SharedArrayBuffer(4));
function sleep(ms) {
    Atomics.wait(pause, 0, 0, ms);
}

function writeAll(fd, view) {
    for (let at = 0; at < view.length;) {
        try {
            at += fs.writeSync(fd, view, at, view.length - at);
        } catch (e) {
            if (e.code !== 'EAGAIN') throw e;
            sleep(1);
        }
    }
}

function readSome(fd, view) {
    for (;;) {
        try {
            return fs.readSync(fd, view, 0, view.length, null);
        } catch (e) {
            if (e.code === 'EOF') return 0;
            if (e.code !== 'EAGAIN') throw e;
            sleep(1);
        }
    }
}

/* Each kind reads into and writes from a view of the program's memory. */
class Stream {
    type = TYPE.SOCKET;
    rights = STREAM_RIGHTS;
    flags = 0;

    constructor(fd) {
        this.fd = fd;
    }

    read(view) {
        return readSome(this.fd, view);
    }

    write(view) {
        writeAll(this.fd, view);
        return view.length;
    }

    stat() {
        return { type: this.type };
    }

    close() {}
}

/* What the wrapper and the daemon tell each other. `head` is read first. */
class Channel extends Stream {
    type = TYPE.SOCKET;
    head = Buffer.alloc(0);

    read(view) {
        if (this.head.length === 0) return super.read(view);
        const n = this.head.copy(view, 0, 0, Math.min(view.length, this.head.length));
        this.head = this.head.subarray(n);
        return n;
    }
}

class Device extends Stream {
    type = TYPE.CHARACTER;

    constructor(name, tree) {
        super(-1);
        this.name = name;
        this.tree = tree;
    }

    read(view) {
        if (this.name === 'zero') view.fill(0);
        else if (this.name.endsWith('random')) randomFillSync(view);
        else return 0;
        return view.length;
    }

    write(view) {
        const text = Buffer.from(view).toString();
        if (this.name === 'clock' && Number(text) > 0) sleep(Number(text) * 1000);
        if (this.name === 'remove') fs.unlinkSync(this.tree.mustBeMounted(this.tree.resolve([], text, false)));
        return view.length;
    }
}

class Memory {
    type = TYPE.FILE;
    rights = ALL_RIGHTS;
    flags = 0;
    at = 0;

    constructor(bytes) {
        this.bytes = bytes;
    }

    read(view, where) {
        const from = where === undefined ? this.at : where;
        const part = this.bytes.subarray(from, from + view.length);
        view.set(part);
        if (where === undefined) this.at += part.length;
        return part.length;
    }

    write() {
        fail(E.BADF);
    }

    size() {
        return this.bytes.length;
    }

    stat() {
        return { type: TYPE.FILE, size: BigInt(this.bytes.length), mtime: 1n };
    }

    close() {}
}

class HostFile {
    type = TYPE.FILE;
    rights = ALL_RIGHTS;
    at = 0;

    constructor(fd, flags) {
        this.fd = fd;
        this.flags = flags;
    }

    read(view, where) {
        const n = fs.readSync(this.fd, view, 0, view.length, where === undefined ? this.at : where);
        if (where === undefined) this.at += n;
        return n;
    }

    write(view, where) {
        if (this.flags & APPEND) {
            writeAll(this.fd, view);
            this.at = this.size();
            return view.length;
        }
        const n = fs.writeSync(this.fd, view, 0, view.length, where === undefined ? this.at : where);
        if (where === undefined) this.at += n;
        return n;
    }

    size() {
        return fs.fstatSync(this.fd).size;
    }

    stat() {
        return statOf(fs.fstatSync(this.fd, { bigint: true }));
    }

    close() {
        fs.closeSync(this.fd);
    }
}

class Folder {
    type = TYPE.DIRECTORY;
    rights = ALL_RIGHTS;
    flags = 0;
    list = null;

    constructor(tree, names, preopen) {
        this.tree = tree;
        this.names = names;
        this.preopen = preopen;
    }

    stat() {
        const found = this.tree.look(this.names);
        return found ? statOfFound(found) : fail(E.NOENT);
    }

    /* [name, type], fixed when reading begins. */
    entries() {
        const path = `/${this.names.join('/')}`;
        const inner = this.tree.isMounted(this.names)
            ? fs.readdirSync(path, { withFileTypes: true }).map((d) => [d.name, typeOfMode(d)])
            : this.tree.below(this.names).map((name) => [name, statOfFound(this.tree.look([...this.names, name])).type]);
        return [['.', TYPE.DIRECTORY], ['..', TYPE.DIRECTORY], ...inner];
    }

    close() {}
}

function statOf(s) {
    return {
        type: typeOfMode(s), dev: s.dev, ino: s.ino, nlink: s.nlink, size: s.size,
        atime: s.atimeNs, mtime: s.mtimeNs, ctime: s.ctimeNs,
    };
}

function statOfFound(found) {
    if (found.kind === 'host') return statOf(found.stat);
    if (found.kind === 'memory') return new Memory(found.bytes).stat();
    return { type: found.kind === 'made' ? TYPE.DIRECTORY : TYPE.CHARACTER };
}

module.exports = {
    APPEND, Channel, Device, E, Folder, HostFile, Library, Memory, Stream, Tree, errnoOf, fail, sleep, statOfFound,
};
