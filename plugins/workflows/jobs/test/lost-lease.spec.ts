import { setTimeout as sleep } from 'node:timers/promises'
import { definePlugin, Events, svcError, systemContext, type StartSpan } from '@svc/core'
import { noSpan } from '@svc/core/internal'
import { JobKinds, Store } from '@svc/core/contracts'
import { openSpace } from '@svc/storage-kit'
import { testHost } from '@svc/testing'
import { expect } from 'chai'
import { createJobs } from '../src/service.ts'
import { SPACE } from '../src/space.ts'
import { ctx, openStore } from './support.ts'

const LEASE_MS = 1_500
const CONFIG = {
  attempts: 5,
  concurrency: 8,
  drain_s: 0,
  grace_s: 1,
  kinds: {},
  max_queued: 1_000,
  timeout_s: 60,
  keep_completed_days: 1,
  keep_failed_days: 1,
}

const WITHOUT_SPANS: StartSpan = (_name, given) => noSpan(given)

/** The store of a process whose renewals fail in some way. */
const without = (store: Store, renew: Store['renew']): Store =>
  ({
    ...Object.fromEntries(Object.keys(Store.methods).map(name => [name, Reflect.get(store, name).bind(store)])),
    renew,
  }) as Store

const WAYS: Readonly<Record<string, Store['renew']>> = {
  'fails at once': () => Promise.reject(svcError('STORE_UNAVAILABLE', 'the line is cut', { hint: 'Wait' })),
  'does not answer': () => new Promise(() => {}),
}

describe('a worker of jobs whose store', () => {
  for (const [way, renew] of Object.entries(WAYS))
    it(`${way} stops its jobs before another worker starts them`, async () => {
      await using storeHost = await openStore('store-memory')
      const store = storeHost.service(Store)
      await openSpace(store, SPACE, {}, ctx)
      let [active, most] = [0, 0]
      const starts: string[] = []
      const worker = (name: string, own: Store) =>
        definePlugin({
          requires: { events: Events, view: JobKinds },
          setup({ log, signal }, { events, view }) {
            const lasting = systemContext(signal)
            const parts = {
              store: own,
              view,
              config: CONFIG,
              holder: `${name}/jobs/`,
              peers: undefined,
              events,
              leaseMs: LEASE_MS,
              log,
              span: WITHOUT_SPANS,
            }
            const { worker: started, jobs } = createJobs({ ...parts, announce: () => {}, lasting })
            started.begin()
            added.push(jobs)
          },
        })
      const added: ReturnType<typeof createJobs>['jobs'][] = []
      const kinds = definePlugin({
        setup(scope) {
          scope.add(JobKinds, 'long', {
            description: 'Works until it is aborted',
            async *run({ attempt }, { signal }) {
              starts.push(`attempt ${attempt}`)
              most = Math.max(most, ++active)
              if (attempt === 1) await sleep(60_000, undefined, { signal }).catch(() => {})
              active -= 1
              yield { type: 'result', value: attempt }
            },
          })
        },
      })
      const give = [
        { name: 'test:kinds', use: kinds },
        { name: 'test:one', use: worker('one', without(store, renew)) },
      ]
      await using _one = await testHost([], { strict: false, give })
      const { id } = await added[0]!.add({ kind: 'long' }, ctx)
      while (active === 0) await sleep(5)
      await using _two = await testHost([], {
        strict: false,
        give: [
          { name: 'test:kinds', use: kinds },
          { name: 'test:two', use: worker('two', store) },
        ],
      })
      const job = await added[1]!.settled(id, 15_000, ctx)
      expect([job.state, starts, most]).to.deep.equal(['completed', ['attempt 1', 'attempt 2'], 1])
    })
})
