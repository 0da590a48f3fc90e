import { appendFileSync, closeSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf, definePlugin, svcHome } from '@svc/core'
import { JobKinds, Jobs, PluginSchedules, Routes } from '@svc/core/contracts'

/** What the jobs of a test have done, one line each: `begin|end|clash <input> <attempt>`, `tick <time> <attempt>`. */
export const recordsFile = (home: string) => join(home, 'records')

const record = (...words: readonly unknown[]) => appendFileSync(recordsFile(svcHome()), `${words.join(' ')}\n`)

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Takes a lock file for this process. Returns false if a process that lives holds it. */
function lock(file: string): boolean {
  try {
    const opened = openSync(file, 'wx')
    writeSync(opened, String(process.pid))
    closeSync(opened)
    return true
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
    if (isAlive(Number(readFileSync(file, 'utf8')))) return false
    rmSync(file, { force: true })
    return lock(file)
  }
}

/**
 * Job kinds that leave evidence outside of the store. `record` holds a lock file of its process while it runs, so that two at
 * the same time are seen; `tick` records the tick that started it. The schedule `each-second` starts `tick`.
 */
export default definePlugin({
  requires: { jobs: Jobs },
  setup(scope, { jobs }) {
    scope.add(JobKinds, 'record', {
      description: 'Records that it ran',
      attempts: 100,
      backoff: { firstMs: 20, maxMs: 200 },
      async *run({ input, attempt }) {
        const name = input as string
        const file = join(svcHome(), `lock-${name}`)
        record(lock(file) ? 'begin' : 'clash', name, attempt)
        await sleep(20 + Math.random() * 60)
        rmSync(file, { force: true })
        record('end', name, attempt)
        yield { type: 'result', value: name }
      },
    })
    scope.add(JobKinds, 'tick', {
      description: 'Records its tick',
      attempts: 100,
      async *run({ schedule, attempt }) {
        record('tick', schedule?.tick, attempt)
        yield { type: 'result', value: null }
      },
    })
    scope.add(PluginSchedules, 'each-second', { everyMs: 1_000, catchUp: 'all', overlap: 'allow', job: { kind: 'tick' } })
    scope.add(Routes, 'add_jobs', {
      method: 'POST',
      path: '/add-jobs',
      summary: 'Adds jobs, once each',
      scope: 'chat',
      async handle({ body }, ctx) {
        const { from, count } = body as { from: number; count: number }
        const own = { ...ctx, principal: { id: 'system', scopes: ['*'] } }
        const names = Array.from({ length: count }, (_, at) => String(from + at))
        await Promise.all(names.map(name => jobs.add({ kind: 'record', input: name, key: name }, own)))
        return { body: { added: count } }
      },
    })
  },
})
