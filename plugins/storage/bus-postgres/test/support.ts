import { definePlugin, systemContext } from '@svc/core'
import { NodeBus, PeerAnswers, Postgres, Store } from '@svc/core/contracts'
import { type BusMemberUnderTest, newNodeBusSeen, nodeBusProbe, testHost } from '@svc/testing'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'
import { openBus } from '../src/bus.ts'

export const LOST_MS = 1_500

export const ctx = systemContext(new AbortController().signal, 'test')

let schemas = 0
/** A schema that no other test uses. */
export const newSchema = (): string => `bus_${process.pid}_${++schemas}`

interface MemberOptions {
  /** The section `store`. */
  readonly store: object
  readonly cluster?: string
  readonly lostMs?: number
}

export interface TestMember extends BusMemberUnderTest, AsyncDisposable {
  readonly store: Store
  readonly postgres: Postgres
}

/** A host with a store in PostgreSQL and the bus. `vanish` aborts all that it does, without a last word. */
export async function openMember(
  at: number | string,
  { store: section, cluster = 'test', lostMs = LOST_MS }: MemberOptions
): Promise<TestMember> {
  const [worker, node] = [`node${at}.boot.1`, `node${at}`]
  const seen = newNodeBusSeen()
  const probe = nodeBusProbe(seen)
  const dying = new AbortController()
  const lasting = systemContext(dying.signal, 'test')
  const data = await testHost([{ name: '@svc/plugin-store-postgres', use: pluginFolder('store-postgres') }], {
    config: { store: section },
    strict: false,
  })
  const [store, postgres] = [data.service(Store), data.service(Postgres)]
  const bus = definePlugin({
    requires: { answers: PeerAnswers },
    provides: NodeBus,
    setup: ({ hooks, log }, { answers }) =>
      openBus({ plugin: 'bus', postgres, store, self: worker, node, cluster, answers, hooks, lostMs, log, lasting }),
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
    store,
    postgres,
    vanish,
    async [Symbol.asyncDispose]() {
      await vanish()
      await host.close()
      await data.close()
    },
  }
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
