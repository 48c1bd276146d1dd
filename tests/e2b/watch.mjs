// SPDX-License-Identifier: MIT
// Watching directories of a sandbox.
import { assert, check, e2b, OLD, until, withSandbox } from './sdk.mjs'

const { FilesystemEventType: Type, InvalidArgumentError, NotFoundError } = e2b

await withSandbox(async (sandbox) => {
  const { files } = sandbox

  async function watched(path, options, act, enough) {
    const events = []
    const handle = await files.watchDir(path, (event) => { events.push(event) }, options)
    try {
      await act()
      await until(() => enough(events), JSON.stringify(events))
    } finally {
      await handle.stop()
    }
    return events
  }

  const has = (events, type, name) => events.some((e) => e.type === type && e.name === name)

  await check('files.watchDir', async () => {
    await files.makeDir('w')
    const events = await watched('w', {}, async () => {
      await files.write('w/new.txt', 'x')
      await files.rename('w/new.txt', 'w/other.txt')
      await files.remove('w/other.txt')
    }, (all) => has(all, Type.REMOVE, 'other.txt'))
    assert.ok(has(events, Type.CREATE, 'new.txt'))
    assert.ok(has(events, Type.RENAME, 'new.txt'))
    assert.ok(has(events, Type.CREATE, 'other.txt'))
  })

  await check('files.watchDir: only this directory', async () => {
    await files.makeDir('flat/below')
    const events = await watched('flat', {}, async () => {
      await files.write('flat/below/x', 'x')
      await files.write('flat/y', 'y')
    }, (all) => has(all, Type.CREATE, 'y'))
    assert.ok(!events.some((e) => e.name.includes('/')))
  })

  await check('files.watchDir: recursive', async () => {
    await files.makeDir('r/old')
    const events = await watched('r', { recursive: true }, async () => {
      await files.write('r/old/x', 'x')
      await files.write('r/made/later/y', 'y')
      await files.write('r/made/later/z', 'z')
    }, (all) => has(all, Type.CREATE, 'made/later/y') && has(all, Type.CREATE, 'made/later/z'))
    assert.ok(has(events, Type.CREATE, 'old/x'))
    assert.ok(has(events, Type.CREATE, 'made'))
  })

  if (!OLD) {
    await check('files.watchDir: with entries', async () => {
      await files.makeDir('e')
      const events = await watched('e', { includeEntry: true }, () => files.write('e/f', 'four'),
        (all) => all.some((e) => e.entry?.name === 'f'))
      const { entry } = events.find((e) => e.entry?.name === 'f')
      assert.equal(entry.path, '/home/user/e/f')
      assert.equal(entry.owner, 'user')
    })
  }

  await check('WatchHandle.stop', async () => {
    await files.makeDir('stopped')
    const seen = []
    const handle = await files.watchDir('stopped', (event) => { seen.push(event) })
    await handle.stop()
    const after = await watched('stopped', {}, () => files.write('stopped/x', 'x'), (all) => has(all, Type.CREATE, 'x'))
    assert.ok(after.length > 0)
    assert.deepEqual(seen, [])
  })

  await check('files.watchDir: errors', async () => {
    await assert.rejects(files.watchDir('not there', () => {}), NotFoundError)
    await files.write('plain', '')
    await assert.rejects(files.watchDir('plain', () => {}), InvalidArgumentError)
  })

  await check('files.watchDir: ends with its sandbox', async () => {
    let ended
    await withSandbox(async (other) => {
      const end = new Promise((resolve) => { ended = resolve })
      await other.files.watchDir('/home/user', () => {}, { onExit: (error) => ended(error ?? 'no error'), timeoutMs: 0 })
      await other.kill()
      assert.ok(await end)
    })
  })

  await check('files.watchDir: many at once', async () => {
    const seen = []
    const handles = []
    await files.makeDir('many')
    for (let i = 0; i < 20; i++) handles.push(await files.watchDir('many', () => { seen[i] = true }))
    await files.write('many/x', 'x')
    await until(() => seen.filter(Boolean).length === 20, 'an event in each of 20 watches')
    await Promise.all(handles.map((h) => h.stop()))
  })
})
