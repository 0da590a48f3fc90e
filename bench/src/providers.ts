import { compared, measure } from './compare.ts'
import type { Load } from './load.ts'
import type { Options } from './options.ts'
import { freePort } from './processes.ts'
import { addedTo, type Asked, BARE, KOA, less, type Name, requestOf, TOKENS } from './provider-requests.ts'
import { streams } from './provider-streams.ts'
import type { Figure } from './report.ts'
import { type Server, start } from './server.ts'
import { IN_MEMORY, peer, scratch, svcServe } from './svc.ts'
import { flat } from './upstream-memory.ts'

/** Number of chats after which V8 has compiled the code and keeps it. */
const WARM = 60_000

/** The models that `listed` has in its configuration, as a gateway with several upstream models has them. */
const MODELS = [`fast-${TOKENS}`, `paced-${TOKENS}`, ...Array.from({ length: 18 }, (_, n) => `model-${n}`)]

/** The rounds are shorter and more than usual: six subjects take turns, and the machine changes less within a short round. */
const SHORTER = 3

/** A chat through an upstream that speaks chat completions: requests, added time, streams, first token, memory. */
export async function* providers({ svc, ...options }: Options): AsyncGenerator<Figure> {
  const [rounds, ms] = [options.rounds * SHORTER, Math.ceil(options.ms / SHORTER)]
  using folder = scratch()
  using listing = scratch()
  const up = await freePort()
  await using upstream = await start({ ...peer('upstream', up), beside: true }, up)
  const ports = {
    ours: await freePort(),
    listed: await freePort(),
    koa: await freePort(),
    bare: await freePort(),
    portkey: await freePort(),
  }
  const entry = { type: 'openai', base_url: `http://127.0.0.1:${up}/v1` }
  const configOf = (up: object) => ({ ...IN_MEMORY, providers: { local: { enabled: false }, up } })
  await using ours = await start(svcServe(svc, ports.ours, folder.path, configOf(entry)), ports.ours)
  const withModels = configOf({ ...entry, models: MODELS })
  await using listed = await start(svcServe(svc, ports.listed, listing.path, withModels), ports.listed)
  await using koa = await start(peer('koa-relay', ports.koa, up), ports.koa)
  await using bare = await start(peer('bare-relay', ports.bare, up), ports.bare)
  await using portkey = await start(peer('portkey', `--port=${ports.portkey}`, '--headless'), ports.portkey, '/')
  const servers = { ours, koa, bare, portkey }
  yield* whole(servers, listed, upstream, up, rounds, ms)
  yield* streams(servers, upstream, up, rounds, ms)
  yield* flat(svc, up)
}

/** For answers without streaming. */
async function* whole(
  servers: Record<Name, Server>,
  listed: Server,
  direct: Server,
  up: number,
  rounds: number,
  ms: number
): AsyncGenerator<Figure> {
  const load =
    (connections: number) =>
    (server: Server, name: Asked): Load => ({
      port: server.port,
      connections,
      ms,
      request: requestOf(name, up, `fast-${TOKENS}`, false),
      problemOf: ({ body }) => (body.includes('home water people') ? undefined : 'not the reply'),
    })
  const subjects = { ...servers, stripped: servers.ours, listed }
  const { rates, costs, p99 } = await measure<Name | 'stripped' | 'listed'>(subjects, load(64), rounds, WARM)
  const what = 'chat through an upstream, 64 connections'
  const lean = `${what}, stripped (no tools)`
  const list = `${what}, with a list of models`
  const base = { bench: 'providers', unit: 'req/s', better: 'more' } as const
  yield { ...base, ...compared(what, rates, 'ours', 'koa'), anchor: KOA, must: 0.5, aim: 0.8 }
  yield { ...less('ms'), ...compared(`${what}, p99`, p99, 'ours', 'koa'), anchor: KOA, must: 3 }
  yield { ...less('µs a request'), ...compared(`${what}, processor time`, costs, 'ours', 'koa'), anchor: KOA }
  yield { ...base, ...compared(list, rates, 'listed', 'koa'), anchor: KOA, must: 0.5, aim: 0.8 }
  yield { ...less('ms'), ...compared(`${list}, p99`, p99, 'listed', 'koa'), anchor: KOA, must: 3 }
  yield { ...base, ...compared(lean, rates, 'stripped', 'koa'), anchor: KOA, must: 0.65, aim: 0.9 }
  yield { ...base, ...compared(lean, rates, 'stripped', 'portkey'), anchor: 'Portkey', must: 4 }
  yield { ...base, ...compared(lean, rates, 'stripped', 'bare'), anchor: BARE }
  yield { ...less('µs a request'), ...compared(`${lean}, processor time`, costs, 'stripped', 'koa'), anchor: KOA }
  yield {
    ...base,
    ...compared('the same, a bare undici relay alone', rates, 'bare', 'portkey'),
    anchor: 'Portkey',
    note: 'the limit',
  }
  const { p50 } = await measure<Name | 'direct'>({ ...servers, direct }, load(1), rounds, 2_000)
  const added = addedTo<Name | 'direct'>(p50, 'direct')
  const time = 'time that a chat through an upstream adds, one connection, p50'
  yield { ...less('ms'), ...compared(time, added, 'ours', 'koa'), anchor: `what ${KOA} adds`, must: 1.5, aim: 1.15 }
  yield { ...less('ms'), ...compared(time, added, 'ours', 'portkey'), anchor: 'what Portkey adds', must: 0.6 }
}
