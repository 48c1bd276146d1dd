// SPDX-License-Identifier: MIT
// Commands: run, followed, written to, left, come back to, killed.
import { Sandbox, OLD, assert, check, e2b, interpreter, until, withSandbox } from './sdk.mjs'

const text = (seconds) => `sleep ${seconds}`

await check('commands.run', () =>
  withSandbox(async (sandbox) => {
    const got = await sandbox.commands.run('echo hi; echo err >&2; whoami; pwd; echo $HOME $USER')
    assert.deepEqual([got.exitCode, got.stdout, got.stderr], [0, 'hi\nuser\n/home/user\n/home/user user\n', 'err\n'])
  }))

await check('commands.run: a login shell', () =>
  withSandbox(async (sandbox) => {
    await sandbox.commands.run("echo 'export FROM_PROFILE=yes' >> ~/.profile")
    assert.equal((await sandbox.commands.run('echo $FROM_PROFILE; shopt -q login_shell && echo login')).stdout, 'yes\nlogin\n')
  }))

await check('commands.run: an exit code that is not 0', () =>
  withSandbox(async (sandbox) => {
    const error = await sandbox.commands.run('echo out; echo err >&2; exit 7').catch((e) => e)
    assert.ok(error instanceof e2b.CommandExitError, String(error))
    assert.deepEqual([error.exitCode, error.stdout, error.stderr, error.message], [7, 'out\n', 'err\n', 'exit status 7'])
  }))

await check('commands.run: death by a signal', () =>
  withSandbox(async (sandbox) => {
    for (const [number, words] of [[9, 'killed'], [15, 'terminated'], [11, 'segmentation fault']]) {
      const error = await sandbox.commands.run(`kill -${number} $$`).catch((e) => e)
      assert.deepEqual([error.exitCode, error.error], [-1, `signal: ${words}`])
    }
  }))

await check('commands.run: envs, cwd', () =>
  withSandbox(async (sandbox) => {
    const got = await sandbox.commands.run('echo $A-$B-$E2B_SANDBOX-$E2B_SANDBOX_ID; pwd', { envs: { B: 'of the call' }, cwd: '/tmp' })
    assert.equal(got.stdout, `of the sandbox-of the call-true-${sandbox.sandboxId}\n/tmp\n`)
    assert.equal((await sandbox.commands.run('echo $A$B')).stdout, 'of the sandboxalso\n')
    await sandbox.commands.run('mkdir -p sub')
    assert.equal((await sandbox.commands.run('pwd', { cwd: 'sub' })).stdout, '/home/user/sub\n')
    const error = await sandbox.commands.run('true', { cwd: '/nowhere' }).catch((e) => e)
    assert.ok(error instanceof e2b.InvalidArgumentError && /cwd '\/nowhere' does not exist/.test(error.message), String(error))
  }, { envs: { A: 'of the sandbox', B: 'also' } }))

await check('commands.run: output as it comes, cut anywhere', () =>
  withSandbox(async (sandbox) => {
    let out = ''
    let err = ''
    const [a, b] = OLD ? ['abc', 'u'] : ['€🐎漢', 'ü'] // the old SDK decodes each piece alone
    const got = await sandbox.commands.run(`python3 -c "import sys; sys.stdout.write('${a}' * 40000); sys.stderr.write('${b}' * 30000)"`,
      { onStdout: (piece) => (out += piece), onStderr: (piece) => (err += piece) })
    assert.ok(out === a.repeat(40000) && out === got.stdout && err === b.repeat(30000) && err === got.stderr)
  }))

await check('commands.run: its time is over', () =>
  withSandbox(async (sandbox) => {
    const error = await sandbox.commands.run(text(1007), { timeoutMs: 400 }).catch((e) => e)
    assert.ok(error instanceof e2b.TimeoutError, String(error))
    await until(async () => (await sandbox.commands.run(`pgrep -fx '${text(1007)}' || true`)).stdout === '', 'the end of the command')
  }))

await check('CommandHandle.wait', () =>
  withSandbox(async (sandbox) => {
    const command = await sandbox.commands.run('echo one; sleep 0.1; echo two', { background: true })
    assert.ok(command.pid > 1)
    assert.deepEqual((({ exitCode, stdout }) => ({ exitCode, stdout }))(await command.wait()), { exitCode: 0, stdout: 'one\ntwo\n' })
    const failing = await sandbox.commands.run('exit 3', { background: true })
    assert.equal((await failing.wait().catch((e) => e)).exitCode, 3)
  }))

await check('commands.list', () =>
  withSandbox(async (sandbox) => {
    assert.deepEqual(await sandbox.commands.list(), [])
    const command = await sandbox.commands.run(text(1008), { background: true, envs: { X: 'y' }, cwd: '/tmp', timeoutMs: 0 })
    const [one, ...more] = await sandbox.commands.list()
    assert.equal(more.length, 0)
    assert.deepEqual([one.pid, one.cmd, one.args, one.cwd, one.envs.X],
      [command.pid, '/bin/bash', ['-l', '-c', text(1008)], '/tmp', 'y'])
    assert.equal(await command.kill(), true)
    await command.wait().catch(() => {})
    assert.deepEqual(await sandbox.commands.list(), [])
  }))

await check('commands.kill', () =>
  withSandbox(async (sandbox) => {
    const command = await sandbox.commands.run(`${text(1009)}; true`, { background: true, timeoutMs: 0 })
    assert.equal(await sandbox.commands.kill(command.pid), true)
    const error = await command.wait().catch((e) => e)
    assert.deepEqual([error.exitCode, error.error], [-1, 'signal: killed'])
    assert.equal((await sandbox.commands.run(`pgrep -fx '${text(1009)}' || echo none`)).stdout, 'none\n')
    assert.equal(await sandbox.commands.kill(command.pid), false)
    assert.equal(await sandbox.commands.kill(99999), false)
  }))

await check('commands.connect', () =>
  withSandbox(async (sandbox) => {
    const command = await sandbox.commands.run('while [ ! -e go ]; do sleep 0.02; done; echo late; exit 5', { background: true, timeoutMs: 0 })
    await command.disconnect()
    assert.equal((await sandbox.commands.list()).length, 1)
    let seen = ''
    const two = await Promise.all([1, 2].map(() => sandbox.commands.connect(command.pid, { onStdout: (piece) => (seen += piece) })))
    await sandbox.files.write('go', '')
    for (const one of two) {
      const error = await one.wait().catch((e) => e)
      assert.deepEqual([error.exitCode, error.stdout], [5, 'late\n'])
    }
    assert.equal(seen, 'late\nlate\n')
    await assert.rejects(sandbox.commands.connect(99999), e2b.NotFoundError)
  }))

await check('commands.connect: one that has ended a moment ago', () =>
  withSandbox(async (sandbox) => {
    const command = await sandbox.commands.run('exit 4', { background: true })
    await command.wait().catch(() => {})
    const again = await sandbox.commands.connect(command.pid)
    assert.equal((await again.wait().catch((e) => e)).exitCode, 4)
  }))

await check('commands.connect: the time of a connection is not that of the command', () =>
  withSandbox(async (sandbox) => {
    const command = await sandbox.commands.run(text(1010), { background: true, timeoutMs: 0 })
    const other = await sandbox.commands.connect(command.pid, { timeoutMs: 300 })
    assert.ok(await other.wait().catch((e) => e) instanceof e2b.TimeoutError)
    assert.equal((await sandbox.commands.list()).length, 1)
    await command.kill()
  }))

await check('commands.sendStdin', () =>
  withSandbox(async (sandbox) => {
    const command = await sandbox.commands.run('read a; echo got $a; cat', { background: true, stdin: true, timeoutMs: 0 })
    await sandbox.commands.sendStdin(command.pid, 'one\n')
    await until(() => command.stdout === 'got one\n', 'the first answer')
    const long = 'x'.repeat(3 << 20)
    if (OLD) {
      await sandbox.commands.sendStdin(command.pid, 'two\n')
      await until(() => command.stdout === 'got one\ntwo\n', 'the second answer')
      assert.equal(await command.kill(), true)
      return
    }
    await sandbox.commands.sendStdin(command.pid, long)
    await sandbox.commands.closeStdin(command.pid)
    assert.equal((await command.wait()).stdout, 'got one\n' + long)
    await assert.rejects(sandbox.commands.sendStdin(command.pid, 'x'), e2b.NotFoundError)
  }))

await check('CommandHandle.kill', () =>
  withSandbox(async (sandbox) => {
    const command = await sandbox.commands.run(text(1014), { background: true, timeoutMs: 0 })
    assert.equal(await command.kill(), true)
    assert.equal((await command.wait().catch((e) => e)).error, 'signal: killed')
    assert.equal(await command.kill(), false)
  }))

await check('CommandHandle.disconnect', () =>
  withSandbox(async (sandbox) => {
    const command = await sandbox.commands.run(text(1015), { background: true, timeoutMs: 0 })
    await command.disconnect()
    assert.deepEqual((await sandbox.commands.list()).map((one) => one.pid), [command.pid])
  }))

const closing = (own) => () =>
  withSandbox(async (sandbox) => {
    const command = await sandbox.commands.run('cat; echo end', { background: true, stdin: true, timeoutMs: 0 })
    await (own ? command.sendStdin('in\n') : sandbox.commands.sendStdin(command.pid, 'in\n'))
    await (own ? command.closeStdin() : sandbox.commands.closeStdin(command.pid))
    assert.equal((await command.wait()).stdout, 'in\nend\n')
  })

await check('commands.closeStdin', closing(false))
await check('CommandHandle.closeStdin', closing(true))

await check('CommandHandle.sendStdin', () =>
  withSandbox(async (sandbox) => {
    const command = await sandbox.commands.run('read a; echo got $a', { background: true, stdin: true, timeoutMs: 0 })
    await command.sendStdin('one\n')
    assert.equal((await command.wait()).stdout, 'got one\n')
  }))

await check('commands.sendStdin: none is open', () =>
  withSandbox(async (sandbox) => {
    assert.equal((await sandbox.commands.run('cat; echo end', { stdin: false })).stdout, 'end\n')
    const command = await sandbox.commands.run(text(1011), { background: true, stdin: false, timeoutMs: 0 })
    await assert.rejects(sandbox.commands.sendStdin(command.pid, 'x'), e2b.SandboxError)
    await command.kill()
  }))

await check('commands.run: streams that something else holds', () =>
  withSandbox(async (sandbox) => {
    const got = await sandbox.commands.run('(while [ ! -e go ]; do sleep 0.02; done; echo late) & echo first; touch go')
    assert.equal(got.stdout, 'first\nlate\n')
  }))

await check('commands.run: many at once', () =>
  withSandbox(async (sandbox) => {
    const all = await Promise.all(Array.from({ length: 20 }, (_, i) => sandbox.commands.run(`echo ${i}`)))
    assert.deepEqual(all.map((one) => one.stdout), Array.from({ length: 20 }, (_, i) => `${i}\n`))
  }))

await check('commands.run: its sandbox ends', async () => {
  const sandbox = await Sandbox.create()
  const command = await sandbox.commands.run(text(1012), { background: true, timeoutMs: 0 })
  await sandbox.kill()
  assert.ok(await command.wait().catch((e) => e) instanceof Error)
  await assert.rejects(sandbox.commands.run('true'), e2b.SandboxNotFoundError)
})

await check('commands.run: beside a code interpreter', () =>
  withSandbox(async (sandbox) => {
    assert.equal((await sandbox.commands.run('echo $E2B_TEMPLATE_ID')).stdout, 'code-interpreter-v1\n')
  }, {}, interpreter.Sandbox))
