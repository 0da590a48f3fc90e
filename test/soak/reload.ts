import { readdirSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { systemContext } from '@svc/core'
import { reachServer } from '@svc/runtime'
import { startReloadLoad } from '../support/reload-load.ts'
import { newHome, startService } from '../support/service.ts'

// npm run soak:reload [-- <rounds>]: reloads under load; every failed request is printed, any of them, and any growth of the supervisor, is exit code 1.
const rounds = Math.max(9, Number(process.argv[2] ?? 40))
/** What a round may leave behind: less than one of anything that is opened once a round, and less than the 256 KiB that a report kept would be. */
const MOST = { handles: 0.5, rss: 256, children: 0.25 }
const UNITS = { handles: 'descriptors', rss: 'KiB', children: 'children' }
/** Two generations that drain, and one that serves, of two workers each. */
const MOST_CHILDREN = 6
const home = await newHome()
const service = await startService({ home, args: ['--workers', '2'] })
await service.seen(/"event":"worker_ready"/)
const load = startReloadLoad(service.url)

/** Descriptors, resident KiB of its own (not of the program's file, which are read in as it comes to them) and children of the supervisor. */
function sizeOf(pid: number) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return {
    handles: readdirSync(`/proc/${pid}/fd`).length,
    rss: Number(/RssAnon:\s+(\d+)/.exec(status)?.[1]),
    children: readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').length,
  }
}

async function reload() {
  using server = await reachServer(home)
  return await server.control.reload(systemContext(AbortSignal.timeout(300_000), 'soak'))
}

const sizes: ReturnType<typeof sizeOf>[] = []
let generations = 0
for (let round = 1; round <= rounds; round++) {
  await load.more(50)
  const began = performance.now()
  const { problems, workers } = await reload()
  if (problems.length > 0) throw new Error(JSON.stringify(problems))
  const draining = new Set(workers.filter(worker => worker.state === 'draining').map(worker => worker.generation)).size
  generations = Math.max(generations, draining)
  sizes.push(sizeOf(service.child.pid!))
  process.stdout.write(
    `${round} of ${rounds}: ${Math.round(performance.now() - began)} ms, ${draining} draining, ${load.done.requests} requests, ${load.done.streams} streams, ${load.failures.length} failed, ${JSON.stringify(sizes.at(-1))}\n`
  )
}
await load.more(50)
await load.stop()
const killed = service.output().match(/"how":"SIG\w+"/g) ?? []
for (const fault of [...load.failures, ...killed].slice(0, 20)) process.stdout.write(`${fault}\n`)
const code = await service.stop()
await rm(home, { recursive: true, force: true })
/** Growth a round over the rounds after the warm-up: the least-squares slope, which a single peak does not bend far. */
function slopeOf(values: readonly number[]): number {
  const mean = (list: readonly number[]) => list.reduce((sum, item) => sum + item, 0) / list.length
  const [x, y] = [(values.length - 1) / 2, mean(values)]
  const over = values.reduce((sum, value, at) => sum + (at - x) * (value - y), 0)
  return over / values.reduce((sum, _, at) => sum + (at - x) ** 2, 0)
}

// in the first half V8 compiles, and the heap takes the size that it keeps
const warm = sizes.slice(Math.floor(rounds / 2))
const slopes = {
  handles: slopeOf(warm.map(size => size.handles)),
  rss: slopeOf(warm.map(size => size.rss)),
  children: slopeOf(warm.map(size => size.children)),
}
const children = Math.max(...sizes.map(size => size.children))
const grown = (['handles', 'rss', 'children'] as const).filter(key => !(slopes[key] <= MOST[key]))
if (children > MOST_CHILDREN) grown.push('children')
const slopeTexts = (['handles', 'rss', 'children'] as const).map(key => `${slopes[key].toFixed(2)} ${UNITS[key]}`).join(', ')
process.stdout.write(
  `${load.done.requests} requests, ${load.done.streams} streams, ${load.failures.length} failed, ${killed.length} workers killed; at most ${generations} generations drained, ${children} children; growth a round after the warm-up: ${slopeTexts}${grown.length > 0 ? `: TOO MUCH of ${grown.join(', ')}` : ''}; exit code ${code}\n`
)
process.exitCode = load.failures.length + killed.length + grown.length > 0 || generations > 2 || code !== 0 ? 1 : 0
