import { definePlugin, systemContext } from '@svc/core'
import { NodeBus, PeerAnswers, Redis, Store } from '@svc/core/contracts'
import { type BusMemberUnderTest, newNodeBusSeen, nodeBusProbe, testHost } from '@svc/testing'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'
import { openBus } from '../src/bus.ts'

export const LOST_MS = 1_500

export const ctx = systemContext(new AbortController().signal, 'test')

let clusters = 0
/** A cluster that no other test uses. */
export const newCluster = (): string => `bus${process.pid}-${++clusters}`

interface MemberOptions {
  readonly url: string
  readonly cluster: string
  /** Leases of all members. */
  readonly store: Store
  readonly lostMs?: number
}

export interface TestMember extends BusMemberUnderTest, AsyncDisposable {
  readonly redis: Redis
}

/** A host with a connection to Redis and the bus. `vanish` aborts all that it does, without a last word. */
export async function openMember(
  at: number | string,
  { url, cluster, store, lostMs = LOST_MS }: MemberOptions
): Promise<TestMember> {
  const [worker, node] = [`node${at}.boot.1`, `node${at}`]
  const seen = newNodeBusSeen()
  const probe = nodeBusProbe(seen)
  const dying = new AbortController()
  const lasting = systemContext(dying.signal, 'test')
  const data = await testHost([{ name: '@svc/plugin-redis', use: pluginFolder('redis') }], {
    clusterId: cluster,
    config: { redis: { url } },
    strict: false,
  })
  const redis = data.service(Redis)
  const bus = definePlugin({
    requires: { answers: PeerAnswers },
    provides: NodeBus,
    setup: ({ hooks, log }, { answers }) =>
      openBus({ plugin: 'bus', redis, store, self: worker, node, answers, hooks, lostMs, log, lasting }),
  })
  const taps = definePlugin({
    requires: { bus: NodeBus },
    setup(scope) {
      scope.tap(NodeBus.hooks.message, probe.message)
      scope.tap(NodeBus.hooks.joined, probe.joined)
      scope.tap(NodeBus.hooks.gone, probe.gone)
      for (const [name, answer] of Object.entries(probe.answers)) scope.add(PeerAnswers, name, { answer })
    },
  })
  const give = [
    { name: 'test:bus', use: bus },
    { name: 'test:taps', use: taps },
  ]
  const host = await testHost([], { strict: false, give })
  const vanish = async () => dying.abort(new Error('lost'))
  return {
    bus: host.service(NodeBus),
    worker,
    node,
    seen,
    redis,
    vanish,
    async [Symbol.asyncDispose]() {
      await vanish()
      await host.close()
      await data.close()
    },
  }
}

/** A store in memory for the leases of a test. */
export async function openStore(): Promise<{ readonly store: Store } & AsyncDisposable> {
  const host = await testHost([{ name: '@svc/plugin-store-memory', use: pluginFolder('store-memory') }], { strict: false })
  return { store: host.service(Store), [Symbol.asyncDispose]: () => host.close() }
}

/** Waits until a condition holds; fails after 40 s. */
export async function becomes(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 40_000; !(await holds()); await new Promise(resolve => setTimeout(resolve, 10)))
    if (Date.now() > end) throw new Error(`${what} did not happen within 40 s`)
}

export async function readAll(answer: AsyncIterable<unknown>): Promise<unknown[]> {
  const all: unknown[] = []
  for await (const part of answer) all.push(part)
  return all
}
