import { setTimeout as wait } from 'node:timers/promises'
import { connect } from './client.ts'
import { compared, measure } from './compare.ts'
import { type Load, middle, requestOf } from './load.ts'
import type { Options } from './options.ts'
import { cpuOf } from './processes.ts'
import type { Figure } from './report.ts'
import type { Server } from './server.ts'

const SHORT = 64
const PATIENCE_MS = 30_000

interface Pair {
  readonly one: Server
  readonly two: Server
}

/** The cost of a second worker on all cores, and how two workers share connections with one request each. */
export async function* workers(
  servers: Pair,
  loadOf: (server: Server, name: keyof Pair) => Load,
  { rounds }: Pick<Options, 'rounds'>
): AsyncGenerator<Figure> {
  await untilWorkers(servers.two, 2)
  const { rates, costs } = await measure({ ...servers }, loadOf, rounds)
  const rest = { bench: 'gates', anchor: 'one worker' } as const
  const what = 'durable turns, all gates on, two workers'
  yield {
    ...rest,
    ...compared(what, rates, 'two', 'one'),
    unit: 'req/s',
    better: 'more',
    note: 'the load takes one of the cores',
  }
  const cpu = compared(`${what}, processor time`, costs, 'two', 'one')
  yield { ...rest, ...cpu, unit: 'µs a request', better: 'less', must: 1.1 }
  const shares: number[] = []
  while (shares.length < rounds) shares.push(await smallerShare(servers.two, loadOf(servers.two, 'two')))
  const share = middle(shares)
  yield {
    bench: 'gates',
    what: `short connections, ${SHORT} at a time, share of the worker that does less`,
    value: share * 100,
    unit: '%',
    anchor: 'an even share',
    anchorValue: 50,
    ratio: share / 0.5,
    better: 'more',
    must: 0.7,
    note: 'by processor time',
  }
}

/** The child processes of the started one. */
const workersOf = ({ pids }: Server) => pids.slice(1)

async function untilWorkers(server: Server, count: number): Promise<void> {
  for (const until = performance.now() + PATIENCE_MS; performance.now() < until; await wait(50))
    if (workersOf(server).length === count) return
  throw new Error(`there are ${workersOf(server).length} workers, not ${count}`)
}

/** All requests are alike, so the processor time of a worker shows its share. */
async function smallerShare(server: Server, load: Load): Promise<number> {
  const all = workersOf(server)
  const before = all.map(pid => cpuOf([pid]))
  const until = performance.now() + load.ms
  await Promise.all(Array.from({ length: SHORT }, () => askAnew(load, until)))
  const spent = all.map((pid, at) => cpuOf([pid]) - before[at]!)
  return Math.min(...spent) / spent.reduce((a, b) => a + b, 0)
}

async function askAnew(load: Load, until: number): Promise<void> {
  while (performance.now() < until) {
    const connection = await connect(load.port)
    const { status } = await connection.ask(requestOf(load, 0), false)
    connection.close()
    if (status !== 200) throw new Error(`a wrong answer: ${status}`)
  }
}
