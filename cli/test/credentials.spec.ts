// Not a unit test: starts helper programs and a server.
import { once } from 'node:events'
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { makeWorkspace } from './support/svc.ts'

interface Asked {
  readonly url: string
  readonly headers: IncomingHttpHeaders
}

/** A server that answers 401 unless `accepts` is true for the headers. */
async function startServer(accepts: (headers: IncomingHttpHeaders) => boolean) {
  const asked: Asked[] = []
  const server = createServer((request, response) => {
    asked.push({ url: request.url ?? '', headers: request.headers })
    const isGood = accepts(request.headers)
    response.writeHead(isGood ? 200 : 401, { 'content-type': 'application/json' })
    response.end(
      JSON.stringify(isGood ? { tools: [] } : { success: false, error: 'no', error_code: 'AUTHENTICATION_FAILED', details: {} })
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    asked,
    host: `127.0.0.1:${port}`,
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

const SECRET = 'a-secret-that-no-output-may-contain'

describe('credentials of commands for a server', () => {
  let folder: string
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-credentials-'))
  })
  after(() => rm(folder, { recursive: true, force: true }))

  /** Writes a helper that keeps its input and arguments in files, and answers with these lines for each operation. */
  async function helper(name: string, answers: Readonly<Record<string, readonly string[]>>, code = 0) {
    const file = join(folder, name)
    const program = `#!${process.execPath}
const fs = require('node:fs')
const operation = process.argv.at(-1)
fs.appendFileSync(${JSON.stringify(`${file}.log`)}, JSON.stringify({ args: process.argv.slice(2), input: fs.readFileSync(0, 'utf8') }) + '\\n')
const calls = fs.readFileSync(${JSON.stringify(`${file}.log`)}, 'utf8').split('\\n').filter(line => line.includes('"' + operation + '"')).length
process.stdout.write((${JSON.stringify(answers)}[operation + calls] ?? ${JSON.stringify(answers)}[operation] ?? []).join('\\n') + '\\n\\n')
process.exitCode = ${code}
`
    await writeFile(file, program)
    await chmod(file, 0o755)
    const calls = async () =>
      (await readFile(`${file}.log`, 'utf8'))
        .split('\n')
        .filter(Boolean)
        .map(line => JSON.parse(line) as { readonly args: readonly string[]; readonly input: string })
    return { file, calls }
  }

  it('sends headers of --header, and of a file, which no list of processes shows', async () => {
    await using workspace = await makeWorkspace()
    await using server = await startServer(() => true)
    await workspace.write('headers.txt', `Authorization: Signature ${SECRET}\n\nX-Team:  blue \n`)
    const { code, err } = await workspace.svc(
      ['tools', 'list', '--url', server.url, '--header', '@headers.txt', '-H', 'X-One: 1'],
      { env: { SVC_API_KEY: 'an-api-key' } }
    )
    expect(code, err).to.equal(0)
    expect(server.asked[0]!.headers).to.include({
      'x-one': '1',
      'x-team': 'blue',
      authorization: `Signature ${SECRET}`,
      'x-api-key': 'an-api-key',
    })
    await workspace.svc(['status', '--url', server.url, '-H', 'X-One: 1'])
    expect(server.asked.at(-1)!.headers).to.include({ 'x-one': '1' })
  })

  it('rejects a header that is none, or that describes the connection, without repeating it', async () => {
    await using workspace = await makeWorkspace()
    await using server = await startServer(() => true)
    for (const header of [
      SECRET,
      `X-A: ${SECRET}\r\nX-B: 1`,
      `Host: ${SECRET}`,
      `Content-Length: ${SECRET}`,
      '@missing.txt',
      `: ${SECRET}`,
    ]) {
      const { code, out, err } = await workspace.svc(['tools', 'list', '--url', server.url, '--header', header])
      expect(code, header).to.equal(1)
      expect(err, header).to.match(/^HEADER_INVALID/)
      expect(out + err, header).to.not.include(SECRET)
    }
    expect(server.asked).to.deep.equal([])
  })

  it('asks a helper in the protocol of Git, without a shell, and asks again after a 401', async () => {
    await using workspace = await makeWorkspace()
    await using server = await startServer(({ authorization }) => authorization === `Negotiate ${SECRET}2`)
    const { file, calls } = await helper('git-like', {
      get1: ['authtype=Negotiate', `credential=${SECRET}1`, 'unknown=1'],
      get: ['authtype=Negotiate', `credential=${SECRET}2`],
    })
    const line = `${file} --for "a b" '$(touch pwned)' ;touch pwned2 \`touch pwned3\``
    const { code, out, err } = await workspace.svc(['tools', 'list', '--url', server.url], {
      env: { SVC_CREDENTIAL_HELPER: line, SVC_API_KEY: 'unused' },
    })
    expect(code, err).to.equal(0)
    expect(server.asked.map(request => request.headers['x-api-key'])).to.deep.equal([undefined, undefined])
    const words = ['--for', 'a b', '$(touch pwned)', ';touch', 'pwned2', '`touch', 'pwned3`']
    expect((await calls()).map(call => call.args)).to.deep.equal([
      [...words, 'get'],
      [...words, 'erase'],
      [...words, 'get'],
    ])
    const [first, erased] = await calls()
    expect(first!.input)
      .to.match(new RegExp(`^protocol=http\\nhost=${server.host}\\n`))
      .and.match(/\nmethod=GET\npath=\S+\n\n$/)
    expect(erased!.input).to.equal(`protocol=http\nhost=${server.host}\nauthtype=Negotiate\ncredential=${SECRET}1\n\n`)
    expect(out + err).to.not.include(SECRET)
    expect((await readdir(workspace.folder)).filter(name => name.startsWith('pwned'))).to.deep.equal([])
  })

  it('takes a user and password, a password alone, and headers of any scheme from a helper', async () => {
    await using workspace = await makeWorkspace()
    await using server = await startServer(() => true)
    const kinds: [string[], IncomingHttpHeaders][] = [
      [['username=me', 'password=p:w'], { authorization: `Basic ${Buffer.from('me:p:w').toString('base64')}` }],
      [['password=svc_token'], { authorization: 'Bearer svc_token' }],
      [['password=a-key'], { 'x-api-key': 'a-key' }],
      [['header=X-Signature: t=1,v1=abc', 'ephemeral=1'], { 'x-signature': 't=1,v1=abc' }],
    ]
    for (const [at, [lines, headers]] of kinds.entries()) {
      const { file } = await helper(`kind-${at}`, { get: lines })
      const { code, err } = await workspace.svc(['tools', 'list', '--url', server.url], { env: { SVC_CREDENTIAL_HELPER: file } })
      expect(code, err).to.equal(0)
      expect(server.asked.at(-1)!.headers).to.include(headers)
    }
  })

  it('reports a helper that fails, and never its answer', async () => {
    await using workspace = await makeWorkspace()
    await using server = await startServer(() => true)
    const broken = await helper('broken', { get: [`password=${SECRET}`] }, 3)
    const splitting = await helper('splitting', { get: ['authtype=Bearer', `credential=${SECRET}\u0000\rX-Admin: 1`] })
    const header = await helper('header', { get: [`header=Host: ${SECRET}`] })
    const quitting = await helper('quitting', { get: ['quit=1'] })
    for (const command of [broken.file, splitting.file, header.file, quitting.file, join(folder, 'missing')]) {
      const { code, out, err } = await workspace.svc(['tools', 'list', '--url', server.url], {
        env: { SVC_CREDENTIAL_HELPER: command },
      })
      expect(code, command).to.equal(1)
      expect(err, command).to.match(/^CREDENTIAL_HELPER_FAILED/)
      expect(out + err, command).to.not.include(SECRET)
    }
    expect(server.asked).to.deep.equal([])
  })
})
