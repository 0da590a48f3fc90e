import { rm } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { auditTicks, killWorkersWhile, startJobs, untilDone } from '../support/job-load.ts'
import { newHome } from '../support/service.ts'

// npm run soak:schedules [-- <seconds>]: a schedule of one second on four workers that are killed in turn. Each tick must start
// exactly one job; any problem is exit code 1.
const seconds = Number(process.argv[2] ?? 300)
const home = await newHome()
const service = await startJobs(home)
const killed = await killWorkersWhile(home, 2_000, sleep(seconds * 1_000))
await untilDone(home, 'tick', 60_000)
const { ticks, problems } = await auditTicks(home)
for (const problem of problems.slice(0, 50)) process.stdout.write(`${problem}\n`)
const code = await service.stop()
await rm(home, { recursive: true, force: true })
process.stdout.write(`${seconds} s, ${killed} workers killed, ${ticks} ticks, ${problems.length} problems, exit code ${code}\n`)
process.exitCode = problems.length === 0 && code === 0 && ticks >= seconds - 2 ? 0 : 1
