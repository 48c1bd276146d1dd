// SPDX-License-Identifier: MIT
/*
 * A WebAssembly module of a tenant: what it wants and offers is read from its own bytes, before the
 * engine runs any of it. A module without a function to call is a WASI command; a function is
 * called with numbers, converted as its signature says.
 *
 * This runs inside the sandbox. V8 has validated the module before it is looked at here, so what
 * is read is well-formed; what V8 refuses is reported in its words.
 */
'use strict';

const fs = require('fs');

const KINDS = { 0x7f: 'i32', 0x7e: 'i64', 0x7d: 'f32', 0x7c: 'f64' };
const SECTION = { TYPE: 1, IMPORT: 2, FUNCTION: 3, EXPORT: 7 };
const HEAD = 9;
const MESSAGE_MAX = 4096;
const INTERFACE = 'wasi_snapshot_preview1';

class Refused extends Error {
    constructor(type, message) {
        super(message);
        this.type = type;
    }
}

// ---- reading a module ----

class Reader {
    constructor(bytes, at, end) {
        this.bytes = bytes;
        this.at = at;
        this.end = end;
    }

    byte() {
        if (this.at >= this.end) throw new Refused('CompileError', 'the module ends too early');
        return this.bytes[this.at++];
    }

    number() {
        let n = 0;
        for (let shift = 0; shift < 35; shift += 7) {
            const b = this.byte();
            n += (b & 127) * 2 ** shift;
            if (b < 128) return n;
        }
        throw new Refused('CompileError', 'a number in the module is too long');
    }

    skip(n) {
        this.at += n;
    }

    text() {
        const n = this.number();
        const s = this.bytes.toString('utf8', this.at, Math.min(this.at + n, this.end));
        this.skip(n);
        return s;
    }

    list(one) {
        const n = this.number();
        return Array.from({ length: Math.min(n, this.end - this.at) }, () => one(this));
    }

    limits() {
        const flags = this.byte();
        this.number();
        if (flags & 1) this.number();
    }
}

function typeOf(r) {
    if (r.byte() !== 0x60) throw new Refused('CompileError', 'the module has a type that is no function');
    const kinds = () => r.list(() => KINDS[r.byte()] || 'other');
    return { params: kinds(), results: kinds() };
}

/* Which type an imported function has; undefined for what is no function. */
function importOf(r) {
    r.text();
    r.text();
    const kind = r.byte();
    if (kind === 0) return r.number();
    if (kind === 1) r.byte();
    if (kind === 1 || kind === 2) r.limits();
    if (kind === 3) r.skip(2);
    return undefined;
}

function exportOf(r) {
    return { name: r.text(), kind: r.byte(), index: r.number() };
}

/* { name: { params: ['i32'], results: [...] } } of exported functions. */
function describe(bytes) {
    const found = { [SECTION.TYPE]: [], [SECTION.IMPORT]: [], [SECTION.FUNCTION]: [], [SECTION.EXPORT]: [] };
    const read = { [SECTION.TYPE]: typeOf, [SECTION.IMPORT]: importOf, [SECTION.FUNCTION]: (r) => r.number(),
        [SECTION.EXPORT]: exportOf };
    const all = new Reader(bytes, 8, bytes.length);
    while (all.at < all.end) {
        const id = all.byte(), n = all.number();
        if (read[id]) found[id] = new Reader(bytes, all.at, all.at + n).list(read[id]);
        all.skip(n);
    }
    const functions = found[SECTION.IMPORT].filter((t) => t !== undefined).concat(found[SECTION.FUNCTION]);
    const out = new Map();
    for (const { name, kind, index } of found[SECTION.EXPORT]) {
        if (kind === 0 && found[SECTION.TYPE][functions[index]]) out.set(name, found[SECTION.TYPE][functions[index]]);
    }
    return out;
}

// ---- the job ----

function readExactly(channel, n) {
    const data = Buffer.alloc(n);
    for (let at = 0; at < n;) {
        const got = channel.read(data.subarray(at));
        if (got === 0) throw new Error('the sandbox was given no job');
        at += got;
    }
    return data;
}

function receive(channel) {
    const frames = {};
    do {
        const head = readExactly(channel, HEAD).toString('latin1');
        frames.last = head[0];
        frames[head[0]] = readExactly(channel, parseInt(head.slice(1), 16)).toString('utf8');
    } while (frames.last !== 'G');
    const event = JSON.parse(frames.V);
    const plain = /"args":\[([-+0-9.eE,]*)\]/.exec(frames.V);
    event.digits = plain ? plain[1].split(',') : []; // as they were written
    return event;
}

// ---- numbers ----

/* Integers of 64 bits do not fit a number of JavaScript's: they are taken as they were written. */
function numberFor(kind, value, at, digits) {
    const what = `argument ${at + 1}`;
    if (typeof value === 'boolean') value = Number(value);
    if (kind === 'i64') {
        const text = typeof value === 'string' ? value : digits || String(value);
        if (!/^-?\d{1,20}$/.test(text)) throw new Refused('TypeError', `${what} must be an integer of 64 bits (i64)`);
        const n = BigInt(text);
        if (n < -(2n ** 63n) || n >= 2n ** 64n) throw new Refused('RangeError', `${what} does not fit 64 bits`);
        return BigInt.asIntN(64, n);
    }
    if (typeof value !== 'number') throw new Refused('TypeError', `${what} must be a number (${kind})`);
    if (kind === 'i32' && (!Number.isInteger(value) || value < -(2 ** 31) || value >= 2 ** 32)) {
        throw new Refused(Number.isInteger(value) ? 'RangeError' : 'TypeError', `${what} must be an integer of 32 bits (i32)`);
    }
    return value;
}

function argumentsFor(name, signature, given, digits) {
    if (signature.params.concat(signature.results).includes('other')) {
        throw new Refused('SignatureError', `'${name}' takes or returns something that is not a number`);
    }
    if (given.length !== signature.params.length) {
        throw new Refused('TypeError', `'${name}' takes ${signature.params.length} arguments (${
            signature.params.join(', ')}), ${given.length} given`);
    }
    return signature.params.map((kind, i) => numberFor(kind, given[i], i, digits[i]));
}

function textOf(value) {
    if (typeof value === 'bigint') return value.toString();
    if (Array.isArray(value)) return `[${value.map(textOf).join(',')}]`;
    return value === undefined || !Number.isFinite(value) ? 'null' : JSON.stringify(value);
}

// ---- running ----

function compile(bytes) {
    try {
        return new WebAssembly.Module(bytes);
    } catch (e) {
        throw new Refused('CompileError', e.message.replace(/^WebAssembly\.Module\(\): /, ''));
    }
}

function link(compiled, wasi) {
    const imports = {};
    for (const { module: from, name, kind } of WebAssembly.Module.imports(compiled)) {
        if (from !== INTERFACE || kind !== 'function' || !Object.hasOwn(wasi.imports, name)) {
            throw new Refused('LinkError', `the module imports ${kind} '${from}.${name}', which is not there; ` +
                'WASI preview 1 is');
        }
        imports[from] = imports[from] || {};
        imports[from][name] = wasi.imports[name];
    }
    try {
        return new WebAssembly.Instance(compiled, imports);
    } catch (e) {
        if (e instanceof RangeError) throw new Refused('MemoryLimitError', 'the module wants more memory than there is');
        if (!(e instanceof WebAssembly.LinkError)) throw e;
        throw new Refused('LinkError', e.message.replace(/^WebAssembly\.Instance\(\): /, ''));
    }
}

function command(instance, send) {
    if (typeof instance.exports._start !== 'function') {
        throw new Refused('NameError', "the module has no '_start': it is no command. Name one of its functions");
    }
    let code = 0;
    try {
        instance.exports._start();
    } catch (e) {
        if (!e || e.exit === undefined) throw e;
        code = e.exit & 255;
    }
    if (code === 0) send('R', 'null');
    else send('E', JSON.stringify({ type: 'ExitError', message: `the program ended with exit code ${code}`, stack: '' }));
    return code;
}

function call(instance, signature, event, send) {
    const given = event.given ? event.given.args : [];
    const args = argumentsFor(event.function, signature, given, event.digits);
    if (typeof instance.exports._initialize === 'function') instance.exports._initialize();
    const value = instance.exports[event.function](...args);
    send('R', textOf(value));
    return 0;
}

/* Returns the exit code; what the module does wrong by itself is thrown on. */
function callExport({ bytes, wasi, channel, send }) {
    const event = receive(channel);
    try {
        const compiled = compile(bytes);
        const signature = event.command ? null : describe(bytes).get(event.function);
        if (!event.command && !signature) {
            throw new Refused('NameError', `Function '${event.function}' not found`);
        }
        if (event.command && event.given) wasi.args = ['program', ...event.given.args.map(String)];
        const instance = link(compiled, wasi);
        wasi.memory = instance.exports.memory || new WebAssembly.Memory({ initial: 0 });
        return event.command ? command(instance, send) : call(instance, signature, event, send);
    } catch (e) {
        if (e && e.exit !== undefined) {
            send('E', JSON.stringify({ type: 'SystemExit', message: `the program called exit(${e.exit})`, stack: '' }));
            return e.exit & 255 || 1;
        }
        if (!(e instanceof Refused)) throw e;
        fs.writeSync(2, `${e.message}\n`);
        send('E', JSON.stringify({ type: e.type, message: e.message.slice(0, MESSAGE_MAX), stack: '' }));
        return 1;
    }
}

module.exports = { callExport, describe };
