import { readdirSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { systemUse } from '@svc/core'
import { reachServer } from '@svc/core/processes'
import { startReloadLoad } from '../support/reload-load.ts'
import { newHome, startService } from '../support/service.ts'

// npm run soak:reload [-- <rounds>]: reloads under load; every failed request is printed, any of them, and any growth of the supervisor, is exit code 1.
const rounds = Number(process.argv[2] ?? 20)
const home = await newHome()
const service = await startService({ home, args: ['--workers', '2'] })
await service.seen(/"event":"worker_ready"/)
const load = startReloadLoad(service.url)

/** Descriptors, resident KiB and children of the supervisor. */
function sizeOf(pid: number) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return {
    handles: readdirSync(`/proc/${pid}/fd`).length,
    rss: Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]),
    children: readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').length,
  }
}

async function reload() {
  using server = await reachServer(home)
  return await server.control.reload(systemUse(AbortSignal.timeout(300_000), 'soak'))
}

const sizes: ReturnType<typeof sizeOf>[] = []
let generations = 0
for (let round = 1; round <= rounds; round++) {
  await load.more(50)
  const began = performance.now()
  const { problems, workers } = await reload()
  if (problems.length > 0) throw new Error(JSON.stringify(problems))
  const draining = new Set(workers.filter(one => one.state === 'draining').map(one => one.generation)).size
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
const most = (from: number, to: number, key: 'handles' | 'rss') => Math.max(...sizes.slice(from, to).map(one => one[key]))
const half = Math.floor(rounds / 2)
const growth = {
  handles: most(half, rounds, 'handles') - most(0, half, 'handles'),
  rss: most(half, rounds, 'rss') - most(0, half, 'rss'),
}
process.stdout.write(
  `${load.done.requests} requests, ${load.done.streams} streams, ${load.failures.length} failed, ${killed.length} workers killed; at most ${generations} generations drained; second half against first: ${growth.handles} handles, ${growth.rss} KiB; exit code ${code}\n`
)
process.exitCode = load.failures.length + killed.length > 0 || generations > 2 || growth.handles > 8 || code !== 0 ? 1 : 0
