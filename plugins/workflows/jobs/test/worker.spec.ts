import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf } from '@svc/core'
import { type JobKind, type JobStep, MetricSources, Store } from '@svc/core/contracts'
import { expect } from 'chai'
import { JobMaintenance } from '../src/service.ts'
import { DATA, JOBS, KEYS, LOG } from '../src/space.ts'
import { ctx, openProcess, openStore } from './support.ts'

/** A process over a store in memory. */
async function open(config = {}) {
  const storeHost = await openStore('store-memory')
  const store = storeHost.service(Store)
  const own = await openProcess('one', store, { config })
  return {
    ...own,
    store,
    async [Symbol.asyncDispose]() {
      await own.host.close()
      await storeHost.close()
    },
  }
}

const kind = (work: () => Promise<unknown>, more: Partial<JobKind> = {}): JobKind => ({
  description: 'A job of a test',
  ...more,
  async *run(): AsyncGenerator<JobStep> {
    await work()
    yield { type: 'log', level: 'info', message: 'done' }
    yield { type: 'result', value: 1 }
  },
})

describe('a worker of jobs', () => {
  it('gives up a job that ignores its abort signal, and starts it again only when the work has ended', async () => {
    await using own = await open({ grace_s: 1 })
    const [release, starts] = [Promise.withResolvers<void>(), [] as number[]]
    const work = async () => {
      starts.push(Date.now())
      if (starts.length === 1) await release.promise
    }
    own.add('deaf', kind(work, { timeoutMs: 50 }))
    const { id } = await own.jobs.add({ kind: 'deaf' }, ctx)
    const failed = await own.jobs.settled(id, 10_000, ctx)
    expect([failed.state, failed.error?.code, failed.attempts]).to.deep.equal(['failed', 'JOB_STUCK', 1])
    await own.jobs.retry(id, ctx)
    await sleep(1_000)
    expect(starts).to.have.lengthOf(1)
    release.resolve()
    const ended = await own.jobs.settled(id, 10_000, ctx)
    expect([ended.state, ended.result, starts.length]).to.deep.equal(['completed', 1, 2])
  })

  it('deletes expired jobs with their data, key and log, and no others', async () => {
    await using own = await open({ keep_completed_days: 0 })
    own.add(
      'quick',
      kind(async () => {})
    )
    own.add(
      'fails',
      kind(() => Promise.reject(new Error('it fails')), { attempts: 1 })
    )
    const { id } = await own.jobs.add({ kind: 'quick', key: 'k' }, ctx)
    const failed = await own.jobs.add({ kind: 'fails' }, ctx)
    for (const job of [id, failed.id]) await own.jobs.settled(job, 5_000, ctx)
    await new JobMaintenance({ store: own.store, holder: 'test/', log: own.host.log, lasting: ctx }).run()
    expect(codeOf(await own.jobs.get(id, ctx).catch((error: unknown) => error))).to.equal('JOB_UNKNOWN')
    const left = async (collection: string) =>
      (await own.store.range(collection, { limit: 10 }, ctx)).records.map(({ key }) => key)
    expect(await left(JOBS)).to.deep.equal([failed.id])
    expect(await left(DATA)).to.deep.equal([`${failed.id}/input`])
    expect(await left(KEYS)).to.deep.equal([])
    expect(await own.store.read(LOG, `${id}/0`, { limit: 1 }, ctx)).to.deep.equal([])
  })

  it('executes nothing in a process that is no server', async () => {
    await using own = await open({ execute: false })
    own.add(
      'quick',
      kind(async () => {})
    )
    const { id } = await own.jobs.add({ kind: 'quick' }, ctx)
    expect((await own.jobs.settled(id, 1_300, ctx)).state).to.equal('queued')
  })

  it('prefers the settings of the operator to those of the plugin', async () => {
    await using own = await open({ grace_s: 1, kinds: { slow: { timeout_s: 1, attempts: 1 } } })
    const release = Promise.withResolvers<void>()
    own.add(
      'slow',
      kind(() => release.promise, { timeoutMs: 60_000, attempts: 7 })
    )
    const { id } = await own.jobs.add({ kind: 'slow' }, ctx)
    const failed = await own.jobs.settled(id, 10_000, ctx)
    release.resolve()
    expect([failed.maxAttempts, failed.error?.code]).to.deep.equal([1, 'JOB_STUCK'])
  })

  it('does not let a kind with many jobs hold up another kind', async () => {
    await using own = await open({ concurrency: 2 })
    const order: string[] = []
    own.add(
      'a.many',
      kind(async () => {
        order.push('a')
        await sleep(20)
      })
    )
    own.add(
      'b.few',
      kind(async () => order.push('b'))
    )
    await Promise.all(Array.from({ length: 40 }, () => own.jobs.add({ kind: 'a.many' }, ctx)))
    const { id } = await own.jobs.add({ kind: 'b.few' }, ctx)
    await own.jobs.settled(id, 10_000, ctx)
    expect(order.length).to.be.lessThan(20)
  })

  it('bounds the queued jobs of a principal', async () => {
    await using own = await open({ max_queued: 150, execute: false })
    own.add(
      'quick',
      kind(async () => {}, { scope: 'chat' })
    )
    const anna = { ...ctx, principal: { id: 'anna', scopes: ['chat'] } }
    const add = (caller: typeof ctx) => own.jobs.add({ kind: 'quick' }, caller).catch((error: unknown) => codeOf(error))
    const added: unknown[] = []
    for (let count = 0; count < 300; count++) added.push(await add(anna))
    const full = added.filter(job => job === 'JOB_QUEUE_FULL').length
    expect(full).to.be.within(100, 150)
    expect(added.at(-1)).to.equal('JOB_QUEUE_FULL')
    expect(await add(ctx)).to.have.property('state', 'queued')
    for (let count = 0; count < 60; count++) await own.jobs.cancel((added[count] as { id: string }).id, ctx)
    expect(await add(anna)).to.have.property('state', 'queued')
  })

  it('counts attempts by kind and outcome', async () => {
    await using own = await open()
    own.add(
      'quick',
      kind(async () => {})
    )
    const { id } = await own.jobs.add({ kind: 'quick' }, ctx)
    await own.jobs.settled(id, 5_000, ctx)
    const families = await own.host.slot(MetricSources).get('jobs')!.read(ctx)
    const counts = families.find(({ name }) => name === 'svc_job_attempts_total')?.values
    expect(counts).to.deep.equal([{ labels: { kind: 'quick', outcome: 'completed' }, value: 1 }])
  })
})
