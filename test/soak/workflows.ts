import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { reachServer } from '@svc/runtime'
import { newHome, startService } from '../support/service.ts'
import { auditRuns, beginRun, effectsReach, go } from '../support/workflow-load.ts'

// npm run soak:workflows [-- <rounds>]: SIGKILL of one worker of two, or of both and their server, in the midst of runs, round after round; in the end each run
// must have ended as it should, with each effect once. Every fault is printed, any of them is exit code 1.
const rounds = Number(process.argv[2] ?? 50)
const [RUNS, EFFECTS_BEFORE] = [30, 9]
/** Who has served so long was stable: its successor comes at once. */
const STABLE_MS = 5_500
const home = await newHome()
await writeFile(
  join(home, 'svc.config.json'),
  JSON.stringify({ plugins: [fileURLToPath(new URL('../support/workflow-work.ts', import.meta.url))] })
)

async function start() {
  const service = await startService({ home, args: ['--workers', '2'] })
  await service.seen(/"event":"worker_ready"/)
  return service
}

/** Any of them, once it is stable. */
async function victim(): Promise<number> {
  using server = await reachServer(home)
  const { workers } = server.info
  const { pid, startedAt } = workers[Math.floor(Math.random() * workers.length)]!
  await sleep(Math.max(0, startedAt + STABLE_MS - Date.now()))
  return pid
}

let [service, kills] = [await start(), 0]
const ids: string[] = []
for (let round = 1; round <= rounds; round++) {
  // each third one takes all of them at once
  const pid = round % 3 === 0 ? undefined : await victim()
  const begun = await Promise.all(Array.from({ length: RUNS }, () => beginRun(service.url, 'work')))
  ids.push(...begun)
  // those of the first half may go on at once, the others once somebody was killed
  await Promise.all(begun.slice(0, RUNS / 2).map(id => go(service.url, id)))
  await effectsReach(home, (ids.length - RUNS) * EFFECTS_BEFORE + Math.floor(Math.random() * RUNS * EFFECTS_BEFORE))
  if (pid === undefined) {
    await service.kill()
    service = await start()
    kills = 0
  } else {
    kills += 1
    const ready = service.seen(/"event":"worker_ready"/, kills + 1)
    process.kill(pid, 'SIGKILL')
    await ready
  }
  await Promise.all(begun.slice(RUNS / 2).map(id => go(service.url, id)))
  process.stdout.write(`${round} of ${rounds} rounds, ${ids.length} runs\n`)
}
const problems = await auditRuns(service.url, home, ids)
for (const fault of problems.slice(0, 50)) process.stdout.write(`${fault}\n`)
const code = await service.stop()
await rm(home, { recursive: true, force: true })
process.stdout.write(`${rounds} rounds, ${ids.length} runs, ${problems.length} faults, exit code ${code}\n`)
process.exitCode = problems.length === 0 && code === 0 ? 0 : 1
