import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startPostgres } from '@svc/testing/engines'
import { randomOf } from '../support/crash-loop.ts'
import { auditTicks, RECORDS, recordsOf, untilDone } from '../support/job-load.ts'
import { startNode } from '../support/nodes.ts'
import type { Service } from '../support/service.ts'

// npm run soak:ticks [-- <seconds> [<seed>]]: a schedule of one second on three nodes with one PostgreSQL, whose nodes are killed in an
// order that the seed decides. Each tick must have exactly one job, and each job one run: a second one only if its node was killed
// during the first. Any problem is exit code 1.
const seconds = Number(process.argv[2] ?? 600)
const seed = Number(process.argv[3] ?? Date.now() % 1_000_000)
const NODES = 3
/** Between two kills. */
const [LEAST_MS, MORE_MS] = [15_000, 10_000]
const SETTLED_MS = 120_000

const random = randomOf(seed)
await using stack = new AsyncDisposableStack()
const folder = await mkdtemp(join(tmpdir(), 'svc-ticks-'))
stack.defer(() => rm(folder, { recursive: true, force: true }))
const postgres = stack.use(await startPostgres({ settings: { max_connections: 60 } }))
const start = async (): Promise<Service> => {
  const config = { plugins: [RECORDS], store: { url: postgres.url } }
  const few = ['admin-api', 'jobs', 'schedules']
  return stack.use(await startNode({ config, few, env: { TEST_RECORDS: folder } }))
}
const nodes = await Promise.all(Array.from({ length: NODES }, start))
let killed = 0
for (const until = Date.now() + seconds * 1_000; Date.now() < until; ) {
  await sleep(Math.min(LEAST_MS + random() * MORE_MS, Math.max(0, until - Date.now())))
  if (Date.now() >= until) break
  const at = Math.floor(random() * NODES)
  await nodes[at]!.kill()
  killed += 1
  nodes[at] = await start()
}
const [one] = nodes
await untilDone(one!.home, 'tick', SETTLED_MS)
const { ticks, problems } = await auditTicks(one!.home, folder)
const runs = Map.groupBy(recordsOf(folder).get('tick') ?? [], line => line.split(' ')[1]!)
for (const [tick, lines] of runs)
  if (new Set(lines).size < lines.length) problems.push(`an attempt of ${tick} ran ${lines.length} times: ${lines.join(', ')}`)
const again = [...runs.values()].filter(lines => lines.length > 1).length
if (again > killed) problems.push(`${again} ticks ran again, but only ${killed} nodes were killed`)
if (ticks < seconds - 2) problems.push(`only ${ticks} ticks`)
for (const node of nodes) {
  const code = await node.stop()
  if (code !== 0) problems.push(`a node has ended with exit code ${code}`)
}
for (const problem of problems.slice(0, 50)) process.stdout.write(`${problem}\n`)
process.stdout.write(
  `seed ${seed}: ${seconds} s, ${NODES} nodes, ${killed} killed, ${ticks} ticks, ${again} with a second attempt, ${problems.length} problems\n`
)
process.exitCode = problems.length === 0 ? 0 : 1
