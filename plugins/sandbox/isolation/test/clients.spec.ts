import { once } from 'node:events'
import { connect } from 'node:net'
import { networkInterfaces } from 'node:os'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Manifest, type RunningHost, startHost } from '@svc/core'
import { Isolation, Tools } from '@svc/core/contracts'
import { describeIsolated, isolate } from '@svc/runtime/isolation'
import { makeCertificate, testContext } from '@svc/testing'
import { startPostgres, startRedis } from '@svc/testing/engines'
import { expect } from 'chai'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'
import { itWith, lacking } from '../../../../test/support/needs.ts'
import { withSandbox } from './support/hostile.ts'
import * as servers from './support/servers.ts'

const FOLDER = fileURLToPath(new URL('support/clients/', import.meta.url))
const REF = { name: 'svc-plugin-clients', module: new URL('support/clients/index.js', import.meta.url).href }
const MANIFEST: Manifest = { api: 1, kind: 'tool', contributes: { tools: ['client'] } }
const PROTO = `${FOLDER}echo.proto`

/** The code of the error of a connection from this process; undefined if there is none. */
async function codeOfConnect(port: number, host: string): Promise<string | undefined> {
  const socket = connect(port, host)
  try {
    await once(socket, 'connect')
    return undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code
  } finally {
    socket.destroy()
  }
}

withSandbox('client libraries in an isolated plugin', () => {
  const stack = new AsyncDisposableStack()
  const certificate = makeCertificate()
  const ca = certificate.cert
  const ports: Record<string, number> = {}
  const passwords: Record<string, string> = {}
  const lines: string[] = []
  let host: RunningHost
  let mails: readonly string[]

  before(async function () {
    this.timeout(120_000)
    const started = {
      echo: await servers.startEcho(),
      tls: await servers.startTls(certificate),
      http: await servers.startHttp(),
      https: await servers.startHttps(certificate),
      http2: await servers.startHttp2(certificate),
      ws: await servers.startWebSocket(certificate),
      smtp: await servers.startSmtp(certificate),
      grpc: await servers.startGrpc(PROTO),
      ...(!lacking('postgres') && { postgres: await startPostgres({ certificate }) }),
      ...(!lacking('redis') && { redis: await startRedis() }),
      closed: { port: 9, async [Symbol.asyncDispose]() {} },
    }
    mails = started.smtp.mails
    for (const [name, server] of Object.entries(started)) {
      ports[name] = stack.use(server).port
      if ('password' in server) passwords[name] = server.password
    }
    const permissions = { network: Object.values(ports).map(port => `localhost:${port}`) }
    const policy = ['sandbox-process', 'isolation'].map(pluginFolder)
    const confinement = { folder: FOLDER, permissions }
    await using describing = await startHost({ plugins: policy })
    const known = await describeIsolated({ ...REF, confinement }, describing.service(Isolation))
    const use = await isolate({ ...REF, confinement }, {}, known)
    host = stack.use(
      await startHost({
        plugins: [...policy, { use, name: REF.name, manifest: MANIFEST }],
        log: { destination: { write: line => void lines.push(line) } },
      })
    )
  })
  after(() => stack.disposeAsync())

  interface Said {
    readonly answer?: unknown
    readonly failed?: string
  }
  const run = async (client: string, options: object = {}): Promise<Said> => {
    const { structured } = await host
      .slot(Tools)
      .get('client')!
      .call({ client, options } as never, testContext())
    return structured as Said
  }
  const answerOf = async (client: string, options?: object) => {
    const { answer, failed } = await run(client, options)
    if (failed !== undefined) throw new Error(failed)
    return answer
  }
  const refusals = () => host.report().plugins.find(plugin => plugin.name === REF.name)!.refusals?.network ?? 0
  const at = (name: string) => ({ host: 'localhost', port: ports[name] })

  describe('reach what is declared:', () => {
    itWith('postgres', it)('pg, with a pool, over plain TCP and over TLS', async () => {
      const options = { ...at('postgres'), user: 'svc', password: passwords.postgres, database: 'postgres' }
      expect(await answerOf('pg', options)).to.deep.equal({ sum: 19_900, large: 5_000_000 })
      expect(await answerOf('pg', { ...options, ssl: { ca } })).to.deep.equal({ sum: 19_900, large: 5_000_000 })
      expect(await answerOf('pgNotify', options)).to.equal('hello')
    })

    itWith('redis', it)('ioredis, with a subscription and a pipeline', async () => {
      expect(await answerOf('ioredis', { ...at('redis'), password: passwords.redis })).to.deep.equal({
        value: 'value',
        heard: 'hello',
        count: 1000,
      })
    })

    it('nodemailer, with STARTTLS', async () => {
      const message = { from: 'a@example.org', to: 'b@example.org', subject: 'Greeting', text: 'hello' }
      expect(await answerOf('nodemailer', { ...at('smtp'), tls: { ca }, requireTLS: true, message })).to.match(/^250/)
      expect(mails.join('')).to.include('Subject: Greeting')
    })

    it('ws', async () => expect(await answerOf('ws', { url: `wss://localhost:${ports.ws}`, ca })).to.equal('hello'))

    it('undici', async () => {
      expect(await answerOf('undici', { url: `https://localhost:${ports.https}/`, ca })).to.equal('over HTTPS')
    })

    it('@grpc/grpc-js', async () => {
      expect(await answerOf('grpc', { address: `localhost:${ports.grpc}`, proto: PROTO })).to.equal('hello')
    })

    it('node:tls and node:http2, with the certificate checked', async () => {
      expect(await answerOf('tls', { ...at('tls'), ca })).to.equal('true hello')
      expect(await answerOf('http2', { url: `https://localhost:${ports.http2}`, ca })).to.equal('over HTTP/2')
      expect((await run('tls', at('tls'))).failed).to.match(/self-signed|SELF_SIGNED|UNABLE_TO_VERIFY/i)
    })

    it('node:http and fetch, through the proxy as before', async () => {
      const url = `http://localhost:${ports.http}/`
      expect(await answerOf('http', { url })).to.equal('over HTTP')
      expect(await answerOf('fetch', { url })).to.equal('over HTTP')
    })

    it('a socket of which each side ends on its own', async () => {
      expect(await answerOf('half', at('echo'))).to.equal('all of it')
    })

    it('the address that dns.lookup, dns.resolve and resolvers answer', async () => {
      const { address, ...found } = (await answerOf('lookup', at('echo'))) as { readonly address: string }
      expect(found).to.deep.include({ same: true, family: 4 })
      expect(await answerOf('resolve', at('echo'))).to.deep.equal(Array.from({ length: 9 }, () => [address]))
      expect(await answerOf('lookedUp', at('echo'))).to.equal('all of it')
    })
  })

  it('reach a server of their own process', async () => expect(await answerOf('own')).to.equal('mine'))

  it('listen where no other process connects to them', async () => {
    const { port } = await (async () => {
      await using free = await servers.startEcho()
      return { port: free.port }
    })()
    expect(await answerOf('listen', { port })).to.equal(port)
    const addresses = Object.values(networkInterfaces()).flatMap(all => all ?? [])
    expect(addresses).to.not.deep.equal([])
    for (const { address, family } of addresses.filter(one => one.family === 'IPv4'))
      expect(await codeOfConnect(port, address), `${address} ${family}`).to.equal('ECONNREFUSED')
    expect(await answerOf('unlisten'), 'the plugin itself connects').to.equal('mine')
  })

  it('have 256 connections at once, and are refused one more at once', async () => {
    const { open, refused, code } = (await answerOf('many', { ...at('echo'), count: 260 })) as Record<string, unknown>
    expect({ open, refused, code }).to.deep.equal({ open: 256, refused: 4, code: 'EMFILE' })
    while ((await run('half', at('echo'))).failed !== undefined) await setTimeout(10)
  })

  it('get the error of the connection', async () => {
    expect((await run('connect', at('closed'))).failed).to.match(
      /^ECONNREFUSED: connect ECONNREFUSED localhost:9: no server answers at this port/
    )
  })

  it('lose a connection to a declared server, which is no refusal', async () => {
    // not HTTP: the client breaks its connection to the proxy
    expect((await run('fetch', { url: `http://localhost:${ports.echo}/` })).failed).to.be.a('string')
  })

  it('reach nothing else; svc reports each by name and counts it', async () => {
    const before = refusals()
    const port = ports.echo!
    expect((await run('connect', { host: 'localhost', port: port - 1 })).failed).to.match(
      /^ECONNREFUSED: .*localhost:\d+ is not declared: add/
    )
    expect((await run('connect', { host: 'db.example.org', port: 5432 })).failed).to.match(
      /^EACCES: connect EACCES db\.example\.org:5432: db\.example\.org:5432 is not declared/
    )
    expect((await run('connect', { host: '169.254.169.254', port: 80 })).failed).to.match(/^EACCES/)
    expect((await run('lookup', { host: 'other.example.org' })).failed).to.match(/^ENOTFOUND: getaddrinfo ENOTFOUND/)
    expect((await run('services', { host: '_sip._tcp.example.org' })).failed).to.match(/^(ECONNREFUSED|ENOTFOUND|ETIMEOUT)/)
    expect((await run('datagram', { host: '203.0.113.9', port: 53 })).failed).to.match(/^ENETUNREACH/)
    while (refusals() < before + 6) await setTimeout(10)
    for (const name of [
      'db.example.org:5432',
      '169.254.169.254',
      'other.example.org',
      'udp:203.0.113.9:53',
      'dns:_sip._tcp.example.org',
    ])
      expect(
        lines.filter(line => line.includes(`tried to reach ${name},`)),
        name
      ).to.have.length(1)
    expect(lines.filter(line => line.includes('tried to reach 127.0.0.1:3128'))).to.deep.equal([])
  })
  it('query no name server; svc reports each query by name and counts it', async () => {
    const before = refusals()
    const queries = ['dns', 'dns.promises', 'dns.Resolver', 'dns.promises.Resolver'].flatMap((by, n) => [
      { by, call: 'resolveMx', host: `mail-${n}.example.org`, name: `dns:mail-${n}.example.org` },
      { by, call: 'resolve', args: ['TXT'], host: `text-${n}.example.org`, name: `dns:text-${n}.example.org` },
      { by, call: 'resolve4', host: `four-${n}.example.org`, name: `four-${n}.example.org` },
    ])
    for (const { name, ...query } of queries) {
      expect((await run('query', query)).failed, name).to.match(/^(ECONNREFUSED|ENOTFOUND|ETIMEOUT)/)
    }
    while (refusals() < before + queries.length) await setTimeout(10)
    for (const { name } of queries)
      expect(
        lines.filter(line => line.includes(`tried to reach ${name},`)),
        name
      ).to.have.length(1)
  })

  it('send no datagram from a connected socket; svc reports its server by name and counts it', async () => {
    const before = refusals()
    expect((await run('datagramConnected', { host: '203.0.113.10', port: 53 })).failed).to.match(/^ENETUNREACH/)
    while (refusals() < before + 1) await setTimeout(10)
    expect(await answerOf('datagramConnected', { host: '127.0.0.1', port: 9 })).to.be.a('number')
    expect(lines.filter(line => line.includes('tried to reach udp:203.0.113.10:53,'))).to.have.length(1)
    expect(lines.filter(line => line.includes('udp:hello') || line.includes('udp:127.'))).to.deep.equal([])
    expect(refusals()).to.equal(before + 1)
  })
})
