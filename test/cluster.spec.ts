import { once } from 'node:events'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { systemUse } from '@svc/core'
import { reachServer } from '@svc/core/processes'
import { expect } from 'chai'
import { createClient } from './support/client.ts'
import { halfAsked } from './support/half-asked.ts'
import { type History, historyFaults } from './support/history.ts'
import { inNewHome, newHome, type Service, type ServiceOptions, startService } from './support/service.ts'
import { sideBySideIn } from './support/side-by-side.ts'

const STUCK = fileURLToPath(new URL('./support/stuck.ts', import.meta.url))

/** Two workers that both serve. */
async function startTwo(options: ServiceOptions = {}): Promise<Service> {
  const service = await startService({ ...options, args: ['--workers', '2', ...(options.args ?? [])] })
  await service.seen(/"event":"worker_ready"/)
  return service
}

async function configure(home: string): Promise<void> {
  await writeFile(join(home, 'profiles.yaml'), 'profiles: { default: {}, other: {} }\n')
  await writeFile(join(home, 'svc.config.json'), JSON.stringify({ plugins: [STUCK] }))
}

const use = () => systemUse(AbortSignal.timeout(30_000))

const workersOf = async (home: string): Promise<number[]> => {
  using server = await reachServer(home)
  return server.info.workers.map(one => one.pid)
}

/** One answer over a connection of its own: whichever worker has its turn. */
async function get(url: string, path: string) {
  const answer = await createClient(url, { keepAlive: false }).get(path)
  expect(answer.status, answer.text).to.equal(200)
  return answer
}

const post = (url: string, path: string, body: unknown) => createClient(url, { keepAlive: false }).post(path, body)
const EACH = [1, 2, 3, 4]

/** The values of a family, summed over its labels. */
async function metric(url: string, name: string, labels = ''): Promise<number> {
  const { text } = await get(url, '/metrics')
  const lines = text.split('\n').filter(line => line.startsWith(name) && line.includes(labels))
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
}

describe('workers of one server', () => {
  let home: string
  let service: Service
  before(async () => {
    home = await newHome()
    await configure(home)
    service = await startTwo({ home, env: { SVC_CHAT__START_AFTER_MS: '0' } })
  })
  after(async () => {
    await service[Symbol.asyncDispose]()
    await rm(home, { recursive: true, force: true })
  })

  it('are summed up in /metrics and status, whichever answers', async () => {
    for (let i = 0; i < 10; i++) await get(service.url, '/pid')
    const counts = await Promise.all(EACH.map(() => metric(service.url, 'svc_requests_total', 'route="/pid"')))
    expect(counts).to.deep.equal(EACH.map(() => 10))
    for (const _ of EACH) {
      const { requests_total } = (await get(service.url, '/api/v1/status')).body as { requests_total: number }
      expect(requests_total).to.be.at.least(10)
    }
    expect(await metric(service.url, 'process_cpu_seconds_total')).to.be.above(0)
  })

  it('take turns with new connections', async () => {
    const served = new Map<string, number>()
    for (let i = 0; i < 64; i++) {
      const { text } = await get(service.url, '/pid')
      served.set(text, (served.get(text) ?? 0) + 1)
    }
    expect([...served.values()].every(count => count >= 64 * 0.35)).to.equal(true)
    expect(served.size).to.equal(2)
  })

  it('take turns in one conversation', async () => {
    const first = await post(service.url, '/api/v1/chat', { message: 'turn 1' })
    const { conversation_id } = first.body as { conversation_id: string }
    for (let turn = 2; turn <= 8; turn++) {
      const { body } = await post(service.url, '/api/v1/chat', { message: `turn ${turn}`, conversation_id })
      expect(body).to.include({ response: `You said: turn ${turn} (turn ${turn})` })
    }
    await Promise.all(EACH.map(at => post(service.url, '/api/v1/chat', { message: `at once ${at}`, conversation_id })))
    const history = (await get(service.url, `/api/v1/conversations/${conversation_id}`)).body as History
    expect(history.messages).to.have.length(2 * (8 + EACH.length))
    expect(historyFaults(history)).to.deep.equal([])
  })

  it('delete a conversation that one of them is just making, whichever is asked', async () => {
    for (const round of EACH) {
      const client = createClient(service.url, { keepAlive: false })
      const body = { message: '/pace 40\none two three four five six seven eight nine ten eleven twelve' }
      const making = await client.stream({ method: 'POST', path: '/api/v1/chat/stream', body })
      const [start] = await making.until('start')
      const path = `/api/v1/conversations/${(start!.data as { conversation_id: string }).conversation_id}`
      // one more connection between the two, so that over the rounds it is now this worker and now the other
      if (round % 2 === 0) await get(service.url, '/pid')
      const other = createClient(service.url, { keepAlive: false })
      expect((await other.send({ method: 'DELETE', path })).status).to.equal(204)
      expect((await making.rest()).events.at(-1)?.data).to.include({ status: 'failed' })
      for (const _ of [1, 2]) expect((await other.get(path)).status).to.equal(404)
    }
  })

  it('have all taken a switch when it is answered', async () => {
    const effective = async () => Promise.all(EACH.map(async () => (await get(service.url, '/api/v1/config/effective')).body))
    for (const [profile, mode] of [
      ['other', 'plan'],
      ['default', 'review'],
      ['other', 'build'],
    ]) {
      await post(service.url, '/api/v1/profile/switch', { profile })
      for (const seen of await effective()) expect(seen).to.include({ profile })
      await post(service.url, '/api/v1/mode/switch', { mode })
      for (const seen of await effective()) expect(seen).to.include({ profile, mode })
    }
    await post(service.url, '/api/v1/model/switch', { provider: 'local', model: 'local-small' })
    for (const seen of await effective()) expect(seen).to.deep.include({ override: { provider: 'local', model: 'local-small' } })
  })
})

describe('workers of one server that has them to itself', () => {
  const it = sideBySideIn<string>(run =>
    inNewHome(async home => {
      await configure(home)
      await run(home)
    })
  )

  it('sum up what each provider was asked, through a death and a reload', async home => {
    await using service = await startTwo({ home })
    const asked = async () => {
      const { providers } = (await get(service.url, '/api/v1/status')).body as { providers: { local: { requests: number } } }
      return providers.local.requests
    }
    const seen = () => Promise.all(EACH.map(asked))
    const chat = async (times: number) => {
      for (let i = 0; i < times; i++) await post(service.url, '/api/v1/chat', { message: 'hello' })
    }
    await chat(7)
    expect(await seen()).to.deep.equal(EACH.map(() => 7))
    const [oldest] = await workersOf(home)
    process.kill(oldest!, 'SIGKILL')
    await service.seen(/"event":"worker_ready"/, 2)
    expect(await seen()).to.deep.equal(EACH.map(() => 7))
    await chat(4)
    using server = await reachServer(home)
    expect((await server.control.reload(use())).problems).to.deep.equal([])
    expect(await seen()).to.deep.equal(EACH.map(() => 11))
    await chat(2)
    expect(await seen()).to.deep.equal(EACH.map(() => 13))
  })

  it('lose no count and no request with one that is killed', async home => {
    await using service = await startTwo({ home })
    const ready = (times: number) => service.seen(/"event":"worker_ready"/, times)
    let last = 0
    for (const round of [1, 2]) {
      for (let i = 0; i < 6; i++) await get(service.url, '/pid')
      const before = await metric(service.url, 'svc_requests_total', 'route="/pid"')
      const { requests_total } = (await get(service.url, '/api/v1/status')).body as { requests_total: number }
      expect(before).to.be.at.least(last + 6)
      const [oldest] = await workersOf(home)
      process.kill(oldest!, 'SIGKILL')
      await ready(round + 1)
      for (const _ of EACH) expect(await metric(service.url, 'svc_requests_total', 'route="/pid"')).to.equal(before)
      const status = (await get(service.url, '/api/v1/status')).body as { requests_total: number; requests_active: number }
      expect(status.requests_total).to.be.above(requests_total)
      expect(status.requests_active).to.equal(1)
      last = before
    }
  })

  it('free a conversation at once when the worker that writes in it is killed', async home => {
    await using service = await startTwo({ home, env: { SVC_CHAT__START_AFTER_MS: '0', SVC_CHAT__QUEUE_TIMEOUT_MS: '5000' } })
    const first = await post(service.url, '/api/v1/chat', { message: 'one' })
    const { conversation_id } = first.body as { conversation_id: string }
    const body = { message: '/delay 60000\ntwo', conversation_id }
    const client = createClient(service.url, { keepAlive: false })
    const broken = await client.stream({ method: 'POST', path: '/api/v1/chat/stream', body })
    await broken.until('start')
    const ready = service.seen(/"event":"worker_ready"/, 3)
    for (const pid of await workersOf(home)) process.kill(pid, 'SIGKILL')
    await ready
    const next = await post(service.url, '/api/v1/chat', { message: 'three', conversation_id })
    expect(next.body).to.include({ response: 'You said: three (turn 2)' })
  })

  it('are replaced when they hang, and what waits for them is cut off; the others serve on', async home => {
    await using service = await startTwo({ home, env: { SVC_SERVER__HANG_TIMEOUT_MS: '500' } })
    const stuck = createClient(service.url, { keepAlive: false })
    const cut = stuck.get('/stuck').then(
      answer => answer.status,
      (error: NodeJS.ErrnoException) => error.code
    )
    await service.seen(/"event":"worker_hung"/)
    await service.seen(/"event":"worker_ready"/, 2)
    expect(await cut).to.equal('ECONNRESET')
    expect(new Set(await Promise.all(EACH.map(async () => (await get(service.url, '/pid')).text))).size).to.equal(2)
  })

  it('end the server with a clear message when they die again and again', async home => {
    const service = await startService({ home })
    const ended = once(service.child, 'exit')
    await writeFile(join(home, 'deadly'), '')
    for (const pid of await workersOf(home)) process.kill(pid, 'SIGKILL')
    await service.seen(/"code":"CRASH_LOOP"/)
    expect(await ended).to.deep.equal([1, null])
    const delays = [...service.output().matchAll(/"delay_ms":(\d+)/g)].map(([, ms]) => Number(ms))
    expect(delays).to.deep.equal([0, 200, 400, 800])
  }).timeout(60_000)

  it('say that they are not ready as soon as the server ends, and end what they began', async home => {
    await using service = await startTwo({ home })
    const client = createClient(service.url, { keepAlive: false })
    const body = { message: '/pace 30\none two three four five six seven eight nine ten eleven twelve' }
    const open = await client.stream({ method: 'POST', path: '/api/v1/chat/stream', body })
    await open.until('token')
    const asked = await halfAsked(service.url, '/health/ready')
    const stopped = service.stop()
    await refused(service.url)
    expect(await asked.answer()).to.match(/^HTTP\/1.1 503 /)
    const { events } = await open.rest()
    expect(events.at(-1)?.data).to.include({ status: 'completed' })
    expect(await stopped).to.equal(0)
  })
})

/** Resolves when nobody takes new connections any more. */
async function refused(url: string): Promise<void> {
  for (let open = true; open; )
    open = await createClient(url, { keepAlive: false })
      .get('/health/live')
      .then(
        () => true,
        (error: NodeJS.ErrnoException) => error.code !== 'ECONNREFUSED'
      )
}
