import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf, svcError } from '@svc/core'
import type { JobDetail, JobKind, JobStep, Space } from '@svc/core/contracts'
import { becomes, errorCodeOf, type KitCase, outcome } from '../kit-case.ts'
import { ctx, doing, done, type JobsSubject, kind, type Opened, result } from './rig.ts'

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
    assert.equal(await errorCodeOf(store.batch([put, ...second.ops], {}, ctx)), 'STORE_CONFLICT')
    await jobs.wake(ctx)
    assert.equal((await jobs.settled(first.id, 5_000, ctx)).state, 'completed')
    assert.equal(await errorCodeOf(jobs.get(second.id, ctx)), 'JOB_UNKNOWN')
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

/** When a failed job is tried again, after each of its attempts, and the times between which it was put back. */
async function delaysOf({ jobs, other, addKind }: JobsSubject, name: string, backoff: JobKind['backoff'], delays: number[]) {
  const failedAt: number[] = []
  let isSeen = Promise.withResolvers<void>()
  const failing = doing(
    async ({ attempt }) => {
      if (attempt > 1) await isSeen.promise
      isSeen = Promise.withResolvers()
      failedAt.push(Date.now())
      throw new Error('it failed')
    },
    { attempts: delays.length + 1, backoff: backoff! }
  )
  addKind(name, failing)
  const { id } = await jobs.add({ kind: name }, ctx)
  for (const [at, delay] of delays.entries()) {
    const isBack = ({ state, attempts, error }: JobDetail) =>
      error !== undefined && (state === 'queued' ? attempts > at : attempts > at + 1)
    await becomes('the end of the attempt', async () => isBack(await other.get(id, ctx)))
    const putBackAt = (await other.get(id, ctx)).due - delay
    const now = Date.now()
    const text = `after attempt ${at + 1} the job waits ${putBackAt + delay - failedAt[at]!} ms, not ${delay} ms`
    assert.ok(putBackAt >= failedAt[at]! && putBackAt <= now, text)
    isSeen.resolve()
  }
  assert.equal((await jobs.settled(id, 20_000, ctx)).attempts, delays.length + 1)
}

const waiting = (opened: Opened): KitCase[] => [
  opened('waits twice as long before each further attempt, up to the maximum of the kind', subject =>
    delaysOf(subject, 'doubled', { firstMs: 100, maxMs: 350 }, [100, 200, 350, 350])
  ),
  opened('waits before each attempt as the kind lists it, and as the last one says before all others', subject =>
    delaysOf(subject, 'listed', { delaysMs: [200, 50, 100] }, [200, 50, 100, 100])
  ),
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

export const executionCases = [executing, reporting, failing, waiting, hiding, sizes] as const
