import { setTimeout as wait } from 'node:timers/promises'
import { requestFor } from './client.ts'
import { compared, measure } from './compare.ts'
import { type Load, middle } from './load.ts'
import type { Options } from './options.ts'
import { freePort } from './processes.ts'
import type { Figure } from './report.ts'
import { interleave, ratioOf, type Rounds } from './rounds.ts'
import { type Server, start } from './server.ts'
import { IN_MEMORY, peer, scratch, svcServe } from './svc.ts'
import { firstToken } from './first-token.ts'
import { flat } from './upstream-memory.ts'

const TOKENS = 100
const PACE_MS = 20
const MESSAGE = 'Which of these three proposals would you take, and why?'

type Name = 'ours' | 'koa' | 'bare' | 'portkey'

/** A chat through an upstream that speaks chat completions: requests, added time, streams, first token, memory. */
export async function* providers({ svc, rounds, ms }: Options): AsyncGenerator<Figure> {
  using folder = scratch()
  const up = await freePort()
  await using upstream = await start({ ...peer('upstream', up), beside: true }, up)
  const ports = { ours: await freePort(), koa: await freePort(), bare: await freePort(), portkey: await freePort() }
  const config = { ...IN_MEMORY, providers: { local: { enabled: false }, up: upstreamEntry(up) } }
  await using ours = await start(svcServe(svc, ports.ours, folder.path, config), ports.ours)
  await using koa = await start(peer('koa-relay', ports.koa, up), ports.koa)
  await using bare = await start(peer('bare-relay', ports.bare, up), ports.bare)
  await using portkey = await start(peer('portkey', `--port=${ports.portkey}`, '--headless'), ports.portkey, '/')
  const servers = { ours, koa, bare, portkey }
  yield* whole(servers, upstream, up, rounds, ms)
  for (const streams of [16, 64]) yield* fast(servers, up, streams, rounds, ms)
  yield* paced(servers, up, Math.min(rounds, 3))
  yield* first(servers, upstream, up, rounds)
  yield* flat(svc, up)
}

const upstreamEntry = (port: number) => ({
  type: 'openai',
  base_url: `http://127.0.0.1:${port}/v1`,
  models: [`fast-${TOKENS}`, `paced-${TOKENS}`],
})

/** What each of them is asked for the same answer. */
function requestOf(name: Name | 'direct', up: number, model: string, stream: boolean): Buffer {
  if (name === 'ours')
    return requestFor('POST', stream ? '/api/v1/chat/stream' : '/api/v1/chat', { message: MESSAGE, model, tools: [] })
  const asked = {
    model,
    messages: [{ role: 'user', content: MESSAGE }],
    stream,
    ...(stream ? { stream_options: { include_usage: true } } : {}),
  }
  const headers = {
    'x-portkey-provider': 'openai',
    'x-portkey-custom-host': `http://127.0.0.1:${up}/v1`,
    authorization: 'Bearer none',
  }
  return requestFor('POST', '/v1/chat/completions', asked, name === 'portkey' ? headers : {})
}

async function* whole(
  servers: Record<Name, Server>,
  direct: Server,
  up: number,
  rounds: number,
  ms: number
): AsyncGenerator<Figure> {
  const load =
    (connections: number) =>
    (server: Server, name: Name | 'direct'): Load => ({
      port: server.port,
      connections,
      ms,
      request: requestOf(name, up, `fast-${TOKENS}`, false),
      faultOf: ({ body }) => (body.includes('house water people') ? undefined : 'not the reply'),
    })
  const { rates, costs } = await measure<Name>(servers, load(64), rounds, 10_000)
  const what = 'chat through an upstream, 64 connections'
  const base = { bench: 'providers', unit: 'req/s', better: 'more' } as const
  yield { ...base, ...compared(what, rates, 'ours', 'koa'), anchor: 'koa + undici', must: 0.75, aim: 1 }
  yield { ...base, ...compared(what, rates, 'ours', 'portkey'), anchor: 'Portkey', must: 6 }
  yield {
    ...base,
    ...compared('the same, a bare undici relay alone', rates, 'bare', 'portkey'),
    anchor: 'Portkey',
    note: 'the limit',
  }
  yield { ...base, ...compared(what, rates, 'ours', 'bare'), anchor: 'a bare undici relay' }
  yield {
    ...base,
    ...compared(`${what}, processor time`, costs, 'ours', 'koa'),
    unit: 'µs a request',
    better: 'less',
    anchor: 'koa + undici',
  }
  const { p50 } = await measure<Name | 'direct'>({ ...servers, direct }, load(1), rounds, 2_000)
  const added = addedTo<Name | 'direct'>(p50, 'direct')
  const time = 'time that a chat through an upstream adds, one connection, p50'
  yield {
    ...base,
    ...compared<Name | 'direct'>(time, added, 'ours', 'portkey'),
    unit: 'ms',
    better: 'less',
    anchor: 'what Portkey adds',
    must: 0.5,
  }
  yield {
    ...base,
    ...compared<Name | 'direct'>(time, added, 'ours', 'koa'),
    unit: 'ms',
    better: 'less',
    anchor: 'what koa + undici adds',
    aim: 1.15,
  }
}

/** Each figure over the anchor's of its round. */
const addedTo = <N extends string>(figures: Rounds<N>, anchor: N): Rounds<N> =>
  Object.fromEntries(
    Object.entries<readonly number[]>(figures).map(([name, all]) => [name, all.map((one, at) => one - figures[anchor][at]!)])
  ) as Record<N, number[]>

const streamLoad =
  (up: number, model: string, connections: number, ms: number) =>
  (server: Server, name: Name): Load => ({
    port: server.port,
    connections,
    ms,
    request: requestOf(name, up, model, true),
    faultOf({ body }) {
      const tokens = body.split(name === 'ours' ? 'event: token' : '"delta":{').length - 1
      const wanted = name === 'ours' ? TOKENS : TOKENS + 1
      if (!body.includes(name === 'ours' ? '"status":"completed"' : '[DONE]')) return 'no end'
      return tokens === wanted ? undefined : `${tokens} tokens, not ${wanted}`
    },
  })

const perToken = <N extends string>(costs: Rounds<N>): Rounds<N> =>
  Object.fromEntries(
    Object.entries<readonly number[]>(costs).map(([name, all]) => [name, all.map(cost => cost / TOKENS)])
  ) as Record<N, number[]>

async function* fast(
  servers: Record<Name, Server>,
  up: number,
  streams: number,
  rounds: number,
  ms: number
): AsyncGenerator<Figure> {
  const { costs } = await measure<Name>(servers, streamLoad(up, `fast-${TOKENS}`, streams, ms), rounds, 500)
  yield* tokenFigures(`${streams} streams at full speed, processor time`, costs, 1.35, 1.1)
}

async function* paced(servers: Record<Name, Server>, up: number, rounds: number): AsyncGenerator<Figure> {
  const ms = 2 * TOKENS * PACE_MS
  const { costs, p50 } = await measure<Name>(servers, streamLoad(up, `paced-${TOKENS}`, 256, ms), rounds, 256)
  yield* tokenFigures(`256 streams at ${PACE_MS} ms a token, processor time`, costs, 1.5, 1.2)
  const what = `256 streams at ${PACE_MS} ms a token, a whole stream, p50`
  yield { bench: 'providers', ...compared(what, p50, 'ours', 'bare'), unit: 'ms', anchor: 'a bare undici relay', better: 'less' }
}

function* tokenFigures(what: string, costs: Rounds<Name>, must: number, aim: number): Generator<Figure> {
  const all: Rounds<Name> = perToken(costs)
  const base = { bench: 'providers', unit: 'µs a token', better: 'less' } as const
  yield { ...base, ...compared<Name>(what, all, 'ours', 'bare'), anchor: 'a bare undici relay', must, aim }
  yield { ...base, ...compared<Name>(what, all, 'ours', 'koa'), anchor: 'koa + undici' }
  yield { ...base, ...compared<Name>(what, all, 'ours', 'portkey'), anchor: 'Portkey' }
}

const FIRST_RUNS = 50
/** What the end of one stream costs is not the next one's. */
const GAP_MS = 8

async function* first(servers: Record<Name, Server>, direct: Server, up: number, rounds: number): AsyncGenerator<Figure> {
  const times = (server: Server, name: Name | 'direct') => async () => {
    const request = requestOf(name, up, `paced-100`, true)
    const runs: number[] = []
    for (let at = 0; at < FIRST_RUNS; at++) {
      runs.push(await firstToken(server.port, request, 'now'))
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
  const what = 'first token after the upstream’s, one stream'
  const base = { bench: 'providers', what, unit: 'ms', better: 'less', value: middle(added.ours) } as const
  yield { ...base, anchor: 'a millisecond', anchorValue: 1, ratio: middle(added.ours), must: 1 }
  for (const [name, anchor] of [
    ['bare', 'a bare undici relay'],
    ['koa', 'koa + undici'],
    ['portkey', 'Portkey'],
  ] as const)
    yield { ...base, anchor, anchorValue: middle(added[name]), ratio: ratioOf(added.ours, added[name]) }
}
