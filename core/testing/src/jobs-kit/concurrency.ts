import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { JobTask, Json } from '@svc/core/contracts'
import { atOnce, becomes, errorCodeOf, type KitCase, untilAborted } from '../kit-case.ts'
import { as, ctx, doing, done, kind, type Opened, result } from './rig.ts'

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
          await untilAborted(signal)
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
          await untilAborted(signal)
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
    assert.equal(await errorCodeOf(jobs.cancel('0199c1f2-0000-7000-8000-000000000000', ctx)), 'JOB_UNKNOWN')
    assert.equal(started, 1)
  }),
  opened('refuses to cancel an ended job, and to retry a job that has not failed', async ({ jobs, addKind }) => {
    addKind(
      'quick',
      doing(async () => {})
    )
    const { id } = await done(jobs, { kind: 'quick' })
    assert.equal(await errorCodeOf(jobs.cancel(id, ctx)), 'JOB_STATE')
    assert.equal(await errorCodeOf(jobs.retry(id, ctx)), 'JOB_STATE')
  }),
  opened('keeps the result of a job that ends although it was cancelled', async ({ jobs, addKind }) => {
    const started = Promise.withResolvers<void>()
    addKind(
      'stubborn',
      kind(async function* (_, signal) {
        started.resolve()
        await untilAborted(signal).catch(() => {})
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
      assert.equal(await errorCodeOf(store.batch([], { fence: fences[0]! }, ctx)), 'STORE_FENCED')
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
        await untilAborted(signal)
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

export const concurrencyCases = [concurrency, cancelling, dying, sharing] as const
