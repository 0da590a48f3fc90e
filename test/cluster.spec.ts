import { rm } from 'node:fs/promises'
import { expect } from 'chai'
import { until } from './support/wait.ts'
import { createClient } from './support/client.ts'
import { type History, historyProblems } from './support/history.ts'
import { newHome, type Service } from './support/service.ts'
import { startTwo, configure, workersOf, get, post, EACH, metric, clientTo } from './support/two-workers.ts'

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

  it('report the sum of all workers in /metrics and status', async () => {
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
    expect(historyProblems(history)).to.deep.equal([])
  })

  it('delete a conversation that another worker is creating', async () => {
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

  it('have all applied a switch before it is answered', async () => {
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

  it('delay the answer to a switch until every worker has applied it or was replaced', async () => {
    for (const [profile, signal] of [
      ['default', 'SIGCONT'],
      ['other', 'SIGKILL'],
    ] as const) {
      const [held] = await workersOf(home)
      const asking = await clientTo(service.url, pid => pid !== held)
      const looking = await clientTo(service.url, pid => pid !== held)
      process.kill(held!, 'SIGSTOP')
      let isAnswered = false
      const switched = asking.post('/api/v1/profile/switch', { profile }).finally(() => (isAnswered = true))
      await until(
        async () => (await looking.get('/api/v1/config/effective')).body as { profile: string },
        seen => seen.profile === profile
      )
      for (let i = 0; i < 20; i++) await looking.get('/pid')
      expect(isAnswered, 'the one that was asked has taken it, the other one not').to.equal(false)
      process.kill(held!, signal)
      expect((await switched).status).to.equal(200)
      if (signal === 'SIGKILL') await service.seen(/"event":"worker_ready"/, 2)
      for (const _ of EACH) expect((await get(service.url, '/api/v1/config/effective')).body).to.include({ profile })
      for (const item of [asking, looking]) item.close()
    }
  })
})
