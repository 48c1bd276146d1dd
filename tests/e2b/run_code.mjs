// SPDX-License-Identifier: MIT
// Cells and contexts through @e2b/code-interpreter.
import { OLD, assert, check, interpreter, withSandbox } from './sdk.mjs'

const { Sandbox } = interpreter
const inSandbox = (fn, options) => withSandbox(fn, options, Sandbox)
const PNG = /^iVBORw0KGgo/

await check('runCode', () =>
  inSandbox(async (sandbox) => {
    const execution = await sandbox.runCode('x = 1; x + 1')
    assert.equal(execution.text, '2')
    assert.equal(execution.executionCount, 1)
    assert.equal(execution.error, undefined)
    assert.equal(execution.results.length, 1)
    assert.equal(execution.results[0].isMainResult, true)
    assert.equal((await sandbox.runCode('x += 1; x')).text, '2')
    assert.equal((await sandbox.runCode('x;')).text, undefined)
    assert.equal((await sandbox.runCode("'hello'")).text, 'hello')
    assert.equal((await sandbox.runCode('import os; os.getcwd()')).text, '/home/user')
  }))

await check('runCode: output as it comes', () =>
  inSandbox(async (sandbox) => {
    const seen = []
    const execution = await sandbox.runCode(
      "import sys\nprint('hi')\nprint('e', file=sys.stderr)\nfrom IPython.display import display, HTML\ndisplay(HTML('<b>x</b>'))\n42",
      {
        onStdout: (message) => seen.push(['out', message.line, message.error, typeof message.timestamp]),
        onStderr: (message) => seen.push(['err', message.line, message.error]),
        onResult: (result) => seen.push(['result', result.html ?? result.text, result.isMainResult]),
      })
    assert.deepEqual(execution.logs, { stdout: ['hi\n'], stderr: ['e\n'] })
    assert.deepEqual(seen.map((row) => row.slice(0, 2)),
      [['out', 'hi\n'], ['err', 'e\n'], ['result', '<b>x</b>'], ['result', '42']])
  }))

await check('runCode: characters of several bytes', () =>
  inSandbox(async (sandbox) => {
    const text = '€🐎漢'.repeat(20000)
    const execution = await sandbox.runCode("print('€🐎漢' * 20000, end='')\n'€🐎'")
    assert.equal(execution.logs.stdout.join(''), text)
    assert.equal(execution.text, '€🐎')
  }))

await check('runCode: errors', () =>
  inSandbox(async (sandbox) => {
    let told
    const { error, results } = await sandbox.runCode('def f():\n    return 1 / 0\nf()', { onError: (e) => (told = e) })
    assert.equal(error.name, 'ZeroDivisionError')
    assert.equal(error.value, 'division by zero')
    assert.match(error.traceback, /line 2, in f\(\)|in f\(\)/)
    assert.doesNotMatch(error.traceback, /\x1b\[/)
    assert.equal(told.name, 'ZeroDivisionError')
    assert.deepEqual(results, [])
    assert.equal((await sandbox.runCode('input()')).error.name, 'EOFError')
    assert.equal((await sandbox.runCode('x =')).error.name, 'SyntaxError')
  }))

await check('runCode: MIME bundles', () =>
  inSandbox(async (sandbox) => {
    const { results } = await sandbox.runCode(`
from IPython.display import display, HTML, Markdown, Latex, JSON, SVG, Javascript
display(Markdown('**m**'), Latex('$x$'), JSON({'a': [1]}), SVG('<svg xmlns="http://www.w3.org/2000/svg"/>'), Javascript('1'))
class Own:
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {'text/plain': 'own', 'application/vnd.own': {'b': 2}}
display(Own())
{'k': [1, 2]}`)
    const [markdown, latex, json, svg, javascript, own, value] = results
    assert.equal(markdown.markdown, '**m**')
    assert.equal(latex.latex, '$x$')
    assert.deepEqual(json.json, { a: [1] })
    assert.match(svg.svg, /^<svg/)
    assert.equal(javascript.javascript, '1')
    assert.equal(own.text, 'own')
    assert.deepEqual(value.json, { k: [1, 2] })
    assert.equal(value.text, "{'k': [1, 2]}")
    assert.equal(value.isMainResult, true)
  }))

const SCIENCE = await (async () => {
  let found
  await inSandbox(async (sandbox) => {
    found = (await sandbox.runCode('import pandas, matplotlib, PIL; 1')).text === '1'
  })
  return found
})()

if (SCIENCE) {
  await check('runCode: tables', () =>
    inSandbox(async (sandbox) => {
      const { results } = await sandbox.runCode(
        "import pandas as pd; pd.DataFrame({'a': [1, 2], 'b': ['x', None], 't': pd.to_datetime(['2020-01-01', '2020-01-02'])})")
      assert.match(results[0].html, /<table/)
      assert.deepEqual(results[0].data.a, [1, 2])
      assert.deepEqual(results[0].data.b, ['x', null])
      assert.match(results[0].data.t[0], /^2020-01-01T00:00:00/)
    }))

  await check('runCode: pictures', () =>
    inSandbox(async (sandbox) => {
      const { results } = await sandbox.runCode(`
from PIL import Image
Image.new('RGB', (2, 2)).save('a.png')
Image.new('RGB', (2, 2))`)
      assert.equal(results.length, 2)
      for (const result of results) assert.match(result.png, PNG)
      assert.equal(results[1].isMainResult, true)
    }))

  await check('runCode: charts', () =>
    inSandbox(async (sandbox) => {
      const line = await sandbox.runCode(`
import matplotlib.pyplot as plt
plt.plot([1, 2], [3, 4], label='l'); plt.xlabel('t (s)'); plt.title('T')
plt.show()`)
      assert.match(line.results[0].png, PNG)
      assert.equal(line.results[0].isMainResult, false)
      const chart = line.results[0].chart
      assert.equal(chart.type, 'line')
      assert.equal(chart.title, 'T')
      assert.equal(chart.x_unit, 's')
      assert.deepEqual(chart.elements, [{ label: 'l', points: [[1, 3], [2, 4]] }])
      const open = await sandbox.runCode("plt.bar(['a', 'b'], [1, 2]); None")
      assert.equal(open.results[0].chart.type, 'bar')
      assert.deepEqual(open.results[0].chart.elements.map((e) => [e.label, e.value]), [['a', 1], ['b', 2]])
      const pie = await sandbox.runCode("plt.pie([1, 3], labels=['x', 'y']); plt.show()")
      assert.deepEqual(pie.results[0].chart.elements.map((e) => [e.label, e.angle]), [['x', 90], ['y', 270]])
      const box = await sandbox.runCode('plt.boxplot([[1,2,3,4,5],[2,4,6,8,10]], patch_artist=True); plt.show()')
      assert.equal(box.results[0].chart.type, 'box_and_whisker')
      assert.equal(box.results[0].chart.elements[0].median, 3)
      const both = await sandbox.runCode("f, a = plt.subplots(1, 2); a[0].plot([1]); a[1].scatter([1], [2]); plt.show()")
      assert.equal(both.results[0].chart.type, 'superchart')
      assert.deepEqual(both.results[0].chart.elements.map((e) => e.type), ['line', 'scatter'])
    }))
}

await check('runCode: lines with % and !, await at the top', () =>
  inSandbox(async (sandbox) => {
    assert.equal((await sandbox.runCode('!echo from the shell')).logs.stdout.join(''), 'from the shell\n')
    assert.equal((await sandbox.runCode('%pwd')).text, '/home/user')
    assert.equal((await sandbox.runCode('import asyncio; await asyncio.sleep(0, 7)')).text, '7')
  }))

await check('runCode: variables', () =>
  inSandbox(async (sandbox) => {
    const code = "import os; [os.environ.get('A'), os.environ.get('B')]"
    assert.equal((await sandbox.runCode(code)).text, "['sandbox', None]")
    assert.equal((await sandbox.runCode(code, { envs: { A: 'cell', B: 'x' } })).text, "['cell', 'x']")
    assert.equal((await sandbox.runCode(code)).text, "['sandbox', None]")
  }, { envs: { A: 'sandbox' } }))

await check('runCode: a time that is up keeps the state', () =>
  inSandbox(async (sandbox) => {
    await sandbox.runCode('kept = 5')
    await assert.rejects(sandbox.runCode('while True: pass', { timeoutMs: 500 }), interpreter.TimeoutError)
    assert.equal((await sandbox.runCode('kept')).text, '5')
  }))

await check('runCode: an interpreter that dies', () =>
  inSandbox(async (sandbox) => {
    const { error } = await sandbox.runCode('import os; os._exit(3)')
    assert.equal(error.name, 'UnexpectedEndOfExecution')
    assert.equal((await sandbox.runCode('1')).text, '1')
  }))

await check('runCode: files are shared with commands', () =>
  inSandbox(async (sandbox) => {
    await sandbox.files.write('data.txt', 'from outside')
    assert.equal((await sandbox.runCode("open('data.txt').read()")).text, 'from outside')
    await sandbox.runCode("open('/home/user/out.txt', 'w').write('from a cell')")
    assert.equal(await sandbox.files.read('out.txt'), 'from a cell')
  }))

for (const [language, first, second, want] of [
  ['javascript', 'let x = 1', 'x + 1', '2'],
  ['js', 'const y = [1, "a"]', 'y', "[ 1, 'a' ]"],
  ['typescript', 'let z: number = 2', 'z as number', '2'],
]) {
  await check(`runCode: ${language}`, () =>
    inSandbox(async (sandbox) => {
      assert.equal((await sandbox.runCode(first, { language })).error, undefined)
      assert.equal((await sandbox.runCode(second, { language })).text, want)
      assert.deepEqual((await sandbox.runCode('console.log("o"); console.error("e")', { language })).logs,
        { stdout: ['o\n'], stderr: ['e\n'] })
      const { error } = await sandbox.runCode('throw new TypeError("t")', { language })
      assert.deepEqual([error.name, error.value], ['TypeError', 't'])
      assert.equal((await sandbox.runCode('await Promise.resolve(3)', { language })).text, '3')
    }))
}

await check('runCode: bash', () =>
  inSandbox(async (sandbox) => {
    assert.equal((await sandbox.runCode('v=1; echo $v', { language: 'bash' })).logs.stdout.join(''), '1\n')
    assert.equal((await sandbox.runCode('echo again $v', { language: 'bash' })).logs.stdout.join(''), 'again 1\n')
  }))

await inSandbox(async (sandbox) => {
  if ((await sandbox.commands.run('command -v Rscript || true')).stdout === '') return
  await check('runCode: r', async () => {
    const language = 'r'
    await sandbox.runCode('x <- c(1, 2)', { language })
    assert.equal((await sandbox.runCode('sum(x)', { language })).text, '[1] 3')
    const drawn = await sandbox.runCode('plot(x); data.frame(a = x)', { language })
    assert.deepEqual(drawn.results[0].data, { a: [1, 2] })
    assert.match(drawn.results[1].png, PNG)
    assert.equal((await sandbox.runCode('stop("no")', { language })).error.value, 'no')
    await assert.rejects(sandbox.runCode('repeat {}', { language, timeoutMs: 300 }), interpreter.TimeoutError)
    assert.equal((await sandbox.runCode('length(x)', { language })).text, '[1] 2')
  })
})

await check('runCode: a language that is not there', () =>
  inSandbox((sandbox) => assert.rejects(sandbox.runCode('1', { language: 'java' }), /400/)))

await check('createCodeContext', () =>
  inSandbox(async (sandbox) => {
    const [one, other] = [await sandbox.createCodeContext(), await sandbox.createCodeContext({ cwd: '/tmp' })]
    assert.equal(one.language, 'python')
    assert.equal(one.cwd, '/home/user')
    await sandbox.runCode('x = 1', { context: one })
    assert.equal((await sandbox.runCode("'x' in globals()", { context: other })).text, 'False')
    assert.equal((await sandbox.runCode('import os; os.getcwd()', { context: other })).text, '/tmp')
    assert.equal((await sandbox.runCode('x', { context: one })).text, '1')
    const js = await sandbox.createCodeContext({ language: 'javascript' })
    assert.equal((await sandbox.runCode('typeof process', { context: js })).text, 'object')
    await assert.rejects(sandbox.runCode('1', { context: { id: 'nothing' } }), interpreter.NotFoundError)
  }))

if (!OLD || Sandbox.prototype.listCodeContexts) {
  await check('listCodeContexts', () =>
    inSandbox(async (sandbox) => {
      const made = await sandbox.createCodeContext({ language: 'javascript', cwd: '/tmp' })
      const listed = (await sandbox.listCodeContexts()).find((context) => context.id === made.id)
      assert.deepEqual([listed.language, listed.cwd], ['javascript', '/tmp'])
    }))

  await check('removeCodeContext', () =>
    inSandbox(async (sandbox) => {
      const made = await sandbox.createCodeContext()
      await sandbox.removeCodeContext(made)
      assert.equal((await sandbox.listCodeContexts()).some((context) => context.id === made.id), false)
      await assert.rejects(sandbox.removeCodeContext(made), interpreter.NotFoundError)
    }))

  await check('restartCodeContext', () =>
    inSandbox(async (sandbox) => {
      const made = await sandbox.createCodeContext()
      await sandbox.runCode('x = 1', { context: made })
      await sandbox.restartCodeContext(made)
      const { error } = await sandbox.runCode('x', { context: made })
      assert.equal(error.name, 'NameError')
    }))
}
process.exit() // a refused cell leaves a timer of the SDK behind, for 60 seconds
