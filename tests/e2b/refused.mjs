// SPDX-License-Identifier: MIT
// What this server does not have is refused with a reason, which reaches the user of the SDK.
import { OLD, Sandbox, assert, check, e2b, withSandbox } from './sdk.mjs'

const { Secret, Template, Volume } = e2b
const refused = (name, words, fn) => check(name, () => assert.rejects(async () => fn(), words))

await withSandbox(async (sandbox) => {
  const id = sandbox.sandboxId

  await refused('Sandbox.createSnapshot', /501.*no snapshots/s, () => sandbox.createSnapshot())
  await refused('Sandbox.listSnapshots', /501.*no snapshots/s, () => sandbox.listSnapshots().nextItems())
  await refused('Sandbox.deleteSnapshot', /501.*no templates/s, () => Sandbox.deleteSnapshot('snap:default'))
  await refused('Sandbox.updateNetwork', /501.*when it is made/s, () => sandbox.updateNetwork({ allowOut: ['1.1.1.1'] }))
  await refused('Sandbox.getMcpToken', /.*/, async () => {
    if ((await sandbox.getMcpToken()) === undefined) throw new Error('it has none')
  })
  if (!OLD) {
    await refused('Sandbox.fork', /501.*no snapshots and no forks/s, () => Sandbox.fork(id))
    await refused('Secret.create', /501.*no secrets/s, () => Secret.create('name', 'value'))
  }
})

await refused('Sandbox.create: rules that the operator does not offer', /400.*needs EGRESS/s,
  () => Sandbox.create({ network: { allowOut: ['1.1.1.1'] } }))
await refused('Sandbox.create: volumes', /400.*no volumes/s, () =>
  Sandbox.create({ volumeMounts: { '/mnt/v': 'v' } }))
await refused('Sandbox.getMcpUrl', /400.*no MCP gateway/s, () => Sandbox.create({ mcp: { exa: { apiKey: 'k' } } }))
await refused('Volume.create', /501.*no volumes/s, () => Volume.create('v'))
await refused('Volume.list', /501.*no volumes/s, () => Volume.list())
await refused('Template.build', /501.*no templates/s, () =>
  Template.build(Template().fromImage('debian:12'), 'mine', { onBuildLogs: () => {} }))

await check('Template.exists', async () => {
  assert.equal(await Template.exists('base'), true)
  assert.equal(await Template.exists('nothing-of-that-name'), false)
})
