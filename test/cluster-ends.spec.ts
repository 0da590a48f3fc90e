import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemContext } from '@svc/core'
import { reachServer } from '@svc/runtime'
import { expect } from 'chai'
import { wait, until } from './support/wait.ts'
import { createClient } from './support/client.ts'
import { halfAsked } from './support/half-asked.ts'
import { inNewHome, startService } from './support/service.ts'
import { sideBySideIn } from './support/side-by-side.ts'
import { startTwo, configure, workersOf, get, post, EACH, metric, clientTo, outcomeOf } from './support/two-workers.ts'

const ctx = () => systemContext(AbortSignal.timeout(30_000))

describe('workers of a server', () => {
  const it = sideBySideIn<string>(run =>
    inNewHome(async home => {
      await configure(home)
      await run(home)
    })
  )

  it('report the sum of requests per provider, also after a crash and a reload', async home => {
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
    expect((await server.control.reload(ctx())).problems).to.deep.equal([])
    expect(await seen()).to.deep.equal(EACH.map(() => 11))
    await chat(2)
    expect(await seen()).to.deep.equal(EACH.map(() => 13))
  })

  it('keep the counts of a killed worker, and its running requests fail immediately', async home => {
    await using service = await startTwo({ home })
    const ready = (times: number) => service.seen(/"event":"worker_ready"/, times)
    const active = async () => ((await get(service.url, '/api/v1/status')).body as { requests_active: number }).requests_active
    let last = 0
    for (const round of [1, 2]) {
      for (let i = 0; i < 6; i++) await get(service.url, '/pid')
      const [oldest] = await workersOf(home)
      const underWay = await Promise.all(EACH.map(() => clientTo(service.url, pid => pid === oldest)))
      const cut = underWay.map(item => outcomeOf(item.post('/api/v1/chat', { message: '/delay 60000\nin flight' })))
      await until(active, count => count === EACH.length + 1)
      const before = await metric(service.url, 'svc_requests_total', 'route="/pid"')
      const { requests_total } = (await get(service.url, '/api/v1/status')).body as { requests_total: number }
      expect(before).to.be.at.least(last + 6)
      process.kill(oldest!, 'SIGKILL')
      expect(await Promise.all(cut)).to.deep.equal(EACH.map(() => 'ECONNRESET'))
      await ready(round + 1)
      for (const _ of EACH) expect(await metric(service.url, 'svc_requests_total', 'route="/pid"')).to.equal(before)
      const status = (await get(service.url, '/api/v1/status')).body as { requests_total: number; requests_active: number }
      expect(status.requests_total).to.be.above(requests_total)
      expect(status.requests_active).to.equal(1)
      last = before
    }
  })

  it('release a conversation immediately when its worker is killed', async home => {
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

  it('are replaced when a tool blocks them, and their requests fail; other workers keep serving, including that conversation', async home => {
    await using service = await startTwo({ home, env: { SVC_SERVER__HANG_TIMEOUT_MS: '5000' } })
    const { conversation_id } = (await post(service.url, '/api/v1/chat', { message: 'one' })).body as { conversation_id: string }
    const [hanging, serving] = await workersOf(home)
    const stuck = await clientTo(service.url, pid => pid === hanging)
    const other = await clientTo(service.url, pid => pid === serving)
    const cut = outcomeOf(stuck.post('/api/v1/chat', { message: '/tool stuck {}', conversation_id }))
    let isOver = false
    const replaced = service.seen(/"event":"worker_ready"/, 2).finally(() => (isOver = true))
    while (!isOver) {
      expect((await other.get('/pid')).text).to.equal(String(serving))
      await wait()
    }
    await replaced
    other.close()
    expect(service.output()).to.match(/"event":"worker_hung"/)
    expect(await cut).to.equal('ECONNRESET')
    const next = await post(service.url, '/api/v1/chat', { message: 'three', conversation_id })
    expect(next.body).to.include({ response: 'You said: three (turn 2)' })
    expect(new Set(await Promise.all(EACH.map(async () => (await get(service.url, '/pid')).text))).size).to.equal(2)
  })

  it('stop the server with a clear message after repeated crashes', async home => {
    const service = await startService({ home })
    const ended = once(service.child, 'exit')
    await writeFile(join(home, 'deadly'), '')
    for (const pid of await workersOf(home)) process.kill(pid, 'SIGKILL')
    await service.seen(/"code":"CRASH_LOOP"/)
    expect(await ended).to.deep.equal([1, null])
    const delays = [...service.output().matchAll(/"delay_ms":(\d+)/g)].map(([, ms]) => Number(ms))
    expect(delays).to.deep.equal([0, 200, 400, 800])
  }).timeout(60_000)

  it('report that they are not ready when the server drains, and finish running requests', async home => {
    await using service = await startTwo({ home })
    const client = createClient(service.url, { keepAlive: false })
    const body = { message: '/pace 30\none two three four five six seven eight nine ten eleven twelve' }
    const open = await client.stream({ method: 'POST', path: '/api/v1/chat/stream', body })
    await open.until('token')
    const halves = await Promise.all(Array.from({ length: 5 }, () => halfAsked(service.url, '/health/ready')))
    const stopped = service.stop()
    await refused(service.url)
    // a worker can learn of the drain after the supervisor has closed its socket; it then closes the connection
    let answer = ''
    for (const half of halves) if (!answer.startsWith('HTTP/1.1 503 ')) answer = await half.answer()
    expect(answer).to.match(/^HTTP\/1.1 503 /)
    for (const half of halves) half.close()
    const { events } = await open.rest()
    expect(events.at(-1)?.data).to.include({ status: 'completed' })
    expect(await stopped).to.equal(0)
  })
})

/** Resolves when nobody takes new connections any more. */
async function refused(url: string): Promise<void> {
  const ask = () =>
    createClient(url, { keepAlive: false })
      .get('/health/live')
      .then(
        () => 'served',
        (error: NodeJS.ErrnoException) => error.code
      )
  await until(ask, answer => answer === 'ECONNREFUSED')
}
