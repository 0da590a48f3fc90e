import { chatLoad } from './chat-load.ts'
import { compared, measure } from './compare.ts'
import type { Options } from './options.ts'
import { freePort } from './processes.ts'
import type { Figure } from './report.ts'
import { start } from './server.ts'
import { peer, scratch, svcServe } from './svc.ts'

const CONNECTIONS = 64
const WHAT = `durable turns, ${CONNECTIONS} connections`

/** Turns that are on the disk before they are answered: the stock configuration against koa that keeps the same rows. */
export async function* durable({ svc, rounds, ms }: Options): AsyncGenerator<Figure> {
  using folder = scratch()
  const [first, two, three, four] = [await freePort(), await freePort(), await freePort(), await freePort()]
  await using ours = await start(svcServe(svc, first, folder.path), first)
  await using group = await start(peer('koa-durable', two, `${folder.path}/group.db`), two)
  await using each = await start(peer('koa-durable', three, `${folder.path}/each.db`, 'commit-each'), three)
  await using search = await start(peer('koa-durable', four, `${folder.path}/search.db`, 'search'), four)
  const many = await measure({ ours, group, search }, ({ port }) => chatLoad(port, CONNECTIONS, ms), rounds)
  const bench = 'durable'
  yield {
    bench,
    ...compared(WHAT, many.rates, 'ours', 'group'),
    unit: 'turns/s',
    anchor: 'plain koa with group commit',
    better: 'more',
    must: 0.8,
    aim: 1.15,
  }
  yield {
    bench,
    ...compared(WHAT, many.rates, 'ours', 'search'),
    unit: 'turns/s',
    anchor: 'the same, with full-text search',
    better: 'more',
  }
  const cost = `${WHAT}, processor time`
  yield {
    bench,
    ...compared(cost, many.costs, 'ours', 'group'),
    unit: 'µs a turn',
    anchor: 'plain koa with group commit',
    better: 'less',
  }
  const slow = await measure({ ours, each }, ({ port }) => chatLoad(port, CONNECTIONS, ms), rounds, 1_000)
  yield {
    bench,
    ...compared(WHAT, slow.rates, 'ours', 'each'),
    unit: 'turns/s',
    anchor: 'plain koa with a commit a turn',
    better: 'more',
    must: 3.5,
  }
  const single = await measure({ ours, group }, ({ port }) => chatLoad(port, 1, ms), rounds, 500)
  const p50 = 'durable turns, one connection, p50'
  yield {
    bench,
    ...compared(p50, single.p50, 'ours', 'group'),
    unit: 'ms',
    anchor: 'plain koa with group commit',
    better: 'less',
    must: 1.25,
    aim: 1,
  }
}
