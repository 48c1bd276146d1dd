// SPDX-License-Identifier: MIT
// Files of a sandbox: read, write, look, list, move, remove, and URLs that are signed.
import { Sandbox, OLD, assert, check, e2b, http, withSandbox } from './sdk.mjs'

const { FileNotFoundError, FileType, InvalidArgumentError, NotFoundError } = e2b

// Without the SDK, as a browser would: the address of the daemon, whatever the URL's host.
function fetchUrl(url, method = 'GET', body = undefined, headers = {}) {
  const at = new URL(url)
  const base = new URL(process.env.E2B_API_URL)
  const host = at.host === base.host ? {} : { host: at.host }
  return new Promise((resolve, reject) => {
    const request = http.request({ hostname: base.hostname, port: base.port, path: at.pathname + at.search, method,
      headers: { ...host, ...headers } }, (answer) => {
      const pieces = []
      answer.on('data', (piece) => pieces.push(piece))
      answer.on('end', () => resolve({ status: answer.statusCode, headers: answer.headers,
        text: Buffer.concat(pieces).toString() }))
    })
    request.on('error', reject)
    request.end(body)
  })
}

function form(content) {
  const mark = 'a-boundary'
  return [`--${mark}\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\n${content}\r\n--${mark}--\r\n`,
    { 'content-type': `multipart/form-data; boundary=${mark}` }]
}

await withSandbox(async (sandbox) => {
  const { files } = sandbox

  await check('files.write', async () => {
    const told = await files.write('a.txt', 'hello')
    assert.equal(told.path, '/home/user/a.txt')
    assert.equal(told.name, 'a.txt')
    assert.equal(told.type, 'file')
    assert.equal(await files.read('a.txt'), 'hello')
    await files.write('a.txt', 'less')
    assert.equal(await files.read('/home/user/a.txt'), 'less')
  })

  await check('files.write: parents are made, and names of any kind', async () => {
    for (const name of ['deep/er/ü €.txt', 'with "quotes".txt', 'a+b c%20d.txt', 'semi;colon=.txt']) {
      const told = await files.write(name, name)
      // E2B's own server keeps %22 as it comes in the name of a part.
      assert.equal(await files.read(told.path), name)
    }
  })

  await check('files.write: bytes of every kind', async () => {
    const bytes = new Uint8Array(3_000_017).map((_, i) => (i * 7919) ^ (i >> 8))
    await files.write('bytes', bytes.buffer)
    const back = await files.read('bytes', { format: 'bytes' })
    assert.ok(Buffer.from(back).equals(Buffer.from(bytes)))
    const blob = await files.read('bytes', { format: 'blob' })
    assert.equal(blob.size, bytes.length)
    await files.write('crlf', '\r\n--\r\n\r\n----formdata-undici-0\r\n')
    assert.equal(await files.read('crlf'), '\r\n--\r\n\r\n----formdata-undici-0\r\n')
  })

  await check('files.write: nothing', async () => {
    await files.write('empty', '')
    assert.equal(await files.read('empty'), '')
  })

  await check('files.writeFiles', async () => {
    const write = files.writeFiles ? files.writeFiles.bind(files) : files.write.bind(files)
    const told = await write([{ path: 'm/one', data: '1' }, { path: '/tmp/two', data: '22' }, { path: 'm/3', data: '' }])
    assert.deepEqual(told.map((t) => t.path), ['/home/user/m/one', '/tmp/two', '/home/user/m/3'])
    assert.equal(await files.read('/tmp/two'), '22')
    const many = Array.from({ length: 300 }, (_, i) => ({ path: `many/${i}`, data: `${i}` }))
    assert.equal((await write(many)).length, 300)
    assert.equal(await files.read('many/299'), '299')
  })

  if (!OLD) {
    await check('files.write: compressed, and with metadata', async () => {
      await files.write('zipped', 'z'.repeat(500_000), { gzip: true, useOctetStream: true })
      assert.equal((await files.read('zipped')).length, 500_000)
      const told = await files.write('labelled', 'x', { metadata: { author: 'me', 'a-b': 'c d' } })
      assert.deepEqual(told.metadata, { author: 'me', 'a-b': 'c d' })
      assert.deepEqual((await files.getInfo('labelled')).metadata, { author: 'me', 'a-b': 'c d' })
      await files.write('labelled', 'y')
      assert.equal((await files.getInfo('labelled')).metadata, undefined)
    })
  }

  await check('files.read', async () => {
    await assert.rejects(files.read('not there'), FileNotFoundError ?? NotFoundError)
    await assert.rejects(files.read('a.txt/below'), NotFoundError)
    await assert.rejects(files.read('/tmp'), InvalidArgumentError)
    await assert.rejects(files.read('~nobody/x'), InvalidArgumentError)
    const stream = await files.read('bytes', { format: 'stream' })
    let n = 0
    for await (const piece of stream) n += piece.length
    assert.equal(n, 3_000_017)
  })

  await check('files.write: errors', async () => {
    await assert.rejects(files.write('/tmp', 'x'), InvalidArgumentError)
    await assert.rejects(files.write('a.txt/below', 'x'), InvalidArgumentError)
  })

  await check('files.getInfo', async () => {
    const info = await files.getInfo('a.txt')
    assert.equal(info.name, 'a.txt')
    assert.equal(info.path, '/home/user/a.txt')
    assert.equal(info.type, FileType.FILE)
    assert.equal(info.size, 4)
    assert.equal(info.mode, 0o644)
    assert.equal(info.permissions, '-rw-r--r--')
    assert.equal(info.owner, 'user')
    assert.equal(info.group, 'user')
    assert.ok(Math.abs(info.modifiedTime - Date.now()) < 3600_000)
    assert.equal((await files.getInfo('/home/user')).type, FileType.DIR)
    await assert.rejects(files.getInfo('not there'), NotFoundError)
  })

  await check('files.exists', async () => {
    assert.equal(await files.exists('a.txt'), true)
    assert.equal(await files.exists('not there'), false)
    assert.equal(await files.exists('a.txt/below'), false)
  })

  await check('files.makeDir', async () => {
    assert.equal(await files.makeDir('d1/d2/d3'), true)
    assert.equal(await files.makeDir('d1/d2'), false)
    await assert.rejects(files.makeDir('a.txt'), InvalidArgumentError)
  })

  await check('files.list', async () => {
    await files.write('l/b/c', '')
    await files.write('l/a', 'xyz')
    assert.deepEqual((await files.list('l')).map((e) => [e.name, e.type, e.path]),
      [['a', FileType.FILE, '/home/user/l/a'], ['b', FileType.DIR, '/home/user/l/b']])
    assert.deepEqual((await files.list('l', { depth: 2 })).map((e) => e.path),
      ['/home/user/l/a', '/home/user/l/b', '/home/user/l/b/c'])
    assert.deepEqual(await files.list('d1/d2/d3'), [])
    await assert.rejects(files.list('not there'), NotFoundError)
    await assert.rejects(files.list('a.txt'), InvalidArgumentError)
    await assert.rejects(files.list('l', { depth: 0 }), InvalidArgumentError)
  })

  await check('files.rename', async () => {
    const told = await files.rename('l/a', 'l/new/place')
    assert.equal(told.path, '/home/user/l/new/place')
    assert.equal(await files.read('l/new/place'), 'xyz')
    assert.equal(await files.exists('l/a'), false)
    await assert.rejects(files.rename('l/a', 'l/z'), NotFoundError)
    await files.rename('l/new/place', '/tmp/elsewhere')
    assert.equal(await files.read('/tmp/elsewhere'), 'xyz')
  })

  await check('files.remove', async () => {
    await files.remove('l')
    assert.equal(await files.exists('l'), false)
    await files.remove('l')
  })

  await check('downloadUrl', async () => {
    await files.write('signed file+ü.txt', 'secret')
    const url = await sandbox.downloadUrl('signed file+ü.txt', { useSignatureExpiration: 60 })
    const answer = await fetchUrl(url)
    assert.equal(answer.status, 200)
    assert.equal(answer.text, 'secret')
    assert.match(answer.headers['content-disposition'], /^[\x20-\x7e]+$/)
    assert.equal((await fetchUrl(await sandbox.downloadUrl('a.txt'))).text, 'less')
    const part = await fetchUrl(await sandbox.downloadUrl('a.txt'), 'GET', undefined, { range: 'bytes=1-2' })
    assert.equal(part.status, 206)
    assert.equal(part.text, 'es')
    assert.equal((await fetchUrl(await sandbox.downloadUrl('not there'))).status, 404)
  })

  await check('downloadUrl: opens nothing else', async () => {
    await files.write('other.txt', 'other')
    const url = await sandbox.downloadUrl('a.txt', { useSignatureExpiration: 600 })
    const changed = (change) => { const u = new URL(url); change(u.searchParams); return fetchUrl(u.toString()) }
    assert.equal((await fetchUrl(url)).status, 200)
    assert.equal((await changed((q) => q.set('path', 'other.txt'))).status, 401)
    assert.equal((await changed((q) => q.set('path', '/home/user/a.txt'))).status, 401)
    assert.equal((await changed((q) => q.set('username', 'root'))).status, 401)
    assert.equal((await changed((q) => q.set('signature_expiration', Number(q.get('signature_expiration')) + 9e6))).status, 401)
    assert.equal((await changed((q) => q.delete('signature_expiration'))).status, 401)
    assert.equal((await changed((q) => q.set('signature', 'v1_' + 'A'.repeat(43)))).status, 401)
    const [body, headers] = form('changed')
    assert.equal((await fetchUrl(url, 'POST', body, headers)).status, 401)
    assert.equal(await files.read('a.txt'), 'less')
    await withSandbox(async (another) => {
      await another.files.write('a.txt', 'of another')
      const there = new URL(await another.downloadUrl('a.txt', { useSignatureExpiration: 600 }))
      const here = new URL(url)
      here.searchParams.set('signature', there.searchParams.get('signature'))
      here.searchParams.set('signature_expiration', there.searchParams.get('signature_expiration'))
      const answer = await fetchUrl(here.toString(), 'GET', undefined,
        { 'e2b-sandbox-id': sandbox.sandboxId, 'e2b-sandbox-port': '49983' })
      assert.equal(answer.status, 401)
    })
  })

  await check('downloadUrl: ends at its time', async () => {
    const url = await sandbox.downloadUrl('a.txt', { useSignatureExpiration: -10 })
    assert.equal((await fetchUrl(url)).status, 401)
  })

  await check('uploadUrl', async () => {
    const url = await sandbox.uploadUrl('up/loaded.txt', { useSignatureExpiration: 60 })
    const [body, headers] = form('from a form')
    assert.equal((await fetchUrl(url, 'POST', body, headers)).status, 200)
    assert.equal(await files.read('up/loaded.txt'), 'from a form')
    assert.equal((await fetchUrl(url)).status, 401)
  })

  await check('files.write: what commands see', async () => {
    await files.write('seen.sh', 'x')
    assert.equal((await files.getInfo('seen.sh')).owner, 'user')
  })
})
