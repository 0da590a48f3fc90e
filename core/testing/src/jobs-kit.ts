import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf, type Principal, svcError } from '@svc/core'
import type { JobDetail, JobKind, JobRequest, Jobs, JobStep, JobTask, Json, Space, Store } from '@svc/core/contracts'
import { abortable, atOnce, becomes, caseMaker, type KitCase, outcome } from './kit-case.ts'

/** The jobs service to test, as seen by two processes that execute jobs. Both have empty, shared stores. */
export interface JobsSubject {
  readonly jobs: Jobs
  /** The same in another process. */
  readonly other: Jobs
  /** The store of both. The kit opens a space of its own in it. */
  readonly store: Store
  /** Adds a job kind to both processes, or to one. */
  addKind(name: string, kind: JobKind, to?: 'jobs' | 'other'): void
  /** The package that `addKind` adds kinds as. */
  readonly plugin: string
  /** Simulates the death of the process of `jobs`: its leases are free when this resolves, and it takes no more jobs. */
  kill(): Promise<void>
  /** Shuts the process of `jobs` down in an orderly way. */
  drain(): Promise<void>
  close?(): unknown
}

/**
 * Cases for every implementation of `Jobs`: `for (const one of jobsKit(open)) it(one.title, one.run)`. `open` starts two
 * processes that execute jobs, with a short `jobs.drain_s`.
 */
export function jobsKit(open: () => JobsSubject | Promise<JobsSubject>): KitCase[] {
  const opened = caseMaker(open)
  return GROUPS.flatMap(group => group(opened))
}

type Opened = ReturnType<typeof caseMaker<JobsSubject>>
const { ctx } = abortable('jobs kit')
const as = (id: string, ...scopes: string[]): typeof ctx => ({ ...ctx, principal: { id, scopes } satisfies Principal })

type Run = (task: JobTask, signal: AbortSignal) => AsyncIterable<JobStep>
const kind = (run: Run, more: Partial<JobKind> = {}): JobKind => ({
  description: 'A job of the kit',
  backoff: { firstMs: 10, maxMs: 20 },
  ...more,
  run: (task, { signal }) => run(task, signal),
})
const result = (value: Json): JobStep => ({ type: 'result', value })

/** A kind without steps but its result. */
const doing = (work: (task: JobTask, signal: AbortSignal) => Promise<unknown>, more: Partial<JobKind> = {}): JobKind =>
  kind(async function* (task, signal) {
    await work(task, signal)
    yield result(null)
  }, more)

/** Adds a job and waits for its end. */
async function done(jobs: Jobs, request: JobRequest): Promise<JobDetail> {
  const { id } = await jobs.add(request, ctx)
  return jobs.settled(id, 20_000, ctx)
}

const until = (signal: AbortSignal) =>
  new Promise<void>((_, reject) => {
    const onAbort = () => reject(signal.reason as Error)
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
  })

const errorOf = async (work: Promise<unknown>) => codeOf((await outcome(work)).error)

const executing = (opened: Opened): KitCase[] => [
  opened('executes a job with its input, and keeps its result', async ({ jobs, other, addKind }) => {
    addKind(
      'echo',
      kind(async function* ({ input, attempt }) {
        yield result({ input, attempt })
      })
    )
    const added = await jobs.add({ kind: 'echo', input: { a: [1, 'ä'] } }, ctx)
    assert.equal(added.state, 'queued')
    const ended = await other.settled(added.id, 5_000, ctx)
    assert.equal(ended.state, 'completed')
    assert.deepEqual(ended.result, { input: { a: [1, 'ä'] }, attempt: 1 })
    assert.deepEqual(ended.input, { a: [1, 'ä'] })
    assert.ok(ended.startedAt! >= ended.createdAt && ended.finishedAt! >= ended.startedAt!)
  }),
  opened('executes a job without a result step, whose result is null', async ({ jobs, addKind }) => {
    addKind(
      'quiet',
      kind(async function* () {
        yield { type: 'progress', progress: 1 }
      })
    )
    const { state, result: got } = await done(jobs, { kind: 'quiet' })
    assert.deepEqual([state, got], ['completed', null])
  }),
  opened('starts no job before its time', async ({ jobs, addKind }) => {
    const started: number[] = []
    addKind(
      'later',
      doing(async () => {
        started.push(Date.now())
      })
    )
    const due = Date.now() + 300
    await done(jobs, { kind: 'later', due })
    assert.equal(started.length, 1)
    assert.ok(started[0]! >= due)
  }),
]

const reporting = (opened: Opened): KitCase[] => [
  opened('shows progress and the log of a job', async ({ jobs, other, addKind }) => {
    const go = Promise.withResolvers<void>()
    addKind(
      'steps',
      kind(async function* () {
        yield { type: 'progress', progress: 2, total: 4, message: 'half' }
        yield { type: 'log', level: 'info', message: 'first' }
        yield { type: 'log', level: 'warning', message: 'second' }
        await go.promise
      })
    )
    const { id } = await jobs.add({ kind: 'steps' }, ctx)
    await becomes('the progress', async () => (await other.get(id, ctx)).progress !== undefined)
    assert.deepEqual((await other.get(id, ctx)).progress, { progress: 2, total: 4, message: 'half' })
    go.resolve()
    await jobs.settled(id, 5_000, ctx)
    const log = await other.log(id, 10, ctx)
    assert.deepEqual(
      log.map(({ level, message, attempt }) => [level, message, attempt]),
      [
        ['info', 'first', 1],
        ['warning', 'second', 1],
      ]
    )
    assert.deepEqual(
      (await other.log(id, 1, ctx)).map(entry => entry.message),
      ['second']
    )
  }),
  opened('adds a prepared job if and only if the batch of the caller is applied', async ({ jobs, store, addKind }) => {
    const space: Space = { name: 'jobs_kit', version: 1, collections: { jobs_kit: {} } }
    await store.open(space, ctx)
    let runs = 0
    addKind(
      'once',
      doing(async () => {
        runs += 1
      })
    )
    const put = { op: 'put', collection: 'jobs_kit', key: 'a', value: 1, ifVersion: 0 } as const
    const [first, second] = [await jobs.prepare({ kind: 'once' }, ctx), await jobs.prepare({ kind: 'once' }, ctx)]
    await store.batch([put, ...first.ops], {}, ctx)
    assert.equal(await errorOf(store.batch([put, ...second.ops], {}, ctx)), 'STORE_CONFLICT')
    await jobs.wake(ctx)
    assert.equal((await jobs.settled(first.id, 5_000, ctx)).state, 'completed')
    assert.equal(await errorOf(jobs.get(second.id, ctx)), 'JOB_UNKNOWN')
    assert.equal(runs, 1)
  }),
]

const failing = (opened: Opened): KitCase[] => [
  opened('tries a failed job again, then keeps it as a dead letter that can be retried', async ({ jobs, addKind }) => {
    const attempts: number[] = []
    addKind(
      'fails',
      doing(
        async ({ attempt }) => {
          attempts.push(attempt)
          throw svcError('KIT_FAILED', 'it failed', { details: { attempt } })
        },
        { attempts: 3 }
      )
    )
    const failed = await done(jobs, { kind: 'fails' })
    assert.deepEqual(attempts, [1, 2, 3])
    assert.equal(failed.state, 'failed')
    assert.deepEqual(failed.error, { code: 'KIT_FAILED', message: 'it failed', details: { attempt: 3 } })
    assert.deepEqual(
      (await jobs.list({ state: 'failed', limit: 10 }, ctx)).jobs.map(({ id }) => id),
      [failed.id]
    )
    const again = await jobs.retry(failed.id, ctx)
    assert.deepEqual([again.state, again.attempts], ['queued', 0])
    assert.equal((await jobs.settled(failed.id, 5_000, ctx)).state, 'failed')
    assert.equal(attempts.length, 6)
  }),
  opened('does not try a job again whose error is not retryable', async ({ jobs, addKind }) => {
    addKind(
      'final',
      doing(async () => {
        throw svcError('KIT_FAILED', 'no use', { details: { retryable: false } })
      })
    )
    const failed = await done(jobs, { kind: 'final' })
    assert.deepEqual([failed.state, failed.attempts], ['failed', 1])
  }),
  opened('gives the next attempt the last checkpoint', async ({ jobs, addKind }) => {
    addKind(
      'resumes',
      kind(async function* ({ checkpoint }) {
        if (checkpoint !== undefined) return yield result({ from: checkpoint })
        yield { type: 'checkpoint', value: { page: 1 } }
        yield { type: 'checkpoint', value: { page: 2 } }
        throw new Error('in between')
      })
    )
    assert.deepEqual((await done(jobs, { kind: 'resumes' })).result, { from: { page: 2 } })
  }),
]

const hiding = (opened: Opened): KitCase[] => [
  opened('shows no message of an error without a code of svc, which can contain paths', async ({ jobs, addKind }) => {
    const errors = { plain: new Error('/folder/secret'), system: Object.assign(new Error('/folder/secret'), { code: 'ENOENT' }) }
    for (const [name, error] of Object.entries(errors)) {
      addKind(
        name,
        doing(
          async () => {
            throw error
          },
          { attempts: 1 }
        )
      )
      const failed = await done(jobs, { kind: name })
      assert.equal(failed.error?.code, 'JOB_FAILED')
      assert.ok(!JSON.stringify(failed).includes('secret'))
    }
  }),
  opened('fails a job that yields an invalid step', async ({ jobs, addKind }) => {
    const steps: unknown[] = [
      { type: 'other' },
      { type: 'progress', progress: 'x' },
      { type: 'log', level: 'loud', message: 'x' },
    ]
    for (const [at, step] of steps.entries()) {
      addKind(
        `odd${at}`,
        kind(async function* () {
          yield step as JobStep
        })
      )
      const failed = await done(jobs, { kind: `odd${at}` })
      assert.deepEqual([failed.state, failed.error?.code, failed.attempts], ['failed', 'JOB_STEP_INVALID', 1])
    }
  }),
]

const MIB = 1024 * 1024

const sizes = (opened: Opened): KitCase[] => [
  opened('refuses an input of 10 MiB, and fails a job whose result or checkpoint is too large', async ({ jobs, addKind }) => {
    addKind(
      'large',
      kind(async function* ({ input }) {
        const value = 'x'.repeat(2 * MIB)
        yield { type: input === 'result' ? 'result' : 'checkpoint', value }
      })
    )
    const { error } = await outcome(jobs.add({ kind: 'large', input: 'x'.repeat(10 * MIB) }, ctx))
    assert.equal(codeOf(error), 'JOB_TOO_LARGE')
    assert.deepEqual((error as { details: object }).details, { size: 10 * MIB + 2, limit: MIB, retryable: false })
    for (const input of ['result', 'checkpoint']) {
      const failed = await done(jobs, { kind: 'large', input })
      assert.deepEqual([failed.state, failed.error?.code], ['failed', 'JOB_TOO_LARGE'])
    }
  }),
  opened('keeps the last 1000 entries of a log at most', async ({ jobs, addKind }) => {
    addKind(
      'talks',
      kind(async function* () {
        for (let at = 0; at < 2_600; at++) yield { type: 'log', level: 'debug', message: `${at} ${'x'.repeat(3_000)}` }
      })
    )
    const { id } = await done(jobs, { kind: 'talks' })
    const log = await jobs.log(id, 1000, ctx)
    assert.ok(log.length >= 500 && log.length <= 1000, `${log.length} entries`)
    assert.deepEqual(
      log.map(({ message }) => Number(message.split(' ')[0])),
      Array.from(log, (_, at) => 2_600 - log.length + at)
    )
    assert.equal(log[0]!.message.length, 2_000)
  }),
  opened(
    'executes no more jobs of a kind at the same time than its limit, over all processes',
    async ({ jobs, other, addKind }) => {
      let [now, most] = [0, 0]
      addKind(
        'narrow',
        doing(
          async () => {
            most = Math.max(most, ++now)
            await sleep(15)
            now -= 1
          },
          { concurrency: 2 }
        )
      )
      const added = await Promise.all(Array.from({ length: 16 }, (_, at) => (at % 2 ? jobs : other).add({ kind: 'narrow' }, ctx)))
      for (const { id } of added) assert.equal((await jobs.settled(id, 20_000, ctx)).state, 'completed')
      assert.equal(most, 2)
    }
  ),
]

const concurrency = (opened: Opened): KitCase[] => [
  opened('executes the jobs of a group one at a time, by due time, and others beside them', async ({ jobs, other, addKind }) => {
    const order: Json[] = []
    const release = Promise.withResolvers<void>()
    addKind(
      'grouped',
      doing(async ({ input }) => {
        order.push(input)
        if (input === 1) await release.promise
        order.push(input)
      })
    )
    const now = Date.now()
    const group = [1, 2, 3].map(input => ({ kind: 'grouped', input, group: 'g', due: now - 10 + input }))
    for (const [at, request] of group.entries()) await (at % 2 ? jobs : other).add(request, ctx)
    await becomes('the first', () => order.length > 0)
    await done(jobs, { kind: 'grouped', input: 'alone' })
    assert.deepEqual(order, [1, 'alone', 'alone'])
    release.resolve()
    await becomes('the end of all', () => order.length === 8)
    assert.deepEqual(order, [1, 'alone', 'alone', 1, 2, 2, 3, 3])
  }),
  opened('ends an attempt at its time limit', async ({ jobs, addKind }) => {
    addKind(
      'slow',
      doing(
        async (_, signal) => {
          await until(signal)
        },
        { timeoutMs: 50, attempts: 2 }
      )
    )
    const failed = await done(jobs, { kind: 'slow' })
    assert.deepEqual([failed.state, failed.error?.code, failed.attempts], ['failed', 'JOB_TIMEOUT', 2])
  }),
]

const cancelling = (opened: Opened): KitCase[] => [
  opened('cancels a queued job, and a running one from another process', async ({ jobs, other, addKind }) => {
    let started = 0
    addKind(
      'waits',
      doing(
        async (_, signal) => {
          started += 1
          await until(signal)
        },
        { concurrency: 1 }
      )
    )
    const running = await jobs.add({ kind: 'waits' }, ctx)
    await becomes('the start', () => started === 1)
    const queued = await jobs.add({ kind: 'waits' }, ctx)
    assert.equal((await other.cancel(queued.id, ctx)).state, 'cancelled')
    const work = [jobs.cancel(running.id, ctx), other.cancel(running.id, ctx)]
    for (const job of await Promise.all(work)) assert.equal(job.state, 'cancelled')
    assert.equal(await errorOf(jobs.cancel('0199c1f2-0000-7000-8000-000000000000', ctx)), 'JOB_UNKNOWN')
    assert.equal(started, 1)
  }),
  opened('refuses to cancel an ended job, and to retry a job that has not failed', async ({ jobs, addKind }) => {
    addKind(
      'quick',
      doing(async () => {})
    )
    const { id } = await done(jobs, { kind: 'quick' })
    assert.equal(await errorOf(jobs.cancel(id, ctx)), 'JOB_STATE')
    assert.equal(await errorOf(jobs.retry(id, ctx)), 'JOB_STATE')
  }),
  opened('keeps the result of a job that ends although it was cancelled', async ({ jobs, addKind }) => {
    const started = Promise.withResolvers<void>()
    addKind(
      'stubborn',
      kind(async function* (_, signal) {
        started.resolve()
        await until(signal).catch(() => {})
        yield result('done')
      })
    )
    const { id } = await jobs.add({ kind: 'stubborn' }, ctx)
    await atOnce(started.promise, 'the start')
    assert.equal((await jobs.cancel(id, ctx)).state, 'completed')
    assert.equal((await jobs.get(id, ctx)).result, 'done')
  }),
]

const dying = (opened: Opened): KitCase[] => [
  opened(
    'gives the job of a dead process to another with a higher fence, and the dead one cannot write its result',
    async ({ jobs, other, store, addKind, kill }) => {
      const fences: JobTask['fence'][] = []
      const late = Promise.withResolvers<void>()
      const survives = kind(async function* ({ attempt, fence }) {
        fences.push(fence)
        if (attempt === 1) await late.promise
        yield result(attempt)
      })
      addKind('survives', survives, 'jobs')
      const { id } = await jobs.add({ kind: 'survives' }, ctx)
      await becomes('the start', () => fences.length === 1)
      addKind('survives', survives, 'other')
      await kill()
      const ended = await other.settled(id, 40_000, ctx)
      late.resolve()
      assert.deepEqual([ended.state, ended.result, ended.attempts], ['completed', 2, 2])
      assert.equal(fences[1]!.lease, fences[0]!.lease)
      assert.ok(fences[1]!.fence > fences[0]!.fence)
      assert.equal(await errorOf(store.batch([], { fence: fences[0]! }, ctx)), 'STORE_FENCED')
      await sleep(700)
      assert.equal((await other.get(id, ctx)).result, 2)
    }
  ),
  opened('puts a running job back at shutdown, without counting the attempt', async ({ jobs, other, addKind, drain }) => {
    const attempts: number[] = []
    const moves = kind(
      async function* ({ attempt, checkpoint }, signal) {
        attempts.push(attempt)
        if (checkpoint !== undefined) return yield result(checkpoint)
        yield { type: 'checkpoint', value: 'here' }
        await until(signal)
      },
      { attempts: 1 }
    )
    addKind('moves', moves, 'jobs')
    const { id } = await jobs.add({ kind: 'moves' }, ctx)
    await becomes('the start', () => attempts.length === 1)
    addKind('moves', moves, 'other')
    await drain()
    const ended = await other.settled(id, 10_000, ctx)
    assert.deepEqual([ended.state, ended.result, ended.attempts], ['completed', 'here', 1])
    assert.deepEqual(attempts, [1, 1])
  }),
]

const sharing = (opened: Opened): KitCase[] => [
  opened('executes each of many jobs once, and no job twice at the same time', async ({ jobs, other, addKind }) => {
    const [runs, active] = [new Map<Json, number>(), new Set<Json>()]
    let clashes = 0
    addKind(
      'many',
      doing(async ({ input }) => {
        if (active.has(input)) clashes += 1
        active.add(input)
        runs.set(input, (runs.get(input) ?? 0) + 1)
        await sleep(2)
        active.delete(input)
      })
    )
    const added = await Promise.all(
      Array.from({ length: 150 }, (_, input) => (input % 2 ? jobs : other).add({ kind: 'many', input }, ctx))
    )
    for (const { id } of added) assert.equal((await jobs.settled(id, 30_000, ctx)).state, 'completed')
    assert.deepEqual([runs.size, [...runs.values()].every(count => count === 1), clashes], [150, true, 0])
  }),
  opened('adds one job for requests with the same key, of one principal and kind', async ({ jobs, other, addKind }) => {
    let runs = 0
    const count = doing(
      async () => {
        runs += 1
      },
      { scope: 'chat' }
    )
    addKind('keyed', count)
    addKind('keyed2', count)
    const request = { kind: 'keyed', key: 'order/1' }
    const added = await Promise.all([jobs, other, jobs, other].map(item => item.add(request, ctx)))
    assert.equal(new Set(added.map(({ id }) => id)).size, 1)
    const others = [await jobs.add(request, as('anna', 'chat')), await jobs.add({ ...request, kind: 'keyed2' }, ctx)]
    for (const { id } of [...added, ...others]) await jobs.settled(id, 5_000, ctx)
    assert.equal(runs, 3)
  }),
]

const listing = (opened: Opened): KitCase[] => [
  opened('lists jobs by kind and state, newest first, page by page', async ({ jobs, other, addKind }) => {
    addKind(
      'a',
      doing(async () => {})
    )
    addKind(
      'b',
      doing(async () => {})
    )
    const due = Date.now() + 3_600_000
    const ids: string[] = []
    for (const name of ['a', 'b', 'a', 'b', 'a']) {
      await sleep(2)
      ids.push((await jobs.add({ kind: name, due }, ctx)).id)
    }
    const listed = async (query: object) => (await other.list({ limit: 10, ...query }, ctx)).jobs.map(({ id }) => id)
    assert.deepEqual(await listed({}), ids.toReversed())
    assert.deepEqual(await listed({ kind: 'a' }), [ids[4], ids[2], ids[0]])
    assert.deepEqual(await listed({ kind: 'b', state: 'queued' }), [ids[3], ids[1]])
    assert.deepEqual(await listed({ state: 'failed' }), [])
    const first = await jobs.list({ limit: 2 }, ctx)
    const rest = await jobs.list({ limit: 10, cursor: first.next! }, ctx)
    assert.deepEqual(
      [...first.jobs, ...rest.jobs].map(({ id }) => id),
      ids.toReversed()
    )
    assert.equal(await errorOf(jobs.list({ limit: 10, cursor: 'nonsense' }, ctx)), 'INVALID_VALUE')
    assert.equal(await errorOf(jobs.list({ limit: 0 }, ctx)), 'INVALID_VALUE')
    assert.equal(await errorOf(jobs.list({ limit: 1, state: 'odd' as never }, ctx)), 'INVALID_VALUE')
  }),
]

const permissions = (opened: Opened): KitCase[] => [
  opened('lets only its plugin, admins and callers with its scope add jobs of a kind', async ({ jobs, addKind, plugin }) => {
    addKind(
      'guarded',
      doing(async () => {})
    )
    addKind(
      'open',
      doing(async () => {}, { scope: 'chat' })
    )
    const due = Date.now() + 3_600_000
    const add = (name: string, caller: typeof ctx) => errorOf(jobs.add({ kind: name, due }, caller))
    assert.equal(await add('guarded', as('anna', 'chat')), 'FORBIDDEN')
    assert.equal(await add('guarded', as('plugin:@other/plugin')), 'FORBIDDEN')
    assert.equal(await add('guarded', as(`plugin:${plugin}`)), undefined)
    assert.equal(await add('guarded', as('root', 'admin')), undefined)
    assert.equal(await add('open', as('anna', 'chat')), undefined)
    assert.equal(await add('open', as('anna', 'read')), 'FORBIDDEN')
  }),
  opened('executes a job as the principal that added it', async ({ jobs, addKind }) => {
    const seen: Principal[] = []
    addKind('whoami', {
      description: 'A job of the kit',
      scope: 'chat',
      async *run(_, { principal }) {
        seen.push(principal)
        yield result(null)
      },
    })
    const { id } = await jobs.add({ kind: 'whoami' }, as('anna', 'chat', 'read'))
    await jobs.settled(id, 5_000, ctx)
    assert.deepEqual(seen, [{ id: 'anna', scopes: ['chat', 'read'] }])
  }),
  opened('hides the jobs of a principal from others', async ({ jobs, addKind }) => {
    addKind(
      'own',
      doing(async () => {}, { scope: 'chat' })
    )
    const [anna, ben, admin] = [as('anna', 'chat'), as('ben', 'chat'), as('root', 'admin')]
    const { id } = await jobs.add({ kind: 'own', due: Date.now() + 3_600_000 }, anna)
    for (const method of ['get', 'cancel', 'retry'] as const) assert.equal(await errorOf(jobs[method](id, ben)), 'JOB_UNKNOWN')
    assert.equal(await errorOf(jobs.log(id, 1, ben)), 'JOB_UNKNOWN')
    assert.deepEqual((await jobs.list({ limit: 10 }, ben)).jobs, [])
    for (const caller of [anna, admin]) assert.equal((await jobs.list({ limit: 10 }, caller)).jobs[0]?.id, id)
  }),
]

const kinds = (opened: Opened): KitCase[] => [
  opened('adds jobs of an internal kind only for a request with its value', async ({ jobs, addKind, plugin }) => {
    addKind(
      'inner',
      doing(async () => {}, { internal: 'only-its-plugin', scope: 'chat' })
    )
    const due = Date.now() + 3_600_000
    const add = (internal: string | undefined, caller: typeof ctx) =>
      errorOf(jobs.add({ kind: 'inner', due, ...(internal === undefined ? {} : { internal }) }, caller))
    for (const caller of [as('root', 'admin'), as('system', '*'), as('anna', 'chat'), as(`plugin:${plugin}`)])
      for (const value of [undefined, '', 'a guess']) assert.equal(await add(value, caller), 'FORBIDDEN')
    assert.equal(await add('only-its-plugin', as('anna', 'chat')), undefined)
  }),
  opened('lists the kinds, and which of them the caller can start', async ({ jobs, addKind, plugin }) => {
    const input = { type: 'object', properties: { n: { type: 'integer' } } }
    addKind(
      'b.admins',
      doing(async () => {}, { concurrency: 2, input })
    )
    addKind(
      'a.open',
      doing(async () => {}, { scope: 'chat', timeoutMs: 1_000, attempts: 7 })
    )
    addKind(
      'c.inner',
      doing(async () => {}, { internal: 'only-its-plugin', scope: 'chat' })
    )
    const kinds = await jobs.kinds(as('anna', 'chat'))
    const shown = kinds.filter(({ name }) => /^[abc]\./.test(name))
    assert.deepEqual(
      shown.map(({ name, canStart, isInternal }) => [name, canStart, isInternal]),
      [
        ['a.open', true, false],
        ['b.admins', false, false],
        ['c.inner', false, true],
      ]
    )
    const [open, admins] = shown
    assert.deepEqual([open!.plugin, open!.scope, open!.timeoutMs, open!.attempts], [plugin, 'chat', 1_000, 7])
    assert.deepEqual([admins!.concurrency, admins!.input, open!.concurrency, open!.input], [2, input, undefined, undefined])
    assert.ok(!JSON.stringify(kinds).includes('only-its-plugin'))
    const forAdmin = await jobs.kinds(as('root', 'admin'))
    assert.deepEqual(
      forAdmin.filter(({ canStart }) => !canStart).map(({ name }) => name),
      ['c.inner']
    )
  }),
]

const checking = (opened: Opened): KitCase[] => [
  opened('checks the kind and the input of a job before it adds it', async ({ jobs, addKind }) => {
    const input = { type: 'object', required: ['n'], properties: { n: { type: 'integer' }, d: { type: 'string', default: 'x' } } }
    addKind(
      'typed',
      kind(
        async function* (task) {
          yield result(task.input)
        },
        { input }
      )
    )
    const failed = async (request: JobRequest) => (await outcome(jobs.add(request, ctx))).error as Error & { details: object }
    const unknown = (await failed({ kind: 'typde' })) as Error & { details: object; hint?: string }
    assert.equal(codeOf(unknown), 'JOB_KIND_UNKNOWN')
    assert.match(String(unknown.hint), /typed/)
    assert.ok((unknown.details as { known?: string[] }).known?.includes('typed'))
    const problem = await failed({ kind: 'typed', input: { n: 'one' } })
    assert.equal(codeOf(problem), 'INVALID_VALUE')
    assert.equal((problem.details as { field?: string }).field, 'input.n')
    for (const odd of [{ due: -1 }, { group: '' }, { key: 'x'.repeat(201) }])
      assert.equal(codeOf(await failed({ kind: 'typed', input: { n: 1 }, ...odd })), 'INVALID_VALUE')
    assert.deepEqual((await done(jobs, { kind: 'typed', input: { n: 1 } })).result, { n: 1, d: 'x' })
  }),
]

const GROUPS = [
  executing,
  reporting,
  failing,
  hiding,
  sizes,
  concurrency,
  cancelling,
  dying,
  sharing,
  listing,
  permissions,
  kinds,
  checking,
] as const
