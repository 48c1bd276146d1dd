// SPDX-License-Identifier: MIT
// What the programs beside this file share. Each drives the daemon through E2B's own SDK, of the generation that
// SDK names, and tells one line of JSON per check: {"name", "ok", "error"?}. The name is that of the SDK's method
// as docs/e2b.md has it, with more behind a colon if need be.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import http from 'node:http'

const require = createRequire(process.env.SDK + '/package.json')
export const e2b = require('e2b')
export const interpreter = require('@e2b/code-interpreter')
export const { Sandbox } = e2b
export const OLD = process.env.GENERATION === 'old'
export { assert, http }

export async function check(name, fn) {
  let told = { name, ok: true }
  try {
    await fn()
  } catch (error) {
    told = { name, ok: false, error: String(error?.stack ?? error) }
  }
  console.log(JSON.stringify(told))
}

// A sandbox for one check, ended whatever happens.
export async function withSandbox(fn, options = {}, Class = Sandbox) {
  const sandbox = await Class.create(options)
  try {
    return await fn(sandbox)
  } finally {
    await sandbox.kill()
  }
}

export async function until(condition, what, ms = 30000) {
  for (const end = Date.now() + ms; Date.now() < end;) {
    if (await condition()) return
    await new Promise((done) => setTimeout(done, 20))
  }
  assert.fail(`never happened: ${what}`)
}

// GET from a host that no DNS knows: the daemon's address, the host in the header.
export function get(host, path = '/', headers = {}, method = 'GET', body = undefined) {
  const { hostname, port } = new URL(process.env.E2B_API_URL)
  return new Promise((resolve, reject) => {
    const request = http.request({ hostname, port, path, method, headers: { host, ...headers } }, (answer) => {
      let text = ''
      answer.setEncoding('utf8')
      answer.on('data', (piece) => (text += piece))
      answer.on('end', () => resolve({ status: answer.statusCode, headers: answer.headers, text }))
    })
    request.on('error', reject)
    request.end(body)
  })
}
