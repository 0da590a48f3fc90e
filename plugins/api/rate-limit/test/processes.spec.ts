import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'

/** What scripts/test.mjs has built starts faster. */
const CONDITIONS = process.env.SVC_TEST_ENTRY ? [] : ['--conditions=svc-source']

const SERVER = new URL('./children/server.ts', import.meta.url)

/** A process that serves and counts in the file; it is killed at the latest with the test. */
async function serverOn(path: string, perMinute: number, perDay: number) {
  const child: ChildProcess = fork(SERVER, [path, String(perMinute), String(perDay)], { execArgv: [...CONDITIONS] })
  const [port] = (await once(child, 'message')) as [number]
  const ask = (route: string) => fetch(`http://127.0.0.1:${port}${route}`, { headers: { connection: 'close' } })
  return {
    ask,
    /** So many requests at once; how often each status came. */
    async times(count: number, route = '/counted') {
      const answers = await Promise.all(Array.from({ length: count }, () => ask(route)))
      await Promise.all(answers.map(answer => answer.text()))
      return tally(answers.map(answer => answer.status))
    },
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
    [Symbol.asyncDispose]() {
      return this.kill()
    },
  }
}
type Tally = Readonly<Record<number, number>>

const tally = (statuses: readonly number[]): Tally =>
  Object.fromEntries([...new Set(statuses)].map(status => [status, statuses.filter(statuse => statuse === status).length]))
const sum = (all: readonly Tally[]): Tally => {
  const statuses = all.flatMap(item =>
    Object.entries(item).flatMap(([status, count]) => Array<number>(count).fill(Number(status)))
  )
  return tally(statuses)
}

async function four(perMinute: number, perDay: number) {
  const folder = await mkdtemp(join(tmpdir(), 'svc-limits-'))
  const path = join(folder, 'svc.db')
  const servers = await Promise.all([1, 2, 3, 4].map(() => serverOn(path, perMinute, perDay)))
  return {
    servers,
    all: async (count: number, route?: string) => sum(await Promise.all(servers.map(server => server.times(count, route)))),
    another: () => serverOn(path, perMinute, perDay),
    async [Symbol.asyncDispose]() {
      await Promise.all(servers.map(server => server.kill()))
      await rm(folder, { recursive: true, force: true })
    },
  }
}

describe('limits of four processes on one store', () => {
  it('answer 1,000 requests at once exactly as often as the limit of a minute says', async () => {
    await using place = await four(100, 1000)
    expect(await place.all(250)).to.deep.equal({ 200: 100, 429: 900 })
    expect(await place.all(10)).to.deep.equal({ 429: 40 })
    expect(await place.all(10, '/free')).to.deep.equal({ 200: 40 })
  })

  it('hold for the day as exactly as for the minute, also when all that counted were killed', async () => {
    await using place = await four(10_000, 77)
    expect(await place.all(15)).to.deep.equal({ 200: 60 })
    await Promise.all(place.servers.map(server => server.kill()))
    await using next = await place.another()
    expect(await next.times(250)).to.deep.equal({ 200: 17, 429: 233 })
    const answer = await next.ask('/counted')
    const { error_code, details } = (await answer.json()) as { error_code: string; details: Record<string, number> }
    expect(error_code).to.equal('RATE_LIMITED')
    expect(details).to.include({ limit: 77, window: 86_400 })
    expect(details.retry_after).to.be.within(86_300, 86_400)
    expect(answer.headers.get('retry-after')).to.equal(String(details.retry_after))
  })

  it('show the minute in headers, with one count for all', async () => {
    await using place = await four(100, 1000)
    const remaining: (string | null)[] = []
    for (const server of place.servers) {
      const { headers } = await server.ask('/counted')
      remaining.push(headers.get('x-ratelimit-remaining'))
      expect(headers.get('x-ratelimit-limit')).to.equal('100')
    }
    expect(remaining).to.deep.equal(['99', '98', '97', '96'])
  })
})
