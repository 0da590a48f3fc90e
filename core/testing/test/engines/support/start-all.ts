// Starts engines, writes one line and waits: node start-all.ts pgbouncer,redis
// Ends with the error of a command whose client package is missing: node start-all.ts redis hide-ioredis
import { registerHooks } from 'node:module'
import { type RunningEngine, type Redis, startPgBouncer, startPostgres, startRedis } from '@svc/testing/engines'

const [names = '', then] = process.argv.slice(2)
const engines: RunningEngine[] = []
for (const name of names.split(','))
  if (name === 'redis') engines.push(await startRedis())
  else {
    const postgres = await startPostgres()
    engines.push(postgres, await startPgBouncer(postgres))
  }
process.stdout.write(`${JSON.stringify(engines.map(({ port }) => port))}\n`)
if (then === 'hide-ioredis') {
  registerHooks({
    resolve(specifier, context, next) {
      if (specifier !== 'ioredis') return next(specifier, context)
      throw Object.assign(new Error('not installed'), { code: 'ERR_MODULE_NOT_FOUND' })
    },
  })
  await (engines[0] as Redis).command('PING')
}
setInterval(() => {}, 60_000)
