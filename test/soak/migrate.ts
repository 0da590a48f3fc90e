import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { startPostgres } from '@svc/testing/engines'
import { runSvc } from '../support/command.ts'
import { fill, killMigration, rowsIn } from '../support/filled-store.ts'
import { newHome } from '../support/service.ts'

// npm run soak:migrate [-- <records>]: svc store migrate of so many records and twice as many entries of logs (default: a million), killed
// three times and continued. Exit code 1 if the copy is not complete, or if the file has changed.
const records = Number(process.argv[2] ?? 1_000_000)
const home = await newHome()
await using postgres = await startPostgres()
const env = { SVC_STORE__URL: postgres.url }
const began = Date.now()
const say = (text: string) => process.stdout.write(`${Math.round((Date.now() - began) / 1_000)} s: ${text}\n`)

async function hashOf(file: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer)
  return hash.digest('hex')
}

try {
  await fill(home, records)
  const before = await hashOf(join(home, 'svc.db'))
  say(`the file has ${records} records`)
  for (const part of [0.1, 0.4, 0.7]) {
    await killMigration({ from: home, env, isReached: async () => (await rowsIn(postgres, 'svc')) > records * part })
    say(`killed at ${await rowsIn(postgres, 'svc')} records`)
  }
  const { code, out, err } = await runSvc(['store', 'migrate', '--json'], { home, env })
  say(code === 0 ? out.trim() : err.trim())
  const copied = code === 0 ? (JSON.parse(out) as { records: number; entries: number }) : { records: 0, entries: 0 }
  const problems = [
    ...(code === 0 ? [] : [`the migration has failed with exit code ${code}`]),
    ...(copied.records === records + 1 ? [] : [`${copied.records} of ${records + 1} records`]),
    ...(copied.entries === records * 2 ? [] : [`${copied.entries} of ${records * 2} entries`]),
    ...((await hashOf(join(home, 'svc.db'))) === before ? [] : ['the file has changed']),
  ]
  for (const problem of problems) say(problem)
  say(`${records} records, ${problems.length} problems`)
  process.exitCode = problems.length === 0 ? 0 : 1
} finally {
  await rm(home, { recursive: true, force: true })
}
