// SPDX-License-Identifier: MIT
/*
 * What a Node.js zygote does before its first fork: load what programs load, run what every program
 * runs, then hold still. And what a copy does when it wakes: see zygote_node.c.
 *
 * Some things must not happen here, because all copies would share their outcome: drawing a random
 * number (Math.random, crypto.randomUUID and randomInt keep a stock), opening a standard stream (as
 * the module assert does), using the pool of libuv's threads, and looking for files where a program
 * may put some later.
 */
'use strict';

{

const JOB = 3;
const TO_TRY = 2;
const TO_LEARN = 3;
const REHEARSALS = 4;
const TRIAL_MS = 15000;

const { spawnSync } = require('child_process');
const { pbkdf2 } = require('crypto');
const fs = require('fs');
const Module = require('module');
const { setTimeout: wait } = require('timers/promises');
const { promisify } = require('util');
const v8 = require('v8');
const vm = require('vm');
const { Worker } = require('worker_threads');

const MODULES = ['async_hooks', 'buffer', 'child_process', 'console', 'crypto', 'events',
    'fs/promises', 'http', 'https', 'net', 'os', 'path', 'path/posix', 'perf_hooks', 'process',
    'querystring', 'readline', 'readline/promises', 'stream', 'stream/promises', 'stream/web',
    'string_decoder', 'timers', 'timers/promises', 'tty', 'url', 'util', 'util/types',
    'worker_threads', 'zlib'];

delete process.env.LD_PRELOAD;
const { entropy, feed, job, learned, leave, pid, revive, serve, waiting, wrapper: text } = module.exports;

let rehearsing = true;

// Machine code for what every copy runs; else each of them would find it worth making, once more.
v8.setFlagsFromString('--always-sparkplug');
for (const name of MODULES) require(name);
// A process that is thrown away need not be taken apart first.
process.reallyExit = function reallyExit(code) {
    if (!rehearsing) leave(code);
};

const wrapper = new Module('sandbox:wrapper');
wrapper.paths = [];
wrapper._compile(text, 'sandbox:wrapper');
const { run, tidyGlobals } = wrapper.exports;
v8.setFlagsFromString('--lazy'); // until here every function was compiled at once

// ---- rehearsing ----

const PROGRAMS = [
    'exports.handler = (event) => ({ n: event.a.length, s: `x${event.b.c}`, t: [event] })',
    'async function handler(event, context) { await null; return context.execution_id }',
    'const fs = require("fs"); const path = require("node:path");\n'
        + 'module.exports.handler = async ({ a }) => a.map((x) => path.join("/", `${x}`))',
];
const EVENTS = ['beforeExit', 'exit', 'uncaughtExceptionMonitor'];
const PROPERTIES = ['stdout', 'stderr'];

function frame(kind, content) {
    return kind + content.length.toString(16).padStart(8, '0') + content;
}

/* Remembers what a run changes for good, and returns a function that changes it back. */
function remember() {
    const listeners = EVENTS.map((name) => process.rawListeners(name));
    const properties = PROPERTIES.map((name) => Object.getOwnPropertyDescriptor(process, name));
    return () => {
        EVENTS.forEach((name, i) => {
            process.removeAllListeners(name);
            for (const listener of listeners[i]) process.on(name, listener);
        });
        PROPERTIES.forEach((name, i) => Object.defineProperty(process, name, properties[i]));
        process._exiting = false;
        process.exitCode = undefined;
    };
}

/* One job from its first byte to the exit that does not happen, its result into the void. What is
   asynchronous in it ends when the caller waits. */
function rehearse(program) {
    const restore = remember();
    const from = feed(frame('C', program) + frame('V', '{"a":[1,2.5,"x",null],"b":{"c":"d"}}')
        + frame('X', '{"execution_id":"x","remaining_ms":1,"result_max":4096}') + frame('G', ''));
    const to = fs.openSync('/dev/null', 'w');
    run(from, Object.entries(process.env).map((pair) => pair.join('=')), to);
    return () => {
        fs.closeSync(from);
        fs.closeSync(to);
        restore();
    };
}

// ---- randomness ----

const { setFlagsFromString } = v8;
const { random } = Math;
const { runInContext } = vm;

/* V8 draws the numbers of a context from a generator that all copies share, unless there is a seed
   at that context's first use. */
function withSeed(fn) {
    setFlagsFromString(`--random-seed=${entropy()}`);
    try {
        return fn();
    } finally {
        setFlagsFromString('--random-seed=0');
    }
}

/* Contexts that a program makes begin with the generator's next numbers: the same in all copies. */
function seedContexts(owner, name, seedAfter) {
    const original = owner[name];
    const replaced = { [name](...args) {
        return withSeed(() => {
            const made = Reflect.apply(original, this, args);
            if (seedAfter) runInContext('typeof Math === "object" && Math.random()', made);
            return made;
        });
    } }[name];
    Object.defineProperty(replaced, 'length', { value: original.length, configurable: true });
    Object.defineProperty(owner, name, { ...Object.getOwnPropertyDescriptor(owner, name), value: replaced });
}

setFlagsFromString('--expose-gc');
const gc = vm.runInNewContext('gc');
setFlagsFromString('--no-expose-gc');

seedContexts(vm, 'createContext', true);
seedContexts(vm, 'runInNewContext', false);
seedContexts(vm.Script.prototype, 'runInNewContext', false);

// ---- waking up ----

/* Is this node able to do in a copy what it does otherwise? Everything here needs threads, the
   event loop or the kernel objects that were made anew. */
async function attempt() {
    const wasm = Buffer.from('AGFzbQEAAAABBQFgAAF/AwIBAAcFAQFmAAAKBgEEAEEqCw==', 'base64');
    const answers = [
        (await WebAssembly.instantiate(wasm)).instance.exports.f() === 42,
        (await fs.promises.readFile('/proc/self/comm')).length > 0,
        await wait(1, true),
        (await import('data:text/javascript,export default 7')).default === 7,
        (await promisify(pbkdf2)('a', 'b', 1, 8, 'sha1')).length === 8,
        spawnSync('/bin/true').status === 0,
        await new Promise((resolve, reject) => {
            new Worker('require("worker_threads").parentPort.postMessage(process.pid)', { eval: true })
                .on('message', resolve).on('error', reject);
        }) === process.pid,
    ];
    if (answers.includes(false)) throw new Error(`wrong answers: ${answers}`);
}

function tryOut() {
    setTimeout(leave, TRIAL_MS, 3);
    attempt().then(() => leave(0), (error) => {
        fs.writeSync(2, `sandbox-zygote-node: ${error.stack}\n`);
        leave(1);
    });
}

function work() {
    const { cwd, env } = job();
    process.chdir(cwd); // also forgets the directory that node remembers
    run(JOB, env);
}

function wake(why) {
    Object.defineProperty(process, 'pid', { ...Object.getOwnPropertyDescriptor(process, 'pid'), value: pid() });
    withSeed(random);
    const begin = () => {
        revive();
        rehearsing = false;
        if (why === TO_TRY) tryOut();
        else work();
    };
    if (why !== TO_TRY && why !== TO_LEARN && waiting()) { // it would only delay the job
        begin();
        return;
    }
    const end = rehearse(PROGRAMS[0]);
    setImmediate(setImmediate, () => { // its result comes with the first of the two turns
        end();
        if (why === TO_LEARN) learned();
        begin();
    });
}

/* Garbage of the start is not copied. A moment later V8's threads have nothing left to do. */
async function prepare() {
    for (let i = 0; i < REHEARSALS; i++) {
        for (const program of PROGRAMS) {
            const end = rehearse(program);
            await wait(1);
            end();
        }
    }
    withSeed(() => {});
    process.chdir('/');
    tidyGlobals(); // node itself has put some there since
    setFlagsFromString('--no-always-sparkplug');
    await wait(20);
    gc();
    await wait(20);
    setImmediate(() => wake(serve(1)));
}

prepare();

}
