// SPDX-License-Identifier: MIT
/*
 * Runs JavaScript in QuickJS, which is WebAssembly here: calls one function of a program, in a
 * session many, or its handler. The job comes as frames over the channel and the value leaves the
 * same way.
 *
 * The program is a script whose functions are handed out by a line at its end, or a module if it
 * imports or exports. There is no node: `std` is QuickJS's, require() knows only that and the
 * program's own files.
 */
import * as std from 'std';

const MODULE = /^\s*(?:import\b(?!\s*\()|export\b)/m;
const ASCII = /^[\x01-\x7f]*$/;
const MISSING = '\u5fc5\u987b\u5b9a\u4e49 handler(event) \u51fd\u6570'; // the original executor says it so
const REHEARSALS = 20;

const { isFinite } = Number;
let modules = 0;
const channel = std.open('/dev/channel', 'r+');

// ---- bytes ----

function utf8(text) {
    const out = [];
    for (const character of text) {
        let c = character.codePointAt(0);
        if (c >= 0xd800 && c < 0xe000) c = 0xfffd;
        if (c < 0x80) out.push(c);
        else if (c < 0x800) out.push(0xc0 | c >> 6, 0x80 | c & 63);
        else if (c < 0x10000) out.push(0xe0 | c >> 12, 0x80 | c >> 6 & 63, 0x80 | c & 63);
        else out.push(0xf0 | c >> 18, 0x80 | c >> 12 & 63, 0x80 | c >> 6 & 63, 0x80 | c & 63);
    }
    return new Uint8Array(out);
}

function readExactly(file, n) {
    const data = new ArrayBuffer(n);
    for (let at = 0; at < n;) {
        const got = file.read(data, at, n - at);
        if (got === 0) throw new Error('the packet is not complete');
        at += got;
    }
    return new Uint8Array(data);
}

/* So many bytes as text. QuickJS's own means are much faster than a loop over bytes here. */
function readText(file, n) {
    const text = n > 0 ? file.readAsString(n) : '';
    if (n > 0 && text.length === 0) throw new Error('the packet is not complete');
    return text;
}

function size(text) {
    return ASCII.test(text) ? text.length : utf8(text).length;
}

// ---- the channel ----

function send(kind, text) {
    if (ASCII.test(text)) {
        channel.puts(kind + text.length.toString(16).padStart(8, '0') + text);
    } else {
        const body = utf8(text);
        channel.puts(kind + body.length.toString(16).padStart(8, '0'));
        channel.write(body.buffer, 0, body.length);
    }
    channel.flush();
}

function receiveOne() {
    const head = readText(channel, HEAD);
    return [head[0], readText(channel, parseInt(head.slice(1), 16))];
}

function receive() {
    const frames = {};
    for (;;) {
        const [kind, text] = receiveOne();
        frames[kind] = text;
        if (kind === 'G') return frames;
    }
}

// ---- arguments ----

/* QuickJS has no means for it here: the host's device does. */
function remove(path) {
    const device = std.open('/dev/remove', 'w');
    device.puts(path);
    device.close();
}

function readFile(path) {
    const file = std.open(path, 'r');
    if (!file) throw new Error(`cannot open ${path}`);
    file.seek(0, std.SEEK_END);
    const n = file.tell();
    file.seek(0, std.SEEK_SET);
    const text = readText(file, n);
    file.close();
    return text;
}

function givenArguments(event) {
    if (event.mode === 'stdin') {
        const head = readText(std.in, HEAD);
        return parse(readText(std.in, parseInt(head.slice(1), 16)));
    }
    if (event.mode === 'file') {
        const text = readFile(event.request);
        remove(event.request); // nothing of ours among the program's files
        return parse(text);
    }
    if (event.literal !== undefined) {
        const [args, kwargs] = std.evalScript(`(${event.literal})`);
        return { args, kwargs, holes: event.holes };
    }
    return event.given;
}

// ---- the program ----

function directory(path) {
    return path.slice(0, Math.max(path.lastIndexOf('/'), 1));
}

/* './a' in the program's directory; 'std' is built in. */
function requireFrom(dir, cache) {
    return function require(name) {
        if (name === 'std') return std;
        if (!/^(?:\.{0,2}\/)/.test(name)) throw new Error(`Cannot find module '${name}'`);
        const base = name.startsWith('/') ? name : `${dir}/${name}`;
        const path = [base, `${base}.js`, `${base}.json`, `${base}/index.js`].find((p) => {
            const file = std.open(p, 'r');
            if (file) file.close();
            return file;
        });
        if (!path) throw new Error(`Cannot find module '${name}'`);
        if (!(path in cache)) {
            const module = { exports: {} };
            cache[path] = module;
            const text = std.loadFile(path);
            if (path.endsWith('.json')) module.exports = parse(text);
            else compile(text, '')(module.exports, requireFrom(directory(path), cache), module, path, directory(path), () => {});
        }
        return cache[path].exports;
    };
}

function compile(code, name, isAsync) {
    const strict = /^\s*(?:'use strict'|"use strict")/.test(code) ? "'use strict';" : '';
    return std.evalScript(`(${isAsync ? 'async ' : ''}function (${PARAMETERS.join(', ')}) {${strict}__sandbox__(${
        peekAt(name)});${code}\n})`);
}

function startScript(job, program) {
    const module = { exports: {} };
    let peek = () => undefined;
    const done = program.call(module.exports, module.exports, requireFrom(job.dir, {}), module, job.file, job.dir, (fn) => {
        peek = fn;
    });
    return {
        done,
        found: (name) => {
            try {
                return peek(name);
            } catch (e) {
                return undefined; // declared, but the program returned before it
            }
        },
        exported: () => module.exports,
    };
}

/* QuickJS's loader wants a file: a hidden one beside the program's other files, gone once loaded. */
function startModule(job) {
    const file = job.place || `${job.dir}/.sandbox.${Date.now()}.${modules++}.js`;
    const out = std.open(file, 'w');
    out.puts(`${job.code}\n;globalThis.__sandbox__ = ${peekAt(job.name)};`);
    out.close();
    let space = {};
    const done = import(file).finally(() => job.place || remove(file)).then((ns) => {
        space = ns;
        job.peek = globalThis.__sandbox__ || (() => undefined);
        delete globalThis.__sandbox__;
    });
    job.shown.push(file);
    return { done, found: (name) => job.peek(name), exported: () => space };
}

function startBody(job) {
    globalThis.require = requireFrom(job.dir, {});
    const made = std.evalScript(`(async function ${ANONYMOUS}(...args) {${job.code}\n})`);
    return { done: undefined, found: () => made, exported: () => ({}) };
}

function start(job) {
    if (job.body) return startBody(job);
    if (MODULE.test(job.code)) {
        return startModule(job);
    }
    try {
        return startScript(job, compile(job.code, job.name, false));
    } catch (e) {
        if (!(e instanceof SyntaxError) || !/\bawait\b/.test(job.code)) throw e;
        return startScript(job, compile(job.code, job.name, true));
    }
}

function member(thing, names) {
    for (const name of names) {
        if (thing === null || thing === undefined) return undefined;
        thing = thing[name];
    }
    return thing;
}

function localOf(started, root) {
    if (!IDENTIFIER.test(root)) return undefined;
    return started.found(`typeof ${root} === "undefined" ? undefined : ${root}`);
}

/* What is exported under the name wins over what is only declared. */
function find(job, started) {
    const names = job.name.split('.');
    const out = started.exported();
    const choices = [
        () => member(out, names),
        () => member(localOf(started, names[0]), names.slice(1)),
        () => (out && out.default && (names.length > 1 || out.default.name !== job.name) ? member(out.default, names) : undefined),
        () => (out && typeof out.default === 'function' && (out.default.name === job.name || job.name === 'default')
            ? out.default : undefined),
        () => (typeof out === 'function' && out.name === job.name ? out : undefined),
        () => member(globalThis, names),
    ];
    let found;
    for (const choice of choices) {
        found = choice();
        if (typeof found === 'function') return found;
    }
    throw found === undefined ? new Error(`Function '${job.name}' not found`)
        : new TypeError(`'${job.name}' is not a function but ${typeof found}`);
}

// ---- failing ----

function cleanStack(job, stack) {
    const kept = stack.split('\n').filter((line) => line && !line.includes('/sandbox/call.js') && !line.includes('(native)'));
    let text = kept.join('\n');
    for (const shown of ['<evalScript>', ...job.shown]) text = text.split(shown).join(job.file);
    return text;
}

/* As JSON, and as it is written to stderr. */
function errorTexts(job, error) {
    let type = typeof error;
    let message = '';
    let stack = '';
    try {
        if (error !== null && type === 'object' && typeof error.message === 'string') {
            type = `${error.name === 'Error' || !error.name ? error.constructor.name : error.name}`;
            message = `${error.message}`;
            stack = typeof error.stack === 'string' ? `${type}: ${message}\n${cleanStack(job, error.stack)}` : '';
        } else {
            message = type === 'string' ? error : stringify(error);
            type = 'Error';
        }
    } catch (e) {
        // the type will do
    }
    return [stringify({ type, message: `${message}`.slice(0, MESSAGE_MAX), stack: stack.slice(0, STACK_MAX) }),
        stack || `${type}: ${message}`];
}

function report(job, error) {
    const [text, shownText] = errorTexts(job, error);
    send('E', text);
    return shownText;
}

function leave(code) {
    std.out.flush();
    std.err.flush();
    std.exit(code);
}

// ---- the job ----

/* The plain texts that node's console writes. */
function shown(value) {
    if (typeof value === 'string') return value;
    if (value instanceof Error) return `${value.name}: ${value.message}\n${value.stack}`;
    if (value === null || typeof value !== 'object') return String(value);
    try {
        return stringify(value, replacer);
    } catch (e) {
        return String(value);
    }
}

function say(file) {
    return (...values) => {
        file.puts(`${values.map(shown).join(' ')}\n`);
        file.flush();
    };
}

/* QuickJS drew its seed when the zygote started: all copies would draw the same numbers. A program
   that draws none does not wait for another seed. */
function seedRandom() {
    let state;
    Math.random = function random() { // xorshift128+
        if (state === undefined) {
            const file = std.open('/dev/urandom', 'r');
            state = new BigUint64Array(readExactly(file, 16).buffer);
            file.close();
        }
        let x = state[0];
        const y = state[1];
        state[0] = y;
        x ^= x << 23n & 0xffffffffffffffffn;
        state[1] = x ^ y ^ x >> 17n ^ y >> 26n;
        return Number((state[0] + state[1] & 0xffffffffffffffffn) >> 11n) / 2 ** 53;
    };
}

/* Files of a call are named as seen from the working directory. */
function whole(path, cwd) {
    return path === undefined || path.startsWith('/') ? path : `${cwd === '/' ? '' : cwd}/${path}`;
}

function settle(setting) {
    seedRandom();
    for (const pair of setting.env) {
        const at = pair.indexOf('=');
        std.setenv(pair.slice(0, at), pair.slice(at + 1));
    }
    const { console } = globalThis;
    for (const name of ['log', 'info', 'debug']) console[name] = say(std.out);
    for (const name of ['error', 'warn', 'trace']) console[name] = say(std.err);
}

/* Sends the items of a generator, each behind the token if there is one; returns what it returned. */
async function stream(value, token, most) {
    const iterator = (value[Symbol.asyncIterator] || value[Symbol.iterator]).call(value);
    let ended = false;
    try {
        for (;;) {
            const step = await iterator.next();
            if (step.done) {
                ended = true;
                return step.value;
            }
            send('I', token + checkSize(valueText(await step.value), most, 'item'));
        }
    } finally {
        if (!ended && typeof iterator.return === 'function') await iterator.return();
    }
}

async function invoke(job, event) {
    const args = bind(event);
    const started = start(job);
    await started.done;
    let value = await find(job, started).apply(undefined, args);
    if (isGenerator(value)) value = await (event.stream ? stream(value, '', event.resultMax) : collect(value));
    return value;
}

function prepare(event, cwd) {
    const file = whole(event.file, cwd);
    return { code: event.code.replace(/^\ufeff/, '').replace(/^#!/, '//'), file, dir: directory(file),
        name: event.function, body: event.body, place: whole(event.place, cwd), shown: [] };
}

async function runCall(event, cwd) {
    const job = prepare(event, cwd);
    let text = '';
    try {
        text = checkSize(valueText(await invoke(job, event)), event.resultMax);
    } catch (error) {
        report(job, error);
        leave(1);
    }
    send('R', text);
    leave(0);
}

// ---- a session ----

/* Stays: reads packets from the channel (SIP, modes P and S) and answers each of them, beginning with
   the packet's token. Nothing else goes on while it waits for one: there is no other thread. */
class Session {
    constructor(event, cwd) {
        this.event = event;
        this.cwd = cwd;
        this.token = event.token;
    }

    answer(kind, text = '') {
        std.out.flush();
        std.err.flush();
        send(kind, this.token + text);
    }

    async load() {
        this.job = prepare(this.event, this.cwd);
        try {
            this.started = start(this.job);
            await this.started.done;
        } catch (error) {
            this.answer('F', errorTexts(this.job, error)[0]);
            leave(1);
        }
        this.answer('Y');
    }

    async call(kind, packet) {
        const fn = find({ ...this.job, name: packet.functionName }, this.started);
        let value = await fn.apply(undefined, place(packet, packet.optionsAt));
        if (isGenerator(value)) value = await (kind === 'S' ? stream(value, this.token, this.event.resultMax) : collect(value));
        return checkSize(valueText(value), this.event.resultMax);
    }

    async turn(kind, packet) {
        this.token = packet.token;
        send('B', this.token);
        try {
            const text = await this.call(kind, packet);
            this.answer('R', text);
        } catch (error) {
            this.answer('E', errorTexts(this.job, error)[0]);
        }
    }

    async serve() {
        await this.load();
        for (;;) {
            const [kind, text] = receiveOne();
            if (kind === 'Z') {
                this.token = text;
                await this.load();
            } else {
                await this.turn(kind, parse(text));
            }
        }
    }
}

// ---- the handler ----

/* Absent mode: a program without a handler is a script; undefined then. */
function findHandler(job, started, mode) {
    if (mode === 'script') return undefined;
    try {
        return find(job, started);
    } catch (error) {
        if (mode !== 'handler') return undefined;
        const what = error.message.endsWith(' not found') ? 'handler(event) is not defined' : error.message;
        throw Object.assign(new Error(`${what} (${MISSING})`), { name: 'HandlerNotFound' });
    }
}

/* POST /execute: handler(event, context). */
async function runHandler(frames) {
    const told = parse(frames.X || '{}');
    const job = { code: frames.C.replace(/^\ufeff/, '').replace(/^#!/, '//'), file: '/workspace/handler.js', dir: '/workspace',
        name: 'handler', shown: [] };
    const deadline = Date.now() + (told.remaining_ms || 0);
    const context = {
        execution_id: told.execution_id, aws_request_id: told.execution_id, function_name: told.function_name,
        memory_limit_in_mb: told.memory_limit_in_mb,
        get_remaining_time_in_millis: () => Math.max(0, deadline - Date.now()),
        progress: (value) => send('P', stringify(value)),
    };
    let text = '';
    try {
        const started = start(job);
        await started.done;
        const handler = findHandler(job, started, told.mode);
        const value = handler === undefined ? null : await handler(parse(frames.V || '{}'), context);
        text = checkSize(valueText(value), told.result_max || Infinity);
    } catch (error) {
        std.err.puts(`${report(job, error)}\n`);
        leave(1);
    }
    send('R', text);
    leave(0);
}

/* What every call does, so that it is compiled before there is one. */
function rehearse() {
    const event = parse('{"mode":"inline","function":"f","literal":"[[{\\"a\\":[1,2.5,\\"é\\"]}],{}]","code":"function f(a) { return { ...a } }","file":"/tmp/f.js"}');
    const job = { code: event.code, file: event.file, dir: '/tmp', name: 'f', shown: [] };
    const started = startScript(job, compile(job.code, 'f', false));
    utf8(valueText(find(job, started)(...bind(event))));
    ASCII.test(stringify(event));
}

for (let i = 0; i < REHEARSALS; i++) rehearse();
std.gc();
const hold = std.open('/dev/hold', 'r');
if (hold.getByte() > 0) rehearse(); // here it is copied
hold.close();
const frames = receive();
const setting = parse(frames.N);
settle(setting);
const event = frames.V ? parse(frames.V) : {};
if (frames.C) runHandler(frames);
else if (event.mode === 'session') new Session(event, setting.cwd).serve();
else runCall(event, setting.cwd);
