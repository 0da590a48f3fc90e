import { setTimeout as sleep } from 'node:timers/promises'
import { reachServer } from '@svc/runtime'
import { createClient } from './client.ts'
import { auditLedger, CRASH_ENV, type Ledger, newLedger, startLoad } from './crash-loop.ts'
import { beginLong, endOf } from './node-runs.ts'
import { isReady } from './nodes.ts'
import type { Service } from './service.ts'
import { until } from './wait.ts'
import { effectsIn } from './workflow-host.ts'

/** The environment of nodes under this load: `file` is the one of their runs, see `LONG_RUNS`. */
export const loadEnv = (file: string) => ({ ...CRASH_ENV, TEST_RUNS_FILE: file })

/** Chats and runs on nodes whose database fails. */
export interface NodeLoad {
  readonly ledger: Ledger
  /** Ids of the runs that a node has accepted. */
  readonly runs: readonly string[]
  /** What came instead of a chat's answer, and how often. */
  readonly refusals: ReadonlyMap<string, number>
  /** Resolves when there are so many more acknowledged turns and accepted runs. Rejects on an answer that is neither one nor a refusal. */
  more(turns: number, runs: number): Promise<void>
  /** Resolves when a node is ready, and has taken a turn. */
  serves(node: Pick<Service, 'url'>): Promise<void>
  end(): Promise<void>
}

interface NodeLoadOptions {
  /** Clients of chats on each node. Default 3. */
  readonly clients?: number
  /** Milliseconds between two runs of a node. Default 100. */
  readonly everyMs?: number
}

/** What a node answers without its database. */
const REFUSED = /^503 /
const AGAIN_MS = 50
/** A run is asked for again for so long. */
const LONGEST_MS = 60_000
/** Loads of the same tens have one conversation that all clients share. */
const SEED = 10

/** Each node has clients that chat, and one that begins runs; a run is asked for again with its key until a node has accepted it. */
export function startNodeLoad(
  nodes: readonly Pick<Service, 'url'>[],
  { clients = 3, everyMs = 100 }: NodeLoadOptions = {}
): NodeLoad {
  const ledger = newLedger()
  const refusals = new Map<string, number>()
  const onRefusal = (reason: string) => refusals.set(reason, (refusals.get(reason) ?? 0) + 1)
  const loads = nodes.map(({ url }, at) => startLoad(url, ledger, { clients, seed: SEED + at, onRefusal }))
  const runs: string[] = []
  const state = { isOver: false }
  const beginning = Promise.all(
    nodes.map(async ({ url }) => {
      for (; !state.isOver; await sleep(everyMs)) {
        const key = crypto.randomUUID()
        runs.push(await whileRefused(() => beginLong(url, 'long', key)))
      }
    })
  )
  beginning.catch(() => {})
  return {
    ledger,
    runs,
    refusals,
    async more(turns, count) {
      const [turnGoal, runGoal] = [ledger.acknowledged + turns, runs.length + count]
      const enough = async () => {
        while (ledger.acknowledged < turnGoal || runs.length < runGoal) await sleep(AGAIN_MS)
      }
      // rejects with the first answer that is neither
      const failing = [beginning, ...loads.map(load => load.reached(Number.POSITIVE_INFINITY))]
      await Promise.race([enough(), ...failing])
    },
    async serves({ url }) {
      const message = `to ${url} ${crypto.randomUUID()}`
      ledger.sent.add(message)
      await until(() => isReady(url), Boolean)
      const client = createClient(url, { keepAlive: false })
      await until(
        () => client.post('/api/v1/chat', { message }),
        ({ status }) => status === 200
      )
    },
    async end() {
      state.isOver = true
      await Promise.all([beginning, ...loads.map(load => load.end())])
    },
  }
}

/** Asks again while a node answers that it lacks its database. */
async function whileRefused<T>(work: () => Promise<T>): Promise<T> {
  for (const end = performance.now() + LONGEST_MS; ; await sleep(AGAIN_MS))
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof Error) || !REFUSED.test(error.message) || performance.now() > end) throw error
    }
}

/** What is wrong after the load has ended: turns that are lost, torn or doubled, and runs or effects that are missing or doubled. */
export async function auditNodeLoad(url: string, { ledger, runs }: NodeLoad, file: string): Promise<string[]> {
  const problems = await auditLedger(url, ledger)
  for (const id of runs) {
    const { status, error } = await endOf(url, id)
    if (status !== 'completed') problems.push(`the run ${id} is ${status}: ${error}`)
  }
  const effects = Map.groupBy(effectsIn(file), ({ run, step }) => `${run} ${step}`)
  const expected = new Set(runs.flatMap(id => [`${id} first`, `${id} last`]))
  for (const [effect, times] of effects)
    if (times.length > 1 || !expected.has(effect)) problems.push(`the effect ${effect} happened ${times.length} times`)
  for (const effect of expected) if (!effects.has(effect)) problems.push(`the effect ${effect} did not happen`)
  return problems
}

/** The processes of a node: others than before mean that one has crashed. */
export async function workersOf({ home, child }: Pick<Service, 'home' | 'child'>): Promise<readonly (number | undefined)[]> {
  using server = await reachServer(home)
  return [child.pid, ...server.info.workers.map(({ pid }) => pid).toSorted((a, b) => (a ?? 0) - (b ?? 0))]
}
