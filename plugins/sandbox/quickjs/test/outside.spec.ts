import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { testContext } from '@svc/testing'
import { expect } from 'chai'
import { open, type Opened, refusal } from './support/sandbox.ts'
import { site } from './support/site.ts'

describe('fetch in the sandbox', () => {
  let sandbox: Opened
  before(async () => {
    sandbox = await open({ workers: 1, allow: ['127.0.0.1'] })
  })
  after(() => sandbox.close())
  const limits = { network: ['*'] }
  const message = async (code: string, more = limits) => (await sandbox.failure(code, { limits: more })).message

  it('sends method, headers and body, and answers status, headers, text and JSON', async () => {
    await using server = await site((_request, response, body) =>
      response.writeHead(201, { 'content-type': 'application/json', 'x-odd': 'yes' }).end(JSON.stringify({ got: body }))
    )
    const code = `const r = await fetch(input, { method: 'PUT', headers: { 'X-Key': 'k' }, body: 'ü' })
      ;({ status: r.status, ok: r.ok, odd: r.headers.get('X-Odd'), none: r.headers.get('none'), json: await r.json(), text: await r.text() })`
    expect(await sandbox.value(code, limits, `${server.url}/a`)).to.deep.equal({
      status: 201,
      ok: true,
      odd: 'yes',
      none: null,
      json: { got: 'ü' },
      text: '{"got":"ü"}',
    })
    expect(server.asked).to.have.length(1)
    expect(server.asked[0]).to.deep.include({ method: 'PUT', url: '/a', body: 'ü' })
    expect(server.asked[0]!.headers['x-key']).to.equal('k')
  })

  it('reaches no address that is not public, whatever the script says', async () => {
    await using server = await site((_request, response) => response.end('secret'))
    for (const url of [
      `http://[::1]:${server.port}/`,
      `http://127.0.0.2:${server.port}/`,
      'http://169.254.169.254/',
      'file:///etc/passwd',
    ])
      expect(await message(`fetch(${JSON.stringify(url)})`), url).to.match(/private or reserved|not public|scheme|may not be/)
    expect(server.asked).to.have.length(0)
  })

  it('refuses headers that could redirect a request to another host', async () => {
    for (const name of ['Host', 'connection', 'Transfer-Encoding', 'Proxy-Authorization'])
      expect(await message(`fetch("http://127.0.0.1:9/", { headers: { "${name}": "x" } })`)).to.match(/is not allowed/)
    expect(await message('fetch("http://127.0.0.1:9/", { method: "CONNECT" })')).to.match(/method is not allowed/)
    expect(await message('fetch("http://127.0.0.1:9/", { body: {} })')).to.match(/body must be a string/)
  })

  it('takes no page that is too large, and not more questions than so many at once', async () => {
    await using server = await site((_request, response) => response.end('x'.repeat(1_100_000)))
    expect(await message(`fetch("${server.url}")`)).to.match(/1048576|1\.0 MiB|larger|too large/i)
    expect(await message(`Promise.all(Array.from({ length: 40 }, () => fetch("${server.url}")))`)).to.match(
      /more than 16 requests at once/
    )
  })

  it('can be caught by the script, and ends with it', async () => {
    const asked = Promise.withResolvers<void>()
    const left = Promise.withResolvers<void>()
    await using server = await site((request, response) => {
      if (request.url === '/gone') return request.socket.destroy()
      response.on('close', left.resolve)
      asked.resolve()
    })
    expect(await sandbox.value(`fetch("${server.url}/gone").catch(error => error.message.length > 5)`, limits)).to.equal(true)
    const { code } = await sandbox.failure(`fetch("${server.url}/slow")`, { limits: { ...limits, timeoutMs: 100 } })
    expect(code).to.equal('SANDBOX_TIMEOUT')
    await left.promise
    const controller = new AbortController()
    const again = refusal(sandbox.run(`fetch("${server.url}/slow")`, { limits }, testContext({ signal: controller.signal })))
    await asked.promise
    controller.abort(new Error('left'))
    expect((await again).message).to.equal('left')
  })

  it('is aborted if the script does not wait for it, and the next script gets a new engine', async () => {
    await using server = await site(() => {})
    expect(await sandbox.value(`fetch("${server.url}"); globalThis.mark = 1`, limits)).to.equal(1)
    expect(await sandbox.value('typeof mark')).to.equal('undefined')
  })

  it('is there only where hosts are named', async () => {
    expect(await sandbox.value('typeof fetch + typeof files')).to.equal('undefinedundefined')
    expect(await message('fetch("http://127.0.0.1:9/")', { network: ['api.example', '*.wide.example'] })).to.match(
      /may only reach api\.example/
    )
    for (const url of [
      'http://evil.example/',
      'http://api.example.evil/',
      'http://xwide.example/',
      'http://api.example@127.0.0.1/',
    ])
      expect(await message(`fetch("${url}")`, { network: ['api.example', '*.wide.example'] }), url).to.match(/may only reach/)
  })
})

describe('files in the sandbox', () => {
  let sandbox: Opened
  let folder: string
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-sandbox-'))
    await mkdir(join(folder, 'open'))
    await writeFile(join(folder, 'open', 'a.txt'), 'text ü')
    await writeFile(join(folder, 'secret.txt'), 'secret')
    await symlink(join(folder, 'secret.txt'), join(folder, 'open', 'link'))
    await symlink(folder, join(folder, 'open', 'up'))
    sandbox = await open({ workers: 1 })
  })
  after(async () => {
    await sandbox.close()
    await rm(folder, { recursive: true })
  })
  const limits = () => ({ paths: [join(folder, 'open')] })
  const message = async (code: string) => (await sandbox.failure(code, { limits: limits() })).message

  it('reads, writes and lists within its folders', async () => {
    const code = `const text = await files.read('a.txt')
      await files.write('new/b.txt', text + '!')
      await files.write('new/b.txt', text + '?')
      ;[text, await files.list(), await files.list('new')]`
    expect(await sandbox.value(code, limits())).to.deep.equal([
      'text ü',
      [
        { name: 'a.txt', type: 'file' },
        { name: 'link', type: 'link' },
        { name: 'new', type: 'directory' },
        { name: 'up', type: 'link' },
      ],
      [{ name: 'b.txt', type: 'file' }],
    ])
    expect(await readFile(join(folder, 'open', 'new', 'b.txt'), 'utf8')).to.equal('text ü?')
  })

  it('has no way out: neither dots nor absolute paths nor links', async () => {
    for (const path of ['../secret.txt', join(folder, 'secret.txt'), 'link', 'up/secret.txt', '/etc/passwd', 'a\\0'])
      expect(await message(`files.read("${path}")`), path).to.match(/outside|zero byte/)
    for (const path of ['../x.txt', 'up/x.txt', '/tmp/x.txt', '.'])
      expect(await message(`files.write("${path}", "")`), path).to.match(/outside|root/)
    expect(await message('files.write("link", "over")')).to.match(/neither a file nor|outside/)
    expect(await readFile(join(folder, 'secret.txt'), 'utf8')).to.equal('secret')
    expect(await message('files.write(".git/hooks/pre-commit", "rm")')).to.match(/belongs to git/)
  })

  it('takes texts only, and no more than fits', async () => {
    expect(await message('files.write("c.txt", 5)')).to.match(/content must be a string/)
    expect(await message('files.read({ toString: 1 })')).to.match(/path must be a string/)
    expect(await message('files.write("c.txt", "x".repeat(3e6))')).to.match(/more than \d+ characters/)
    await writeFile(join(folder, 'open', 'large'), Buffer.alloc(1_100_000))
    expect(await message('files.read("large")')).to.match(/more than 1048576 bytes/)
    await rm(join(folder, 'open', 'large'))
  })

  it('are there only where folders are named, and folders must be there', async () => {
    expect((await sandbox.failure('files.read("a.txt")')).code).to.equal('SANDBOX_BLOCKED')
    const gone = await sandbox.failure('files.read("a.txt")', { limits: { paths: [join(folder, 'gone')] } })
    expect(gone.message).to.match(/a folder of files does not exist/)
    expect(gone.message).to.not.contain(folder)
  })
})
