import { requestFor } from './client.ts'
import { compared, measure } from './compare.ts'
import { type Load, middle } from './load.ts'
import type { Options } from './options.ts'
import { freePort } from './processes.ts'
import { KOA, TOKENS } from './provider-requests.ts'
import type { Figure } from './report.ts'
import { interleave, type Rounds } from './rounds.ts'
import { type Server, start } from './server.ts'
import { IN_MEMORY, peer, scratch, svcServe } from './svc.ts'

/** Number of requests after which V8 has compiled the code and keeps it. */
const WARM = 40_000
const WARM_STREAMS = 3_000
const SHORTER = 3

/** The gateway of svc, its own chat API, and competitors. */
type Name = 'ours' | 'api' | 'koa' | 'portkey'

const MESSAGE = 'Which of these three proposals would you take, and why?'
/** Characters of a long conversation, such as that of a coding agent. */
const LONG = 64 * 1024

/** `POST /v1/chat/completions` of svc through an upstream of the same protocol. */
export async function* endpoints({ svc, ...options }: Options): AsyncGenerator<Figure> {
  yield* starts(svc, options.rounds)
  const [rounds, ms] = [options.rounds * SHORTER, Math.ceil(options.ms / SHORTER)]
  using folder = scratch()
  const up = await freePort()
  await using _upstream = await start({ ...peer('upstream', up), beside: true }, up)
  const ports = { ours: await freePort(), koa: await freePort(), portkey: await freePort() }
  // the preset says that the upstream speaks the protocol of the client, so that requests pass unchanged
  const entry = { type: 'openai', preset: 'openai', base_url: `http://127.0.0.1:${up}/v1`, api_key_env: 'BENCH_KEY' }
  const config = { ...IN_MEMORY, providers: { local: { enabled: false }, up: entry } }
  const program = svcServe(svc, ports.ours, folder.path, config)
  await using ours = await start({ ...program, env: { ...program.env, BENCH_KEY: 'none' } }, ports.ours)
  await using koa = await start(peer('koa-relay', ports.koa, up), ports.koa)
  await using portkey = await start(peer('portkey', `--port=${ports.portkey}`, '--headless'), ports.portkey, '/')
  const servers = { ours, api: ours, koa, portkey }
  yield* whole(servers, up, rounds, ms, MESSAGE, 'gateway chat, 64 connections')
  yield* whole(servers, up, rounds, ms, 'long '.repeat(LONG / 5), 'gateway chat of 64 KiB, 64 connections')
  yield* streams(servers, up, rounds, ms)
}

const ENDPOINTS = ['openai-api', 'anthropic-api', 'gemini-api'].map(name => ({ use: `@svc/plugin-${name}`, enabled: false }))
const STARTS = 10
const MOST_ADDED_MS = 10

/** What the plugins of the endpoints add to a start. */
async function* starts(svc: readonly string[], rounds: number): AsyncGenerator<Figure> {
  using folder = scratch()
  using second = scratch()
  const startOnce = async (where: string, config: object) => {
    const port = await freePort()
    await using server = await start(svcServe(svc, port, where, config), port)
    return server.startMs
  }
  const subjects = { ours: () => startOnce(folder.path, {}), without: () => startOnce(second.path, { plugins: ENDPOINTS }) }
  await interleave(subjects, 3)
  const figures = await interleave(subjects, Math.max(rounds, STARTS))
  const added = middle(figures.ours.map((ms, round) => ms - figures.without[round]!))
  yield { ...less('ms'), ...compared('start with the model endpoints', figures, 'ours', 'without'), anchor: 'without them' }
  yield {
    ...less('ms'),
    what: 'what the model endpoints add to a start',
    value: added,
    anchor: 'the limit',
    anchorValue: MOST_ADDED_MS,
    ratio: added / MOST_ADDED_MS,
    must: 1,
  }
}

/** The same call for each of them. */
function requestOf(name: Name, up: number, model: string, text: string, stream: boolean): Buffer {
  if (name === 'api')
    return requestFor('POST', stream ? '/api/v1/chat/stream' : '/api/v1/chat', { message: text, model, tools: [] })
  const asked = {
    model: name === 'ours' ? `up/${model}` : model,
    messages: [{ role: 'user', content: text }],
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

type Servers = Readonly<Record<Name, Server>>

async function* whole(
  servers: Servers,
  up: number,
  rounds: number,
  ms: number,
  text: string,
  what: string
): AsyncGenerator<Figure> {
  const load = (server: Server, name: Name): Load => ({
    port: server.port,
    connections: 64,
    ms,
    request: requestOf(name, up, `fast-${TOKENS}`, text, false),
    problemOf: ({ body }) => (body.includes('home water people') ? undefined : 'not the reply'),
  })
  const { rates, costs } = await measure<Name>(servers, load, rounds, text.length > LONG / 2 ? WARM / 10 : WARM)
  const base = { bench: 'endpoints', unit: 'req/s', better: 'more' } as const
  const isShort = text === MESSAGE
  yield { ...base, ...compared(what, rates, 'ours', 'koa'), anchor: KOA, must: 0.65 }
  yield { ...base, ...compared(what, rates, 'ours', 'portkey'), anchor: 'Portkey', ...(isShort ? { must: 4 } : {}) }
  yield {
    ...less('µs a request'),
    ...compared(`${what}, processor time`, costs, 'ours', 'api'),
    anchor: 'POST /api/v1/chat without tools',
  }
}

async function* streams(servers: Servers, up: number, rounds: number, ms: number): AsyncGenerator<Figure> {
  const load = (server: Server, name: Name): Load => ({
    port: server.port,
    connections: 16,
    ms,
    request: requestOf(name, up, `fast-${TOKENS}`, MESSAGE, true),
    problemOf: ({ body }) =>
      body.includes(name === 'api' ? '"status":"completed"' : 'data: [DONE]') ? undefined : 'the stream has no end',
  })
  const { costs } = await measure<Name>(servers, load, rounds, WARM_STREAMS)
  const perToken = Object.fromEntries(
    Object.entries<readonly number[]>(costs).map(([name, all]) => [name, all.map(cost => cost / TOKENS)])
  ) as Record<Name, number[]> satisfies Rounds<Name>
  const what = '16 gateway streams at full speed, processor time'
  yield {
    ...less('µs a token'),
    ...compared(what, perToken, 'ours', 'api'),
    anchor: 'POST /api/v1/chat/stream without tools',
    must: 1.2,
  }
  yield { ...less('µs a token'), ...compared(what, perToken, 'ours', 'koa'), anchor: KOA }
  yield { ...less('µs a token'), ...compared(what, perToken, 'ours', 'portkey'), anchor: 'Portkey' }
}

const less = (unit: string) => ({ bench: 'endpoints', unit, better: 'less' }) as const
