import { once } from 'node:events'
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, type TLSSocket } from 'node:tls'
import { type TestCertificate, makeCertificate, writeCertificate } from '@svc/testing'
import { expect } from 'chai'
import { setTimeout as wait } from 'node:timers/promises'
import { open, serve } from './support/client.ts'
import { free } from './support/who.ts'

describe('TLS', () => {
  let folder = ''
  let made: TestCertificate
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-tls-'))
    made = makeCertificate()
  })
  afterEach(() => rm(folder, { recursive: true, force: true }))

  const serveWith = async (pair: { cert: string; key: string }, more: object = {}, lines: string[] = []) => {
    const ssl = { enabled: true, ...(await writeCertificate(folder, pair)), ...more }
    return serve({ free }, { ssl }, { destination: { write: line => void lines.push(line) } })
  }

  it('serves HTTP/1.1 with the certificate, says https, and tells browsers to stay with it', async () => {
    await using server = await serveWith(made)
    expect(server.url).to.match(/^https:\/\/127\.0\.0\.1:\d+$/)
    const { status, headers } = await get(`${server.url}/free`, made.cert)
    expect(status).to.equal(200)
    expect(headers['strict-transport-security'], 'nothing of other servers below its name').to.equal('max-age=31536000')
    using socket = await handshake(server.url, { ca: made.cert, ALPNProtocols: ['h2', 'http/1.1'] })
    expect([socket.tls.alpnProtocol, socket.tls.authorized]).to.deep.equal(['http/1.1', true])
  })

  it('takes up a certificate whose files change, for new connections, while those that are open go on', async () => {
    await using server = await serveWith(made)
    using before = await handshake(server.url, { ca: made.cert })
    const next = makeCertificate()
    await writeCertificate(folder, next)
    await untilServed(server.url, next)
    before.tls.write('GET /free HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    const [answer] = (await once(before.tls, 'data')) as [Buffer]
    expect(answer.toString()).to.match(/^HTTP\/1.1 200 /)
    expect((await get(`${server.url}/free`, next.cert)).status).to.equal(200)
  })

  it('takes up one that is changed by links: of the folder as Kubernetes does it, of each file as certbot does it', async () => {
    const [first, second, third] = [made, makeCertificate(), makeCertificate()]
    const at = (...names: string[]) => join(folder, ...names)
    for (const [name, pair] of Object.entries({ '..1': first, '..2': second, archive: third })) {
      await mkdir(at(name))
      await writeCertificate(at(name), pair)
    }
    await symlink('..1', at('..data'))
    for (const file of ['cert.pem', 'key.pem']) await symlink(`..data/${file}`, at(file))
    await using server = await serve({ free }, { ssl: { enabled: true, cert: at('cert.pem'), key: at('key.pem') } })
    expect((await get(`${server.url}/free`, first.cert)).status).to.equal(200)
    await symlink('..2', at('..data_tmp'))
    await rename(at('..data_tmp'), at('..data'))
    await untilServed(server.url, second)
    for (const file of ['cert.pem', 'key.pem']) {
      await rm(at(file))
      await symlink(`archive/${file}`, at(file))
    }
    await untilServed(server.url, third)
  })

  it('keeps the old certificate while the new one is broken or half there, says so, and takes it up once it is whole', async () => {
    const lines: string[] = []
    await using server = await serveWith(made, {}, lines)
    const next = makeCertificate()
    await writeFile(join(folder, 'cert.pem'), next.cert)
    await until(() => lines.some(line => line.includes('KEY_MISMATCH')))
    expect((await get(`${server.url}/free`, made.cert)).status).to.equal(200)
    await writeFile(join(folder, 'cert.pem'), 'broken')
    await until(() => lines.some(line => line.includes('CERTIFICATE_INVALID')))
    await rm(join(folder, 'cert.pem'))
    await until(() => lines.some(line => line.includes('CERTIFICATE_UNREADABLE')))
    expect((await get(`${server.url}/free`, made.cert)).status).to.equal(200)
    await writeCertificate(folder, next)
    await untilServed(server.url, next)
  })

  describe('at the start', () => {
    const problems: Readonly<
      Record<string, readonly [string, string, (made: TestCertificate) => { cert: string; key: string }, object?]>
    > = {
      'fails without a key': ['SSL_INCOMPLETE', '--ssl-key', item => item, { key: undefined }],
      'fails without a certificate': ['SSL_INCOMPLETE', '--ssl-cert', item => item, { cert: undefined }],
      'fails where a file is not there': ['CERTIFICATE_UNREADABLE', '--ssl-cert', item => item, { cert: '/nowhere/cert.pem' }],
      'fails where the certificate is none': ['CERTIFICATE_INVALID', 'BEGIN CERTIFICATE', item => ({ ...item, cert: 'hello' })],
      'fails where the key is none': ['KEY_INVALID', 'BEGIN PRIVATE KEY', item => ({ ...item, key: 'hello' })],
      'fails where the key has a password': ['KEY_PROTECTED', 'openssl pkey', item => ({ ...item, key: item.locked })],
      'fails where the key is of another certificate': [
        'KEY_MISMATCH',
        'requested with',
        item => ({ ...item, key: makeCertificate().key }),
      ],
    }
    for (const [title, [code, hint, spoil, more]] of Object.entries(problems))
      it(`${title}, and says what to do`, async () => {
        const failed = (await serveWith(spoil(made), more).catch((error: unknown) => error)) as {
          problems: { code: string; hint: string }[]
        }
        expect(failed.problems[0]!.code).to.equal(code)
        expect(failed.problems[0]!.hint).to.include(hint)
      })
  })

  it('lets go who never shakes hands, and who speaks no TLS; others are served on', async () => {
    await using server = await serveWith(made, { handshake_timeout_ms: 200 })
    const sockets = [await open(server.url), await open(server.url)] as const
    const closed = Promise.all(sockets.map(socket => once(socket.resume(), 'close')))
    const [, plain] = sockets
    plain.write('GET /free HTTP/1.1\r\nHost: localhost\r\n\r\n')
    expect((await get(`${server.url}/free`, made.cert)).status).to.equal(200)
    await closed
  })
})

function get(url: string, ca: string): Promise<{ status: number; headers: Readonly<Record<string, unknown>> }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; headers: Readonly<Record<string, unknown>> }>()
  request(url, { ca, agent: false }, response => {
    response.resume().on('end', () => resolve({ status: response.statusCode!, headers: response.headers }))
  })
    .on('error', reject)
    .end()
  return promise
}

async function handshake(url: string, options: object): Promise<Disposable & { readonly tls: TLSSocket }> {
  const { hostname, port } = new URL(url)
  const tls = connect({ host: hostname, port: Number(port), servername: 'localhost', ...options })
  await once(tls, 'secureConnect')
  return { tls, [Symbol.dispose]: () => void tls.destroy() }
}

/** Asks until the new certificate answers. */
async function untilServed(url: string, { cert }: TestCertificate): Promise<void> {
  while ((await get(`${url}/free`, cert).catch(() => undefined)) === undefined) await wait(5)
}
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await wait(5)
}
