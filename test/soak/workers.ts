import { rm } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { reachServer } from '@svc/runtime'
import { auditLedger, CRASH_ENV as env, newLedger, startLoad } from '../support/crash-loop.ts'
import { newHome, startService } from '../support/service.ts'

// npm run soak:workers [-- <rounds>]: SIGKILL of one worker of two under load, round after round; every fault is printed, any of them is exit code 1.
const rounds = Number(process.argv[2] ?? 50)
/** Who has served so long was stable: its successor comes at once. */
const STABLE_MS = 5_500
const home = await newHome()
const service = await startService({ home, env, args: ['--workers', '2'] })
await service.seen(/"event":"worker_ready"/)
const ledger = newLedger()

/** The one that has served longest. */
async function victim(): Promise<{ pid: number; ageMs: number }> {
  using server = await reachServer(home)
  const [oldest] = server.info.workers.toSorted((a, b) => a.startedAt - b.startedAt)
  return { pid: oldest!.pid, ageMs: Date.now() - oldest!.startedAt }
}

for (let round = 1; round <= rounds; round++) {
  const { pid, ageMs } = await victim()
  await sleep(Math.max(0, STABLE_MS - ageMs))
  const load = startLoad(service.url, ledger, { clients: 8, seed: round })
  await load.reached(20 + ((round * 17) % 40))
  const ready = service.seen(/"event":"worker_ready"/, round + 1)
  process.kill(pid, 'SIGKILL')
  // the clients of the other worker go on: those that lost theirs have ended
  await ready
  await load.end()
  process.stdout.write(`${round} of ${rounds} rounds, ${ledger.acknowledged} turns acknowledged\n`)
}
const problems = await auditLedger(service.url, ledger)
for (const fault of problems.slice(0, 50)) process.stdout.write(`${fault}\n`)
const code = await service.stop()
await rm(home, { recursive: true, force: true })
process.stdout.write(
  `${rounds} rounds, ${ledger.acknowledged} turns acknowledged, ${problems.length} faults, exit code ${code}\n`
)
process.exitCode = problems.length === 0 && code === 0 ? 0 : 1
