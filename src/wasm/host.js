// SPDX-License-Identifier: MIT
/*
 * What a zygote for WebAssembly does before its first fork, and what a copy does when it wakes.
 *
 * V8 compiles the runtime of one language and runs it, together with our wrapper, until the wrapper
 * reads /dev/hold. There the process is held: every copy is an interpreter that has started, with
 * what programs need most loaded. A copy rehearses once more, so that pages it will write are its
 * own before anybody waits, and then reads its job from the channel. Modules of tenants, and programs compiled from C, are not there yet; for them the zygote has only
 * the way to run one rehearsed.
 *
 * The engine is a second wall. The process is locked into a sandbox like any other before a byte
 * of a tenant reaches it; no JavaScript of a tenant ever runs in this V8, and what its WebAssembly
 * can ask for is in wasi.js.
 */
'use strict';

{

const CHANNEL = 3;
const RUNTIMES = '/proc/self/fd/4';
const TO_TRY = 2;
const PAGES_MAX = 65536;
const SETTLE_MS = 50;
const REHEARSALS = 20;
const THREADS_MS = 20; // a program that goes on for longer gets V8's helper threads
const PROGRAM_ROOM = 1 << 18; // larger ones are read all the same, slower

const fs = require('fs');
const Module = require('module');
const v8 = require('v8');
const vm = require('vm');
const zlib = require('zlib');

delete process.env.LD_PRELOAD;
const { job, leave, pid, revive, reviveLater, serve, texts, waiting } = module.exports;
const role = process.argv[1];

function load(name) {
    const made = new Module(`sandbox:${name}`);
    made.paths = [];
    made.require = require;
    made._compile(texts[name], `sandbox:${name}`);
    return made.exports;
}

const files = load('files');
const { Channel, Device, E, Folder, Library, Stream, Tree } = files;
const Wasi = load('wasi')(files);
const { callExport, describe } = load('module');
v8.setFlagsFromString('--no-wasm-lazy-compilation');
const makeBridge = load('bridge');

v8.setFlagsFromString('--lazy'); // until here every function was compiled at once
v8.setFlagsFromString('--expose-gc');
const gc = vm.runInNewContext('gc');
v8.setFlagsFromString('--no-expose-gc');
Error.stackTraceLimit = 0; // a missing file is no reason to look at all frames

// ---- ending ----

/* As the same mistake in a native program ends. */
const TRAPS = [
    [/out of bounds|null function|signature mismatch|call stack/, 'SIGSEGV'],
    [/divide|remainder|unrepresentable/, 'SIGFPE'],
    [/unreachable/, 'SIGABRT'],
];

function crash(error) {
    const text = error instanceof Error ? `${error.name}: ${error.message}` : `${error}`;
    const [, signal] = TRAPS.find(([pattern]) => pattern.test(text)) || [null, 'SIGABRT'];
    fs.writeSync(2, `wasm: ${text}\n`);
    process.kill(pid(), signal);
    leave(134);
}

function frame(kind, text) {
    const body = Buffer.from(text);
    return Buffer.concat([Buffer.from(kind + body.length.toString(16).padStart(8, '0')), body]);
}

// ---- holding still ----

/* Garbage of the start is not copied, and V8's threads must have nothing left to do. */
function settle() {
    const still = new Int32Array(new SharedArrayBuffer(4));
    gc();
    Atomics.wait(still, 0, 0, SETTLE_MS);
    gc();
    Atomics.wait(still, 0, 0, SETTLE_MS);
}

/* Returns in a copy only. True: it is only to show that it works. */
function hold() {
    settle();
    const trying = serve() === TO_TRY;
    if (trying) revive();
    return trying;
}

/* What a copy uses of node, used once: later it is compiled. */
function exercise() {
    const nothing = fs.openSync('/dev/null', 'r+');
    const stream = new Stream(nothing);
    for (let i = 0; i < REHEARSALS; i++) {
        stream.read(Buffer.alloc(16));
        stream.write(Buffer.alloc(16));
        practise();
    }
    fs.closeSync(nothing);
    v8.setFlagsFromString(`--wasm-max-mem-pages=${PAGES_MAX}`);
}

function receive() {
    const { argv, cwd, env } = job();
    reviveLater(THREADS_MS);
    return arrange(argv, cwd, env);
}

function arrange(argv, cwd, env) {
    const [, pages, dirs, program, kind] = argv;
    v8.setFlagsFromString(`--wasm-max-mem-pages=${Math.min(Number(pages) || PAGES_MAX, PAGES_MAX)}`);
    process.chdir(cwd);
    return { cwd, dirs: dirs.split('/').filter(Boolean), env, kind, program };
}

function mountsOf(work) {
    return ['/workspace', '/tmp', ...work.dirs.map((name) => `/${name}`)];
}

/* In front of the frames a copy is told what an interpreter normally finds at its start. */
function setting(work) {
    return frame('N', JSON.stringify({ cwd: work.cwd, env: work.env }));
}

/* What is done with a job before anybody reads it; a copy does it once, to have the pages. */
function practise() {
    const work = arrange(['wasm', '1', 'a/b', '', ''], '/', ['A=b']);
    new Tree(new Library()).mount(mountsOf(work));
    return setting(work);
}

class Hold extends Device {
    constructor(channel) {
        super('hold');
        this.channel = channel;
    }

    /* A byte: there is time to rehearse. */
    read(view) {
        if (hold()) this.channel.tryOut();
        else if (waiting()) return 0;
        practise();
        view[0] = 1;
        return 1;
    }
}

/* What the wrapper reads its job from. */
class Awaited extends Channel {
    constructor(tree, trial) {
        super(CHANNEL);
        this.tree = tree;
        this.trial = trial;
        this.asked = this.trying = this.said = false;
    }

    read(view) {
        if (!this.asked && !this.trying) this.begin(receive());
        return super.read(view);
    }

    /* The copy that is tried reads a job of ours, and is right if it answers at all: nothing can
       be written where it is, and PHP loads programs from files. */
    write(view) {
        this.said = true;
        return this.trying ? view.length : super.write(view);
    }

    leave(code) {
        leave(this.trying ? Number(!this.said) : code);
    }

    tryOut() {
        this.trying = true;
        this.wasi.fds[2] = new Device('null');
        this.head = this.trial;
    }

    begin(work) {
        this.asked = true;
        this.tree.mount(mountsOf(work));
        if (role === 'javascript') this.tree.startAt(work.cwd);
        this.head = setting(work);
    }
}

// ---- runtimes ----

function untar(bytes, library) {
    for (let at = 0; at + 512 <= bytes.length;) {
        const text = (from, n) => bytes.toString('latin1', at + from, at + from + n).replace(/\0.*$/s, '');
        const size = parseInt(text(124, 12), 8) || 0;
        if (text(0, 100) === '') break;
        if (text(156, 1) === '0' || text(156, 1) === '') {
            library.put(text(0, 100), Uint8Array.from(bytes.subarray(at + 512, at + 512 + size)));
        }
        at += 512 + Math.ceil(size / 512) * 512;
    }
}

const TRIAL = {
    python: 'def f(a):\n    return a',
    ruby: 'def f(a)\n  a\nend',
    php: 'function f($a) { return $a; }',
    javascript: 'function f(a) { return a }',
};

/* module, archive with its library, files of ours, arguments */
const RUNTIME = {
    python: ['python-3.11.3.wasm', 'python-3.11.3.tar.gz',
        { '_sandbox.py': texts.python, 'call.py': texts.callPython },
        ['python', '-B', '-c', texts.wasmPython]],
    ruby: ['ruby-3.2.0.wasm', null, {}, ['ruby', '--disable=gems', '-e', texts.callRuby]],
    php: ['php-cgi-8.2.0.wasm', null, { 'call.php': `<?php ${texts.callPhp}` },
        ['php-cgi', '-q', '-n', '/sandbox/call.php']],
    javascript: ['wasmedge_quickjs.wasm', null, { 'call.js': texts.quickjs }, ['qjs', '/sandbox/call.js']],
};

function trialOf(language) {
    const event = { mode: 'inline', function: 'f', resultMax: 4096, file: '/tmp/trial', code: TRIAL[language],
        given: { args: [{ a: [1, 'x', null] }], kwargs: {} } };
    const code = language === 'python' ? texts.callPython : '';
    return Buffer.concat([frame('N', JSON.stringify({ cwd: '/', env: [] })), frame('C', code),
        frame('V', JSON.stringify(event)), frame('X', '{"result_max":4096}'), frame('G', '')]);
}

/* Names that a runtime imports beside WASI's own lead nowhere. */
function importsFor(compiled, wasi) {
    const out = {};
    for (const { module: from, name, kind } of WebAssembly.Module.imports(compiled)) {
        if (kind !== 'function') continue;
        out[from] = out[from] || {};
        out[from][name] = wasi.imports[name] || (() => E.NOSYS);
    }
    return out;
}

function startRuntime() {
    exercise();
    const [file, archive, ours, args] = RUNTIME[role];
    const library = new Library();
    if (archive) untar(zlib.gunzipSync(fs.readFileSync(`${RUNTIMES}/${archive}`)), library);
    for (const [name, text] of Object.entries(ours)) library.put(`/sandbox/${name}`, Buffer.from(text));
    const tree = new Tree(library);
    const channel = new Awaited(tree, trialOf(role));
    const wasi = new Wasi({
        args, env: [], tree, exit: (code) => channel.leave(code),
        streams: [new Stream(0), new Stream(1), new Stream(2), channel, new Folder(tree, [], '/')],
    });
    wasi.devices = { channel, hold: new Hold(channel) };
    channel.wasi = wasi;
    v8.setFlagsFromString('--no-wasm-lazy-compilation'); // or every copy would compile what it meets first
    const compiled = new WebAssembly.Module(fs.readFileSync(`${RUNTIMES}/${file}`));
    fs.closeSync(4);
    const instance = new WebAssembly.Instance(compiled, importsFor(compiled, wasi));
    wasi.memory = instance.exports.memory;
    try {
        instance.exports._start();
    } catch (error) {
        crash(error);
    }
    leave(0);
}

// ---- modules ----

/* What a module is read into, so that its pages are there before it is. */
const room = Buffer.alloc(PROGRAM_ROOM);

function readProgram(path) {
    const fd = fs.openSync(path);
    const n = fs.readSync(fd, room, 0, room.length, null);
    fs.closeSync(fd);
    return n < room.length ? room.subarray(0, n) : fs.readFileSync(path);
}

function takeProgram(path) {
    const bytes = readProgram(path);
    fs.unlinkSync(path);
    return bytes;
}

function environmentOf(work) {
    return work.env.some((s) => s.startsWith('PWD=')) ? work.env : [...work.env, `PWD=${work.cwd}`];
}

/* What is around a program that was compiled from C, as far as it is the same for all. */
function surroundings(stdout, exit) {
    const tree = new Tree(new Library());
    const wasi = new Wasi({ args: ['program'], env: [], tree, exit, streams: [new Stream(0), stdout, new Stream(2),
        new Channel(CHANNEL), new Folder(tree, [], '/')] });
    const around = { cwd: '/', tree, wasi };
    wasi.imports.sandbox_leave = (again) => {
        throw new Left(again);
    };
    wasi.imports.sandbox_cwd = (at, n) => {
        const name = Buffer.from(`${around.cwd}\0`);
        if (name.length > n) return E.NAMETOOLONG;
        wasi.bytes(at, name.length).set(name);
        return E.SUCCESS;
    };
    around.bridge = makeBridge(wasi.imports);
    return around;
}

/* A program that stays may leave a call in the middle: it cannot unwind its stack, so what was called
   is forgotten here, and it is entered anew. */
class Left {
    constructor(again) {
        this.again = again;
    }
}

function enter({ _start, __indirect_function_table: functions }) {
    for (let go = _start;;) {
        try {
            return go();
        } catch (error) {
            if (!(error instanceof Left)) throw error;
            go = functions.get(error.again);
        }
    }
}

function start(bytes, { wasi, bridge }) {
    const compiled = new WebAssembly.Module(bytes);
    const { exports } = new WebAssembly.Instance(compiled, importsFor(compiled, wasi));
    const { memory, sandbox_slots: slots, __indirect_function_table: functions } = exports;
    wasi.memory = memory;
    if (slots && functions) {
        const first = functions.grow(bridge.length);
        bridge.forEach((f, i) => functions.set(first + i, f));
        wasi.view.setUint32(slots.value, first, true);
    }
    return exports;
}

/* A program that was compiled from C: our wrapper is part of it and has the channel. */
function runProgram(work, around) {
    around.tree.mount(mountsOf(work));
    around.wasi.env = environmentOf(work);
    around.cwd = work.cwd;
    v8.setFlagsFromString('--wasm-lazy-validation'); // of each function before its first call, of most never
    try {
        enter(start(takeProgram(work.program), around));
    } catch (error) {
        crash(error);
    }
    leave(0);
}

/* A module of the tenant's own: a command, or one function of it. */
function runForeign(work, channel) {
    const tree = new Tree(new Library());
    tree.mount(mountsOf(work));
    tree.startAt(work.cwd);
    const exit = (code) => {
        throw { exit: code }; // eslint-disable-line no-throw-literal -- nothing of the module's may catch it
    };
    const wasi = new Wasi({ args: ['program'], env: environmentOf(work), tree, exit,
        streams: [new Stream(0), new Stream(1), new Stream(2), new Folder(tree, [], '/')] });
    const bytes = takeProgram(work.program);
    const send = (kind, text) => channel.write(frame(kind, text));
    try {
        leave(callExport({ bytes, wasi, channel, send, crash }));
    } catch (error) {
        crash(error);
    }
}

/* _start() fills four kilobytes of its memory, asks for the size of its environment and writes
   nothing to standard output; it returns what that returned. */
const SMALL = Buffer.from(
    'AGFzbQEAAAABEwNgAn9/AX9gBH9/f38Bf2AAAX8CTgIWd2FzaV9zbmFwc2hvdF9wcmV2aWV3MRFlbnZpcm9uX3NpemVzX2dldAAA' +
    'Fndhc2lfc25hcHNob3RfcHJldmlldzEIZmRfd3JpdGUAAQMCAQIEBAFwAAEFAwEAAQYHAX8BQZAwCwc/BAZtZW1vcnkCAAZfc3Rh' +
    'cnQAAhlfX2luZGlyZWN0X2Z1bmN0aW9uX3RhYmxlAQANc2FuZGJveF9zbG90cwMAClUBUwECf0EAIQADQCAAQYCIgIAAaiIBIAEt' +
    'AAAgAGo6AAAgAEEBaiIAQYAgRw0AC0GAqICAAEGEqICAABCAgICAABpBAUEAQQBBgKiAgAAQgYCAgAAL', 'base64');

/* What every module does, so that it is compiled before there is one. */
function rehearse() {
    const around = surroundings(new Device('null'), leave);
    const work = arrange(['wasm', '', 'a/b', '', ''], '/', ['A=b']);
    around.tree.mount(mountsOf(work));
    around.wasi.env = environmentOf(work);
    const { _start } = start(SMALL, around);
    if (describe(SMALL).size !== 1 || _start() !== 0) leave(1);
    askAll(around.wasi.imports, around.wasi.view, around.wasi.bytes(0, 8));
    readProgram('/proc/self/comm');
    room.fill(0, 0, PROGRAM_ROOM / 4);
}

/* What the C library asks at a program's start and wrappers do with their channel. */
function askAll(ask, view, text) {
    const at = 64, pieces = 128;
    text.set(Buffer.from('tmp/none'));
    view.setUint32(pieces, at, true);
    view.setUint32(pieces + 4, 16, true);
    ask.args_sizes_get(at, at + 4);
    ask.args_get(256, 512);
    ask.environ_get(256, 512);
    for (let fd = 0; ask.fd_prestat_get(fd, at) === 0 || fd < 4; fd++) ask.fd_prestat_dir_name(fd, at, 1);
    ask.fd_fdstat_get(1, at);
    ask.fd_filestat_get(4, 256);
    ask.fd_seek(1, 0n, 1, at);
    ask.fd_read(1, pieces, 1, at);
    ask.fd_write(1, pieces, 1, at);
    ask.path_filestat_get(4, 1, 0, 8, 256);
    ask.path_open(4, 1, 0, 8, 0, 2n, 2n, 0, at);
    ask.clock_time_get(1, 1n, at);
    fs.readFileSync('/proc/self/comm');
}

function startModules() {
    exercise();
    v8.setFlagsFromString('--wasm-lazy-compilation'); // validated at once, compiled when called
    for (let i = 0; i < REHEARSALS; i++) rehearse();
    const around = surroundings(new Stream(1), leave);
    const trying = hold();
    if (trying || !waiting()) rehearse();
    if (trying) leave(0);
    const work = receive();
    if (work.kind === 'foreign') runForeign(work, new Channel(CHANNEL));
    else runProgram(work, around);
}

if (role === 'module') startModules();
else startRuntime();

}
