import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { programPath, startPostgres } from '../../core/testing/src/engines/index.ts'
import { requestFor } from './client.ts'
import { compared } from './compare.ts'
import { middle, run } from './load.ts'
import type { Options } from './options.ts'
import { family, forkPeer, freePort, type PeerProcess, useAllCores } from './processes.ts'
import type { Figure } from './report.ts'
import { interleave } from './rounds.ts'
import { type Server, start } from './server.ts'
import { scratch, svcServe } from './svc.ts'

const bench = 'cluster'
const CALLERS = 64
/** Jobs that bare pg-boss drains in a round. */
const JOBS = 5_000
const [NODES, IDLE_MS, SETTLED_MS] = [4, 10_000, 6_000]
const WARM_ROUNDS = 8
const EACH_MS = 10
const [MOST_WATCH_MS, MOST_IDLE] = [100, 10]
const RUNS = fileURLToPath(new URL('../peers/cluster-runs.js', import.meta.url))

interface Loaded {
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
}
type Process = PeerProcess<Loaded>
type Database = Awaited<ReturnType<typeof startPostgres>>

/** The store, the counts and the runs in PostgreSQL, compared to what a program by hand does with the same database. */
export async function* cluster(options: Options): AsyncGenerator<Figure> {
  const pgbench = programPath('pgbench')
  if (pgbench === undefined) throw new Error('PostgreSQL is not installed on this machine: it needs the package postgresql')
  await using postgres = await startPostgres({ settings: { max_connections: 250 } })
  useAllCores(family(process.pid).filter(pid => pid !== process.pid))
  const bare = await forkPeer<Loaded>('cluster-bare', [postgres.url, pgbench])
  const ours = await forkPeer<Loaded>('cluster-svc', [postgres.url], options.svc)
  try {
    yield* calls(ours, bare, options)
    yield* watched(ours, bare, options)
  } finally {
    await Promise.all([ours.end(), bare.end()])
  }
  yield await idle(options)
  yield* nodes(postgres, options)
}

const CALLS = [
  { kind: 'put', what: 'put of 1 KiB', unit: 'puts/s', anchor: 'group commit on one connection of pg', must: 0.5 },
  { kind: 'mixed', what: 'record, index and log entry', unit: 'batches/s', anchor: 'group commit of the same rows', must: 0.6 },
  { kind: 'get', what: 'get', unit: 'gets/s', anchor: 'a pool of 64 connections', must: 0.7 },
  { kind: 'count', what: 'count in one window', unit: 'counts/s', anchor: 'pgbench on one row', must: 1.5 },
  { kind: 'runs', bare: 'drain', what: 'runs of one step', unit: 'runs/s', anchor: 'drain of bare pg-boss', must: 0.3 },
] as const

async function* calls(ours: Process, bare: Process, { rounds, ms }: Options): AsyncGenerator<Figure> {
  for (const { kind, what, must, unit, anchor, ...more } of CALLS) {
    const ask = async (whose: Process, message: object) => (await whose.ask({ callers: CALLERS, ms, ...message })).perSecond
    const subjects = {
      ours: () => ask(ours, { kind }),
      bare: () => ask(bare, { kind: 'bare' in more ? more.bare : kind, jobs: JOBS }),
    }
    for (const subject of Object.values(subjects)) await subject()
    const found = await interleave(subjects, rounds)
    yield { bench, ...compared(`${what}, ${CALLERS} callers`, found, 'ours', 'bare'), unit, anchor, better: 'more', must }
  }
}

async function* watched(ours: Process, bare: Process, { rounds, ms }: Options): AsyncGenerator<Figure> {
  const load = { ms, everyMs: EACH_MS }
  const found = await interleave(
    {
      ours: async () => (await ours.ask({ ...load, kind: 'watch' })).p99,
      bare: async () => (await bare.ask({ ...load, kind: 'notify' })).p99,
    },
    rounds
  )
  const what = 'a change until the watcher of another process has it, p99'
  yield { bench, ...compared(what, found, 'ours', 'bare'), unit: 'ms', anchor: 'commit and NOTIFY of bare pg', better: 'less' }
  yield limited(what, middle(found.ours), 'ms', MOST_WATCH_MS)
}

const limited = (what: string, value: number, unit: string, limit: number): Figure => ({
  bench,
  what,
  value,
  unit,
  anchor: 'the limit',
  anchorValue: limit,
  ratio: value / limit,
  better: 'less',
  must: 1,
})

/** Starts a node with a home of its own, which ends with the stack. */
async function startNode(stack: AsyncDisposableStack, url: string, schema: string, { svc }: Options): Promise<Server> {
  const folder = stack.use(scratch())
  const port = await freePort()
  return stack.use(await start(svcServe(svc, port, folder.path, { plugins: [RUNS], store: { url, schema } }), port))
}

/** Servers on one core: one, and four with the same connections in all. */
async function* nodes(postgres: Database, options: Options): AsyncGenerator<Figure> {
  const { rounds, ms } = options
  await using stack = new AsyncDisposableStack()
  const single = [await startNode(stack, postgres.url, 'single', options)]
  const several: Server[] = []
  while (several.length < NODES) several.push(await startNode(stack, postgres.url, 'several', options))
  const request = requestFor('POST', '/api/v1/workflows/run', { workflow: 'one', input: {} })
  const rate = (servers: readonly Server[]) => async () => {
    const load = { connections: CALLERS / servers.length, ms, request }
    const problemOf = ({ body }: { readonly body: string }) =>
      body.includes('"completed"') ? undefined : 'the run has not completed'
    const all = await Promise.all(servers.map(({ port }) => run({ ...load, port, problemOf })))
    return all.reduce((sum, { perSecond }) => sum + perSecond, 0)
  }
  const subjects = { four: rate(several), one: rate(single) }
  // each of four gets a quarter of the runs, and code becomes fast by the number of its calls
  for (let at = 0; at < NODES * WARM_ROUNDS; at++) await subjects.four()
  for (let at = 0; at < WARM_ROUNDS; at++) await subjects.one()
  const found = await interleave(subjects, rounds)
  const what = `runs over HTTP at ${NODES} nodes on one core, ${CALLERS} connections`
  yield { bench, ...compared(what, found, 'four', 'one'), unit: 'runs/s', anchor: 'one node', better: 'more', must: 0.9 }
}

/** Statements of a node while nothing happens, BEGIN and COMMIT included. Its server counts them, which the other figures do without. */
async function idle(options: Options): Promise<Figure> {
  await using postgres = await startPostgres({ settings: { shared_preload_libraries: 'pg_stat_statements' } })
  await postgres.query('CREATE EXTENSION pg_stat_statements')
  await using stack = new AsyncDisposableStack()
  await startNode(stack, postgres.url, 'idle', options)
  const sql = `SELECT sum(calls) AS n FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat%'`
  const count = async () => Number((await postgres.query(sql))[0]!.n)
  await sleep(SETTLED_MS)
  const before = await count()
  await sleep(IDLE_MS)
  const each = ((await count()) - before) / (IDLE_MS / 1_000)
  return limited('statements of an idle node', each, 'a second', MOST_IDLE)
}
