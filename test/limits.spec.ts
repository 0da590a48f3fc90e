import { rm } from 'node:fs/promises'
import { systemContext } from '@svc/core'
import { reachServer } from '@svc/runtime'
import { expect } from 'chai'
import { wait, until } from './support/wait.ts'
import { type Answer, createClient, type OpenStream } from './support/client.ts'
import { newHome, type Service, startService } from './support/service.ts'
import { configureFew } from './support/tides.ts'

const MINUTE = 100
const DAY = 150
/** More a minute than the day has. */
const MANY = 10_000
const AT_ONCE = 1000
/** More than the day has left. */
const NEXT_AT_ONCE = 200
const PATH = '/api/v1/modes'

interface Refusal {
  readonly error_code: string
  readonly details: { readonly limit: number; readonly window: number; readonly retry_after: number }
}

/** So many requests at once, each on a connection of its own, from one address. */
async function many(url: string, count: number): Promise<Answer[]> {
  const clients = Array.from({ length: count / 200 }, () => createClient(url, { keepAlive: false }))
  return Promise.all(Array.from({ length: count }, (_, at) => clients[at % clients.length]!.get(PATH)))
}

const header = ({ headers }: Answer, name: string) => Number(headers[name])
/** What was neither let through nor refused. */
const strange = (answers: readonly Answer[]) =>
  answers.filter(({ status }) => status !== 200 && status !== 429).map(({ text }) => text)
const count = (answers: readonly Answer[], status: number) => answers.filter(answer => answer.status === status).length

/** Every refusal says which window is full, and when to come back; its headers show the minute. */
function expectRefusals(
  answers: readonly Answer[],
  full: { limit: number; window: number },
  minute: { limit: number; remaining: number },
  from: number
) {
  const { limit, window } = full
  for (const answer of answers.filter(({ status }) => status === 429)) {
    const { error_code, details } = answer.body as Refusal
    expect(error_code).to.equal('RATE_LIMITED')
    expect(details).to.include({ limit, window })
    expect(details.retry_after).to.be.within(1, window)
    expect(header(answer, 'retry-after')).to.equal(details.retry_after)
    expect(header(answer, 'x-ratelimit-limit')).to.equal(minute.limit)
    expect(header(answer, 'x-ratelimit-remaining')).to.equal(minute.remaining)
    expect(header(answer, 'x-ratelimit-reset')).to.be.within(from, Date.now() / 1000 + 61)
  }
}

describe('limits of a server with four workers', () => {
  let home = ''
  beforeEach(async () => {
    home = await newHome()
  })
  afterEach(() => rm(home, { recursive: true, force: true }))

  const start = async (perMinute: number) => {
    const rate_limit = { enabled: true, requests_per_minute: perMinute, requests_per_day: DAY }
    await configureFew(home, { server: { rate_limit } }, ['rate-limit'])
    const service = await startService({ home, args: ['--workers', '4'] })
    await service.seen(/"event":"worker_ready"/, 3)
    return service
  }

  it('accept exactly the configured number of 1,000 concurrent requests, and keep the daily count after a restart', async () => {
    const from = Math.floor(Date.now() / 1000)
    {
      await using service = await start(MINUTE)
      const answers = await many(service.url, AT_ONCE)
      expect(strange(answers)).to.deep.equal([])
      expect([count(answers, 200), count(answers, 429)]).to.deep.equal([MINUTE, AT_ONCE - MINUTE])
      expectRefusals(answers, { limit: MINUTE, window: 60 }, { limit: MINUTE, remaining: 0 }, from)
      const allowed = answers.filter(answer => answer.status === 200)
      const remaining = allowed.map(answer => header(answer, 'x-ratelimit-remaining')).toSorted((a, b) => a - b)
      expect(remaining).to.deep.equal(Array.from({ length: MINUTE }, (_, at) => at))
      expect(new Set(allowed.map(answer => header(answer, 'x-ratelimit-limit')))).to.deep.equal(new Set([MINUTE]))
      expect(new Set(answers.map(answer => header(answer, 'x-ratelimit-reset'))).size, 'one window for all workers').to.equal(1)
    }
    await using again = await start(MANY)
    const answers = await many(again.url, NEXT_AT_ONCE)
    expect([count(answers, 200), count(answers, 429)]).to.deep.equal([DAY - MINUTE, NEXT_AT_ONCE - (DAY - MINUTE)])
    expectRefusals(answers, { limit: DAY, window: 86_400 }, { limit: MANY, remaining: MANY - DAY }, from)
  })
})

describe('limits that the four workers of a server share', () => {
  const limited = async (server: object) => {
    const home = await newHome()
    await configureFew(home, { server }, ['auth-api-key'])
    const service = await startService({
      home,
      args: ['--workers', '4'],
      env: { SVC_API_KEY: 'the-key', SVC_CHAT__START_AFTER_MS: '0' },
    })
    await service.seen(/"event":"worker_ready"/, 3)
    // its streams would keep it
    return { ...service, [Symbol.asyncDispose]: () => service.kill().then(() => rm(home, { recursive: true })) }
  }

  it('allow ten invalid credentials a minute, also with 100 concurrent guesses on separate connections', async () => {
    await using service = await limited({ auth: { enabled: true } })
    const client = createClient(service.url, { keepAlive: false })
    const guess = (value: string) => client.send({ method: 'GET', path: PATH, headers: { 'x-api-key': value } })
    expect((await guess('the-key')).status).to.equal(200)
    const answers = await Promise.all(Array.from({ length: 100 }, (_, at) => guess(`wrong-${at}`)))
    expect([count(answers, 401), count(answers, 429)]).to.deep.equal([10, 90])
    // it was seen good by one of them, which tells the others through the store
    for (let times = 0; times < 8; times++)
      await until(
        () => guess('the-key'),
        ({ status }) => status === 200
      )
  })

  it('allow exactly the maximum of open streams per principal, even if it is less than the number of workers', async () => {
    for (const limit of [1, 8]) {
      await using service = await limited({ max_streams_per_principal: limit })
      const { opened, refused } = await openMany(service.url, 5 * limit + 15)
      expect(opened.length).to.equal(limit)
      expect(refused.map(item => item.body.details)).to.deep.equal(
        Array.from({ length: 4 * limit + 15 }, () => ({ limit, window: 0, retry_after: 1 }))
      )
      await Promise.all(opened.map(item => item.leave()))
      expect(await openUntil(service.url, limit), 'what has ended makes room').to.equal(limit)
    }
  })

  it('accept sequential requests beside an open stream on any worker', async () => {
    await using service = await limited({ max_requests_per_principal: 2 })
    await openMany(service.url, 1)
    const statuses = new Map<number, number>()
    for (let at = 0; at < 200; at++) {
      const { status } = await createClient(service.url, { keepAlive: false }).get(PATH)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
    expect([...statuses]).to.deep.equal([[200, 200]])
  })

  describe('the limit of open streams of one principal', () => {
    let service: Service
    let open: readonly OpenStream[]
    before(async () => {
      service = await limited({ max_streams_per_principal: 4 })
      open = (await openMany(service.url, 4)).opened
    })
    after(() => service[Symbol.asyncDispose]())

    it('no longer counts the streams of a killed worker, and counts all others', async () => {
      const cut: OpenStream[] = []
      for (const openStream of open) openStream.rest().catch(() => cut.push(openStream))
      using server = await reachServer(service.home)
      process.kill(server.info.workers[0]!.pid, 'SIGKILL')
      await service.seen(/"event":"worker_ready"/, 4)
      const again = await openMany(service.url, 12)
      expect(cut.length).to.be.within(1, 3)
      expect(again.opened.length).to.equal(cut.length)
      open = [...open.filter(openStream => !cut.includes(openStream)), ...again.opened]
    })

    it('counts the streams of old workers during a reload', async () => {
      using server = await reachServer(service.home)
      expect((await server.control.reload(systemContext(AbortSignal.timeout(60_000)))).problems).to.deep.equal([])
      expect((await openMany(service.url, 12)).opened).to.deep.equal([])
      await Promise.all(open.map(openStream => openStream.leave()))
      expect(await openUntil(service.url, 4)).to.equal(4)
    })
  })
})

/** So many streams that never end, at once, each on a connection of its own: those that were let in, and those that were not. */
async function openMany(url: string, count: number) {
  const begin = () =>
    createClient(url, { keepAlive: false }).stream({
      method: 'POST',
      path: '/api/v1/chat/stream',
      body: { message: '/delay 600000\nnever' },
    })
  const streams = await Promise.all(Array.from({ length: count }, begin))
  const refusals = await Promise.all(streams.filter(stream => stream.status === 429).map(stream => stream.rest()))
  return { opened: streams.filter(stream => stream.status === 200), refused: refusals as (Answer & { body: Refusal })[] }
}

/** Tries until so many are open; tells how many are after one try more: that a client has left is noticed a moment later. */
async function openUntil(url: string, limit: number): Promise<number> {
  let open = 0
  for (; open < limit; await wait()) open += (await openMany(url, 1)).opened.length
  return open + (await openMany(url, 4)).opened.length
}
