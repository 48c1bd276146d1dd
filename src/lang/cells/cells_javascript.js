// SPDX-License-Identifier: MIT
// Runs cells of JavaScript and TypeScript with Node.js: a context of a sandbox. The frames are those of
// cells_python.py.
//
// V8 evaluates a cell as a console of developer tools does (Runtime.evaluate with replMode): let, const and
// class may be declared again, await may stand at the top, and declarations stay for the next cell. What V8
// does not do there is import: acorn finds import declarations and import() by parsing, and they become calls.
// TypeScript is turned into JavaScript by amaro before that.
'use strict';

const fs = require('node:fs');
const inspector = require('node:inspector');
const net = require('node:net');
const path = require('node:path');
const util = require('node:util');
const vm = require('node:vm');
const { createRequire } = require('node:module');
const { pathToFileURL } = require('node:url');
const { makeTools } = require('./cells_tools.js');

const CHANNEL = 3;
const HEAD = 9;
const ANSWER = 'A'.charCodeAt(0); // the kind of a frame
const OUTPUT_SIZE = 16 * 1024;
const EVENT_MAX = (4 << 20) - 4096; // bytes of one event that the daemon takes
const JSON_SIZE_MAX = 1 << 20; // a larger value is shown as text only
const typescript = process.argv.includes('--typescript');

// ---- the channel ----

let cell = null; // the one that runs

function encode(value) {
    return JSON.stringify(value).replace(/[\u007f-\uffff]/g,
        (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
}

// An event that is too large, cut: of a display its beginning as text is left.
function smaller(value) {
    const cut = (text) => String(text ?? '').slice(0, EVENT_MAX / 16) + ' ... (too large to be shown)';
    if (value.type === 'display') return { ...value, data: { 'text/plain': cut(value.data['text/plain']) }, metadata: {} };
    return Object.fromEntries(Object.entries(value).map(([key, item]) =>
        [key, typeof item === 'string' && item.length > 1024 ? cut(item) : item]));
}

function send(kind, value) {
    let text = encode(value);
    if (text.length > EVENT_MAX) text = encode(smaller(value));
    const data = Buffer.from(kind + text.length.toString(16).padStart(8, '0') + text, 'latin1');
    for (let at = 0; at < data.length;) {
        try {
            at += fs.writeSync(CHANNEL, data, at);
        } catch (e) {
            if (e.code === 'EPIPE') process.reallyExit(0); // the daemon is gone
            if (e.code !== 'EAGAIN') throw e;
            Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
        }
    }
}

function event(fields) {
    flush();
    send('I', { id: cell && cell.id, ...fields });
}

// What one console.log() writes in pieces becomes one event.
let pending = '', pendingStream = null;
function flush() {
    const text = pending, stream = pendingStream;
    pending = '';
    pendingStream = null;
    for (let at = 0; at < text.length; at += OUTPUT_SIZE)
        send('I', { id: cell && cell.id, type: stream, text: text.slice(at, at + OUTPUT_SIZE) });
}

function capture(stream, name) {
    stream.write = (chunk, encoding, done) => {
        if (typeof encoding === 'function') [encoding, done] = [undefined, encoding];
        if (pendingStream !== name) flush();
        pendingStream = name;
        pending += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8');
        if (pending.endsWith('\n') || pending.length >= OUTPUT_SIZE) flush();
        if (done) process.nextTick(done);
        return true;
    };
}

const sbx = makeTools(event, () => cell !== null);

// ---- what is displayed ----

const METHODS = {
    _toHtml: 'text/html', _toSvg: 'image/svg+xml', _toPng: 'image/png', _toJpeg: 'image/jpeg',
    _toMarkdown: 'text/markdown', _toLatex: 'text/latex',
};

function isPlain(value) {
    if (value === null || typeof value !== 'object') return false;
    const kind = Object.getPrototypeOf(value);
    return Array.isArray(value) || kind === Object.prototype || kind === null;
}

function bundle(value) {
    const data = { 'text/plain': util.inspect(value, { maxArrayLength: null, maxStringLength: null }) };
    if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return data;
    if (typeof value._toMime === 'function') return { ...data, ...encoded(value._toMime()) };
    for (const [method, kind] of Object.entries(METHODS))
        if (typeof value[method] === 'function') Object.assign(data, encoded({ [kind]: value[method]() }));
    if (isPlain(value)) {
        try {
            const text = JSON.stringify(value);
            if (text.length <= JSON_SIZE_MAX) data['application/json'] = JSON.parse(text);
        } catch {
            // circular, or with a BigInt: the text says it
        }
    }
    return data;
}

function encoded(data) {
    return Object.fromEntries(Object.entries(data).map(([kind, value]) =>
        [kind, value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value]));
}

// display(value), or display({"text/html": "..."}): a MIME bundle has a slash in each of its keys.
function display(value) {
    const keys = isPlain(value) && !Array.isArray(value) ? Object.keys(value) : [];
    const data = keys.length && keys.every((key) => /^[a-z]+\/[^/]+$/.test(key)) ? encoded(value) : bundle(value);
    event({ type: 'display', data, metadata: {}, main: false });
}
for (const [name, kind] of Object.entries({
    html: 'text/html', markdown: 'text/markdown', svg: 'image/svg+xml', png: 'image/png', jpeg: 'image/jpeg',
    latex: 'text/latex', json: 'application/json',
})) display[name] = (value) => display({ [kind]: value });

// ---- the text of a cell ----

const here = path.join(process.cwd(), 'cell.js');
const load = createRequire(here);

async function importFrom(name) {
    if (name === 'sbx') return { default: sbx.module, ...sbx.module };
    const local = /^\.{0,2}\//.test(name);
    if (local) return import(pathToFileURL(path.resolve(name)).href);
    if (name.startsWith('node:') || /^[a-z]+:/.test(name)) return import(name);
    try {
        return await import(pathToFileURL(load.resolve(name)).href);
    } catch (e) {
        if (e.code !== 'ERR_INVALID_URL' && e.code !== 'ERR_MODULE_NOT_FOUND') throw e;
        return import(name); // of Node.js itself
    }
}

const IMPORT = '__import__';

// A file beside this one; null where it was not installed.
function library(name) {
    const file = path.join(__dirname, name);
    return fs.existsSync(file) ? require(file) : null;
}

function asCalls(text) {
    if (!/\b(import|export)\b/.test(text)) return text;
    const acorn = library('cells_acorn.js');
    if (!acorn) return text;
    let tree;
    try {
        tree = acorn.parse(text, {
            ecmaVersion: 'latest', sourceType: 'module', allowAwaitOutsideFunction: true, allowHashBang: true,
        });
    } catch {
        return text; // V8 tells what is wrong
    }
    const edits = [];
    visit(tree, (node) => {
        if (node.type === 'ImportExpression') edits.push([node.start, node.start + 'import'.length, IMPORT]);
        else if (node.type === 'ImportDeclaration') edits.push([node.start, node.end, importCall(node, text)]);
        else if (/^Export/.test(node.type)) edits.push(exportEdit(node));
    });
    let made = text;
    for (const [start, end, by] of edits.sort((a, b) => b[0] - a[0])) made = made.slice(0, start) + by + made.slice(end);
    return made;
}

function visit(node, fn) {
    if (Array.isArray(node)) {
        for (const one of node) visit(one, fn);
    } else if (node && typeof node.type === 'string') {
        fn(node);
        for (const key of Object.keys(node)) if (key !== 'type') visit(node[key], fn);
    }
}

function importCall(node, text) {
    const from = `await ${IMPORT}(${node.source.raw})`;
    const lines = '\n'.repeat(text.slice(node.start, node.end).split('\n').length - 1); // line numbers stay
    const all = node.specifiers.find((s) => s.type === 'ImportNamespaceSpecifier');
    const named = node.specifiers.filter((s) => s !== all).map((s) => s.type === 'ImportDefaultSpecifier'
        ? `default: ${s.local.name}` : `${text.slice(s.imported.start, s.imported.end)}: ${s.local.name}`);
    const parts = [];
    if (all) parts.push(`const ${all.local.name} = ${from};`);
    if (named.length) parts.push(`const {${named.join(', ')}} = ${all ? all.local.name : from};`);
    return (parts.join(' ') || `${from};`) + lines;
}

function exportEdit(node) {
    if (node.declaration && node.type === 'ExportNamedDeclaration') return [node.start, node.declaration.start, ''];
    if (node.type === 'ExportDefaultDeclaration') {
        const named = /Declaration$/.test(node.declaration.type) && node.declaration.id;
        return [node.start, node.declaration.start, named ? '' : 'void '];
    }
    return [node.start, node.end, ''];
}

function asJavaScript(text) {
    const amaro = library('cells_amaro.js');
    if (!amaro) throw new Error('this installation cannot read TypeScript: tools/fetch-npm cells has not been run');
    return amaro.transformSync(text, { mode: 'transform', filename: 'cell.ts' }).code;
}

// ---- running one ----

const session = new inspector.Session();
session.connect();
const post = (method, fields) => new Promise((done, failed) =>
    session.post(method, fields, (e, r) => (e ? failed(e) : done(r))));

const INTERRUPTED = Symbol('interrupted');
let interrupt = null; // ends the wait of the cell that runs
const RUN = Symbol.for('sandbox-executor.cell');
// The synchronous part of a cell runs below this script, which SIGINT breaks.
const breakable = new vm.Script(`globalThis[Symbol.for('sandbox-executor.cell')]()`);

// Node.js keeps a SIGINT that came just as such a script ended for the next one: after a cell that was interrupted this
// one takes it.
const absorbing = new vm.Script('for (const end = Date.now() + 50; Date.now() < end;);');
function absorb() {
    try {
        absorbing.runInThisContext({ breakOnSigint: true });
    } catch {
        // that was the one
    }
}

function evaluate(text, count) {
    let evaluated;
    globalThis[RUN] = () => {
        send('B', { id: cell.id, count }); // from here on SIGINT is not lost
        evaluated = post('Runtime.evaluate', {
            expression: `${text}\n//# sourceURL=cell-${count}`, replMode: true, awaitPromise: true,
            objectGroup: 'cell', userGesture: false,
        });
    };
    try {
        breakable.runInThisContext({ breakOnSigint: true });
    } catch (e) {
        if (e.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED') return Promise.resolve(INTERRUPTED);
        throw e;
    } finally {
        delete globalThis[RUN];
    }
    return evaluated;
}

// [the value that the inspector speaks of]: in a list, because a promise that is returned would be awaited.
async function valueOf(object) {
    if (!object.objectId) {
        if (object.type === 'bigint') return [BigInt(object.unserializableValue.slice(0, -1))];
        return ['unserializableValue' in object ? Number(object.unserializableValue) : object.value];
    }
    let got;
    globalThis[RUN] = (value) => { got = value; };
    await post('Runtime.callFunctionOn', {
        objectId: object.objectId,
        functionDeclaration: `function () { globalThis[Symbol.for('sandbox-executor.cell')](this); }`,
    });
    delete globalThis[RUN];
    return [got];
}

// Without the frames of this file and of the inspector below them.
function stackOf(error) {
    const lines = String(error && error.stack || error).split('\n');
    const end = lines.findIndex((line) => /^\s+at /.test(line) &&
        (line.includes(__filename) || line.includes('node:inspector') || line.includes('node:vm')));
    return (end < 0 ? lines : lines.slice(0, end)).join('\n');
}

function failure(value, text) {
    if (value instanceof Error || (value && typeof value === 'object' && typeof value.stack === 'string'))
        return { name: String(value.name || 'Error'), value: String(value.message ?? ''), traceback: stackOf(value) };
    const said = util.inspect(value);
    return { name: 'Error', value: said, traceback: `${text || 'Uncaught'} ${said}` };
}

async function execute(code, count) {
    let text;
    try {
        text = asCalls(typescript ? asJavaScript(code) : code);
    } catch (e) {
        send('B', { id: cell.id, count });
        return { name: 'SyntaxError', value: String(e.message || e).trim(), traceback: `SyntaxError: ${e.message || e}` };
    }
    const waiting = new Promise((done) => { interrupt = () => done(INTERRUPTED); });
    const onSignal = () => interrupt();
    process.on('SIGINT', onSignal);
    try {
        const got = await Promise.race([evaluate(text, count), waiting]);
        if (got === INTERRUPTED) {
            absorb();
            return { name: 'KeyboardInterrupt', value: 'the cell was interrupted', traceback: 'KeyboardInterrupt' };
        }
        const [value] = await valueOf(got.exceptionDetails ? got.exceptionDetails.exception || got.result : got.result);
        if (got.exceptionDetails) return failure(value, got.exceptionDetails.text);
        if (value !== undefined) event({ type: 'display', data: bundle(value), metadata: {}, main: true });
        return null;
    } finally {
        process.removeListener('SIGINT', onSignal);
        post('Runtime.releaseObjectGroup', { objectGroup: 'cell' });
    }
}

async function run(one, count) {
    cell = one;
    const before = {};
    for (const [name, value] of Object.entries(one.env || {})) {
        before[name] = process.env[name];
        process.env[name] = value;
    }
    let error;
    try {
        error = await execute(one.code, count);
    } catch (e) {
        error = failure(e);
    }
    for (const [name, value] of Object.entries(before)) {
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
    }
    if (error) event({ type: 'error', ...error });
    flush();
    sbx.forget();
    send('R', { id: one.id, status: error ? 'error' : 'ok' });
    cell = null;
}

function main() {
    capture(process.stdout, 'stdout');
    capture(process.stderr, 'stderr');
    Object.assign(globalThis, { require: load, display });
    Object.defineProperty(globalThis, IMPORT, { value: importFrom, enumerable: false });
    process.on('SIGINT', () => {}); // between cells
    process.on('uncaughtException', (e) => process.stderr.write(`Uncaught ${stackOf(e)}\n`));
    process.on('unhandledRejection', (e) => process.stderr.write(`Unhandled rejection: ${stackOf(e)}\n`));

    const cells = [];
    let received = Buffer.alloc(0), count = 0, running = false;
    const next = async () => {
        if (running) return;
        running = true;
        while (cells.length) await run(cells.shift(), ++count);
        running = false;
    };
    const channel = new net.Socket({ fd: CHANNEL, readable: true, writable: false });
    channel.on('data', (data) => {
        received = Buffer.concat([received, data]);
        for (;;) {
            const size = received.length >= HEAD ? HEAD + parseInt(received.toString('latin1', 1, HEAD), 16) : Infinity;
            if (received.length < size) break;
            if (received[0] === ANSWER) sbx.answer(received.toString('utf8', HEAD, size));
            else if (size > HEAD) cells.push(JSON.parse(received.toString('utf8', HEAD, size)));
            received = received.subarray(size);
        }
        next();
    });
    channel.on('close', () => process.exit(0));
    send('Y', { language: typescript ? 'typescript' : 'javascript', version: process.versions.node });
}

main();
