import { rm } from 'node:fs/promises'
import { auditLedger, CRASH_ENV as env, newLedger, startLoad } from '../support/crash-loop.ts'
import { newHome, startService } from '../support/service.ts'

// npm run soak:crash [-- <rounds>]: the crash test for as long as you like; every fault is printed, any of them is exit code 1.
const rounds = Number(process.argv[2] ?? 200)
const home = await newHome()
const ledger = newLedger()
const problems: string[] = []
for (let seed = 1; seed <= rounds && problems.length === 0; seed++) {
  const service = await startService({ home, env })
  const load = startLoad(service.url, ledger, { clients: 8, seed })
  await load.reached(1 + Math.floor(Math.random() * 100))
  await service.kill()
  await load.broken()
  if (seed % 10 > 0 && seed < rounds) continue
  await using audited = await startService({ home, env })
  problems.push(...(await auditLedger(audited.url, ledger)))
  process.stdout.write(`${seed} of ${rounds} rounds, ${ledger.acknowledged} turns acknowledged, ${problems.length} faults\n`)
}
process.stdout.write(
  problems
    .slice(0, 50)
    .map(fault => `${fault}\n`)
    .join('')
)
await rm(home, { recursive: true, force: true })
process.exitCode = problems.length === 0 ? 0 : 1
