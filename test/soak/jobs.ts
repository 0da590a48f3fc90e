import { rm } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { addJobs, auditJobs, killWorkersWhile, recordsOf, startJobs, untilDone } from '../support/job-load.ts'
import { newHome } from '../support/service.ts'

// npm run soak:jobs [-- <jobs>]: jobs on four workers that are killed in turn, and a server that is killed as a whole three times.
// No job may be lost, or run twice at the same time; any problem is exit code 1.
const count = Number(process.argv[2] ?? 10_000)
const SERVERS = 3
const home = await newHome()
let killed = 0
const began = Date.now()
for (let server = 0; server < SERVERS; server++) {
  const service = await startJobs(home)
  const adding = addJobs(service, count)
  killed += await killWorkersWhile(home, 1_000, Promise.all([adding, sleep(15_000)]))
  await service.kill()
}
const service = await startJobs(home)
killed += await killWorkersWhile(home, 2_000, untilDone(home, 'record', count * 100))
const problems = await auditJobs(home, count)
for (const problem of problems.slice(0, 50)) process.stdout.write(`${problem}\n`)
const again = (recordsOf(home).get('begin') ?? []).filter(line => !line.endsWith(' 1')).length
const code = await service.stop()
await rm(home, { recursive: true, force: true })
process.stdout.write(
  `${count} jobs in ${Math.round((Date.now() - began) / 1_000)} s, ${killed} workers and ${SERVERS} servers killed, ${again} further attempts, ${problems.length} problems, exit code ${code}\n`
)
process.exitCode = problems.length === 0 && code === 0 ? 0 : 1
