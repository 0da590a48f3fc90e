import { setTimeout as wait } from 'node:timers/promises'
import { compared, measure } from './compare.ts'
import { firstToken } from './first-token.ts'
import { type Load, middle } from './load.ts'
import { addedTo, BARE, KOA, less, type Name, requestOf, TOKENS } from './provider-requests.ts'
import type { Figure } from './report.ts'
import { interleave, ratioOf, type Rounds } from './rounds.ts'
import type { Server } from './server.ts'

type Servers = Readonly<Record<Name, Server>>

const PACE_MS = 20
/** The text of the first token that the upstream sends. */
const FIRST = 'now'
/** Number of streams after which V8 has compiled the code. */
const WARM = 4_000

/** Streams through an upstream: processor time, and the time to the first token under load and alone. */
export async function* streams(servers: Servers, direct: Server, up: number, rounds: number, ms: number): AsyncGenerator<Figure> {
  for (const count of [16, 64]) yield* fast(servers, up, count, rounds, ms)
  yield* paced(servers, up, Math.min(rounds, 3))
  yield* first(servers, direct, up, rounds)
}

const streamLoad =
  (up: number, model: string, connections: number, ms: number) =>
  (server: Server, name: Name): Load => ({
    port: server.port,
    connections,
    ms,
    request: requestOf(name, up, model, true),
    mark: `"${FIRST}"`,
    problemOf({ body }) {
      const tokens = body.split(name === 'ours' ? 'event: token' : '"delta":{').length - 1
      const wanted = name === 'ours' ? TOKENS : TOKENS + 1
      if (!body.includes(name === 'ours' ? '"status":"completed"' : '[DONE]')) return 'no end'
      return tokens === wanted ? undefined : `${tokens} tokens, not ${wanted}`
    },
  })

const perToken = (costs: Rounds<Name>): Rounds<Name> =>
  Object.fromEntries(
    Object.entries<readonly number[]>(costs).map(([name, all]) => [name, all.map(cost => cost / TOKENS)])
  ) as Record<Name, number[]>

async function* fast(servers: Servers, up: number, count: number, rounds: number, ms: number): AsyncGenerator<Figure> {
  const what = `${count} streams at full speed`
  const { costs, marked } = await measure<Name>(servers, streamLoad(up, `fast-${TOKENS}`, count, ms), rounds, WARM)
  yield* tokenFigures(`${what}, processor time`, costs, 1.35, 1.1)
  yield { ...less('ms'), ...compared(`${what}, first token`, marked, 'ours', 'koa'), anchor: KOA, must: 2, aim: 1.2 }
}

async function* paced(servers: Servers, up: number, rounds: number): AsyncGenerator<Figure> {
  const what = `256 streams at ${PACE_MS} ms a token`
  const ms = 2 * TOKENS * PACE_MS
  const { costs, p50 } = await measure<Name>(servers, streamLoad(up, `paced-${TOKENS}`, 256, ms), rounds, 256)
  yield* tokenFigures(`${what}, processor time`, costs, 1.6, 1.2)
  yield { ...less('ms'), ...compared(`${what}, a whole stream, p50`, p50, 'ours', 'bare'), anchor: BARE }
}

function* tokenFigures(what: string, costs: Rounds<Name>, must: number, aim: number): Generator<Figure> {
  const all = perToken(costs)
  const base = less('µs a token')
  yield { ...base, ...compared(what, all, 'ours', 'bare'), anchor: BARE, must, aim }
  yield { ...base, ...compared(what, all, 'ours', 'koa'), anchor: KOA }
  yield { ...base, ...compared(what, all, 'ours', 'portkey'), anchor: 'Portkey' }
}

const FIRST_RUNS = 50
/** Pause, so that the end of one stream does not count for the next. */
const GAP_MS = 8

async function* first(servers: Servers, direct: Server, up: number, rounds: number): AsyncGenerator<Figure> {
  const times = (server: Server, name: Name | 'direct') => async () => {
    const request = requestOf(name, up, `paced-${TOKENS}`, true)
    const runs: number[] = []
    for (let at = 0; at < FIRST_RUNS; at++) {
      runs.push(await firstToken(server.port, request, FIRST))
      await wait(GAP_MS)
    }
    return middle(runs)
  }
  const { ours, koa, bare, portkey } = servers
  const subjects = {
    ours: times(ours, 'ours'),
    koa: times(koa, 'koa'),
    bare: times(bare, 'bare'),
    portkey: times(portkey, 'portkey'),
    direct: times(direct, 'direct'),
  }
  const added = addedTo<Name | 'direct'>(await interleave(subjects, rounds), 'direct')
  const figures = { ...less('ms'), what: 'first token after the upstream’s, one stream', value: middle(added.ours) }
  const beside = (name: Name) => ({ anchorValue: middle(added[name]), ratio: ratioOf(added.ours, added[name]) })
  yield { ...figures, ...beside('koa'), anchor: KOA, must: 1.5, aim: 1.1 }
  yield { ...figures, ...beside('bare'), anchor: BARE }
  yield { ...figures, ...beside('portkey'), anchor: 'Portkey' }
}
