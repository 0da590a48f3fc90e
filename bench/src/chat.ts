import { chatLoad } from './chat-load.ts'
import { compared, measure } from './compare.ts'
import type { Options } from './options.ts'
import { freePort } from './processes.ts'
import type { Figure } from './report.ts'
import { start } from './server.ts'
import { IN_MEMORY, peer, scratch, svcServe } from './svc.ts'

const CONNECTIONS = 64
const WHAT = `local chat, ${CONNECTIONS} connections`

/** Local chat with conversations in memory, access log, metrics and validation on. */
export async function* chat({ svc, rounds, ms }: Options): AsyncGenerator<Figure> {
  using folder = scratch()
  const [first, two, three] = [await freePort(), await freePort(), await freePort()]
  await using ours = await start(svcServe(svc, first, folder.path, IN_MEMORY), first)
  await using koa = await start(peer('koa-chat', two), two)
  await using bare = await start(peer('bare-chat', three), three)
  const { rates, costs } = await measure({ ours, koa, bare }, ({ port }) => chatLoad(port, CONNECTIONS, ms), rounds)
  yield {
    bench: 'chat',
    ...compared(WHAT, rates, 'ours', 'koa'),
    unit: 'req/s',
    anchor: 'plain koa',
    better: 'more',
    must: 0.4,
    aim: 0.6,
  }
  yield { bench: 'chat', ...compared(WHAT, rates, 'ours', 'bare'), unit: 'req/s', anchor: 'bare node:http', better: 'more' }
  const cpu = `${WHAT}, processor time`
  yield { bench: 'chat', ...compared(cpu, costs, 'ours', 'koa'), unit: 'µs a request', anchor: 'plain koa', better: 'less' }
}
