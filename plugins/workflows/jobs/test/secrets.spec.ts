import { randomBytes } from 'node:crypto'
import { codeOf, registerSecret, svcError } from '@svc/core'
import { type JobStep, Store } from '@svc/core/contracts'
import { expect } from 'chai'
import { DATA, JOBS, LOG, SPACE, streamOf } from '../src/space.ts'
import { ctx, openProcess, openStore } from './support.ts'

describe('a job that reveals a secret by mistake', () => {
  const secret = `canary-${randomBytes(12).toString('hex')}`
  let forget: () => void
  before(() => (forget = registerSecret(secret)))
  after(() => forget())

  it('leaves it in no record, log, result or error, and cannot take it as input or checkpoint', async () => {
    await using storeHost = await openStore('store-memory')
    const store = storeHost.service(Store)
    const { host, jobs, add } = await openProcess('one', store)
    const leak = (end: (...args: never[]) => JobStep) => ({
      description: 'Leaks',
      attempts: 1,
      async *run(): AsyncGenerator<JobStep> {
        yield { type: 'progress', progress: 1, message: `with ${secret}` }
        yield { type: 'log', level: 'info', message: `the value is ${secret}` }
        yield end()
      },
    })
    add(
      'returns',
      leak(() => ({ type: 'result', value: { token: secret, url: `https://x/?k=${secret}` } }))
    )
    add(
      'keeps',
      leak(() => ({ type: 'checkpoint', value: { token: secret } }))
    )
    add(
      'throws',
      leak(() => {
        throw svcError('FEED_UNKNOWN', `no feed for ${secret}`, { details: { secret }, hint: secret })
      })
    )
    const ids: string[] = []
    for (const [kind, state] of [
      ['returns', 'completed'],
      ['keeps', 'failed'],
      ['throws', 'failed'],
    ] as const) {
      const { id } = await jobs.add({ kind }, ctx)
      ids.push(id)
      const job = await jobs.settled(id, 10_000, ctx)
      expect(job.state, kind).to.equal(state)
      const shown = JSON.stringify([job, await jobs.log(id, 1_000, ctx)])
      expect(shown).to.include('the value is [secret]').and.not.include(secret)
    }
    expect(await jobs.add({ kind: 'returns', input: { token: secret } }, ctx).catch(codeOf)).to.equal('INVALID_VALUE')
    await store.open(SPACE, ctx)
    const records = await Promise.all([JOBS, DATA].map(collection => store.range(collection, { limit: 100 }, ctx)))
    const logs = await Promise.all(ids.map(id => store.read(LOG, streamOf(id, 0), { limit: 100 }, ctx)))
    expect(JSON.stringify([records, logs]))
      .to.include('the value is [secret]')
      .and.not.include(secret)
    await host.close()
  })
})
