// SPDX-License-Identifier: MIT
/*
 * What a Node.js zygote does before its first fork: load what programs load, run what every program
 * runs, then hold still. And what a copy does when it wakes: see zygote_node.c.
 *
 * Some things must not happen here, because all copies would share their outcome: drawing a random
 * number (Math.random, crypto.randomUUID and randomInt keep a stock), using the pool of libuv's
 * threads, and looking for files where a program may put some later.
 */
'use strict';

{

const LIBRARY = 5; // its descriptor
const JOB = 3;
const TO_TRY = 2;
const REHEARSALS = 20;
const TRIAL_MS = 15000;

const assert = require('assert');
const { spawnSync } = require('child_process');
const { pbkdf2 } = require('crypto');
const fs = require('fs');
const Module = require('module');
const { setTimeout: wait } = require('timers/promises');
const { promisify } = require('util');
const v8 = require('v8');
const vm = require('vm');
const { Worker } = require('worker_threads');

const MODULES = ['assert', 'async_hooks', 'buffer', 'child_process', 'console', 'crypto', 'events',
    'fs/promises', 'http', 'https', 'net', 'os', 'path', 'path/posix', 'perf_hooks', 'process',
    'querystring', 'readline', 'readline/promises', 'stream', 'stream/promises', 'stream/web',
    'string_decoder', 'timers', 'timers/promises', 'tty', 'url', 'util', 'util/types',
    'worker_threads', 'zlib'];

const library = { exports: {} };
process.dlopen(library, `/proc/self/fd/${LIBRARY}`);
fs.closeSync(LIBRARY);
const { entropy, feed, job, leave, pid, serve, wrapper: text } = library.exports;

for (const name of MODULES) require(name);
process.reallyExit = leave; // before the wrapper takes it

const wrapper = new Module('sandbox:wrapper');
wrapper.paths = [];
wrapper._compile(text, 'sandbox:wrapper');
const { rehearse, run, tidyGlobals } = wrapper.exports;

// ---- rehearsing ----

const PROGRAMS = [
    'exports.handler = (event) => ({ n: event.a.length, s: `x${event.b.c}`, t: [event] })',
    'async function handler(event, context) { await null; return context.execution_id }',
    'const fs = require("fs"); const path = require("node:path");\n'
        + 'module.exports.handler = async ({ a }) => a.map((x) => path.join("/", `${x}`))',
];

function frame(kind, content) {
    return kind + content.length.toString(16).padStart(8, '0') + content;
}

/* One job as the wrapper would do it, its result into the void. */
function rehearseOne(program) {
    const from = feed(frame('C', program) + frame('V', '{"a":[1,2.5,"x",null],"b":{"c":"d"}}')
        + frame('X', '{"execution_id":"x","remaining_ms":1,"result_max":4096}') + frame('G', ''));
    const to = fs.openSync('/dev/null', 'w');
    try {
        rehearse(from, to);
    } finally {
        fs.closeSync(from);
        fs.closeSync(to);
    }
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
    assert.equal((await WebAssembly.instantiate(wasm)).instance.exports.f(), 42);
    assert.equal((await fs.promises.readFile('/proc/self/comm')).length > 0, true);
    await wait(1);
    assert.equal((await import('data:text/javascript,export default 7')).default, 7);
    assert.equal((await promisify(pbkdf2)('a', 'b', 1, 8, 'sha1')).length, 8);
    const answer = await new Promise((resolve, reject) => {
        new Worker('require("worker_threads").parentPort.postMessage(process.pid)', { eval: true })
            .on('message', resolve).on('error', reject);
    });
    assert.equal(answer, process.pid);
    assert.equal(spawnSync('/bin/true').status, 0);
}

function tryOut() {
    setTimeout(leave, TRIAL_MS, 3);
    attempt().then(() => leave(0), (error) => {
        fs.writeSync(2, `sandbox-zygote-node: ${error.stack}\n`);
        leave(1);
    });
}

function work() {
    for (const program of PROGRAMS) rehearseOne(program);
    const { cwd, env } = job();
    process.chdir(cwd); // also forgets the directory that node remembers
    run(JOB, env);
}

function wake(why) {
    Object.defineProperty(process, 'pid', { ...Object.getOwnPropertyDescriptor(process, 'pid'), value: pid() });
    withSeed(random);
    if (why === TO_TRY) tryOut();
    else work();
}

tidyGlobals();
for (let i = 0; i < REHEARSALS; i++) for (const program of PROGRAMS) rehearseOne(program);

/* Garbage of the start is not copied. A moment later V8's threads have nothing left to do. */
setTimeout(() => {
    gc();
    setTimeout(() => setImmediate(() => wake(serve())), 20);
}, 20);

}
