// SPDX-License-Identifier: MIT
// Drives the daemon with an official client of the Model Context Protocol. CLIENT: old (a package of the handshake era),
// new (the one after it, which opens with a handshake unless told otherwise) or modern (the same, pinned to 2026-07-28).
// TRANSPORT: http (MCP_URL, MCP_SECRET) or stdio (SBX, which finds the daemon in its environment). Tells one line of JSON
// per check: {"name", "ok", "error"?}.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const { SDK, CLIENT, TRANSPORT, MCP_URL, MCP_SECRET, SBX } = process.env
const require = createRequire(SDK + '/package.json')
const load = (name) => import(pathToFileURL(require.resolve(name)).href)
const OLD = CLIENT === 'old'
const MODERN = CLIENT === 'modern'

async function parts() {
  if (!OLD) {
    const { Client, StreamableHTTPClientTransport } = await load('@modelcontextprotocol/client')
    const { StdioClientTransport } = await load('@modelcontextprotocol/client/stdio')
    return { Client, StreamableHTTPClientTransport, StdioClientTransport }
  }
  const { Client } = await load('@modelcontextprotocol/sdk/client/index.js')
  const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js')
  const { StdioClientTransport } = await load('@modelcontextprotocol/sdk/client/stdio.js')
  return { Client, StreamableHTTPClientTransport, StdioClientTransport }
}

const { Client, StreamableHTTPClientTransport, StdioClientTransport } = await parts()
const options = { capabilities: {}, ...(MODERN ? { versionNegotiation: { mode: { pin: '2026-07-28' } } } : {}) }

async function open() {
  const client = new Client({ name: 'drive', version: '1' }, options)
  const transport = TRANSPORT === 'stdio'
    ? new StdioClientTransport({ command: SBX, args: ['mcp'], env: { ...process.env }, stderr: 'inherit' })
    : new StreamableHTTPClientTransport(new URL(MCP_URL), { requestInit: { headers: { Authorization: `Bearer ${MCP_SECRET}` } } })
  await client.connect(transport)
  return client
}

const call = (client, name, args, more = {}) => OLD
  ? client.callTool({ name, arguments: args }, undefined, more)
  : client.callTool({ name, arguments: args }, more)

async function until(condition, what, ms = 60000) {
  for (const end = Date.now() + ms; Date.now() < end;) {
    if (await condition()) return
    await new Promise((done) => setTimeout(done, 50))
  }
  assert.fail(`never happened: ${what}`)
}

async function check(name, fn) {
  let told = { name, ok: true }
  let client
  try {
    client = await open()
    await client.listTools() // so that the client validates what tools return against their schemas
    await fn(client)
  } catch (error) {
    told = { name, ok: false, error: String(error?.stack ?? error) }
  } finally {
    await client?.close().catch(() => {})
  }
  console.log(JSON.stringify(told))
}

// The sandbox of a check, named in each call, which is right in both eras.
async function withSandbox(client, fn) {
  const made = await call(client, 'create_sandbox', {})
  const { sandbox } = made.structuredContent
  try {
    return await fn(sandbox)
  } finally {
    await call(client, 'delete_sandbox', { sandbox })
  }
}

await check('what it says of itself', async (client) => {
  assert.equal(client.getServerVersion().name, 'sandbox-executor')
  assert.match(client.getInstructions(), /run_code/)
  assert.equal(client.getServerCapabilities().tools.listChanged, true)
})

await check('tools', async (client) => {
  const { tools } = await client.listTools()
  const names = tools.map((tool) => tool.name)
  for (const name of ['run_code', 'run_command', 'read_file', 'list_sandboxes']) assert.ok(names.includes(name), name)
})

await check('files', (client) => withSandbox(client, async (sandbox) => {
  const made = await call(client, 'write_file', { path: 'a/b.txt', content: 'kept\n', sandbox })
  assert.equal(made.structuredContent.size, 5)
  const got = await call(client, 'read_file', { path: 'a/b.txt', sandbox })
  assert.equal(got.content[0].text, 'kept')
  const listed = await call(client, 'list_files', { depth: 2, sandbox })
  assert.deepEqual(listed.structuredContent.entries.map((e) => e.path), ['a', 'a/b.txt'])
}))

await check('code', (client) => withSandbox(client, async (sandbox) => {
  await call(client, 'run_code', { code: 'let x = 6', language: 'javascript', sandbox })
  const got = await call(client, 'run_code', { code: 'x * 7', language: 'javascript', sandbox })
  assert.equal(got.structuredContent.result, 42)
  assert.match(got.content[0].text, /\[result\] 42/)
}))

await check('errors that a model can act on', async (client) => {
  const got = await call(client, 'read_file', { path: 'x', sandbox: 'sb_nothing' })
  assert.equal(got.isError, true)
  assert.match(got.content[0].text, /\[hint\]/)
  await assert.rejects(call(client, 'no_such_tool', {}), /Unknown tool|no_such_tool/)
})

await check('progress', (client) => withSandbox(client, async (sandbox) => {
  const told = []
  const got = await call(client, 'run_command', { command: 'echo working; sleep 2.5', sandbox },
    { onprogress: (p) => told.push(p), resetTimeoutOnProgress: true })
  assert.equal(got.structuredContent.status, 'success')
  assert.ok(told.length > 0 && told.every((p) => p.message === 'working'), JSON.stringify(told))
}))

await check('cancellation', (client) => withSandbox(client, async (sandbox) => {
  const abort = new AbortController()
  const running = call(client, 'run_command', { command: 'touch begun; exec sleep 600', timeout_seconds: 600, sandbox },
    { signal: abort.signal })
  running.catch(() => {})
  await until(async () => !(await call(client, 'read_file', { path: 'begun', sandbox })).isError, 'the command begins')
  abort.abort('enough')
  await assert.rejects(running)
  await until(async () => {
    const { structuredContent } = await call(client, 'manage_process', { action: 'list', sandbox })
    return structuredContent.processes.every((p) => p.status !== 'running')
  }, 'the command ends')
}))

await check('side by side', (client) => withSandbox(client, async (sandbox) => {
  const all = await Promise.all([...Array(8).keys()].map((n) =>
    call(client, 'run_command', { command: `echo ${n}`, sandbox })))
  assert.deepEqual(all.map((r) => r.structuredContent.stdout), [...Array(8).keys()].map((n) => `${n}\n`))
}))

await check('resources', async (client) => {
  const { resources } = await client.listResources()
  const { resourceTemplates } = await client.listResourceTemplates()
  assert.ok(resources.some((r) => r.uri === 'sbx://guide'))
  assert.ok(resourceTemplates.length > 0)
  const { contents } = await client.readResource({ uri: 'sbx://guide' })
  assert.match(contents[0].text, /python/i)
  await assert.rejects(client.readResource({ uri: 'sbx://nothing' }))
})

await check('a file as a resource', (client) => withSandbox(client, async (sandbox) => {
  await call(client, 'write_file', { path: 'gr\u00fc\u00dfe 1.txt', content: 'hello', sandbox })
  const uri = `sbx://sandboxes/${sandbox}/files/workspace/${encodeURIComponent('gr\u00fc\u00dfe 1.txt')}`
  const { contents } = await client.readResource({ uri })
  assert.equal(contents[0].text, 'hello')
  assert.equal(contents[0].mimeType, 'text/plain')
}))
process.exit(0)
