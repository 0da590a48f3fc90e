import { requestFor } from './client.ts'
import { type Load, run } from './load.ts'
import type { Options } from './options.ts'
import { freePort } from './processes.ts'
import type { Figure } from './report.ts'
import { interleave, ratioOf, type Rounds } from './rounds.ts'
import { type Server, start } from './server.ts'
import { IN_MEMORY, peer, scratch, svcServe } from './svc.ts'
import { middle } from './load.ts'

const MESSAGE = 'Which of these three proposals would you take, and why?'

/** The load of a chat: every answer must hold the reply. */
export const chatLoad = (port: number, connections: number, ms: number): Load => ({
  port,
  connections,
  ms,
  request: requestFor('POST', '/api/v1/chat', { message: MESSAGE }),
  faultOf: ({ body }) => (body.includes(`"response":"You said: ${MESSAGE}"`) ? undefined : 'not the reply'),
})

const CONNECTIONS = 64
const WARM = 5

/** Local chat with conversations in memory, access log, metrics and validation on. */
export async function* chat({ svc, rounds, ms }: Options): AsyncGenerator<Figure> {
  using folder = scratch()
  const [one, two, three] = [await freePort(), await freePort(), await freePort()]
  await using ours = await start(svcServe(svc, one, folder.path, IN_MEMORY), one)
  await using koa = await start(peer('koa-chat', two), two)
  await using bare = await start(peer('bare-chat', three), three)
  const servers = { ours, koa, bare }
  await measured(servers, CONNECTIONS, WARM, ms)
  const { rates, costs } = await measured(servers, CONNECTIONS, rounds, ms)
  const what = `local chat, ${CONNECTIONS} connections`
  yield { ...compared(what, rates, 'ours', 'koa'), bench: 'chat', unit: 'req/s', anchor: 'plain koa', better: 'more', must: 0.75, aim: 1.1 }
  yield { ...compared(what, rates, 'ours', 'bare'), bench: 'chat', unit: 'req/s', anchor: 'bare node:http', better: 'more' }
  yield { ...compared(`${what}, processor time`, costs, 'ours', 'koa'), bench: 'chat', unit: 'µs a request', anchor: 'plain koa', better: 'less' }
}

/** Rates and processor time (microseconds) a request of some servers, in turn. */
export async function measured<N extends string>(servers: Readonly<Record<N, Server>>, connections: number, rounds: number, ms: number) {
  const names = Object.keys(servers) as N[]
  const costs = Object.fromEntries(names.map(name => [name, [] as number[]])) as Record<N, number[]>
  const p50 = Object.fromEntries(names.map(name => [name, [] as number[]])) as Record<N, number[]>
  const subject = (name: N) => async () => {
    const before = servers[name].cpu()
    const loaded = await run(chatLoad(servers[name].port, connections, ms))
    costs[name].push((servers[name].cpu() - before) / loaded.answers)
    p50[name].push(loaded.p50)
    return loaded.perSecond
  }
  const subjects = Object.fromEntries(names.map(name => [name, subject(name)])) as Record<N, () => Promise<number>>
  return { rates: await interleave(subjects, rounds), costs, p50 }
}

/** A figure of one subject over another. */
export const compared = <N extends string>(what: string, figures: Rounds<N>, name: N, anchor: N) => ({
  what,
  value: middle(figures[name]),
  anchorValue: middle(figures[anchor]),
  ratio: ratioOf(figures[name], figures[anchor]),
})
