import assert from 'node:assert/strict'
import { codeOf, isTree, type SvcError } from '@svc/core'
import type { Json, PeerMessage, Peers, WorkerMetrics } from '@svc/core/contracts'
import { abortable, atOnce, becomes, caseMaker, type KitCase, outcome } from './kit-case.ts'

/** One worker to test. Its host has the taps and the item of `peersProbe`. */
export interface PeerUnderTest {
  readonly peers: Peers
  /** `HostReport.nodeId` of its host. */
  readonly node: string
  readonly seen: PeersSeen
  /** Simulates the death of its process. Resolves when the other workers can know of it. */
  kill(): Promise<void>
}

/** What the hooks of one worker have got. A handler of `block` does not return before `unblock`. */
export interface PeersSeen {
  readonly messages: PeerMessage[]
  readonly exits: { readonly worker: string; readonly node: string; readonly holder: string }[]
  /** The value of its counter. */
  count: number
  readonly blocked: Map<string, Promise<void>>
}

/** Three workers of one server or cluster, which all have joined. */
export interface PeersSubject {
  readonly workers: readonly [PeerUnderTest, PeerUnderTest, PeerUnderTest]
  /** The workers belong to different servers. Metrics are those of one server, so the kit skips their case. */
  readonly onSeveralServers?: boolean
  close?(): unknown
}

export const newPeersSeen = (): PeersSeen => ({ messages: [], exits: [], count: 0, blocked: new Map() })

/** The handlers of a worker under test: taps of `Peers.hooks`, and the item `echo` of `PeerAnswers`. */
export const peersProbe = (seen: PeersSeen) => ({
  async message(message: PeerMessage): Promise<void> {
    seen.messages.push(message)
    await seen.blocked.get(message.topic)
  },
  metrics: (metrics: WorkerMetrics): WorkerMetrics => ({ ...metrics, probe: { count: seen.count } }),
  inherit(metrics: WorkerMetrics): void {
    seen.count += countIn(metrics)
  },
  workerExit: (exit: PeersSeen['exits'][number]): void => void seen.exits.push(exit),
  async *echo(message: Json): AsyncGenerator<Json> {
    yield message
    yield { again: message }
  },
})

/** Cases for every implementation of `Peers`: `for (const one of peersKit(open)) it(one.title, one.run)`. */
export function peersKit(open: () => Promise<PeersSubject>): KitCase[] {
  const opened = caseMaker(open)
  return [...naming(opened), ...messages(opened), ...questions(opened), ...sharing(opened)]
}

type Opened = ReturnType<typeof caseMaker<PeersSubject>>
const { ctx } = abortable('peers kit')

const countIn = ({ probe }: WorkerMetrics) => (isTree(probe) ? Number(probe.count) : 0)
const sum = async (peers: Peers) => (await peers.metrics(ctx)).reduce((total, metrics) => total + countIn(metrics), 0)
const topicsOf = ({ seen }: PeerUnderTest) => seen.messages.map(({ topic }) => topic)

async function failureOf(work: Promise<unknown>): Promise<SvcError> {
  const { error } = await outcome(work)
  assert.ok(error !== undefined, 'it did not fail')
  return error as SvcError
}

async function readAll(answer: AsyncIterable<Json>): Promise<Json[]> {
  const all: Json[] = []
  for await (const part of answer) all.push(part)
  return all
}

const naming = (opened: Opened): KitCase[] => [
  opened('gives each worker a unique name', async ({ workers }) => {
    const names = await Promise.all(workers.map(({ peers }) => peers.self(ctx)))
    assert.equal(new Set(names).size, workers.length, names.join())
    assert.deepEqual(names, await Promise.all(workers.map(({ peers }) => peers.self(ctx))), 'a name does not change')
  }),
  opened(
    'reports the exit of a worker to all others, with its name, its node and the prefix of its leases',
    async ({ workers: [a, b, c] }) => {
      const worker = await b.peers.self(ctx)
      await b.kill()
      for (const { seen } of [a, c]) {
        await becomes('the report', () => seen.exits.length > 0)
        assert.deepEqual(seen.exits, [{ worker, node: b.node, holder: `${worker}/` }])
      }
    }
  ),
]

const messages = (opened: Opened): KitCase[] => [
  opened('has run the taps of all workers, including its own, when a broadcast resolves', async ({ workers }) => {
    for (const at of [0, 1, 2]) await workers[0].peers.broadcast(`news.${at}`, { at }, ctx)
    for (const worker of workers) assert.deepEqual(topicsOf(worker), ['news.0', 'news.1', 'news.2'])
    assert.deepEqual(workers[2].seen.messages[1], { topic: 'news.1', message: { at: 1 } })
  }),
  opened('names the workers that do not handle a broadcast in time, after all others have', async ({ workers: [a, b, c] }) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    b.seen.blocked.set('slow', promise)
    const failed = await failureOf(a.peers.broadcast('slow', null, ctx))
    resolve()
    assert.equal(codeOf(failed), 'UNAVAILABLE')
    assert.deepEqual(failed.details.workers, [await b.peers.self(ctx)])
    assert.deepEqual(topicsOf(c), ['slow'])
  }),
  opened('does not wait for a worker that exits', async ({ workers: [a, b, c] }) => {
    b.seen.blocked.set('slow', new Promise(() => {}))
    const sent = a.peers.broadcast('slow', null, ctx)
    await becomes('the message', () => topicsOf(b).includes('slow'))
    await b.kill()
    await atOnce(sent, 'the end of the broadcast')
    assert.deepEqual(topicsOf(c), ['slow'])
  }),
]

const questions = (opened: Opened): KitCase[] => [
  opened('streams the answer of the named worker, which can be the calling worker', async ({ workers: [a, b] }) => {
    for (const worker of [a, b]) {
      const name = await worker.peers.self(ctx)
      assert.deepEqual(await readAll(a.peers.ask(name, 'echo', { to: name }, ctx)), [{ to: name }, { again: { to: name } }])
    }
  }),
  opened('fails for a worker that has exited or never was, and for a topic without a handler', async ({ workers: [a, b, c] }) => {
    const name = await b.peers.self(ctx)
    await b.kill()
    for (const gone of [name, 'never.1'])
      assert.equal(codeOf(await failureOf(readAll(a.peers.ask(gone, 'echo', 1, ctx)))), 'PEER_GONE')
    const there = await c.peers.self(ctx)
    assert.equal(codeOf(await failureOf(readAll(a.peers.ask(there, 'unknown', 1, ctx)))), 'PEER_SILENT')
  }),
]

const sharing = (opened: Opened): KitCase[] => [
  opened('never grants more permits than the limit', async ({ workers }) => {
    const taken = await Promise.all(Array.from({ length: 12 }, (_, at) => workers[at % 3]!.peers.acquire('permits', 5, ctx)))
    assert.equal(taken.filter(Boolean).length, 5)
    const holder = workers[taken.indexOf(true) % 3]!
    await holder.peers.release('permits', ctx)
    assert.equal(await workers[2].peers.acquire('permits', 5, ctx), true)
    assert.equal(await workers[1].peers.acquire('permits', 5, ctx), false)
  }),
  opened('frees the permits of a worker that exits', async ({ workers: [a, b, c] }) => {
    assert.equal(await a.peers.acquire('permit', 1, ctx), true)
    assert.equal(await b.peers.acquire('permit', 1, ctx), false)
    await a.kill()
    await becomes('a free permit', () => c.peers.acquire('permit', 1, ctx))
  }),
  opened(
    'adds up metrics, and counts a worker that has exited exactly once',
    async ({ workers: [a, b, c], onSeveralServers }) => {
      if (onSeveralServers) return { missing: 'a server with three workers' }
      for (const { seen } of [a, b, c]) seen.count = 10
      assert.equal(await sum(a.peers), 30)
      await b.kill()
      for (let at = 0; at < 5; at++) assert.equal(await sum(at % 2 ? a.peers : c.peers), 30)
    }
  ),
]
