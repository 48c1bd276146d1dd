// SPDX-License-Identifier: MIT
// Terminals.
import { assert, check, e2b, until, withSandbox } from './sdk.mjs'

const bytes = (text) => new TextEncoder().encode(text)

// A terminal and what it has said.
async function open(sandbox, options = {}) {
  const terminal = { said: '' }
  const decoder = new TextDecoder()
  terminal.onData = (piece) => (terminal.said += decoder.decode(piece, { stream: true }))
  terminal.handle = await sandbox.pty.create({ cols: 80, rows: 24, timeoutMs: 0, onData: terminal.onData, ...options })
  terminal.pid = terminal.handle.pid
  terminal.type = (text) => sandbox.pty.sendInput(terminal.pid, bytes(text))
  terminal.says = (text) => until(() => terminal.said.includes(text), `'${text}' in ${JSON.stringify(terminal.said.slice(-500))}`)
  return terminal
}

await check('pty.create', () =>
  withSandbox(async (sandbox) => {
    const terminal = await open(sandbox, { cols: 101, rows: 31, envs: { MINE: 'yes' }, cwd: '/tmp' })
    await terminal.type("tty; stty size; echo $TERM-$MINE-$LANG; pwd; test -t 0 && echo is''atty\r")
    await terminal.says('isatty')
    assert.match(terminal.said, /\/dev\/pts\/\d+\r\n/)
    assert.match(terminal.said, /31 101\r\n/)
    assert.match(terminal.said, /xterm-256color-yes-C\.UTF-8\r\n\/tmp\r\n/)
    await terminal.type('exit 3\r')
    assert.equal((await terminal.handle.wait().catch((e) => e)).exitCode, 3)
  }))

await check('pty.resize', () =>
  withSandbox(async (sandbox) => {
    const terminal = await open(sandbox)
    await sandbox.pty.resize(terminal.pid, { cols: 133, rows: 44 })
    await terminal.type('stty size\r')
    await terminal.says('44 133\r\n')
    const command = await sandbox.commands.run('sleep 1000', { background: true, timeoutMs: 0 })
    await assert.rejects(sandbox.pty.resize(command.pid, { cols: 1, rows: 1 }), e2b.SandboxError)
    await assert.rejects(sandbox.pty.resize(99999, { cols: 1, rows: 1 }), e2b.NotFoundError)
    await command.kill()
    assert.equal(await sandbox.pty.kill(terminal.pid), true)
  }))

await check('pty.sendInput: keys', () =>
  withSandbox(async (sandbox) => {
    const terminal = await open(sandbox)
    await terminal.type("echo rea''dy; sleep 1013\r")
    await terminal.says('ready\r\n')
    await until(async () => (await sandbox.commands.run("pgrep -fx 'sleep 1013' || true")).stdout !== '', 'the program')
    await terminal.type('\x03')
    await terminal.type("echo st''atus $?\r")
    await terminal.says('status 130\r\n')
    await terminal.type('\x04')
    assert.equal((await terminal.handle.wait().catch((e) => e)).exitCode, 0)
    await assert.rejects(terminal.type('x'), e2b.NotFoundError)
  }))

await check('pty.kill', () =>
  withSandbox(async (sandbox) => {
    const terminal = await open(sandbox)
    assert.equal(await sandbox.pty.kill(terminal.pid), true)
    assert.equal((await terminal.handle.wait().catch((e) => e)).exitCode, -1)
    assert.equal(await sandbox.pty.kill(terminal.pid), false)
  }))

await check('pty.connect', () =>
  withSandbox(async (sandbox) => {
    const terminal = await open(sandbox)
    await terminal.type("x=remem''bered; echo th''ere\r")
    await terminal.says('there\r\n')
    await terminal.handle.disconnect()
    assert.equal((await sandbox.commands.list()).filter((one) => one.pid === terminal.pid).length, 1)
    terminal.said = ''
    terminal.handle = await sandbox.pty.connect(terminal.pid, { onData: terminal.onData })
    await terminal.type('echo $x!\r')
    await terminal.says('remembered!')
    assert.equal(await sandbox.pty.kill(terminal.pid), true)
  }))

await check('pty.create: its time is over', () =>
  withSandbox(async (sandbox) => {
    const terminal = await open(sandbox, { timeoutMs: 400 })
    assert.ok(await terminal.handle.wait().catch((e) => e) instanceof e2b.TimeoutError)
    await until(async () => (await sandbox.commands.list()).length === 0, 'the end of the terminal')
  }))
