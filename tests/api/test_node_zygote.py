# SPDX-License-Identifier: MIT
"""Node.js from the zygote: what a program sees is what a fresh node would show it.

Two daemons run the same programs, one with the zygote and one without.
"""
import os
import textwrap

import pytest

import harness

PROGRAMS = {}


def program(name, code, **fields):
    assert name not in PROGRAMS
    PROGRAMS[name] = (textwrap.dedent(code), fields)


# ---- the language ----

program("sync", "exports.handler = (e) => ({ sum: e.a + 1, text: `${e.a}` })", event={"a": 1})
program("async", "exports.handler = async () => { await null; return [1, 2] }")
program("microtasks", """
    exports.handler = async () => {
        const order = [];
        setTimeout(() => order.push('timeout'), 5);
        process.nextTick(() => order.push('tick'));
        Promise.resolve().then(() => order.push('promise'));
        queueMicrotask(() => order.push('microtask'));
        await new Promise((ok) => setTimeout(ok, 20));
        return order;
    }""")
program("esm", """
    import { readFileSync } from 'node:fs';
    import path, { join } from 'node:path';
    export const handler = async () => [typeof readFileSync, join('a', '..', 'b'), path.sep,
        typeof import.meta.url, (await import('node:os')).EOL];
    """)
program("top_level_await", """
    const a = await new Promise((ok) => setTimeout(ok, 1, 7));
    export const handler = () => a""")
program("dynamic_import", """
    const fs = require('fs');
    exports.handler = async () => {
        fs.writeFileSync('/workspace/m.mjs', 'export const a = 1; export default () => import("./n.mjs")');
        fs.writeFileSync('/workspace/n.mjs', 'export const b = 2');
        const m = await import('/workspace/m.mjs');
        return [m.a, (await m.default()).b, (await import('node:util')).format('%d', 3),
            (await import('data:text/javascript,export default 4')).default];
    }""")
program("package_of_the_program", """
    const fs = require('fs');
    fs.writeFileSync('package.json', '{"type":"module","imports":{"#x":"./x.js"}}');
    fs.writeFileSync('x.js', 'export const x = 1');
    fs.mkdirSync('node_modules/dep', { recursive: true });
    fs.writeFileSync('node_modules/dep/package.json', '{"main":"lib.js","name":"dep"}');
    fs.writeFileSync('node_modules/dep/lib.js', 'module.exports = 42');
    fs.writeFileSync('data.json', '{"k":[1]}');
    exports.handler = async () => [require('dep'), (await import('./x.js')).x, require('./data.json')]""")
program("errors", "exports.handler = () => { null.x }")
program("errors_async", "exports.handler = async () => { await 1; throw new RangeError('deep') }")
program("errors_syntax", "const a = 1\nlet a = 2\n")
program("errors_module", "import x from './missing.mjs'; export const handler = () => x")
program("stack_overflow", """
    function f(n) { return f(n + 1) + 1 }
    exports.handler = () => { try { f(0) } catch (e) { return [e.name, e.message] } }""")
program("eval", "exports.handler = () => [eval('1+1'), new Function('a', 'return a * 2')(4)]")
program("intl", """
    exports.handler = () => [new Intl.NumberFormat('de').format(1234.5), Intl.DateTimeFormat().resolvedOptions().locale,
        new Date(0).toLocaleString('en-GB', { timeZone: 'Asia/Tokyo' }), 'ä'.localeCompare('z', 'sv')]""")
program("time_zone", "exports.handler = () => new Date(0).toString()", env_vars={"TZ": "America/New_York"})
program("regexp_bigint", r"""
    exports.handler = () => ['2026-11-16'.match(/(?<y>\d+)-(?<m>\d+)/).groups.y, (2n ** 200n).toString(),
        'aXbX'.replaceAll('X', '-'), [...'héé'.matchAll(/é/g)].length]""")
program("jit", """
    exports.handler = () => {
        const add = (a, b) => a + b;
        let n = 0;
        for (let i = 0; i < 3e6; i++) n = add(n, i % 7);
        let s = '';
        for (let i = 0; i < 1e5; i++) s = add(s, 'x').slice(-5);
        return [n, s];
    }""")
program("garbage", """
    exports.handler = () => {
        let keep = [];
        for (let i = 0; i < 200; i++) {
            keep.push(new Array(2000).fill(i).map((x) => ({ x })));
            if (keep.length > 60) keep = keep.slice(30);
        }
        return keep.length;
    }""")
program("finalization", """
    exports.handler = async () => {
        const registry = new FinalizationRegistry(() => {});
        registry.register({}, 1);
        return new WeakRef(registry).deref() === registry;
    }""")
program("typed_arrays", """
    exports.handler = () => {
        const b = Buffer.alloc(8);
        b.writeDoubleLE(1.5);
        return [b.toString('hex'), new Float32Array([1, 2]).map((x) => x * 2).join(), structuredClone({ a: new Map([[1, 2]]) }).a.get(1)];
    }""")
program("serialize", "exports.handler = () => require('v8').deserialize(require('v8').serialize({ a: [1, 'x'] }))")

# ---- threads and WebAssembly ----

WASM = "Buffer.from('AGFzbQEAAAABBQFgAAF/AwIBAAcFAQFmAAAKBgEEAEEqCw==', 'base64')"
program("wasm_sync", f"exports.handler = () => new WebAssembly.Instance(new WebAssembly.Module({WASM})).exports.f()")
program("wasm_async", f"""
    exports.handler = async () => {{
        const wasm = {WASM};
        const m = await WebAssembly.compile(wasm);
        return [(await WebAssembly.instantiate(wasm)).instance.exports.f(), (await WebAssembly.instantiate(m)).exports.f(),
            WebAssembly.validate(wasm), await WebAssembly.compile(Buffer.from('no')).catch((e) => e.name)];
    }}""")
program("wasm_streaming", f"""
    exports.handler = async () => {{
        const response = new Response({WASM}, {{ headers: {{ 'content-type': 'application/wasm' }} }});
        return (await WebAssembly.instantiateStreaming(response)).instance.exports.f();
    }}""")
program("wasm_in_a_context", f"""
    const vm = require('vm');
    exports.handler = async () => (await vm.runInNewContext('WebAssembly.instantiate(w)', {{ w: {WASM} }})).instance.exports.f()""")
# (func (export "f") (param i32) (result i32) ...) sums from its argument down to 1: hot enough to be compiled again
program("wasm_hot", """
    const bytes = Buffer.from('AGFzbQEAAAABBgFgAX8BfwMCAQAHBQEBZgAAChsBGQEBfwNAIAEgAGohASAAQQFrIgANAAsgAQs=', 'base64');
    exports.handler = async () => {
        const { instance } = await WebAssembly.instantiate(bytes);
        let n = 0;
        for (let i = 0; i < 2000; i++) n = (n + instance.exports.f(20000)) | 0;
        return n;
    }""")
program("worker", """
    const { Worker } = require('worker_threads');
    exports.handler = () => new Promise((ok, no) => {
        const w = new Worker('const { parentPort, workerData } = require("worker_threads");'
            + 'parentPort.on("message", (m) => { parentPort.postMessage([m, workerData, process.pid]); parentPort.close(); })',
            { eval: true, workerData: { a: 1 } });
        w.on('error', no).on('message', ([m, d, pid]) => w.on('exit', (code) => ok([m, d, pid === process.pid, code])));
        w.postMessage('hello');
    })""")
program("workers_shared_memory", """
    const { Worker } = require('worker_threads');
    exports.handler = async () => {
        const shared = new Int32Array(new SharedArrayBuffer(8));
        const code = 'const a = require("worker_threads").workerData; for (let i = 0; i < 1000; i++) Atomics.add(a, 0, 1); Atomics.add(a, 1, 1); Atomics.notify(a, 1)';
        const workers = [1, 2, 3, 4].map(() => new Worker(code, { eval: true, workerData: shared }));
        await Promise.all(workers.map((w) => new Promise((ok) => w.on('exit', ok))));
        return [shared[0], Atomics.wait(shared, 1, 99, 1)];
    }""")
program("worker_wasm", f"""
    const {{ Worker }} = require('worker_threads');
    exports.handler = () => new Promise((ok, no) => new Worker(
        `WebAssembly.instantiate({WASM}).then((m) => require("worker_threads").parentPort.postMessage(m.instance.exports.f()))`,
        {{ eval: true }}).on('message', ok).on('error', no))""")
program("worker_fetch", """
    const { Worker } = require('worker_threads');
    const server = require('http').createServer((q, r) => r.end('fetched')).listen(0, '127.0.0.1');
    exports.handler = async () => {
        await new Promise((ok) => server.on('listening', ok));
        const got = await new Promise((ok, no) => new Worker(`fetch('http://127.0.0.1:${server.address().port}').then((r) => r.text())
            .then((t) => require("worker_threads").parentPort.postMessage(t))`, { eval: true }).on('message', ok).on('error', no));
        server.closeAllConnections();
        return got;
    }""")
program("worker_dies", """
    const { Worker } = require('worker_threads');
    exports.handler = () => new Promise((ok) => new Worker('throw new Error("inside")', { eval: true }).on('error', (e) => ok(e.message)))""")
program("atomics_wait_async", """
    exports.handler = async () => {
        const a = new Int32Array(new SharedArrayBuffer(4));
        const timed = Atomics.waitAsync(a, 0, 0, 10);
        const woken = Atomics.waitAsync(a, 0, 0);
        setTimeout(() => Atomics.notify(a, 0), 30);
        return [await timed.value, await woken.value];
    }""")
program("message_channel", """
    exports.handler = () => new Promise((ok) => {
        const { port1, port2 } = new MessageChannel();
        port2.on('message', (m) => { port2.close(); ok(m) });
        port1.postMessage({ a: new Uint8Array(3) });
    }).then((m) => m.a.length)""")
program("async_local_storage", """
    const { AsyncLocalStorage } = require('async_hooks');
    const s = new AsyncLocalStorage();
    exports.handler = () => s.run(7, async () => { await new Promise((ok) => setImmediate(ok)); return s.getStore() })""")

# ---- files ----

program("fs_sync", """
    const fs = require('fs');
    exports.handler = () => {
        fs.mkdirSync('d/e', { recursive: true });
        fs.writeFileSync('d/e/f', 'text');
        fs.symlinkSync('f', 'd/e/l');
        return [fs.readFileSync('d/e/l', 'utf8'), fs.readdirSync('d', { recursive: true }).sort(), fs.statSync('d/e/f').size,
            fs.existsSync('/no'), fs.mkdtempSync('/tmp/x-').length];
    }""")
program("fs_promises", """
    const fs = require('fs/promises');
    exports.handler = async () => {
        const names = [...Array(16).keys()].map((i) => `/tmp/p${i}`);
        await Promise.all(names.map((n, i) => fs.writeFile(n, 'x'.repeat(i * 1000))));
        const sizes = await Promise.all(names.map(async (n) => (await fs.stat(n)).size));
        const h = await fs.open('/tmp/p3');
        const { bytesRead } = await h.read(Buffer.alloc(10), 0, 10, 0);
        await h.close();
        await Promise.all(names.map((n) => fs.unlink(n)));
        return [sizes.reduce((a, b) => a + b), bytesRead, (await fs.readdir('/tmp')).filter((n) => n.startsWith('p')).length];
    }""")
program("fs_streams", """
    const fs = require('fs');
    const { pipeline } = require('stream/promises');
    exports.handler = async () => {
        fs.writeFileSync('/tmp/in', Buffer.alloc(300000, 'ab'));
        await pipeline(fs.createReadStream('/tmp/in'), require('zlib').createGzip(), fs.createWriteStream('/tmp/out.gz'));
        return require('zlib').gunzipSync(fs.readFileSync('/tmp/out.gz')).length;
    }""")
program("fs_watch", """
    const fs = require('fs');
    exports.handler = () => new Promise((ok) => {
        const w = fs.watch('/workspace', (what, name) => { w.close(); ok(name) });
        fs.writeFileSync('/workspace/seen', '');
    })""")

# ---- the outside ----

program("child_process", """
    const cp = require('child_process');
    const { promisify } = require('util');
    exports.handler = async () => [(await promisify(cp.exec)('echo $((6*7))')).stdout, cp.spawnSync('sh', ['-c', 'exit 3']).status,
        cp.execFileSync('cat', { input: 'through' }).toString(),
        await new Promise((ok) => { const c = cp.spawn('cat'); let s = ''; c.stdout.on('data', (d) => s += d); c.on('close', (code, sig) => ok([s, code, sig])); c.stdin.end('piped') }),
        await new Promise((ok) => { const c = cp.spawn('sleep', ['60']); c.on('exit', (code, sig) => ok([code, sig])); c.kill() }),
        cp.spawnSync('/no/such').error.code]""", timeout=30)
program("child_node", """
    const cp = require('child_process');
    exports.handler = () => [cp.execFileSync(process.execPath, ['-p', 'process.argv.length + process.execArgv.length']).toString(),
        cp.execFileSync(process.execPath, ['-e', 'process.exitCode = 0; console.log(process.ppid > 1)']).toString()]""", timeout=30)
program("child_fork", """
    const cp = require('child_process');
    require('fs').writeFileSync('/workspace/child.js', 'process.on("message", (m) => { process.send(m + 1); process.disconnect() })');
    exports.handler = () => new Promise((ok) => { const c = cp.fork('/workspace/child.js'); c.on('message', (m) => c.on('exit', (code) => ok([m, code]))); c.send(41) })""", timeout=30)
program("signals", """
    exports.handler = () => new Promise((ok) => {
        const keep = setInterval(() => {}, 1000);
        process.once('SIGUSR2', (s, n) => { clearInterval(keep); ok([s, n]) });
        process.kill(process.pid, 'SIGUSR2');
    })""")
program("killed_by_signal", "process.kill(process.pid, 'SIGTERM'); setTimeout(() => {}, 10000)")
program("broken_pipe", """
    const c = require('child_process').spawn('sh', ['-c', 'exec <&-; echo; exec sleep 60']);
    exports.handler = () => new Promise((ok) => {
        c.stdin.on('error', (e) => { c.kill(); ok(e.code) });
        c.stdout.once('data', () => c.stdin.write('x'));
    })""")
program("sockets", """
    const net = require('net');
    exports.handler = async () => {
        const seen = [];
        for (const where of [{ port: 0, host: '127.0.0.1' }, { path: '/tmp/s' }]) {
            const server = net.createServer((c) => c.pipe(c)).listen(where);
            await new Promise((ok) => server.on('listening', ok));
            const c = net.connect(where.path ? where : server.address().port, where.host);
            seen.push(await new Promise((ok, no) => { c.on('error', no).on('data', (d) => ok(d.toString())); c.write('ping') }));
            c.destroy();
            server.close();
        }
        return seen;
    }""")
program("http_and_fetch", """
    const http = require('http');
    exports.handler = async () => {
        const server = http.createServer((q, r) => { r.setHeader('x-a', 'b'); r.end(q.method + q.url) }).listen(0, '127.0.0.1');
        await new Promise((ok) => server.on('listening', ok));
        const url = `http://127.0.0.1:${server.address().port}`;
        const got = await new Promise((ok, no) => http.get(`${url}/a`, (r) => { let s = ''; r.on('data', (d) => s += d).on('end', () => ok([s, r.headers['x-a']])) }).on('error', no));
        const response = await fetch(`${url}/b`, { method: 'POST', body: 'x' });
        const text = await response.text();
        server.closeAllConnections();
        server.close();
        return [got, response.status, text];
    }""")
program("dns", "exports.handler = async () => [(await require('dns').promises.lookup('localhost', 4)).address]")
program("udp", """
    const dgram = require('dgram');
    exports.handler = () => new Promise((ok) => {
        const s = dgram.createSocket('udp4').on('message', (m) => { s.close(); ok(m.toString()) });
        s.bind(0, '127.0.0.1', () => s.send('datagram', s.address().port, '127.0.0.1'));
    })""")
program("crypto", """
    const c = require('crypto');
    const { promisify: p } = require('util');
    exports.handler = async () => {
        const key = await c.webcrypto.subtle.importKey('raw', Buffer.alloc(16, 1), 'AES-GCM', false, ['encrypt']);
        const pair = await p(c.generateKeyPair)('ec', { namedCurve: 'P-256' });
        const sign = c.createSign('sha256').update('m').sign(pair.privateKey);
        return [c.createHash('sha256').update('a').digest('hex'), (await p(c.pbkdf2)('p', 's', 1000, 16, 'sha512')).toString('hex'),
            (await p(c.scrypt)('p', 's', 16)).toString('hex'), c.createHmac('md5', 'k').update('v').digest('base64'),
            Buffer.from(await c.webcrypto.subtle.encrypt({ name: 'AES-GCM', iv: Buffer.alloc(12) }, key, Buffer.from('x'))).toString('hex'),
            c.createVerify('sha256').update('m').verify(pair.publicKey, sign), c.getHashes().length];
    }""")
program("zlib", """
    const z = require('zlib');
    const { promisify: p } = require('util');
    exports.handler = async () => [(await p(z.gunzip)(await p(z.gzip)('text'))).toString(), z.brotliDecompressSync(z.brotliCompressSync('b')).toString(),
        z.inflateSync(z.deflateSync('d')).toString()]""")
program("streams", """
    const { Readable, Transform } = require('stream');
    exports.handler = async () => {
        const out = [];
        for await (const x of Readable.from([1, 2, 3]).pipe(new Transform({ objectMode: true, transform: (v, e, ok) => ok(null, v * 2) }))) out.push(x);
        for await (const x of new Blob(['web']).stream()) out.push(new TextDecoder().decode(x));
        return out;
    }""")
program("readline_stdin", """
    const rl = require('readline').createInterface({ input: process.stdin });
    exports.handler = async () => { const lines = []; for await (const l of rl) lines.push(l); return lines }""", stdin="one\ntwo\n")
program("vm", """
    const vm = require('vm');
    exports.handler = () => {
        const c = vm.createContext({ a: 1 });
        let stopped = '';
        try { vm.runInContext('for (;;);', c, { timeout: 20 }) } catch (e) { stopped = e.code }
        return [vm.runInContext('a + 1', c), vm.runInNewContext('b', { b: 3 }), new vm.Script('a').runInNewContext({ a: 4 }),
            vm.isContext(c), stopped, vm.createContext.name, vm.createContext.length];
    }""")
program("timers", """
    exports.handler = async () => {
        const t = process.hrtime.bigint();
        const seen = [];
        const i = setInterval(() => seen.push('i'), 10);
        await new Promise((ok) => setTimeout(ok, 55));
        clearInterval(i);
        await require('timers/promises').setTimeout(5);
        const ms = Number(process.hrtime.bigint() - t) / 1e6;
        return [seen.length >= 1 && seen.length <= 6, ms >= 58, await new Promise((ok) => setImmediate(ok, 'done'))];
    }""")

# ---- the process ----

program("process", """
    exports.handler = () => [process.pid, process.ppid, process.cwd(), process.argv, process.execArgv, process.title, process.execPath,
        process.argv0, process.version, process.platform, process.env, process.umask(), process.uptime() < 5, process.getuid(),
        require.main === module, module.id, module.paths, __filename, __dirname, typeof process.send, process.exitCode,
        Object.getOwnPropertyDescriptor(process, 'pid'), process.eventNames(), process.getActiveResourcesInfo()]""")
program("globals", """
    exports.handler = () => [Object.getOwnPropertyNames(globalThis).sort(), Object.keys(require.cache),
        Object.keys(globalThis), require('module').builtinModules.length, typeof gc, process.moduleLoadList.length > 0]""")
program("os", "const os = require('os'); exports.handler = () => [os.hostname(), os.userInfo().username, os.homedir(), os.tmpdir(), os.networkInterfaces().lo?.length]")
program("heap_limit", """
    exports.handler = () => Math.round(require('v8').getHeapStatistics().heap_size_limit / 2 ** 20)""")
program("performance", """
    exports.handler = () => {
        performance.mark('a');
        const m = performance.measure('m', 'a');
        return [m.duration >= 0 && m.duration < 1000, Math.abs(performance.timeOrigin + performance.now() - Date.now()) < 100];
    }""")
program("output", """
    exports.handler = () => {
        for (let i = 0; i < 3000; i++) console.log('x'.repeat(50));
        console.error('%o', { a: [1] });
        process.stdout.write('end');
        return [process.stdout.isTTY, process.stdout.constructor.name, process.stdin.constructor.name];
    }""")
program("exit_code", "process.on('exit', (c) => console.log('bye', c)); process.exitCode = 4")
program("exit_in_handler", "exports.handler = () => { process.on('exit', () => console.log('bye')); process.exit(9) }")
program("uncaught", "process.on('uncaughtException', (e) => { console.log('caught', e.message) }); setTimeout(() => { throw new Error('t') }, 1)")
program("unhandled", "Promise.reject(new Error('nobody'))")
program("script", "setTimeout(() => console.log('later'), 2); console.log('now'); require('fs').readFile('/etc/hostname', 'utf8', (e, t) => console.log(t))")
program("never_settles", "exports.handler = () => new Promise(() => {})")
program("abort", "process.abort()")
program("out_of_heap", "const a = []; for (;;) a.push(new Array(300000).fill(0))", timeout=60)

FAILING = {"errors", "errors_async", "errors_syntax", "errors_module", "killed_by_signal", "exit_code", "exit_in_handler", "unhandled",
           "abort", "never_settles", "out_of_heap"}
COMPARED = ("status", "exit_code", "return_value", "stdout", "stderr")


@pytest.fixture(scope="module")
def warm(make_daemon_module):
    harness.need(os.path.exists("/usr/bin/node") and os.uname().machine == "x86_64", "Node.js on x86-64")
    daemon = make_daemon_module(POOL_NODE="2")
    await_template(daemon)
    return daemon


@pytest.fixture(scope="module")
def cold(make_daemon_module):
    return make_daemon_module(NODE_ZYGOTE="false")


def await_template(daemon):
    """The zygote starts in the background; until it has, programs get a node of their own."""
    def is_warm():
        return daemon.execute("exports.handler = () => 1", "javascript")["isolation"]["template"] == "node"
    harness.wait_until(is_warm, "a sandbox from the zygote")


def seen_by_clients(result):
    """Of a crash of node itself only the kind: what it prints then names addresses and node's own frames."""
    seen = {k: result[k] for k in COMPARED}
    if "Native stack trace" in seen["stderr"]:
        seen["stderr"] = ["JavaScript heap out of memory" in seen["stderr"]]
    return seen


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_sees_what_a_fresh_node_shows(warm, cold, name):
    code, fields = PROGRAMS[name]
    expected = cold.execute(code, "javascript", **fields)
    assert (expected["status"] == "success") == (name not in FAILING), expected
    got = warm.execute(code, "javascript", **fields)
    assert (got["isolation"]["template"], expected["isolation"]["template"]) == ("node", "exec")
    assert seen_by_clients(got) == seen_by_clients(expected)


# ---- nothing is shared between runs ----

RANDOM = """
    const crypto = require('crypto');
    const vm = require('vm');
    const { Worker } = require('worker_threads');
    const context = vm.createContext({});
    exports.handler = async () => ({
        math: Math.random(),
        bytes: crypto.randomBytes(8).toString('hex'),
        uuid: crypto.randomUUID(),
        int: crypto.randomInt(2 ** 47),
        values: crypto.getRandomValues(new Uint32Array(2)).join(),
        async: (await new Promise((ok) => crypto.randomBytes(8, (e, b) => ok(b)))).toString('hex'),
        web: globalThis.crypto.randomUUID(),
        key: crypto.generateKeySync('hmac', { length: 64 }).export().toString('hex'),
        context: vm.runInContext('Math.random()', context),
        new_context: vm.runInNewContext('Math.random()'),
        script: new vm.Script('Math.random()').runInNewContext(),
        directory: require('fs').mkdtempSync('/tmp/x'),
    })"""


def returned(daemon, code, **fields):
    result = daemon.execute(textwrap.dedent(code), "javascript", **fields)
    assert (result["status"], result["isolation"]["template"]) == ("success", "node"), result
    return result["return_value"]


def test_random_numbers_differ_in_every_run_and_source(warm):
    runs = [returned(warm, RANDOM) for _ in range(50)]
    for source in runs[0]:
        assert len({run[source] for run in runs}) == len(runs), source
    numbers = [run[k] for run in runs for k in ("math", "context", "new_context", "script")]
    assert len(set(numbers)) == len(numbers)


def test_random_numbers_of_workers_differ(warm):
    code = """
        const { Worker } = require('worker_threads');
        const draw = () => new Promise((ok) => new Worker(
            'require("worker_threads").parentPort.postMessage([Math.random(), require("crypto").randomUUID()])', { eval: true }).on('message', ok));
        exports.handler = async () => (await Promise.all([draw(), draw()])).flat().concat(Math.random())"""
    drawn = [value for _ in range(3) for value in returned(warm, code)]
    assert len(set(drawn)) == len(drawn)


DESCRIPTORS = """
    const fs = require('fs');
    exports.handler = () => fs.readdirSync('/proc/self/fd').map(Number).sort((a, b) => a - b).flatMap((fd) => {
        try {
            const link = fs.readlinkSync(`/proc/self/fd/${fd}`);
            return [[fd, link.replace(/\\d+/g, '#'), link, (/flags:\\s+(\\d+)/.exec(fs.readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))[1])]];
        } catch { return [] }
    })"""
CLOSE_ON_EXEC = 0o2000000


def test_descriptors_are_those_of_a_fresh_node_and_nobody_elses(warm, cold):
    first, second = (returned(warm, DESCRIPTORS) for _ in range(2))
    fresh = cold.returned(textwrap.dedent(DESCRIPTORS), "javascript")
    kinds = [sorted((kind, int(flags, 8)) for _, kind, _, flags in run) for run in (first, fresh)]
    assert kinds[0] == kinds[1]
    assert all(flags & CLOSE_ON_EXEC for _, flags in kinds[0])
    assert {row[0] for row in first if "socket" in row[1]} == {3}
    pipes = [{link for _, _, link, _ in run if link.startswith(("pipe", "socket"))} for run in (first, second)]
    assert not pipes[0] & pipes[1]
    assert not pipes[0] & {os.readlink(f"/proc/{pid}/fd/{fd}") for pid in zygotes(warm)
                           for fd in os.listdir(f"/proc/{pid}/fd")}


def zygotes(daemon):
    """Processes of node that are in no sandbox."""
    launcher = harness.namespace(daemon.launcher(), "pid")
    return [pid for pid in daemon.tree() if harness.read_proc(pid, "comm").strip() == b"node"
            and harness.namespace(pid, "pid") == launcher]


def test_a_child_process_inherits_only_its_streams(warm, cold):
    code = "exports.handler = () => require('child_process').execFileSync('ls', ['/proc/self/fd']).toString()"
    assert returned(warm, code) == cold.returned(code, "javascript")


def test_a_run_that_ruins_its_event_loop_ruins_only_itself(warm):
    ruin = """
        const fs = require('fs');
        for (let fd = 4; fd < 64; fd++) { try { fs.writeSync(fd, Buffer.alloc(4096)) } catch {} try { fs.closeSync(fd) } catch {} }
        process.kill(process.pid, 'SIGKILL');"""
    for _ in range(4):
        # One of its threads may notice and abort before it kills itself.
        assert warm.execute(ruin, "javascript")["exit_code"] in (134, 137)
    code = "exports.handler = async () => { await new Promise((ok) => setTimeout(ok, 5)); return (await require('fs/promises').readFile('/etc/hostname', 'utf8')) }"
    for _ in range(4):
        assert returned(warm, code) == "sandbox\n"


def test_state_does_not_pass_to_the_next_run(warm):
    plant = """
        Array.prototype.planted = 1; globalThis.planted = 1; process.env.PLANTED = 'x'; require('fs').planted = 1;
        process.on('exit', () => {}); require('module')._cache.planted = 1; process.chdir('/tmp'); process.title = 'planted';
        exports.handler = () => 1"""
    look = """
        exports.handler = () => [[].planted, globalThis.planted, process.env.PLANTED, require('fs').planted,
            require('module')._cache.planted, process.cwd(), process.title]"""
    assert returned(warm, plant) == 1
    for _ in range(4):
        assert returned(warm, look) == [None, None, None, None, None, "/workspace", "/usr/bin/node"]


STATUS = r"""
    const fs = require('fs');
    exports.handler = () => ({
        status: Object.fromEntries(fs.readFileSync('/proc/self/status', 'utf8').split('\n').map((l) => l.split(/:\s+/))
            .filter(([k]) => /^(Umask|TracerPid|Uid|Gid|Groups|NStgid|Cap\w+|NoNewPrivs|Seccomp|Sig(Blk|Ign|Cgt)|ShdPnd)$/.test(k))),
        limits: fs.readFileSync('/proc/self/limits', 'utf8'),
        mounts: fs.readFileSync('/proc/self/mountinfo', 'utf8').split('\n').map((l) => l.split(' ').slice(3).join(' ').replace(/\d+/g, '#').replace(',uid=#,gid=#', '')),  // who mounted: not root of the host
        processes: fs.readdirSync('/proc').filter((n) => /^\d+$/.test(n)).map((pid) => fs.readFileSync(`/proc/${pid}/comm`, 'utf8')),
        groups: fs.readFileSync('/proc/self/cgroup', 'utf8').replace(/\d+/g, '#'),
        uid_map: fs.readFileSync('/proc/self/uid_map', 'utf8').split(/\s+/)[1],
        interfaces: Object.keys(require('os').networkInterfaces()),
        oom: fs.readFileSync('/proc/self/oom_score_adj', 'utf8'),
        init: ['root', 'mem', 'maps', 'environ', 'fd'].map((n) => { try { fs.readdirSync(`/proc/1/${n}`); return 'read' } catch (e) { return e.code } }),
    })"""


def test_confinement_is_that_of_a_fresh_node(warm, cold):
    got, expected = returned(warm, STATUS), cold.returned(textwrap.dedent(STATUS), "javascript")
    if not harness.ROOT:  # test_init_and_its_memory_are_out_of_reach says why
        got["init"][-1] = expected["init"][-1]
    assert got == expected
    assert got["status"]["CapEff"] == "0000000000000000" and got["status"]["Seccomp"] == "2"


def test_the_isolation_told_is_the_same(warm, cold):
    got, expected = (d.execute("1", "javascript")["isolation"] for d in (warm, cold))
    assert got["traits"] == expected["traits"] and got["jail"] == expected["jail"]


# ---- which programs get it ----


@pytest.mark.parametrize("name, value", [("NODE_OPTIONS", "--max-http-header-size=9000"), ("UV_THREADPOOL_SIZE", "1")])
def test_variables_that_node_reads_at_its_start_mean_a_fresh_one(warm, name, value):
    code = f"exports.handler = () => process.env.{name}"
    result = warm.execute(code, "javascript", env_vars={name: value})
    assert (result["return_value"], result["isolation"]["template"]) == (value, "exec")


def test_without_prepared_ones_it_is_forked_on_demand(make_daemon):
    daemon = make_daemon(POOL_NODE="0")
    await_template(daemon)
    for _ in range(3):
        result = daemon.execute("exports.handler = () => 2", "javascript")
        assert (result["return_value"], result["isolation"]["template"]) == (2, "node")


def test_many_at_once(warm):
    runs = [warm.start(f"exports.handler = async () => {{ await new Promise((ok) => setTimeout(ok, 50)); return {i} }}", "javascript")
            for i in range(12)]
    for i, connection in enumerate(runs):
        body = connection.receive().json()
        assert (body["return_value"], body["isolation"]["template"]) == (i, "node")
        connection.close()


def test_a_dead_zygote_is_replaced(make_daemon):
    daemon = make_daemon(POOL_NODE="1")
    await_template(daemon)
    dead, = zygotes(daemon)
    os.kill(dead, 9)
    # Reaped: its first thread ends before the others, and until they do orders to it are taken and lost.
    harness.wait_until(lambda: not os.path.exists(f"/proc/{dead}"), "its end")

    # Keepers live on and serve one after the other; more at once than there are keepers need a zygote.
    code = "exports.handler = () => new Promise((ok) => setTimeout(ok, 2000, 3))"
    runs = [daemon.start(code, "javascript") for _ in range(8)]
    harness.wait_until(lambda: [pid for pid in zygotes(daemon) if pid != dead], "another zygote")
    for connection in runs:
        body = connection.receive().json()
        assert (body["return_value"], body["isolation"]["template"]) == (3, "node")
        connection.close()


def test_a_node_that_cannot_be_copied_is_only_slower(make_daemon, tmp_path):
    """With a broken addon every start of the zygote fails, and no program notices."""
    binary = harness.build_without("sandbox-zygote-node.node", tmp_path)
    (tmp_path / "sandbox-zygote-node.node").write_bytes(b"not a library")
    daemon = make_daemon(binary=binary, POOL_NODE="1")
    for _ in range(5):
        result = daemon.execute("exports.handler = () => 4", "javascript")
        assert (result["return_value"], result["isolation"]["template"]) == (4, "exec")
