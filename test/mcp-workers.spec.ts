import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { systemContext } from '@svc/core'
import { reachServer } from '@svc/runtime'
import { expect } from 'chai'
import { wait } from './support/wait.ts'
import { type Answer, createClient, type OpenStream } from './support/client.ts'
import { SVC } from './support/entry.ts'
import { newHome, type Service, startService } from './support/service.ts'

const FIXTURE = fileURLToPath(new URL('./conformance/fixture/', import.meta.url))
/** Starts faster than all of svc. */
const TOOL_SERVER = [process.execPath, ...SVC, 'mcp', 'serve']
const WORKERS = 4
const VERSION = '2025-11-25'
/** The keys of two principals. */
const KEYS = { SVC_MCP_API_KEY: 'key-of-the-tool-server', SVC_API_KEY: 'key-of-the-whole-server' }
const bearer = (key: string) => ({ authorization: `Bearer ${key}` })
const EVERYWHERE = Array.from({ length: 2 * WORKERS }, (_, at) => at + 1)

interface Message {
  readonly method?: string
  readonly id?: number
  readonly result?: { readonly content?: readonly { readonly text?: string }[]; readonly [name: string]: unknown }
  readonly error?: { readonly code: number }
}

/** A session whose every request is a connection of its own: whichever worker has its turn. */
async function begin(url: string) {
  const client = createClient(url, { keepAlive: false })
  const params = { protocolVersion: VERSION, capabilities: { elicitation: {} }, clientInfo: { name: 'test', version: '1.0.0' } }
  const accept = { accept: 'application/json, text/event-stream', ...bearer(KEYS.SVC_MCP_API_KEY) }
  const asking = { method: 'POST', path: '/mcp', headers: accept, body: { jsonrpc: '2.0', id: 0, method: 'initialize', params } }
  const { headers } = await client.send(asking)
  const id = headers['mcp-session-id'] as string
  const own = { ...accept, 'mcp-session-id': id, 'mcp-protocol-version': VERSION }
  const requestOf = (message: object) => ({ method: 'POST', path: '/mcp', headers: own, body: { jsonrpc: '2.0', ...message } })
  const send = (message: object) => client.send(requestOf(message))
  expect((await send({ method: 'notifications/initialized' })).status).to.equal(202)
  return {
    id,
    send,
    /** With a key that somebody else has. */
    sendAs: (key: string, message: object) => {
      const { authorization: _own, ...headers } = own
      return client.send({ ...requestOf(message), headers: { ...headers, 'x-api-key': key } })
    },
    stream: (message: object) => client.stream(requestOf(message)),
    open: () => client.stream({ method: 'GET', path: '/mcp', headers: { ...own, accept: 'text/event-stream' } }),
    end: () => client.send({ method: 'DELETE', path: '/mcp', headers: own }),
  }
}

type Session = Awaited<ReturnType<typeof begin>>

const call = (session: Session, name: string, id: number) =>
  session.send({ id, method: 'tools/call', params: { name, arguments: {} } })

const messageOf = ({ body, events }: Answer) => (body ?? JSON.parse(events.at(-1)!.data as never)) as Message
const textOf = (answer: Answer) => messageOf(answer).result?.content?.[0]?.text

async function nextOf(stream: OpenStream): Promise<Message> {
  const event = await stream.next()
  return event?.data as unknown as Message
}

/** What the sessions of a worker have in common. */
const workerOf = ({ id }: Session) => id.split('.')[0]!

describe('sessions of the tool protocol, with four workers', () => {
  let home: string
  let service: Service

  before(async function () {
    this.timeout(60_000)
    home = await newHome()
    await writeFile(join(home, 'svc.config.json'), JSON.stringify({ plugins: [FIXTURE], server: { auth: { enabled: true } } }))
    service = await startService({ home, command: TOOL_SERVER, args: ['--workers', String(WORKERS)], env: KEYS })
    await service.seen(/"event":"worker_ready"/, WORKERS - 1)
  })
  after(async () => {
    await service[Symbol.asyncDispose]()
    await rm(home, { recursive: true, force: true })
  })

  it('answer whichever worker a request reaches', async () => {
    const session = await begin(service.url)
    for (const id of EVERYWHERE)
      expect(textOf(await call(session, 'test_simple_text', id))).to.equal('This is a simple text response for testing.')
    expect((await session.end()).status).to.equal(200)
    for (const id of EVERYWHERE) expect((await call(session, 'test_simple_text', id)).status).to.equal(404)
  })

  it('belong to one caller, whichever worker a request reaches', async () => {
    const session = await begin(service.url)
    for (const id of EVERYWHERE) {
      const { status, body } = await session.sendAs(KEYS.SVC_API_KEY, { id, method: 'tools/list' })
      expect([status, (body as Message).error?.code]).to.deep.equal([404, -32001])
    }
    for (const id of EVERYWHERE) expect((await call(session, 'test_simple_text', id)).status).to.equal(200)
    await session.end()
  })

  it('allow one stream, which receives notifications on any worker', async () => {
    for (const at of [1, 2, 3]) {
      const session = await begin(service.url)
      const stream = await session.open()
      expect(stream.status).to.equal(200)
      expect((await session.open()).status, `stream ${at}`).to.equal(409)
      await call(session, 'test_trigger_tool_change', 1)
      expect((await nextOf(stream)).method).to.equal('notifications/tools/list_changed')
      await session.end()
      expect((await stream.rest()).text).to.match(/retry: \d+\n\n$/)
    }
  })

  it('detect that the client has closed its stream on any worker', async () => {
    const session = await begin(service.url)
    for (let round = 0; round < 4; round++) {
      let stream = await session.open()
      // the news of the last one's leaving is on its way
      for (; stream.status === 409; await wait()) stream = await session.open()
      expect(stream.status).to.equal(200)
      await stream.leave()
    }
  })

  it('are asked through one worker and answer through another', async () => {
    for (const id of [1, 2, 3]) {
      const session = await begin(service.url)
      const params = { name: 'test_elicitation', arguments: { message: 'Who are you?' } }
      const stream = await session.stream({ id, method: 'tools/call', params })
      const asked = await nextOf(stream)
      expect(asked.method).to.equal('elicitation/create')
      const accepted = await session.send({ id: asked.id, result: { action: 'accept', content: { username: 'ada' } } })
      expect(accepted.status).to.equal(202)
      expect((await nextOf(stream)).result?.content?.[0]?.text).to.contain('"username":"ada"')
    }
  })

  it('end with their worker, while others continue; their clients start new sessions', async () => {
    const sessions = await Promise.all(EVERYWHERE.map(() => begin(service.url)))
    const workers = new Set(sessions.map(workerOf))
    expect(workers.size).to.be.at.least(2)
    using server = await reachServer(home)
    process.kill(server.info.workers[0]!.pid, 'SIGKILL')
    await service.seen(/"event":"worker_ready"/, WORKERS)
    const answers = await Promise.all(sessions.map(session => call(session, 'test_simple_text', 1)))
    const gone = sessions.filter((_, at) => answers[at]!.status !== 200)
    expect(new Set(gone.map(workerOf)).size).to.equal(1)
    expect(sessions.filter(session => workerOf(session) === workerOf(gone[0]!))).to.deep.equal(gone)
    for (const { status, body } of answers.filter(answer => answer.status !== 200))
      expect([status, (body as Message).error?.code]).to.deep.equal([404, -32001])
    expect(textOf(await call(await begin(service.url), 'test_simple_text', 1))).to.be.a('string')
  })

  it('end when the server is reloaded, and begin again on the new workers', async function () {
    this.timeout(60_000)
    const session = await begin(service.url)
    const stream = await session.open()
    const client = createClient(service.url, { keepAlive: false })
    const meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
    }
    const listening = await client.stream({
      method: 'POST',
      path: '/mcp',
      headers: {
        accept: 'text/event-stream',
        ...bearer(KEYS.SVC_MCP_API_KEY),
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'subscriptions/listen',
      },
      body: {
        jsonrpc: '2.0',
        id: 'mine',
        method: 'subscriptions/listen',
        params: { notifications: { toolsListChanged: true }, _meta: meta },
      },
    })
    using server = await reachServer(home)
    const reloading = server.control.reload(systemContext(AbortSignal.timeout(50_000)))
    expect((await stream.rest()).text).to.match(/retry: \d+\n\n$/)
    expect((await listening.rest()).text).to.match(/retry: \d+\nevent: message\ndata: .*"resultType":"complete"/)
    const again = await session.open()
    expect(again.status).to.equal(404)
    expect((await reloading).problems).to.deep.equal([])
    const anew = await begin(service.url)
    expect(workerOf(anew)).to.not.equal(workerOf(session))
    const own = await anew.open()
    expect(own.status).to.equal(200)
    await own.leave()
    expect(textOf(await call(anew, 'test_simple_text', 1))).to.be.a('string')
  })
})
