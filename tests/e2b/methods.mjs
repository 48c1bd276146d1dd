// SPDX-License-Identifier: MIT
// The methods that users of the SDK call, one JSON string per line. tests/api/test_e2b_sdk.py compares them with docs/e2b.md.
import { Sandbox, e2b, interpreter, withSandbox } from './sdk.mjs'

const INTERNAL = new Set(['constructor', 'resolveApiOpts', 'fileUrl', 'jupyterUrl', 'getJupyterRequestUrl', 'includeDiagnostics',
  'handleRequestError', 'getFullInfo', 'createSandbox', 'forkSandbox', 'connectSandbox', 'supportsStdinClose', 'toJSON',
  'flushDecoders', 'start', 'handleEvents', 'iterateEvents', 'resolveOpts'])

const own = (object) => Object.getOwnPropertyNames(object).filter((name) =>
  !name.startsWith('_') && !INTERNAL.has(name) && typeof Object.getOwnPropertyDescriptor(object, name).value === 'function')

// Of an object's class and those above it.
function methods(prototype) {
  const found = new Set()
  for (; prototype && prototype !== Object.prototype && prototype !== Function.prototype; prototype = Object.getPrototypeOf(prototype))
    for (const name of own(prototype)) found.add(name)
  return [...found]
}

const told = new Set()
const tell = (family, names) => names.forEach((name) => told.add(family ? `${family}.${name}` : name))

await withSandbox(async (sandbox) => {
  const modules = new Set(['uploadUrl', 'downloadUrl'])
  for (const name of methods(Sandbox.prototype)) tell(modules.has(name) ? '' : 'Sandbox', [name])
  tell('Sandbox', methods(Sandbox))
  tell('', own(interpreter.Sandbox.prototype))
  for (const name of ['commands', 'files', 'pty', 'git']) tell(name, methods(Object.getPrototypeOf(sandbox[name])))
  const command = await sandbox.commands.run('true', { background: true })
  tell('CommandHandle', methods(Object.getPrototypeOf(command)))
  await command.wait()
  const watch = await sandbox.files.watchDir('/tmp', () => {})
  tell('WatchHandle', methods(Object.getPrototypeOf(watch)))
  await watch.stop()
})
for (const name of ['Template', 'Volume', 'Secret']) if (e2b[name]) tell(name, methods(e2b[name]))
for (const name of [...told].sort()) console.log(JSON.stringify(name))
