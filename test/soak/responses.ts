import { rm } from 'node:fs/promises'
import { auditResponses, newResponseLedger, startResponseLoad } from '../support/response-load.ts'
import { newHome, startService } from '../support/service.ts'

// npm run soak:responses [-- <kills>]: SIGKILL of a server while clients ask for stored responses, time after time. Every acknowledged
// response must be there unchanged, and those in the background must end; any problem is exit code 1.
const kills = Number(process.argv[2] ?? 100)
const home = await newHome()
const ledger = newResponseLedger()
const problems: string[] = []
for (let kill = 1; kill <= kills && problems.length === 0; kill++) {
  const service = await startService({ home })
  const load = startResponseLoad(service.url, ledger, 4)
  await load.reached(1 + Math.floor(Math.random() * 60))
  await service.kill()
  await load.broken()
  if (kill % 10 > 0 && kill < kills) continue
  await using audited = await startService({ home })
  problems.push(...(await auditResponses(audited.url, ledger)))
  const { stored, background } = ledger
  process.stdout.write(
    `${kill} of ${kills} kills, ${stored.length} stored and ${background.length} background responses acknowledged, ${problems.length} problems\n`
  )
}
for (const problem of problems.slice(0, 50)) process.stdout.write(`${problem}\n`)
await rm(home, { recursive: true, force: true })
process.exitCode = problems.length === 0 ? 0 : 1
