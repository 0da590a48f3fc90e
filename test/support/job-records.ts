import { appendFileSync, closeSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf, definePlugin, svcHome } from '@svc/core'
import { JobKinds, Jobs, PluginSchedules, Routes } from '@svc/core/contracts'

/** What the jobs of a test have done, one line each: `begin|end|clash <input> <attempt>`, `tick <time> <attempt>`. */
export const recordsFile = (within: string) => join(within, 'records')

/** Nodes of a cluster share a folder; a server has its home. */
const folder = () => process.env.TEST_RECORDS ?? svcHome()

const record = (...words: readonly unknown[]) => appendFileSync(recordsFile(folder()), `${words.join(' ').trimEnd()}\n`)

/** State and start of a process, which tell it from a dead one that is not yet removed, and from a later one with its number. */
function processOf(pid: string | number): { readonly isAlive: boolean; readonly start: string } {
  try {
    const words = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ')
    return { isAlive: words[0] !== 'Z' && words[0] !== 'X', start: words[19]! }
  } catch {
    return { isAlive: false, start: '' }
  }
}

/** Takes a lock file for this process. Returns its holder if a process that lives holds it. */
function lock(file: string): string | undefined {
  try {
    const opened = openSync(file, 'wx')
    writeSync(opened, `${process.pid} ${processOf(process.pid).start}`)
    closeSync(opened)
    return undefined
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
    const holder = readFileSync(file, 'utf8')
    const [pid = '', start] = holder.split(' ')
    const found = processOf(pid)
    if (found.isAlive && found.start === start) return holder
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
        const file = join(folder(), `lock-${name}`)
        const holder = lock(file)
        record(holder === undefined ? 'begin' : 'clash', name, attempt, holder ?? '')
        await sleep(40 + Math.random() * 120)
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
      body: { type: 'object' },
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
