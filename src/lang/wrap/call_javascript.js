// SPDX-License-Identifier: MIT
/*
 * Calls functions of a program, as a handler that wrap/javascript.js runs: one, or in a session
 * many.
 *
 * The event says what to call and where the arguments are: in the event as a literal (inline) or
 * as JSON, on standard input as a SIP packet, or in a file. The program is a CommonJS module, the
 * same with top-level await, or an ECMAScript module; the function may be declared, assigned or
 * exported, its text is never changed: a small function at the end of it hands it out.
 */
const fs = require('fs');
const Module = require('module');
const net = require('net');
const path = require('path');
const { pathToFileURL } = require('url');
const vm = require('vm');

const CHANNEL = 3;
const ME = __filename;
const LOADER = vm.constants && vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER;
const ONLY_ESM = /use import statement|token 'export'|import\.meta|already been declared/;
const BUILT_IN = new Map(Object.getOwnPropertyNames(globalThis)
    .filter((name) => typeof Object.getOwnPropertyDescriptor(globalThis, name).value === 'function')
    .map((name) => [name, globalThis[name]]));

const { apply } = Reflect;
const { isFinite } = Number;
const { isModuleNamespaceObject, isNativeError } = require('util').types;
const { inspect } = require('util');
const { reallyExit } = process;
const { writeSync } = fs;
const { from, byteLength: size } = Buffer;

let tools; // of javascript.js: what makes the place of a syntax error the program's

// ---- the channel ----

function send(kind, text) {
    const body = from(text, 'utf8');
    const data = Buffer.concat([from(kind + body.length.toString(16).padStart(8, '0')), body]);
    for (let at = 0; at < data.length;) {
        try {
            at += writeSync(CHANNEL, data, at, data.length - at);
        } catch (e) {
            if (e.code !== 'EAGAIN') throw e;
        }
    }
}

// ---- arguments ----

function readExactly(n) {
    const data = Buffer.alloc(n);
    for (let at = 0; at < n;) {
        const got = fs.readSync(0, data, at, n - at, null);
        if (got === 0) throw new Error('the packet with the arguments is not complete');
        at += got;
    }
    return data;
}

function givenArguments(event) {
    if (event.mode === 'stdin') {
        const head = readExactly(HEAD).toString('latin1');
        return parse(readExactly(parseInt(head.slice(1), 16)).toString('utf8'));
    }
    if (event.mode === 'file') {
        const text = fs.readFileSync(event.request, 'utf8');
        fs.unlinkSync(event.request); // nothing of ours among the program's files
        return parse(text);
    }
    if (event.literal !== undefined) {
        const [args, kwargs] = vm.runInThisContext(`(${event.literal})`);
        return { args, kwargs, holes: event.holes };
    }
    return event.given;
}

// ---- the program ----

/* A script, or the body of a function: what stands before the program in its first line is ours. */
function build(job, prefix, code, parameters) {
    const options = {
        filename: job.file, columnOffset: -prefix.length, importModuleDynamically: LOADER,
    };
    try {
        return parameters ? vm.compileFunction(prefix + code, parameters, options)
            : new vm.Script(`${prefix}${code}\n})`, options).runInThisContext();
    } catch (e) {
        throw tools.relocate(job, e, prefix.length);
    }
}

function compile(job, code, isAsync) {
    const register = `__sandbox__(${peekAt(job.name)});`;
    const strict = /^\s*(?:'use strict'|"use strict")/.test(code) ? "'use strict';" : '';
    const prefix = strict + register;
    return isAsync ? build(job, `(async function (${PARAMETERS.join(', ')}) {${prefix}`, code)
        : build(job, prefix, code, PARAMETERS);
}

function startCommonjs(job, program) {
    let peek = () => undefined;
    const { module } = job;
    const done = apply(program, module.exports, [module.exports, job.require, module, job.file,
        job.dir, (fn) => {
            peek = fn;
        }]);
    return {
        done,
        found: (name) => {
            try {
                return peek(name);
            } catch {
                return undefined; // declared, but the program returned before it
            }
        },
        exported: () => module.exports,
    };
}

/* node's loader wants a file: a hidden one beside the program's other files, gone once loaded. */
function startModule(job) {
    const key = `sandbox.${process.pid}.${process.hrtime.bigint()}`;
    const file = job.place || path.join(job.dir, `.${key}.mjs`);
    let peek = () => undefined;
    let space = {};
    globalThis[Symbol.for(key)] = (fn) => {
        delete globalThis[Symbol.for(key)];
        peek = fn;
    };
    fs.writeFileSync(file, `${job.code}\n;globalThis[Symbol.for(${stringify(key)})](${
        peekAt(job.name)});`);
    job.shown = [pathToFileURL(file).href, file];
    const done = import(job.shown[0]).then((ns) => {
        space = ns;
    }, (e) => {
        throw e instanceof SyntaxError ? tools.locate(job, e, compile) : e;
    }).finally(() => job.place || fs.rmSync(file, { force: true }));
    return { done, found: (name) => peek(name), exported: () => space };
}

function startBody(job) {
    const made = build(job, `(async function ${ANONYMOUS}(...args) {`, job.code);
    return { done: undefined, found: () => made, exported: () => ({}) };
}

function start(job) {
    if (job.body) {
        // The body may say require(...) like any program.
        globalThis.require = job.require;
        return startBody(job);
    }
    const errors = [];
    for (const isAsync of [false, true]) {
        let program = null;
        try {
            program = compile(job, job.code, isAsync);
        } catch (e) {
            errors.push(e);
            continue;
        }
        return startCommonjs(job, program);
    }
    if (errors.some((e) => ONLY_ESM.test(e.message)) && /\b(?:import|export)\b/.test(job.code)) {
        return startModule(job);
    }
    throw errors[errors[0].message.startsWith('await is only valid') ? 1 : 0];
}

/* What every object and function has is no function of the program's. */
function inherited(value, name) {
    return value !== undefined && (value === Object.prototype[name] || value === Function.prototype[name]);
}

/* The function, and what it is a member of: its `this`. */
function member(thing, names) {
    let owner;
    for (const name of names) {
        if (thing === null || thing === undefined) return [];
        owner = thing;
        thing = thing[name];
        if (inherited(thing, name)) return [];
    }
    return [thing, owner];
}

/* Its own, that is: not what the language has under the name. */
function localOf(started, root) {
    if (!IDENTIFIER.test(root)) return undefined;
    const found = started.found(`typeof ${root} === "undefined" ? undefined : ${root}`);
    return BUILT_IN.get(root) === found || inherited(found, root) ? undefined : found;
}

/* What is exported under the name wins over what is only declared. */
function find(job, started) {
    const names = job.name.split('.');
    const out = started.exported();
    const isDefault = (fn) => typeof fn === 'function' && (fn.name === job.name || job.name === 'default');
    const choices = [
        () => member(out, names),
        () => member(localOf(started, names[0]), names.slice(1)),
        () => (out && out.default && (names.length > 1 || out.default.name !== job.name)
            ? member(out.default, names) : []),
        () => [out && isDefault(out.default) ? out.default : undefined],
        () => [isDefault(out) ? out : undefined],
        () => (Object.hasOwn(globalThis, names[0]) && globalThis[names[0]] !== BUILT_IN.get(names[0])
            ? member(globalThis, names) : []),
    ];
    let last;
    for (const choice of choices) {
        const [found, owner] = choice();
        if (typeof found === 'function') {
            // A module or the global object is nobody's `this`.
            const isObject = owner !== globalThis && owner !== undefined && !isModuleNamespaceObject(owner);
            return { fn: found, self: isObject ? owner : undefined };
        }
        last = found;
    }
    throw last === undefined ? new Error(`Function '${job.name}' not found`)
        : new TypeError(`'${job.name}' is not a function but ${typeof last}`);
}

// ---- failing ----

function cleanStack(job, stack) {
    const kept = [];
    for (const line of stack.split('\n')) {
        if (line.startsWith('    at ') && (line.includes(ME) || line.includes('(sandbox:') ||
            line.includes(' sandbox:') || line.includes('node:') || line.includes('handler.js'))) {
            continue;
        }
        kept.push(line);
    }
    return shownAs(job, kept.join('\n'));
}

/* A module is loaded from elsewhere; what it is called is its own name. */
function shownAs(job, text) {
    for (const shown of job.shown) text = text.split(shown).join(job.file);
    return text;
}

function errorText(job, error) {
    let type = typeof error;
    let message = '';
    let stack = '';
    try {
        if (isNativeError(error) || (error !== null && type === 'object' &&
            typeof error.message === 'string')) {
            type = `${error.name === 'Error' || !error.name ? error.constructor.name : error.name}`;
            message = shownAs(job, `${error.message}`);
            stack = typeof error.stack === 'string' ? cleanStack(job, error.stack) : '';
        } else {
            message = type === 'string' ? error : inspect(error);
            type = 'Error';
        }
    } catch {
        // the type will do
    }
    return `{"type":${stringify(type)},"message":${stringify(message.slice(0, MESSAGE_MAX))},` +
        `"stack":${stringify(stack.slice(0, STACK_MAX))}${refusedPath(error)}}`;
}

// What the sandbox refused to let the program do: the caller is told which path.
function refusedPath(error) {
    try {
        if (!isNativeError(error) || !['EACCES', 'EPERM', 'EROFS'].includes(error.code)) return '';
        const at = error.dest || error.path;
        return typeof at === 'string' ? `,"path":${stringify(path.resolve(at))}` : '';
    } catch {
        return '';
    }
}

function leave(code) {
    try {
        process.exit(code);
    } finally {
        apply(reallyExit, process, [code]);
    }
}

// ---- the program's place ----

function prepare(event) {
    const file = path.resolve(event.file);
    const dir = path.dirname(file);
    const module = new Module(file, null);
    module.filename = file;
    module.id = '.';
    module.paths = Module._nodeModulePaths(dir);
    process.mainModule = module;
    process.argv = [process.execPath, file];
    return {
        code: event.code.replace(/^\ufeff/, '').replace(/^#!/, '//'), file, dir, module,
        place: event.place && path.resolve(event.place),
        name: event.function, body: event.body, require: Module.createRequire(file),
        shown: [],
    };
}

// ---- a session ----

const trampoline = new vm.Script('globalThis[Symbol.for("sandbox.call")]()', { filename: 'sandbox:call' });
const { runInThisContext } = vm.Script.prototype;
const { defineProperty } = Object;
const { setImmediate } = globalThis;
const now = performance.now.bind(performance);
const MARGIN_MS = 20; // the daemon, who knows that time is up, comes first

/* Calls fn so that its time ends even a loop that never gives way. A signal could not: node waits
   for a loop to end before it looks at signals, and lets them kill while it changes how it does. */
function interruptibly(fn, deadline) {
    defineProperty(globalThis, Symbol.for('sandbox.call'),
        { value: fn, configurable: true, enumerable: false });
    return apply(runInThisContext, trampoline,
        [{ timeout: Math.max(1, Math.ceil(deadline - now())), displayErrors: false }]);
}

function isThenable(value) {
    return value !== null && (typeof value === 'object' || typeof value === 'function') &&
        typeof value.then === 'function';
}

/* Stays: reads packets from the channel (SIP, modes P and S) and answers each of them, beginning
   with the packet's token. SIGINT ends a call, and nothing else. */
class Session {
    constructor(event) {
        this.event = event;
        this.token = event.token;
        this.socket = new net.Socket({ fd: CHANNEL, readable: true, writable: true });
        this.stop = null; // ends the wait for a promise
        this.chunks = [];
        this.have = 0;
        this.busy = false;
        this.interrupted = false;
    }

    // -- the channel --

    /* False: a caller that can wait should. */
    send(kind, text = '') {
        const body = from(this.token + text, 'utf8');
        return this.socket.write(Buffer.concat(
            [from(kind + body.length.toString(16).padStart(8, '0')), body]));
    }

    drained() {
        return new Promise((resolve) => {
            this.socket.once('drain', resolve);
        });
    }

    /* What is to be said before the end is said at once, whatever waits before it. */
    farewell(error) {
        const text = errorText(this.job, error);
        this.socket.write(from(`F${(size(text) + this.token.length).toString(16)
            .padStart(8, '0')}${this.token}${text}`), () => leave(1));
    }

    take(chunk) {
        this.chunks.push(chunk);
        this.have += chunk.length;
        for (;;) {
            if (this.have < HEAD) return;
            if (this.chunks[0].length < HEAD) this.chunks = [Buffer.concat(this.chunks)];
            const need = HEAD + parseInt(this.chunks[0].toString('latin1', 1, HEAD), 16);
            if (this.have < need) return;
            const data = this.chunks.length === 1 ? this.chunks[0] : Buffer.concat(this.chunks);
            const rest = data.subarray(need);
            this.chunks = rest.length > 0 ? [rest] : [];
            this.have = rest.length;
            this.turn(String.fromCharCode(data[0]), data.toString('utf8', HEAD, need));
        }
    }

    // -- calls --

    async settled(value) {
        if (!isThenable(value)) return value;
        const stopped = new Promise((_, reject) => {
            this.stop = reject;
        });
        try {
            return await Promise.race([value, stopped]);
        } finally {
            this.stop = null;
        }
    }

    /* Between two items the event loop gets its turn: a signal could not be seen otherwise. */
    async pause() {
        await new Promise(setImmediate);
        if (this.interrupted) throw new Error('the call was interrupted');
    }

    /* Hands the items of a generator to take(); returns what the generator returned. */
    async iterate(value, take) {
        const make = value[Symbol.asyncIterator] || value[Symbol.iterator];
        const iterator = apply(make, value, []);
        let ended = false;
        try {
            for (;;) {
                const step = await this.settled(interruptibly(() => iterator.next(), this.deadline));
                if (step.done) {
                    ended = true;
                    return step.value;
                }
                await take(await this.settled(step.value));
                await this.pause();
            }
        } finally {
            if (!ended && typeof iterator.return === 'function') {
                Promise.resolve(iterator.return()).catch(() => {});
            }
        }
    }

    stream(value) {
        return this.iterate(value, (item) => {
            const text = checkSize(valueText(item), this.event.resultMax, 'item');
            return this.send('I', text) ? undefined : this.settled(this.drained());
        });
    }

    async list(value) {
        const items = [];
        await this.iterate(value, (item) => {
            items.push(item);
        });
        return items;
    }

    async call(kind, packet) {
        const { fn, self } = find({ name: packet.functionName }, this.started);
        const args = place(packet, packet.optionsAt);
        let value = interruptibly(() => apply(fn, self, args), this.deadline);
        if (isThenable(value)) value = await this.settled(value);
        if (isGenerator(value)) {
            value = await (kind === 'S' ? this.stream(value) : this.list(value));
        }
        return checkSize(valueText(value), this.event.resultMax);
    }

    async turn(kind, text) {
        let answer = 'R';
        let payload = '';
        if (kind === 'Z') {
            this.token = text;
            this.forget();
            await this.load();
            return;
        }
        try {
            const packet = parse(text);
            this.token = packet.token;
            this.busy = true;
            this.interrupted = false;
            this.deadline = now() + packet.timeout + MARGIN_MS;
            this.send('B');
            payload = await this.call(kind, packet);
        } catch (error) {
            answer = 'E';
            payload = errorText(this.job, error);
        }
        this.busy = false;
        this.send(answer, payload);
    }

    // -- the program --

    /* What it loaded from beside it is loaded again. */
    forget() {
        for (const name of Object.keys(Module._cache)) {
            if (name.startsWith(`${this.job.dir}/`)) delete Module._cache[name];
        }
    }

    async load() {
        this.job = prepare(this.event);
        try {
            this.started = start(this.job);
            await this.started.done;
        } catch (error) {
            this.farewell(error);
            return;
        }
        this.send('Y');
    }

    serve() {
        process.on('SIGINT', () => {
            this.interrupted = true;
            if (this.stop) this.stop(new Error('the call was interrupted'));
        });
        process.on('uncaughtException', (error) => {
            writeSync(2, `${inspect(error)}\n`);
            if (this.busy) this.farewell(error);
            else leave(1);
        });
        this.socket.on('data', (chunk) => this.take(chunk));
        this.socket.on('error', () => leave(1));
        this.socket.on('end', () => leave(0));
        this.load();
        return new Promise(() => {});
    }
}

// ---- the call ----

/* Sends the items of a generator; returns what the generator returned. */
async function stream(value, most) {
    const iterator = apply(value[Symbol.asyncIterator] || value[Symbol.iterator], value, []);
    for (;;) {
        const step = await iterator.next();
        if (step.done) return step.value;
        send('I', checkSize(valueText(await step.value), most, 'item'));
    }
}

exports.handler = async function handler(event, context) {
    tools = context[Symbol.for('sandbox.tools')];
    if (event.mode === 'session') return new Session(event).serve();
    const job = prepare(event);
    let text = '';
    try {
        const args = bind(event);
        const started = start(job);
        await started.done;
        const { fn, self } = find(job, started);
        let value = await apply(fn, self, args);
        if (isGenerator(value)) {
            value = await (event.stream ? stream(value, event.resultMax) : collect(value));
        }
        text = checkSize(valueText(value), event.resultMax);
    } catch (error) {
        send('E', errorText(job, error));
        leave(1);
    }
    await new Promise(setImmediate); // what it began and did not wait for is under way
    send('R', text);
    process.exitCode = 0;
    tools.end();
    return new Promise(() => {}); // the end is on its way
};
