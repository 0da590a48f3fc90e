import {
  type CallContext,
  codeOf,
  definePlugin,
  type HookCallers,
  type Log,
  type PluginRef,
  type SlotView,
  systemContext,
} from '@svc/core'
import { NodeBus, type NodeBusHooks, type PeerAnswer, PeerAnswers } from '@svc/core/contracts'
import type { OpenBus } from '@svc/storage-kit/bus'
import { type BusMemberUnderTest, newNodeBusSeen, nodeBusProbe, testHost } from '@svc/testing'

/** In tests, a member that does not report is lost after this time. */
export const LOST_MS = 3_000

/** What a bus gets of a worker. */
interface BusOfWorker {
  readonly self: string
  readonly node: string
  readonly answers: SlotView<PeerAnswer>
  readonly hooks: HookCallers<NodeBusHooks>
  readonly log: Log
  readonly lasting: CallContext
}

interface MemberOptions {
  /** The plugins that the bus uses, with their configuration. */
  readonly below: PluginRef
  readonly config: object
  readonly clusterId?: string
  /** Opens the bus over the services of these plugins. */
  readonly open: (host: Awaited<ReturnType<typeof testHost>>, own: BusOfWorker) => Promise<OpenBus>
}

export interface HostedMember extends Omit<BusMemberUnderTest, 'store'>, AsyncDisposable {
  /** The host of the plugins that the bus uses. */
  readonly data: Awaited<ReturnType<typeof testHost>>
}

/** A worker with a bus, in hosts of its own. `vanish` aborts all that it does, without a last word. */
export async function openBusMember(
  at: number | string,
  { below, config, clusterId, open }: MemberOptions
): Promise<HostedMember> {
  const [worker, node] = [`node${at}.boot.1`, `node${at}`]
  const seen = newNodeBusSeen()
  const probe = nodeBusProbe(seen)
  const dying = new AbortController()
  const lasting = systemContext(dying.signal, 'test')
  const data = await testHost([below], { config: config as never, strict: false, ...(clusterId ? { clusterId } : {}) })
  const bus = definePlugin({
    requires: { answers: PeerAnswers },
    provides: NodeBus,
    setup: ({ hooks, log }, { answers }) => open(data, { self: worker, node, answers, hooks, log, lasting }),
  })
  const taps = definePlugin({
    requires: { bus: NodeBus },
    setup(scope) {
      scope.tap(NodeBus.hooks.message, probe.message)
      scope.tap(NodeBus.hooks.joined, probe.joined)
      scope.tap(NodeBus.hooks.gone, probe.gone)
      scope.tap(NodeBus.hooks.missed, probe.missed)
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
    data,
    vanish,
    async [Symbol.asyncDispose]() {
      await vanish()
      await host.close()
      await data.close()
    },
  }
}

/** Waits until a condition holds; fails after 40 s. */
export async function becomes(what: string, holds: () => boolean | Promise<boolean>, limitMs = 40_000): Promise<void> {
  for (const end = Date.now() + limitMs; !(await holds()); await new Promise(resolve => setTimeout(resolve, 10)))
    if (Date.now() > end) throw new Error(`${what} did not happen within ${limitMs / 1_000} s`)
}

export async function readAll(answer: AsyncIterable<unknown>): Promise<unknown[]> {
  const all: unknown[] = []
  for await (const part of answer) all.push(part)
  return all
}

/** What is left of an answer that has begun: resolves after its first part. `rest` becomes all further parts, or the code of its error. */
export async function restOf(answer: AsyncIterable<unknown>) {
  const parts = answer[Symbol.asyncIterator]()
  await parts.next()
  const further: AsyncIterable<unknown> = { [Symbol.asyncIterator]: () => parts }
  return { rest: readAll(further).catch(codeOf) }
}
