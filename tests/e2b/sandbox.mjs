// SPDX-License-Identifier: MIT
// The control plane: sandboxes made, found, kept and ended.
import { Sandbox, assert, check, e2b, get, until, withSandbox } from './sdk.mjs'

const metadata = { a: '1', b: 'x y/ü&=+%' }

await check('Sandbox.create', () =>
  withSandbox(async (sandbox) => {
    assert.match(sandbox.sandboxId, /^[a-z0-9]+$/)
    assert.equal(await sandbox.isRunning(), true)
  }, { timeoutMs: 60_000, metadata, envs: { FOO: 'bar' } }))

await check('Sandbox.create: by the name of a template', () =>
  Sandbox.create('code-interpreter-v1').then((sandbox) => sandbox.kill()))

await check('Sandbox.create: an unknown template', () =>
  assert.rejects(Sandbox.create('nothing-of-that-name'), /not found/))

await check('Sandbox.create: a wrong key', () =>
  assert.rejects(Sandbox.create({ apiKey: 'e2b_' + '0'.repeat(40) }), e2b.AuthenticationError))

await check('Sandbox.kill', async () => {
  const sandbox = await Sandbox.create()
  assert.equal(await Sandbox.kill(sandbox.sandboxId), true)
  assert.equal(await sandbox.isRunning(), false)
  assert.equal(await Sandbox.kill(sandbox.sandboxId), false)
  assert.equal(await Sandbox.kill('sbnothing'), false)
})

await check('Sandbox.getInfo', () =>
  withSandbox(async (sandbox) => {
    const info = await sandbox.getInfo()
    assert.equal(info.sandboxId, sandbox.sandboxId)
    assert.deepEqual(info.metadata, metadata)
    assert.equal(info.state, 'running')
    assert.equal(info.templateId, 'base')
    assert.equal(Math.round((info.endAt - info.startedAt) / 1000), 100)
    assert.deepEqual((await Sandbox.getInfo(sandbox.sandboxId)).metadata, metadata)
    await assert.rejects(Sandbox.getInfo('sbnothing'), /not found/i)
  }, { timeoutMs: 100_000, metadata }))

await check('Sandbox.setTimeout', () =>
  withSandbox(async (sandbox) => {
    await sandbox.setTimeout(500_000)
    let info = await sandbox.getInfo()
    assert.ok(info.endAt - Date.now() > 400_000)
    await sandbox.setTimeout(50_000)
    info = await sandbox.getInfo()
    assert.ok(info.endAt - Date.now() < 100_000)
  }))

await check('Sandbox.setTimeout: its time comes', async () => {
  const sandbox = await Sandbox.create({ timeoutMs: 100_000 })
  await sandbox.setTimeout(1000)
  await until(async () => !(await sandbox.isRunning()), 'the sandbox ends')
  assert.equal(await Sandbox.kill(sandbox.sandboxId), false)
})

await check('Sandbox.connect', () =>
  withSandbox(async (sandbox) => {
    const again = await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 900_000 })
    assert.equal(again.sandboxId, sandbox.sandboxId)
    assert.equal(await again.isRunning(), true)
    assert.ok((await again.getInfo()).endAt - Date.now() > 800_000)
    await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 1000 }) // never shortens
    assert.ok((await again.getInfo()).endAt - Date.now() > 800_000)
    await assert.rejects(Sandbox.connect('sbnothing'), /not found/i)
  }))

await check('Sandbox.list', () =>
  withSandbox(async (one) => {
    await withSandbox(async (two) => {
      const mine = Sandbox.list({ query: { metadata } })
      const found = await mine.nextItems()
      assert.deepEqual(found.map((s) => s.sandboxId), [one.sandboxId])
      assert.equal(mine.hasNext, false)
      const pages = Sandbox.list({ limit: 1, query: { state: ['running'] } })
      const ids = []
      while (pages.hasNext) ids.push(...(await pages.nextItems()).map((s) => s.sandboxId))
      assert.ok(ids.indexOf(two.sandboxId) < ids.indexOf(one.sandboxId), 'newest first')
      assert.equal(new Set(ids).size, ids.length)
      assert.ok(ids.includes(one.sandboxId) && ids.includes(two.sandboxId))
    }, { metadata: { a: '1' } })
  }, { metadata }))

await check('Sandbox.isRunning', async () => {
  const sandbox = await Sandbox.create()
  assert.equal(await sandbox.isRunning(), true)
  await Sandbox.kill(sandbox.sandboxId)
  assert.equal(await sandbox.isRunning(), false)
})

await check('Sandbox.getMetrics', () =>
  withSandbox(async (sandbox) => {
    const [now] = await sandbox.getMetrics()
    assert.ok(now.memTotal > 0 && now.diskTotal > 0 && now.cpuCount >= 1)
    assert.ok(now.memUsed >= 0 && now.cpuUsedPct >= 0)
  }))

await check('Sandbox.getHost', () =>
  withSandbox(async (sandbox) => {
    const host = sandbox.getHost(3000)
    assert.match(host, new RegExp(`^3000-${sandbox.sandboxId}\\.`))
    const answer = await get(host)
    assert.equal(answer.status, 502)
    assert.deepEqual(JSON.parse(answer.text), {
      sandboxId: sandbox.sandboxId,
      message: 'The sandbox is running but port is not open',
      port: 3000,
      code: 502,
    })
    await Sandbox.kill(sandbox.sandboxId)
    assert.equal((await get(host)).status, 502)
  }))

await check('Sandbox.betaPause', () =>
  withSandbox(async (sandbox) => {
    await sandbox.betaPause()
    assert.equal((await sandbox.getInfo()).state, 'paused')
  }))

await check('Sandbox.create: paused at its end, woken by a request', async () => {
  const options = { timeoutMs: 1000, lifecycle: { onTimeout: 'pause', autoResume: true } }
  await withSandbox(async (sandbox) => {
    await until(async () => (await sandbox.getInfo()).state === 'paused', 'the end of its time')
    const told = await sandbox.getInfo()
    assert.deepEqual(told.lifecycle, { onTimeout: 'pause', autoResume: true })
    assert.equal((await sandbox.commands.run('echo awake')).stdout, 'awake\n')
  }, options)
})

await check('Sandbox.create: ports that are not public', () =>
  withSandbox(async (sandbox) => {
    const host = sandbox.getHost(3000)
    assert.equal((await get(host)).status, 403)
    const token = { 'e2b-traffic-access-token': sandbox.trafficAccessToken }
    assert.equal((await get(host, '/', token)).status, 502)
    await sandbox.files.write('index.html', 'served')
    await sandbox.commands.run('exec python3 -m http.server 3000 --bind 127.0.0.1', { background: true, timeoutMs: 0 })
    await until(async () => (await get(host, '/', token)).text === 'served', 'the server inside')
    assert.equal((await get(host)).status, 403)
  }, { network: { allowPublicTraffic: false } }))

await check('Sandbox.pause', () =>
  withSandbox(async (sandbox) => {
    const pause = (sandbox.pause ?? sandbox.betaPause).bind(sandbox)
    await sandbox.files.write('/tmp/kept', 'kept')
    await pause()
    assert.equal((await sandbox.getInfo()).state, 'paused')
    assert.equal(await sandbox.isRunning(), false)
    assert.deepEqual((await Sandbox.list({ query: { state: ['paused'] } }).nextItems()).map((s) => s.sandboxId), [
      sandbox.sandboxId,
    ])
    const again = await Sandbox.connect(sandbox.sandboxId)
    assert.equal((await again.getInfo()).state, 'running')
    assert.equal(await again.files.read('/tmp/kept'), 'kept')
  }))
