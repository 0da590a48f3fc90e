// Starts the engines that it is asked for, writes one line and waits: node start-all.ts pgbouncer,redis [throw]
import { type Engine, startPgBouncer, startPostgres, startRedis } from '@svc/testing/engines'

const [names = '', then] = process.argv.slice(2)
const engines: Engine[] = []
for (const name of names.split(','))
  if (name === 'redis') engines.push(await startRedis())
  else {
    const postgres = await startPostgres()
    engines.push(postgres, await startPgBouncer(postgres))
  }
process.stdout.write(`${JSON.stringify(engines.map(({ port }) => port))}\n`)
if (then === 'throw') throw new Error('a test that fails and closes nothing')
setInterval(() => {}, 60_000)
