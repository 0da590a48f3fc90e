import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { type Answer, createClient } from './support/client.ts'
import { newHome, startService } from './support/service.ts'

const MINUTE = 100
const DAY = 150
/** More a minute than the day has. */
const MANY = 10_000
const AT_ONCE = 1000
const PATH = '/api/v1/modes'

interface Refusal {
  readonly error_code: string
  readonly details: { readonly limit: number; readonly window: number; readonly retry_after: number }
}

/** A thousand requests at once, each on a connection of its own, from one address. */
async function thousand(url: string): Promise<Answer[]> {
  const clients = Array.from({ length: AT_ONCE / 200 }, () => createClient(url, { keepAlive: false }))
  return Promise.all(Array.from({ length: AT_ONCE }, (_, at) => clients[at % clients.length]!.get(PATH)))
}

const header = ({ headers }: Answer, name: string) => Number(headers[name])
const count = (answers: readonly Answer[], status: number) => answers.filter(one => one.status === status).length

/** Every refusal says which window is full, and when to come back; its headers show the minute. */
function expectRefusals(
  answers: readonly Answer[],
  full: { limit: number; window: number },
  minute: { limit: number; remaining: number },
  from: number
) {
  const { limit, window } = full
  for (const one of answers.filter(({ status }) => status === 429)) {
    const { error_code, details } = one.body as Refusal
    expect(error_code).to.equal('RATE_LIMITED')
    expect(details).to.include({ limit, window })
    expect(details.retry_after).to.be.within(1, window)
    expect(header(one, 'retry-after')).to.equal(details.retry_after)
    expect(header(one, 'x-ratelimit-limit')).to.equal(minute.limit)
    expect(header(one, 'x-ratelimit-remaining')).to.equal(minute.remaining)
    expect(header(one, 'x-ratelimit-reset')).to.be.within(from, Date.now() / 1000 + 61)
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
    await writeFile(join(home, 'svc.config.json'), JSON.stringify({ server: { rate_limit } }))
    const service = await startService({ home, args: ['--workers', '4'] })
    await service.seen(/"event":"worker_ready"/, 3)
    return service
  }

  it('let exactly as many of 1,000 requests through as they say, and know the day after a restart', async () => {
    const from = Math.floor(Date.now() / 1000)
    {
      await using service = await start(MINUTE)
      const answers = await thousand(service.url)
      expect([count(answers, 200), count(answers, 429)]).to.deep.equal([MINUTE, AT_ONCE - MINUTE])
      expectRefusals(answers, { limit: MINUTE, window: 60 }, { limit: MINUTE, remaining: 0 }, from)
      const allowed = answers.filter(one => one.status === 200)
      const remaining = allowed.map(one => header(one, 'x-ratelimit-remaining')).toSorted((a, b) => a - b)
      expect(remaining).to.deep.equal(Array.from({ length: MINUTE }, (_, at) => at))
      expect(new Set(allowed.map(one => header(one, 'x-ratelimit-limit')))).to.deep.equal(new Set([MINUTE]))
      expect(new Set(answers.map(one => header(one, 'x-ratelimit-reset'))).size, 'one window for all workers').to.equal(1)
    }
    await using again = await start(MANY)
    const answers = await thousand(again.url)
    expect([count(answers, 200), count(answers, 429)]).to.deep.equal([DAY - MINUTE, AT_ONCE - (DAY - MINUTE)])
    expectRefusals(answers, { limit: DAY, window: 86_400 }, { limit: MANY, remaining: MANY - DAY }, from)
  })
})

describe('what holds over the workers of a server with four of them', () => {
  const limited = async (server: object) => {
    const home = await newHome()
    await writeFile(join(home, 'svc.config.json'), JSON.stringify({ server }))
    const service = await startService({ home, args: ['--workers', '4'], env: { SVC_API_KEY: 'the-key' } })
    await service.seen(/"event":"worker_ready"/, 3)
    return { ...service, [Symbol.asyncDispose]: () => service[Symbol.asyncDispose]().then(() => rm(home, { recursive: true })) }
  }

  it('ten refused credentials a minute, however many guess at once on connections of their own', async () => {
    await using service = await limited({ auth: { enabled: true } })
    const client = createClient(service.url, { keepAlive: false })
    const guess = (value: string) => client.send({ method: 'GET', path: PATH, headers: { 'x-api-key': value } })
    const answers = await Promise.all(Array.from({ length: 100 }, (_, at) => guess(`wrong-${at}`)))
    expect([count(answers, 401), count(answers, 429)]).to.deep.equal([10, 90])
    expect((await guess('the-key')).status).to.equal(200)
  })

  it('the streams that a principal has open: never more than it may', async () => {
    await using service = await limited({ max_streams_per_principal: 8 })
    const leaving = new AbortController()
    const open = async () => {
      const body = JSON.stringify({ message: '/pace 50\n'.concat('word '.repeat(500)) })
      const headers = { 'content-type': 'application/json', connection: 'close' }
      const answer = await fetch(`${service.url}/api/v1/chat/stream`, { method: 'POST', headers, body, signal: leaving.signal })
      return answer.status
    }
    const statuses = await Promise.all(Array.from({ length: 40 }, open))
    leaving.abort()
    const opened = statuses.filter(status => status === 200).length
    expect(opened).to.be.within(2, 8)
    expect(statuses.filter(status => status === 429).length).to.equal(40 - opened)
  })
})
