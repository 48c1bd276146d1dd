// SPDX-License-Identifier: MIT
// git.*, which the SDK makes of commands. A sandbox has the host's git and no network.
import { assert, check, withSandbox } from './sdk.mjs'

await withSandbox(async (sandbox) => {
  const { git } = sandbox
  const there = (await sandbox.commands.run('command -v git || true')).stdout !== ''
  if (!there) return check('git.init: the host has no git', () => {})

  await check('git.init', async () => {
    await git.init('/home/user/repo', { initialBranch: 'main' })
    assert.equal((await git.status('/home/user/repo')).currentBranch, 'main')
  })

  await check('git.commit', async () => {
    await git.configureUser('A User', 'user@example.com')
    await sandbox.files.write('repo/a.txt', 'one')
    await git.add('/home/user/repo')
    await git.commit('/home/user/repo', 'first')
    assert.equal((await git.status('/home/user/repo')).isClean, true)
    assert.match((await sandbox.commands.run('git -C repo log --format="%an: %s"')).stdout, /^A User: first$/m)
  })

  await check('git.branches', async () => {
    await git.createBranch('/home/user/repo', 'side')
    const { branches, currentBranch } = await git.branches('/home/user/repo')
    assert.deepEqual([branches.sort(), currentBranch], [['main', 'side'], 'side'])
  })

  await check('git.clone', async () => {
    await git.clone('/home/user/repo', { path: '/home/user/copy' })
    assert.equal(await sandbox.files.read('copy/a.txt'), 'one')
    await assert.rejects(git.clone('https://example.com/nowhere.git', { path: '/home/user/far' }))
  })
})
