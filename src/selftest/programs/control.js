// SPDX-License-Identifier: MIT
// Ordinary work in Node.js that must go on under the same walls.
const works = {
    'node-workers': () => new Promise((ok) => {
        const { Worker } = require('worker_threads')
        const code = "require('worker_threads').parentPort.postMessage(6 * 7)"
        new Worker(code, { eval: true }).on('message', (v) => ok(v === 42))
    }),
    'node-child': () => {
        const { execFileSync, spawnSync } = require('child_process')
        return execFileSync('echo', ['hi']).toString() === 'hi\n' && spawnSync('sh', ['-c', 'exit 3']).status === 3
    },
    'node-crypto': async () => {
        const c = require('crypto')
        const key = await new Promise((ok) => c.scrypt('a', 'b', 32, (e, k) => ok(k.length)))
        return c.createHash('sha256').update('a').digest('hex').startsWith('ca978112') && key === 32
    },
    'node-http': async () => {
        const http = require('http')
        const s = http.createServer((q, r) => r.end('pong'))
        await new Promise((ok) => s.listen(0, '127.0.0.1', ok))
        const text = await new Promise((ok) => http.get({ port: s.address().port, host: '127.0.0.1' }, (r) => {
            let all = ''
            r.on('data', (d) => { all += d }).on('end', () => ok(all))
        }))
        s.close()
        return text === 'pong'
    },
    'node-files': async () => {
        const fs = require('fs/promises')
        await fs.writeFile('a', 'x')
        await fs.mkdir('d')
        await fs.rename('a', 'd/a')
        return (await fs.readFile('d/a', 'utf8')) === 'x'
    },
    'node-wasm': async () => {
        const empty = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])
        return (await WebAssembly.instantiate(empty)).instance instanceof WebAssembly.Instance
    },
    // 'lo:1' is a second address of the loopback, of a door to the outside
    'node-interfaces': () => Object.keys(require('os').networkInterfaces()).join().replace(',lo:1', '') === 'lo'
}

exports.handler = async (event) => {
    let good = false
    try { good = await works[event.attack]() } catch (problem) { console.log('FAILED', problem.message) }
    console.log(good ? 'OK' : 'FAILED')
}
