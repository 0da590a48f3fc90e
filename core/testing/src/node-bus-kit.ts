import assert from 'node:assert/strict'
import { codeOf } from '@svc/core'
import type { BusMember, BusMessage, Json, NodeBus, Store } from '@svc/core/contracts'
import { abortable, atOnce, becomes, caseMaker, type KitCase, outcome } from './kit-case.ts'

/** One member to test. Its hooks and the items `echo`, `endless` and `broken` of `PeerAnswers` are those of `nodeBusProbe`. */
export interface BusMemberUnderTest {
  readonly bus: NodeBus
  readonly worker: string
  readonly node: string
  readonly seen: NodeBusSeen
  /** Its handle on the store of all three, in which the bus frees the leases of a lost member. */
  readonly store: Store
  /** Simulates the loss of its machine: it does nothing any more, and no other process reports it. */
  vanish(): Promise<void>
}

/** What one member has got. */
export interface NodeBusSeen {
  readonly messages: BusMessage[]
  readonly joined: BusMember[]
  readonly gone: { readonly worker: string; readonly node: string; readonly holder: string }[]
  /** Whose messages can be lost; undefined: those of any. */
  readonly missed: (string | undefined)[]
  /** The number of answers that were stopped by their reader. */
  stopped: number
}

/** Three members of different nodes. A lost member is gone at most three seconds later. */
export interface NodeBusSubject {
  readonly members: readonly [BusMemberUnderTest, BusMemberUnderTest, BusMemberUnderTest]
  close?(): unknown
}

export const newNodeBusSeen = (): NodeBusSeen => ({ messages: [], joined: [], gone: [], missed: [], stopped: 0 })

/** The taps of `NodeBus.hooks` and the items of `PeerAnswers` of a member under test. */
export const nodeBusProbe = (seen: NodeBusSeen) => ({
  message: (message: BusMessage): void => void seen.messages.push(message),
  joined: (member: BusMember): void => void seen.joined.push(member),
  gone: (gone: NodeBusSeen['gone'][number]): void => void seen.gone.push(gone),
  missed: ({ from }: { readonly from: string | undefined }): void => void seen.missed.push(from),
  answers: {
    async *echo(message: Json, { principal }: { readonly principal: { readonly id: string } }): AsyncGenerator<Json> {
      yield message
      yield { by: principal.id }
    },
    async *endless(_: Json, { signal }: { readonly signal: AbortSignal }): AsyncGenerator<Json> {
      try {
        for (let at = 0; !signal.aborted; at++) yield await new Promise<number>(resolve => setTimeout(resolve, 5, at))
      } finally {
        seen.stopped += 1
      }
    },
    // oxlint-disable-next-line require-yield -- it fails before its first part
    async *broken(): AsyncGenerator<Json> {
      throw Object.assign(new Error('no such session'), { name: 'SvcError', code: 'SESSION_UNKNOWN', details: { id: 7 } })
    },
  },
})

/** Cases for every implementation of `NodeBus`: `for (const one of nodeBusKit(open)) it(one.title, one.run)`. */
export function nodeBusKit(open: () => Promise<NodeBusSubject>): KitCase[] {
  const opened = caseMaker(open)
  return [...membership(opened), ...messages(opened), ...calls(opened), ...limits(opened)]
}

type Opened = ReturnType<typeof caseMaker<NodeBusSubject>>
const { ctx } = abortable('bus kit')
const codeFrom = async (work: Promise<unknown>) => codeOf((await outcome(work)).error)
const joinAll = async ({ members }: NodeBusSubject) => {
  for (const { bus } of members) await bus.join({ roles: ['http'] }, ctx)
  return members
}

async function readAll(answer: AsyncIterable<Json>): Promise<Json[]> {
  const all: Json[] = []
  for await (const part of answer) all.push(part)
  return all
}

/** A lease that no case outlives. */
const LONG_MS = 600_000

const membership = (opened: Opened): KitCase[] => [
  opened('lists all members with node and facts, and reports members that join or change', async subject => {
    const [a, b, c] = await joinAll(subject)
    const found = await b.bus.members(ctx)
    assert.deepEqual(
      found,
      [a, b, c]
        .map(({ worker, node }) => ({ worker, node, facts: { roles: ['http'] } }))
        .toSorted((x, y) => (x.worker < y.worker ? -1 : 1))
    )
    await becomes('the report of the last', () => a.seen.joined.some(({ worker }) => worker === c.worker))
    await c.bus.join({ roles: ['runs'] }, ctx)
    await becomes('the change', () => JSON.stringify(a.seen.joined.at(-1)?.facts) === '{"roles":["runs"]}')
    assert.equal(a.seen.joined.filter(({ worker }) => worker === a.worker).length, 0, 'a member receives its own message')
  }),
  opened('refuses facts that are too large, and work before it has joined', async ({ members: [a, b] }) => {
    assert.equal(await codeFrom(a.bus.join('x'.repeat(5_000), ctx)), 'BUS_TOO_LARGE')
    assert.equal(await codeFrom(a.bus.publish('news', 1, ctx)), 'BUS_NOT_JOINED')
    assert.equal(await codeFrom(readAll(a.bus.call(b.worker, 'echo', 1, ctx))), 'BUS_NOT_JOINED')
    assert.deepEqual(await b.bus.members(ctx), [])
  }),
  opened('reports a member that leaves to all others, once', async subject => {
    const [a, b, c] = await joinAll(subject)
    // a worker that does not know a member hears of no end; a bus without notifications looks from time to time
    await becomes('the report of the second', () => a.seen.joined.some(({ worker }) => worker === b.worker))
    await b.bus.leave(ctx)
    for (const { seen } of [a, c]) {
      await becomes('the report', () => seen.gone.length > 0)
      assert.deepEqual(seen.gone, [{ worker: b.worker, node: b.node, holder: `${b.worker}/` }])
    }
    assert.equal((await a.bus.members(ctx)).length, 2)
    assert.deepEqual(b.seen.gone, [])
  }),
  opened('detects a member that is lost without notice, and frees its permits and leases', async subject => {
    const [a, b, c] = await joinAll(subject)
    assert.equal(await b.bus.acquire('permit', 1, ctx), true)
    const lease = (holder: string) => ({ holder: `${holder}/work`, ttlMs: LONG_MS, waitMs: 0 })
    await b.store.acquire('lost', lease(b.worker), ctx)
    await a.store.acquire('kept', lease(a.worker), ctx)
    await b.vanish()
    for (const { seen } of [a, c]) {
      await becomes('the report', () => seen.gone.length > 0)
      assert.deepEqual(seen.gone, [{ worker: b.worker, node: b.node, holder: `${b.worker}/` }])
    }
    assert.equal(await c.bus.acquire('permit', 1, ctx), true)
    await c.store.acquire('lost', lease(c.worker), ctx)
    assert.equal(await codeFrom(c.store.acquire('kept', lease(c.worker), ctx)), 'LEASE_BUSY')
  }),
]

const messages = (opened: Opened): KitCase[] => [
  opened('delivers messages to all other members, those of one member in order', async subject => {
    const [a, b, c] = await joinAll(subject)
    for (let at = 0; at < 20; at++) await a.bus.publish('news', { at }, ctx)
    for (const { seen } of [b, c]) {
      await becomes('20 messages', () => seen.messages.length === 20)
      assert.deepEqual(
        seen.messages,
        Array.from({ length: 20 }, (_, at) => ({ from: a.worker, topic: 'news', message: { at } }))
      )
    }
    assert.deepEqual(a.seen.messages, [])
  }),
  opened('refuses a message that is too large', async subject => {
    const [a, b] = await joinAll(subject)
    assert.equal(await codeFrom(a.bus.publish('news', 'x'.repeat(70_000), ctx)), 'BUS_TOO_LARGE')
    await a.bus.publish('news', 'x'.repeat(60_000), ctx)
    await becomes('the message', () => b.seen.messages.length === 1)
  }),
]

const calls = (opened: Opened): KitCase[] => [
  opened('streams the answer of one member, with the principal of the caller', async subject => {
    const [a, b, c] = await joinAll(subject)
    const asked = { ...ctx, principal: { id: 'ann', scopes: ['chat'] } }
    assert.deepEqual(await readAll(a.bus.call(b.worker, 'echo', { x: '\u{1f600}' }, asked)), [{ x: '\u{1f600}' }, { by: 'ann' }])
    const many = await Promise.all(Array.from({ length: 10 }, (_, at) => readAll(c.bus.call(a.worker, 'echo', at, ctx))))
    assert.deepEqual(
      many.map(([first]) => first),
      Array.from({ length: 10 }, (_, at) => at)
    )
  }),
  opened('streams the answer of a member to itself, and stops it', async subject => {
    const [a] = await joinAll(subject)
    assert.deepEqual(await readAll(a.bus.call(a.worker, 'echo', { x: 1 }, ctx)), [{ x: 1 }, { by: ctx.principal.id }])
    assert.equal(await codeFrom(readAll(a.bus.call(a.worker, 'broken', 1, ctx))), 'SESSION_UNKNOWN')
    for await (const part of a.bus.call(a.worker, 'endless', 1, ctx)) if (part === 3) break
    await becomes('the stop', () => a.seen.stopped === 1)
  }),
  opened('forwards the error of an answer, and names a topic without a handler', async subject => {
    const [a, b] = await joinAll(subject)
    const { error } = await outcome(readAll(a.bus.call(b.worker, 'broken', 1, ctx)))
    assert.deepEqual([codeOf(error), (error as { details?: unknown }).details], ['SESSION_UNKNOWN', { id: 7 }])
    assert.equal(await codeFrom(readAll(a.bus.call(b.worker, 'unknown', 1, ctx))), 'PEER_SILENT')
    assert.equal(await codeFrom(readAll(a.bus.call('never.1', 'echo', 1, ctx))), 'PEER_GONE')
  }),
  opened('stops an answer whose reader stops or aborts', async subject => {
    const [a, b] = await joinAll(subject)
    for await (const part of a.bus.call(b.worker, 'endless', 1, ctx)) if (part === 3) break
    await becomes('the stop', () => b.seen.stopped === 1)
    const { ctx: waiting, abort } = abortable()
    const read = readAll(a.bus.call(b.worker, 'endless', 1, waiting))
    setTimeout(abort, 50)
    assert.ok((await atOnce(outcome(read), 'the end of an aborted call')).failed)
    await becomes('the second stop', () => b.seen.stopped === 2)
  }),
  opened('fails a call whose member is lost', async subject => {
    const [a, b] = await joinAll(subject)
    const read = readAll(a.bus.call(b.worker, 'endless', 1, ctx))
    await b.vanish()
    assert.equal(await atOnce(codeFrom(read), 'the end of the call'), 'PEER_GONE')
  }),
]

const limits = (opened: Opened): KitCase[] => [
  opened('never grants more permits than the limit', async subject => {
    const members = await joinAll(subject)
    const taken = await Promise.all(Array.from({ length: 12 }, (_, at) => members[at % 3]!.bus.acquire('permits', 5, ctx)))
    assert.equal(taken.filter(Boolean).length, 5)
    const holder = members[taken.indexOf(true) % 3]!
    await holder.bus.release('permits', ctx)
    assert.equal(await members[2].bus.acquire('permits', 5, ctx), true)
    assert.equal(await members[1].bus.acquire('permits', 5, ctx), false)
    assert.equal(await members[1].bus.acquire('others', 1, ctx), true)
  }),
]
