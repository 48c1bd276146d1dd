// SPDX-License-Identifier: MIT
/*
 * Runs one JavaScript program inside a sandbox and, if it has a handler, calls it.
 *
 * The job comes as frames over one descriptor and the returned value leaves the same way, so stdout
 * belongs to the program alone. Two ways lead here: `node -e <this text>`, and a process that was
 * warmed before: it loads this text as a module, forks, and calls run().
 *
 * The program may replace every function it can reach. What is needed after it has started is
 * therefore taken into constants first; after that no iterator, no array or string method and no
 * property of a global is relied on, except where an error is made readable, with a substitute.
 *
 * Forms of a program, tried in this order:
 *   a CommonJS module        compiled as the body of a function, as node itself does
 *   the same with `await`    compiled as the body of an async function
 *   an ECMAScript module     must be a file for node's loader: a hidden one beside the program's
 *                            other files, gone before its first statement runs
 */
'use strict';

{ // not indented: a block, because the program could see what `node -e` declares at the top level

const fs = require('fs');
const Module = require('module');
const { pathToFileURL } = require('url');
const util = require('util');
const vm = require('vm');

const HEAD = 9;
const DEPTH_MAX = 512;
const PROGRESS_MAX = 64 * 1024;
const MESSAGE_MAX = 16 * 1024;
const STACK_MAX = 64 * 1024;
const READ_SIZE = 32 * 1024;
const CAUSES_MAX = 8;
const MISSING = '\u5fc5\u987b\u5b9a\u4e49 handler(event) \u51fd\u6570'; // the original executor says it so
const GRACE_MS = 1000;
const CHECK_MS = 2;
const ME = 'sandbox:wrapper'; // this script's name in stacks, from the last line
const HEX = '0123456789abcdef';
const PARAMETERS = ['exports', 'require', 'module', '__filename', '__dirname', '__sandbox__'];
const PEEK = '()=>typeof handler==="undefined"?void 0:handler';
const ONLY_ESM = /use import statement|token 'export'|import\.meta|already been declared/;
const TOOLS = Symbol.for('sandbox.tools');

const LOADER = vm.constants && vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER;

const { Error, RangeError, TypeError, process } = globalThis;
const { apply } = Reflect;
const { parse, stringify } = JSON;
const { isFinite } = Number;
const { closeSync, fstatSync, openSync, readSync, unlinkSync, writeSync } = fs;
const { defineProperty, getOwnPropertyDescriptor } = Object;
const { byteLength } = Buffer;
const { inspect } = util;
const { isNativeError } = util.types;
const { exit, getActiveResourcesInfo, reallyExit, nextTick, listenerCount } = process;
const later = setTimeout;
const soon = setImmediate;
const { split, slice, startsWith, includes } = String.prototype;
const { join } = Array.prototype;
const encoder = new TextEncoder();
const { encode } = encoder;
const { floor } = Math;
const now = performance.now.bind(performance);
const hasCapture = process.hasUncaughtExceptionCaptureCallback;

// ---- the channel ----

function pause() {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
}

function readSome(fd, size) {
    const chunk = Buffer.allocUnsafe(size);
    for (;;) {
        try {
            return chunk.subarray(0, readSync(fd, chunk, 0, size, null));
        } catch (e) {
            if (e.code !== 'EAGAIN') throw e;
            pause();
        }
    }
}

/* All frames up to G, by kind; null when the daemon went away before it had said everything. */
function receive(fd) {
    const frames = {};
    let data = Buffer.alloc(0);
    for (;;) {
        let need = HEAD;
        if (data.length >= HEAD) {
            need += parseInt(data.toString('latin1', 1, HEAD), 16);
            if (data.length >= need) {
                const kind = String.fromCharCode(data[0]);
                frames[kind] = data.toString('utf8', HEAD, need);
                if (kind === 'G') return frames;
                data = data.subarray(need);
                continue;
            }
        }
        const chunks = [data];
        for (let have = data.length; have < need;) {
            const chunk = readSome(fd, Math.max(READ_SIZE, need - have));
            if (chunk.length === 0) return null;
            chunks.push(chunk);
            have += chunk.length;
        }
        data = Buffer.concat(chunks);
    }
}

function writeAll(fd, text) {
    const data = apply(encode, encoder, [text]);
    for (let at = 0; at < data.length;) {
        try {
            at += writeSync(fd, data, at, data.length - at);
        } catch (e) {
            if (e.code !== 'EAGAIN') throw e;
            pause();
        }
    }
}

class Channel {
    constructor(fd) {
        const { dev, ino } = fstatSync(fd);
        this.fd = fd;
        this.dev = dev;
        this.ino = ino;
        this.ended = false;
    }

    send(kind, text) {
        if (this.ended) return;
        this.check();
        let head = '';
        for (let n = byteLength(text), i = 0; i < HEAD - 1; i++, n = floor(n / 16)) {
            head = HEX[n % 16] + head;
        }
        writeAll(this.fd, kind + head + text);
    }

    /* A program that closed our descriptor may have a file of its own under that number now. */
    check() {
        let at = null;
        try {
            at = fstatSync(this.fd);
        } catch {
            // closed
        }
        if (at === null || at.dev !== this.dev || at.ino !== this.ino) {
            this.ended = true;
            throw new Error('the program closed the descriptor its result is returned through');
        }
    }
}

// ---- values ----

function checkDepth(text) {
    if (text.length <= 2 * DEPTH_MAX) return;
    const data = apply(encode, encoder, [text]);
    for (let i = 0, depth = 0, quoted = false; i < data.length; i++) {
        const c = data[i];
        if (quoted) {
            if (c === 0x5c) i++;
            else if (c === 0x22) quoted = false;
        } else if (c === 0x22) {
            quoted = true;
        } else if (c === 0x5b || c === 0x7b) {
            if (++depth > DEPTH_MAX) {
                throw new RangeError(`returned value nested deeper than ${DEPTH_MAX} levels`);
            }
        } else if (c === 0x5d || c === 0x7d) {
            depth--;
        }
    }
}

// JSON.stringify() makes null of a number that JSON lacks, which would be another value.
function refuseNoNumber(key, value) {
    if (typeof value === 'number' && !isFinite(value)) {
        throw new RangeError(`JSON has neither NaN nor infinite numbers, but there is one${
            key === '' ? '' : ` at '${key}'`}; return null or a string instead`);
    }
    return value;
}

function valueText(value) {
    const text = stringify(value);
    if (text === undefined) return 'null';
    if (apply(includes, text, ['null'])) stringify(value, refuseNoNumber);
    checkDepth(text);
    return text;
}

function makeContext(channel, told, deadline) {
    const remaining = () => {
        const left = floor(deadline - now());
        return left > 0 ? left : 0;
    };
    const progress = (value) => {
        const text = stringify(value);
        if (text === undefined || text[0] !== '{') {
            throw new TypeError('progress() takes an object');
        }
        if (byteLength(text) > PROGRESS_MAX) {
            throw new RangeError(`progress of more than ${PROGRESS_MAX} bytes`);
        }
        channel.send('P', text);
    };
    const names = {
        execution_id: told.execution_id,
        function_name: told.function_name || 'handler',
        memory_limit_in_mb: told.memory_limit_in_mb,
        get_remaining_time_in_millis: remaining,
        progress,
    };
    names.aws_request_id = names.awsRequestId = names.executionId = names.execution_id;
    names.functionName = names.function_name;
    names.memoryLimitInMB = names.memory_limit_in_mb;
    names.getRemainingTimeInMillis = remaining;
    // call_javascript.js is a handler like any other; it makes errors readable and ends as we do.
    const end = () => {
        channel.ended = true;
        settle(now() + GRACE_MS);
    };
    defineProperty(names, TOOLS, { value: { locate, relocate, end } });
    return names;
}

// ---- the program ----

/* What `node -e` put into the global scope does not belong there for a program in a file. */
function tidyGlobals() {
    for (const name of Module.builtinModules) {
        const d = getOwnPropertyDescriptor(globalThis, name);
        if (d && d.get && d.get.name === 'get' && name !== 'process') delete globalThis[name];
    }
    for (const name of ['exports', 'require', 'module', '__filename', '__dirname']) {
        delete globalThis[name];
    }
    delete process._eval;
}

/* A pipe that is full makes node keep output in memory, which process.exit() throws away. */
function makeBlocking(name) {
    const d = getOwnPropertyDescriptor(process, name);
    let known = null;
    if (!d || !d.get || !d.configurable) return;
    defineProperty(process, name, {
        ...d,
        get() {
            if (known === null) {
                known = apply(d.get, process, []);
                if (known._handle && known._handle.setBlocking) known._handle.setBlocking(true);
            }
            return known;
        },
    });
}

/* import() in the text of a program leads to node's own loader by a way that node calls experimental,
   once, on stderr. The program did not choose it and would not hear of it if it were a file. */
function hushLoader() {
    const warn = process.emitWarning;
    const quiet = function emitWarning(...args) {
        if (apply(includes, `${args[0]}`, ['USE_MAIN_CONTEXT_DEFAULT_LOADER'])) {
            if (process.emitWarning === quiet) process.emitWarning = warn;
            return;
        }
        apply(warn, process, args);
    };
    if (LOADER !== undefined) process.emitWarning = quiet;
}

function adopt(env) {
    for (const name of Object.keys(process.env)) delete process.env[name];
    for (const pair of env) {
        const at = pair.indexOf('=');
        process.env[pair.slice(0, at)] = pair.slice(at + 1);
    }
}

/* Does the program begin with the directive? Then our addition must not push it from its place. */
function isStrict(code) {
    const blank = /\s+|\/\/[^\n]*|\/\*[^]*?\*\//y;
    let at = 0;
    while (blank.test(code)) at = blank.lastIndex;
    return /^(?:'use strict'|"use strict")/.test(code.slice(at, at + 12));
}

/* A syntax error as it would be without our additions to the text; no frame is the program's. */
function relocate(job, error, prefix) {
    const lines = `${error.stack}`.replace(/\n    at [^]*$/, '').split('\n');
    const at = /:(\d+)$/.exec(lines[0]);
    if (at && lines.length > 2) {
        lines[1] = job.code.split('\n')[at[1] - 1];
        if (at[1] === '1') lines[2] = lines[2].slice(prefix);
    }
    error.stack = lines.join('\n');
    return error;
}

function compile(job, code, isAsync) {
    const register = `__sandbox__(${PEEK});`;
    let prefix = isStrict(code) ? `'use strict';${register}` : register;
    const wrapped = `${isAsync ? 'async ' : ''}function (${PARAMETERS.join(', ')}) {${prefix}`;
    const options = { filename: job.file, importModuleDynamically: LOADER };
    try {
        // In node 18 only its own compiler of modules can lead import() to the loader.
        if (LOADER === undefined && /\bimport\s*\(/.test(code)) {
            prefix = `return (${wrapped}`;
            return job.module._compile(`${prefix}${code}\n})`, job.file);
        }
        if (isAsync) prefix = `(${wrapped}`;
        options.columnOffset = -prefix.length;
        return isAsync ? new vm.Script(`${prefix}${code}\n})`, options).runInThisContext()
            : vm.compileFunction(prefix + code, PARAMETERS, options);
    } catch (e) {
        throw relocate(job, e, prefix.length);
    }
}

/* The loader does not say where a module is wrong. The same text without its imports and exports
   is no module any more and usually wrong in the same place. */
function locate(job, error, compiler) {
    const blank = (text) => text.replace(/[^\n]/g, ' ');
    const code = job.code.replace(/^[ \t]*import\b(?!\s*[.(])[^;'"]*(['"])[^'"\n]*\1;?/gm, blank)
        .replace(/^[ \t]*export(?:[ \t]+default)?\b/gm, blank);
    try {
        compiler(job, code, true);
    } catch (e) {
        if (e.message === error.message) return e;
    }
    return error;
}

function startCommonjs(job, program, isAsync) {
    let peek = () => undefined;
    const register = (fn) => {
        peek = fn;
    };
    const { module } = job;
    const done = apply(program, module.exports,
        [module.exports, job.require, module, job.file, job.dir, register]);
    const found = () => {
        try {
            return peek();
        } catch {
            return undefined; // declared, but the program returned before it
        }
    };
    return { done: isAsync ? done : undefined, found, exported: () => module.exports };
}

/* Beside the program's own files, so that relative imports work; anywhere if that cannot be. */
function writeModule(job, text) {
    const name = `.handler-${process.pid}-${process.hrtime.bigint()}.mjs`;
    for (const dir of [job.dir, process.env.TMPDIR || '/tmp']) {
        const path = `${dir}/${name}`;
        try {
            const fd = openSync(path, 'wx', 0o600);
            fs.writeFileSync(fd, text);
            closeSync(fd);
            return path;
        } catch (e) {
            if (dir !== job.dir) throw e;
        }
    }
    return null;
}

function startModule(job) {
    const loaded = `sandbox.loaded.${now()}`;
    const register = `sandbox.register.${now()}`;
    const hook = (name) => `globalThis[Symbol.for(${stringify(name)})]`;
    let peek = () => undefined;
    let space = {};
    const path = writeModule(job, `${job.code}\n;import ${
        stringify(`data:text/javascript,${encodeURIComponent(`${hook(loaded)}()`)}`)};${
        hook(register)}(${PEEK});`);
    globalThis[Symbol.for(loaded)] = () => {
        delete globalThis[Symbol.for(loaded)];
        unlinkSync(path);
    };
    globalThis[Symbol.for(register)] = (fn) => {
        delete globalThis[Symbol.for(register)];
        peek = fn;
    };
    process.argv[1] = path;
    job.shown = [pathToFileURL(path).href, path];
    const drop = () => {
        if (fs.existsSync(path)) unlinkSync(path);
    };
    const done = import(job.shown[0]).then((ns) => {
        space = ns;
    }, (e) => {
        drop();
        if (!(e instanceof SyntaxError)) throw e;
        const located = locate(job, e, compile);
        if (located !== e) job.syntax = located;
        throw located;
    });
    return { done, found: () => peek(), exported: () => space };
}

function start(job) {
    const errors = [];
    for (const isAsync of [false, true]) {
        let program = null;
        try {
            program = compile(job, job.code, isAsync);
        } catch (e) {
            errors.push(e);
            continue;
        }
        return startCommonjs(job, program, isAsync);
    }
    if (errors.some((e) => ONLY_ESM.test(e.message)) && /\b(?:import|export)\b/.test(job.code)) {
        return startModule(job);
    }
    job.syntax = errors[errors[0].message.startsWith('await is only valid') ? 1 : 0];
    throw job.syntax;
}

/* Which function is meant, most explicit first; undefined when the program is a plain script. */
function pickHandler(started) {
    const out = started.exported();
    const named = out === null || out === undefined ? undefined : out.handler;
    if (named !== undefined) return named;
    const local = started.found();
    if (local !== undefined) return local;
    if (typeof out === 'function') return out;
    const main = out === null || out === undefined ? undefined : out.default;
    if (typeof main === 'function') return main;
    return main === null || typeof main !== 'object' ? undefined : main.handler;
}

// ---- failing ----

function say(text) {
    try {
        writeAll(2, `${text}\n`);
    } catch {
        // closed by the program
    }
}

/* Without a code: the one that the program asked for. */
function leave(code) {
    try {
        apply(exit, process, code === undefined ? [] : [code]);
    } finally {
        apply(reallyExit, process, [code === undefined ? process.exitCode || 0 : code]);
    }
}

/* After the result: files being written and children running get a moment, timers and servers
   that would keep the process for ever do not. */
function settle(until) {
    const names = apply(getActiveResourcesInfo, process, []);
    for (let i = 0; i < names.length && now() < until; i++) {
        if (apply(includes, names[i], ['Req']) || names[i] === 'ProcessWrap') {
            later(settle, CHECK_MS, until);
            return;
        }
    }
    leave();
}

/* Without our own frames, and without what node had on the stack below us. */
function cleanStack(job, stack) {
    const lines = apply(split, stack, ['\n']);
    let last = lines.length;
    for (let i = 0; i < lines.length; i++) {
        if (apply(includes, lines[i], [ME]) && apply(startsWith, lines[i], ['    at '])) last = i;
    }
    const kept = [];
    for (let i = 0; i < last; i++) {
        if (!apply(includes, lines[i], [ME])) kept[kept.length] = lines[i];
    }
    let text = apply(join, kept, ['\n']);
    for (let i = 0; i < job.shown.length; i++) {
        text = apply(join, apply(split, text, [job.shown[i]]), [job.file]);
    }
    return text;
}

function tidyError(job, error) {
    try {
        for (let i = 0; i < CAUSES_MAX && isNativeError(error); i++) {
            if (typeof error.stack === 'string') error.stack = cleanStack(job, error.stack);
            error = error.cause;
        }
    } catch {
        // a stack that cannot be tidied is shown as it is
    }
}

function describe(job, error) {
    try {
        if (error === job.syntax && error !== undefined) return error.stack;
        const text = isNativeError(error) ? inspect(error) : `Uncaught ${inspect(error)}`;
        return apply(includes, text, [ME]) ? cleanStack(job, text) : text;
    } catch {
        return 'Uncaught exception that cannot be shown';
    }
}

function report(job, error, stack) {
    const cut = (text, most) => (text.length > most ? apply(slice, text, [0, most]) : text);
    let type = typeof error;
    let message = '';
    try {
        if (isNativeError(error)) {
            type = `${error.name === 'Error' ? error.constructor.name : error.name}`;
            message = `${error.message}`;
        } else {
            message = type === 'string' ? error : inspect(error);
        }
    } catch {
        // the type will do
    }
    try {
        // Text by text: an object could be given a toJSON() by the program.
        job.channel.send('E', `{"type":${stringify(cut(type, MESSAGE_MAX))},"message":${
            stringify(cut(message, MESSAGE_MAX))},"stack":${stringify(cut(stack, STACK_MAX))}}`);
    } catch {
        // the exit code tells
    }
    job.channel.ended = true;
}

function crash(job, error) {
    job.pending = false;
    tidyError(job, error);
    const text = describe(job, error);
    say(text);
    report(job, error, text);
    leave(1);
}

function fail(job, name, message) {
    const error = new Error(message);
    error.name = name;
    job.pending = false;
    say(message);
    report(job, error, '');
    leave(1);
}

function watch(job) {
    let drained = false;
    process.on('beforeExit', () => {
        drained = true;
    });
    process.on('exit', () => {
        if (!job.pending || !drained) return;
        const message = job.called ? 'the program returned a promise that was never settled'
            : 'a top-level await was never settled';
        say(`${message}: nothing is left that could do it`);
        report(job, new Error(message), '');
        process.exitCode = 1;
    });
    process.on('uncaughtExceptionMonitor', (error) => {
        if (apply(listenerCount, process, ['uncaughtException']) > 0 || hasCapture()) return;
        crash(job, error);
    });
}

// ---- the job ----

function prepare(fd, frames) {
    const dir = process.cwd();
    const file = `${dir}/handler.js`;
    const told = parse(frames.X || '{}');
    const module = new Module(file, null);
    module.filename = file;
    module.id = '.';
    module.paths = Module._nodeModulePaths(dir);
    process.mainModule = module;
    process.argv = [process.execPath, file];
    process.execArgv = [];
    const code = frames.C.replace(/^\ufeff/, '').replace(/^#!/, '//');
    return {
        channel: new Channel(fd), code, dir, file, module, told,
        require: Module.createRequire(file), event: parse(frames.V || '{}'), shown: [],
        deadline: now() + (told.remaining_ms || 0),
        syntax: undefined, pending: true, called: false,
    };
}

function missing(job, handler) {
    const what = handler === undefined ? 'defined' : `a function but ${typeof handler}`;
    fail(job, 'HandlerNotFound', `handler(event) is not ${what} (${MISSING})`);
}

function finish(job, value) {
    const text = valueText(value);
    const most = job.told.result_max;
    const size = byteLength(text);
    if (most && size > most) {
        fail(job, 'ResultTooLarge',
            `the returned value has ${size} bytes as JSON, at most ${most} are allowed`);
        return;
    }
    soon(() => deliver(job, text)); // arguments would be spread by what the program may have broken
}

/* A turn of the loop after the handler: what it began and did not wait for is under way by then, and a
   promise that failed with nobody to hear it has failed the program. */
function deliver(job, text) {
    job.channel.send('R', text);
    job.channel.ended = true;
    job.pending = false;
    settle(now() + GRACE_MS);
}

async function execute(job) {
    try {
        const started = start(job);
        if (started.done !== undefined) await started.done;
        job.module.loaded = true;
        const { mode } = job.told; // absent: a program without a handler is a script
        const handler = mode === 'script' ? undefined : pickHandler(started);
        if (typeof handler !== 'function') {
            if (mode === 'handler') missing(job, handler);
            job.pending = false;
            return;
        }
        job.called = true;
        const context = makeContext(job.channel, job.told, job.deadline);
        const value = apply(handler, job.module.exports, [job.event, context]);
        finish(job, value !== null && typeof value === 'object' ? await value : value);
    } catch (error) {
        if (!job.called && apply(listenerCount, process, ['uncaughtException']) > 0) {
            job.pending = false;
            nextTick(() => {
                throw error;
            });
            return;
        }
        crash(job, error);
    }
}

/* One job from descriptor fd. env: the environment after a fork, as a list of 'NAME=value'; to:
   where the result goes, if not to fd. A plain script ends as node ends, when its event loop is
   empty; a handler when it has returned. */
function run(fd, env, to = fd) {
    const frames = receive(fd);
    if (frames === null) {
        say('the sandbox was given no job');
        leave(1);
        return;
    }
    if (env) adopt(env);
    const job = prepare(to, frames);
    hushLoader();
    makeBlocking('stdout');
    makeBlocking('stderr');
    watch(job);
    execute(job);
}

if (module.id === '[eval]') {
    tidyGlobals();
    run(3);
} else {
    module.exports = { run, tidyGlobals };
}

}
//# sourceURL=sandbox:wrapper
