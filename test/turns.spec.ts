import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { until } from './support/wait.ts'
import { type Client, createClient } from './support/client.ts'
import { replyOf } from './support/events.ts'
import { type History, historyProblems, saidIn } from './support/history.ts'
import { inNewHome, type Service, type ServiceOptions, startService } from './support/service.ts'
import { sideBySideIn, type Within } from './support/side-by-side.ts'

const support = (name: string) => fileURLToPath(new URL(`./support/${name}`, import.meta.url))
const STREAM = { method: 'POST', path: '/api/v1/chat/stream' }

const historyOf = async (client: Client, id: string) => (await client.get(`/api/v1/conversations/${id}`)).body as History
const idOf = ({ body }: { body: unknown }) => (body as { conversation_id: string }).conversation_id
const activeOf = async (client: Client) =>
  ((await client.get('/api/v1/status')).body as { requests_active: number }).requests_active

interface Scene {
  readonly home: string
  /** A service of this home, and a client of it; both end with the scene. */
  start(options?: ServiceOptions): Promise<{ readonly service: Service; readonly client: Client }>
}

const inScene: Within<Scene> = run =>
  inNewHome(async home => {
    await using ends = new AsyncDisposableStack()
    const start: Scene['start'] = async (options = {}) => {
      const service = ends.use(await startService({ home, ...options }))
      return { service, client: ends.adopt(createClient(service.url), item => item.close()) }
    }
    await run({ home, start })
  })

/** A turn ends at once when its reader leaves. */
const NOT_RESUMED = { env: { SVC_CHAT__RESUME_S: '0' } }

describe('turns of one conversation', () => {
  const it = sideBySideIn(inScene)
  const begin = async (client: Client) => idOf(await client.post('/api/v1/chat', { message: 'begin' }))

  it('run one after the other in the order in which they were asked', async ({ home, start }) => {
    await writeFile(join(home, 'svc.config.json'), JSON.stringify({ plugins: [support('hold.ts')] }))
    const { client } = await start()
    const conversation_id = await begin(client)
    const first = await client.stream({ ...STREAM, body: { message: '/tool hold {}', conversation_id } })
    await first.until('tool_call')
    const waiting = []
    for (const message of ['one', 'two', 'three', 'four']) {
      const before = await activeOf(client)
      waiting.push(client.post('/api/v1/chat', { message, conversation_id }))
      await until(
        () => activeOf(client),
        active => active > before
      )
    }
    await client.send({ method: 'POST', path: '/release' })
    await first.rest()
    const replies = (await Promise.all(waiting)).map(answer => (answer.body as { response: string }).response)
    expect(replies).to.deep.equal(
      ['one (turn 3)', 'two (turn 4)', 'three (turn 5)', 'four (turn 6)'].map(item => `You said: ${item}`)
    )
  })

  it('are all there and whole when forty are posted at once to two servers that share a home', async ({ start }) => {
    const both = await Promise.all([start(), start()])
    const id = await begin(both[0]!.client)
    const said = both.flatMap(({ client }, server) =>
      Array.from({ length: 20 }, (_, at) => ({ client, message: `server ${server}, turn ${at}` }))
    )
    const answers = await Promise.all(
      said.map(({ client, message }) => client.post('/api/v1/chat', { message, conversation_id: id }))
    )
    expect(answers.map(answer => answer.status)).to.deep.equal(said.map(() => 200))
    for (const { client } of both) {
      const history = await historyOf(client, id)
      expect(historyProblems(history)).to.deep.equal([])
      expect(saidIn(history).toSorted()).to.deep.equal(['begin', ...said.map(item => item.message)].toSorted())
    }
  })

  it('end with a client that leaves its stream: the model call is aborted, the partial reply is kept as cancelled', async ({
    start,
  }) => {
    const { client } = await start(NOT_RESUMED)
    const conversation_id = await begin(client)
    const left = await client.stream({ ...STREAM, body: { message: `/pace 100\n${'word '.repeat(1000)}`, conversation_id } })
    const seen = await left.until('token')
    await left.leave()
    // it waits for the turn before it: that one has ended, although its model had minutes to go
    const next = await client.post('/api/v1/chat', { message: 'next', conversation_id })
    expect(next.status).to.equal(200)
    const { messages } = await historyOf(client, conversation_id)
    expect(messages.map(message => message.status)).to.deep.equal([
      undefined,
      undefined,
      undefined,
      'cancelled',
      undefined,
      undefined,
    ])
    expect(messages[3]!.content.startsWith(replyOf(seen))).to.equal(true)
    expect(messages[3]!.content.length).to.be.lessThan(4000)
  })

  it('end with a client that leaves before the reply: nothing was said, so nothing is kept', async ({ start }) => {
    const { client } = await start({ env: { ...NOT_RESUMED.env, SVC_CHAT__START_AFTER_MS: '0' } })
    const conversation_id = await begin(client)
    const left = await client.stream({ ...STREAM, body: { message: '/delay 600000\nnever', conversation_id } })
    await left.until('start')
    await left.leave()
    expect((await client.post('/api/v1/chat', { message: 'next', conversation_id })).status).to.equal(200)
    expect(saidIn(await historyOf(client, conversation_id))).to.deep.equal(['begin', 'next'])
  })

  it('abort the tools that run when the client leaves', async ({ home, start }) => {
    await writeFile(join(home, 'svc.config.json'), JSON.stringify({ plugins: [support('ponder.ts')] }))
    const { client } = await start(NOT_RESUMED)
    const conversation_id = await begin(client)
    const left = await client.stream({ ...STREAM, body: { message: '/tool ponder {}\n/tool ponder {}', conversation_id } })
    await left.until('tool_call')
    const thinking = async () => ((await client.get('/thinking')).body as { thinking: number }).thinking
    await until(thinking, count => count === 2)
    await left.leave()
    await until(thinking, count => count === 0)
    expect((await client.post('/api/v1/chat', { message: 'next', conversation_id })).status).to.equal(200)
  })

  it('wait with their model for a reader that stops reading, hold a bounded buffer, and end when it leaves', async ({
    home,
    start,
  }) => {
    await writeFile(
      join(home, 'svc.config.json'),
      JSON.stringify({ plugins: [support('flood.ts')], chat: { answer_limit: 1e9 } })
    )
    const { client } = await start(NOT_RESUMED)
    const flood = async () => (await client.get('/flood')).body as { taken: number; open: number }
    const stream = await client.stream({ ...STREAM, body: { message: 'a', provider: 'flood' } })
    await stream.until('token')
    stream.pause()
    const stopped = await untilStill(flood)
    expect(stopped.open).to.equal(1)
    expect(stopped.taken, 'bytes taken from the model').to.be.lessThan(64 * 1024 * 1024)
    stream.resume()
    for (let read = 0; read < 2 * stopped.taken; read += 1000) await stream.next()
    const more = await flood()
    expect(more.taken).to.be.greaterThan(stopped.taken)
    expect(await memoryOf(client)).to.be.lessThan(600 * 1024 * 1024)
    await stream.leave()
    await until(flood, ({ open }) => open === 0)
  })

  it('disconnect a client that reads nothing for server.stall_timeout_ms', async ({ home, start }) => {
    await writeFile(
      join(home, 'svc.config.json'),
      JSON.stringify({ plugins: [support('flood.ts')], chat: { answer_limit: 1e9 }, server: { stall_timeout_ms: 100 } })
    )
    const { client } = await start(NOT_RESUMED)
    const flood = async () => (await client.get('/flood')).body as { taken: number; open: number }
    const stream = await client.stream({ ...STREAM, body: { message: 'a', provider: 'flood' } })
    await stream.until('token')
    stream.pause()
    await until(flood, ({ open }) => open === 0)
    await stream.leave()
  })
})

const memoryOf = async (client: Client) =>
  Number(/^process_resident_memory_bytes(?:\{[^}]*\})? (\d+)/m.exec((await client.get('/metrics')).text)![1])

/** The count when it has not grown over many turns of the server's loop: without back-pressure it would grow in each. */
async function untilStill<T extends { readonly taken: number }>(ask: () => Promise<T>): Promise<T> {
  let last = await ask()
  for (let still = 0; still < 100; still++) {
    const now = await ask()
    if (now.taken !== last.taken) still = 0
    last = now
  }
  return last
}
