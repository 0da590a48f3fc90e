import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { reachServer } from '@svc/runtime'
import { freePort, startPostgres } from '@svc/testing/engines'
import { auditLedger, CRASH_ENV, newLedger, randomOf, startLoad } from '../support/crash-loop.ts'
import { addJobs, auditJobs, auditTicks, RECORDS, recordsOf, untilDone } from '../support/job-load.ts'
import { beginLong, endOf, LONG_RUNS } from '../support/node-runs.ts'
import { BEHIND_BALANCER, isReady, startBalancer, startNode } from '../support/nodes.ts'
import type { Service } from '../support/service.ts'
import { until } from '../support/wait.ts'
import { effectsIn } from '../support/workflow-host.ts'

// npm run soak:cluster [-- <seconds> [<seed>]]: three nodes of two workers behind HAProxy, on one PostgreSQL. Nodes, workers and PostgreSQL
// are killed, and nodes replaced, in an order that the seed decides. Nothing that was acknowledged may be lost, and no effect may happen
// twice: any problem is exit code 1.
const seconds = Number(process.argv[2] ?? 180)
const seed = Number(process.argv[3] ?? Date.now() % 1_000_000)
const [NODES, WORKERS, CLIENTS, JOBS] = [3, 2, 6, 20]
/** Between two events. */
const [LEAST_MS, MORE_MS] = [3_000, 6_000]
const SETTLED_MS = 120_000
const FEW = ['workflows', 'workflow-nodes', 'jobs', 'schedules', 'admin-api']

const began = Date.now()
const say = (text: string) => process.stdout.write(`${String(Math.round((Date.now() - began) / 1_000)).padStart(4)} s  ${text}\n`)
const random = randomOf(seed)
const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!

await using stack = new AsyncDisposableStack()
const folder = await mkdtemp(join(tmpdir(), 'svc-soak-'))
stack.defer(() => rm(folder, { recursive: true, force: true }))
const file = join(folder, 'runs')
await writeFile(`${file}.go`, '') // runs end at once
const postgres = stack.use(await startPostgres({ settings: { max_connections: 150 } }))
const ports = await Promise.all(Array.from({ length: NODES }, freePort))
const balancer = stack.use(await startBalancer(await freePort(), ports))
const nodes = new Map<number, Service>()
const killed = { nodes: 0, workers: 0, databases: 0, replaced: 0 }

async function start(port: number): Promise<void> {
  const config = {
    plugins: [LONG_RUNS, RECORDS],
    store: { url: postgres.url },
    server: { ...BEHIND_BALANCER, shutdown_delay: 2 },
  }
  const env = { ...CRASH_ENV, TEST_RUNS_FILE: file, TEST_RECORDS: folder }
  for (let attempts = 1; ; attempts++)
    try {
      nodes.set(port, stack.use(await startNode({ config, port, few: FEW, env, args: ['--workers', String(WORKERS)] })))
      return
    } catch (error) {
      // PostgreSQL can be away
      if (attempts === 20) throw error
      await sleep(500)
    }
}

/** What can happen; each resolves when the cluster is whole again, or soon will be. */
const EVENTS: Readonly<Record<string, () => Promise<void>>> = {
  async 'a node is killed'() {
    const port = pick(ports)
    const pause = random() * 4_000
    killed.nodes += 1
    await nodes.get(port)!.kill()
    await sleep(pause)
    await start(port)
  },
  async 'a worker is killed'() {
    using server = await reachServer(nodes.get(pick(ports))!.home)
    const { workers } = server.info
    if (workers.length < WORKERS) return
    killed.workers += 1
    process.kill(pick(workers).pid, 'SIGKILL')
  },
  async 'PostgreSQL is killed'() {
    const pause = random() * 3_000
    killed.databases += 1
    await postgres.kill()
    await sleep(pause)
    await postgres.start()
  },
  async 'a node is replaced'() {
    const port = pick(ports)
    killed.replaced += 1
    const code = await nodes.get(port)!.stop()
    if (code !== 0) problems.push(`a node has ended with exit code ${code}`)
    await start(port)
  },
}

const problems: string[] = []
/** Asks again while no node answers. */
async function again<T>(work: () => Promise<T>): Promise<T> {
  for (const end = Date.now() + SETTLED_MS; ; await sleep(200))
    try {
      return await work()
    } catch (error) {
      if (Date.now() > end) throw error
    }
}

say(`seed ${seed}, ${seconds} s`)
for (const port of ports) await start(port)
await until(() => isReady(balancer.url), Boolean)
say(`${NODES} nodes serve`)
const ledger = newLedger()
const refusals = new Map<string, number>()
const load = startLoad(balancer.url, ledger, {
  clients: CLIENTS,
  seed,
  onRefusal: reason => refusals.set(reason, (refusals.get(reason) ?? 0) + 1),
})
const state = { isOver: false, jobs: 0 }
const runs: string[] = []
const beginRuns = async () => {
  while (!state.isOver) {
    const key = crypto.randomUUID()
    runs.push(await again(() => beginLong(balancer.url, 'long', key)))
    await sleep(100)
  }
}
const beginJobs = async () => {
  while (!state.isOver) {
    await again(() => addJobs(balancer, state.jobs + JOBS, state.jobs))
    state.jobs += JOBS
    await sleep(1_000)
  }
}
const working = Promise.all([beginRuns(), beginJobs()])
working.catch(() => {})
for (const until = Date.now() + seconds * 1_000; Date.now() < until; ) {
  await Promise.race([sleep(LEAST_MS + random() * MORE_MS), working])
  const name = pick(Object.keys(EVENTS))
  say(name)
  await EVENTS[name]!()
}
state.isOver = true
await Promise.all([working, load.end().catch((error: unknown) => problems.push(String(error)))])
say('the load has ended; what is left is done, and audited')
await until(async () => (await Promise.all(ports.map(port => isReady(`http://127.0.0.1:${port}`)))).every(Boolean), Boolean)
const [one] = [...nodes.values()]
for (const id of runs) {
  const { status, error } = await again(() => endOf(balancer.url, id))
  if (status !== 'completed') problems.push(`the run ${id} is ${status}: ${error}`)
}
const effects = effectsIn(file).map(({ run, step }) => `${run} ${step}`)
const expected = new Set(runs.flatMap(id => [`${id} first`, `${id} last`]))
for (const [effect, times] of Map.groupBy(effects, name => name))
  if (times.length > 1 || !expected.has(effect)) problems.push(`the effect ${effect} happened ${times.length} times`)
for (const effect of expected) if (!effects.includes(effect)) problems.push(`the effect ${effect} did not happen`)
for (const kind of ['record', 'tick']) await untilDone(one!.home, kind, SETTLED_MS)
problems.push(...(await auditJobs(one!.home, state.jobs, folder)))
const { ticks, problems: wrongTicks } = await auditTicks(one!.home, folder)
problems.push(...wrongTicks, ...(await auditLedger(one!.url, ledger)))
for (const port of ports) {
  const code = await nodes.get(port)!.stop()
  if (code !== 0) problems.push(`a node has ended with exit code ${code}`)
}
for (const [reason, times] of refusals) say(`${times} × ${reason}`)
for (const problem of problems.slice(0, 50)) say(problem)
const attempts = recordsOf(folder).get('begin')?.length ?? 0
say(
  `seed ${seed}: ${ledger.acknowledged} turns, ${runs.length} runs, ${state.jobs} jobs in ${attempts} attempts and ${ticks} ticks acknowledged; killed: ${killed.nodes} nodes, ${killed.workers} workers, PostgreSQL ${killed.databases} times; ${killed.replaced} nodes replaced; ${problems.length} problems`
)
process.exitCode = problems.length === 0 ? 0 : 1
