import { requestFor } from './client.ts'
import { compared, measure } from './compare.ts'
import type { Load } from './load.ts'
import type { Options } from './options.ts'
import { freePort } from './processes.ts'
import type { Figure } from './report.ts'
import type { Rounds } from './rounds.ts'
import { type Server, start } from './server.ts'
import { IN_MEMORY, peer, scratch, svcServe } from './svc.ts'

const TOKENS = 200
const PACE_MS = 10
/** Words of one token each, like `You said:` and a colon. */
const WORDS = Array.from(
  { length: TOKENS - 3 },
  (_, at) => ['time', 'home', 'water', 'people', 'world', 'year', 'light'][at % 7]
).join(' ')

const WAYS = {
  turns: 'a writer with a write a frame',
  corked: 'a writer that Node lets gather',
  joined: 'a writer of one text',
} as const

/** Processor time per token of streams at full speed and paced. */
export async function* stream({ svc, rounds, ms }: Options): AsyncGenerator<Figure> {
  using folder = scratch()
  const [first, two] = [await freePort(), await freePort()]
  await using ours = await start(svcServe(svc, first, folder.path, IN_MEMORY), first)
  await using bare = await start(peer('bare-stream', two), two)
  for (const streams of [16, 64]) {
    const servers = { ours, turns: bare, corked: bare, joined: bare }
    const { costs } = await measure(servers, (server, way) => streamLoad(server, way, streams, ms), rounds, 1_000)
    const what = `local streams, ${streams} at full speed`
    yield { ...figure(what, costs, 'turns', WAYS.turns), must: 1.35, aim: 1.1 }
    yield { ...figure(what, costs, 'corked', WAYS.corked), note: 'svc too gathers what comes within one turn of the loop' }
    yield figure(what, costs, 'joined', WAYS.joined)
  }
  const pace = Math.max(ms, 2 * TOKENS * PACE_MS)
  const { costs } = await measure(
    { ours, paced: bare },
    (server, way) => streamLoad(server, way, 64, pace, true),
    Math.min(rounds, 5),
    100
  )
  yield figure(
    `local streams, 64 at ${PACE_MS} ms a token`,
    costs,
    'paced',
    'a writer at the same pace: a write a token on both sides'
  )
}

const figure = <N extends string>(what: string, costs: Rounds<N | 'ours'>, way: N, anchor: string): Figure => ({
  bench: 'stream',
  ...compared<N | 'ours'>(what, perToken(costs), 'ours', way),
  unit: 'µs a token',
  anchor,
  better: 'less',
})

const perToken = <N extends string>(costs: Rounds<N>): Rounds<N> =>
  Object.fromEntries(
    Object.entries<readonly number[]>(costs).map(([name, all]) => [name, all.map(cost => cost / TOKENS)])
  ) as Record<N, number[]>

type Way = 'ours' | 'paced' | keyof typeof WAYS

const chatRequest = (paced: boolean) =>
  requestFor('POST', '/api/v1/chat/stream', { message: paced ? `/pace ${PACE_MS}\n${WORDS}` : WORDS })

const streamLoad = ({ port }: Server, way: Way, connections: number, ms: number, paced = false): Load => ({
  port,
  connections,
  ms,
  request: way === 'ours' ? chatRequest(paced) : requestFor('POST', `/${way}`, { message: WORDS, pace: PACE_MS }),
  problemOf: ({ body }) => {
    const tokens = body.split('event: token').length - 1
    if (!body.includes('event: end')) return 'no end'
    return Math.abs(tokens - TOKENS) > 3 ? `${tokens} tokens` : undefined
  },
})
