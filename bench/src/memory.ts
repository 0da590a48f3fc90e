import { setTimeout as wait } from 'node:timers/promises'
import { chatLoad } from './chat-load.ts'
import { connect, type Headers, leaveEarly, requestFor } from './client.ts'
import { gatesOn } from './gates.ts'
import { middle, requestOf, run } from './load.ts'
import type { Options } from './options.ts'
import { freePort, type Program, residentOf } from './processes.ts'
import type { Figure } from './report.ts'
import { interleave, ratioOf } from './rounds.ts'
import { type Server, start } from './server.ts'
import { type Point, slopeNote } from './slope.ts'
import { IN_MEMORY, peer, scratch, SMALL_HEAP, svcServe } from './svc.ts'

const STARTS = 5
/**
 * Long enough for lazy loading after the start, and for V8, which returns unused memory eight seconds after its last
 * collection.
 */
const SETTLE_MS = 12_000
const CHATS = 1_000
const MANY = 200_000
/** Number of memory samples for the slope. */
const LOOKS = 5
/** Until then V8 touches new pages of its young generation: resident memory grows although the heap does not. */
const WARM = 400_000
/** The same for chats that wait for the disk: fewer are enough, and more would take minutes. */
const WARM_KEPT = 100_000
const STREAMS = 1_000
const AT_ONCE = 20
/** For abandoned streams: with fewer, V8 has not yet used its whole heap. */
const WARM_LEFT = 10_000
/** Shorter than the idle detection of V8, which would otherwise collect before some samples and not before others. */
const PAUSE_MS = 1_000
const BOUNDED = { ...IN_MEMORY, store: { max_records: 1_000 } }

/** Resident memory of a worker: idle, after chats, and whether it grows. */
export async function* memory({ svc, rounds }: Options): AsyncGenerator<Figure> {
  using folder = scratch()
  const after: number[] = []
  const ours = (port: number) => svcServe(svc, port, folder.path)
  const koa = (port: number) => peer('koa-hello', port)
  const subjects = { ours: () => idle(ours, async server => void after.push(await chatted(server))), koa: () => idle(koa) }
  const figures = await interleave(subjects, Math.min(Math.max(rounds, STARTS), 7))
  const koaMiB = middle(figures.koa)
  const base = { bench: 'memory', unit: 'MiB', anchor: 'koa hello world, idle', anchorValue: koaMiB, better: 'less' } as const
  const what = 'memory of an idle worker'
  yield { ...base, what, value: middle(figures.ours), ratio: ratioOf(figures.ours, figures.koa), must: 1.4, aim: 1.2 }
  yield {
    ...base,
    what: `memory of a worker after ${CHATS.toLocaleString('en')} chats`,
    value: middle(after),
    ratio: middle(after) / koaMiB,
  }
  yield await growth(svc, { ...chats(() => ({})), config: BOUNDED, what: 'chats', warm: WARM })
  const { headers, ...gated } = gatesOn()
  yield await growth(svc, { ...chats(headers), ...gated, what: 'chats, kept in SQLite with all gates on', warm: WARM_KEPT })
  yield await growth(svc, leaving)
}

async function idle(program: (port: number) => Program, then?: (server: Server) => Promise<void>): Promise<number> {
  const port = await freePort()
  await using server = await start(program(port), port)
  await wait(SETTLE_MS)
  const resident = residentOf(server.pids.at(-1)!)
  await then?.(server)
  return resident
}

async function chatted({ port, pids }: Server): Promise<number> {
  const request = requestOf(chatLoad(port, 1, 0), 0)
  const connections = await Promise.all(Array.from({ length: 10 }, () => connect(port)))
  await Promise.all(
    connections.map(async connection => {
      for (let i = 0; i < CHATS / connections.length; i++) await connection.ask(request, false)
      connection.close()
    })
  )
  await wait(SETTLE_MS)
  return residentOf(pids.at(-1)!)
}

/** A server whose growth is measured, with its load. */
interface Growing {
  readonly config: object
  readonly env?: Readonly<Record<string, string>>
  readonly what: string
  /** Runs one batch and returns its size. */
  readonly batch: (port: number) => Promise<number>
  /** Work before the first sample. */
  readonly warm: number
  readonly more: number
  /** Unit of the slope. */
  readonly per: number
  readonly settleMs: number
}

/** Memory after much more work compared to memory after warm-up. It must not grow, because caches are bounded. */
async function growth(svc: readonly string[], growing: Growing): Promise<Figure> {
  const { config, env, what, batch, warm, more, per, settleMs } = growing
  using folder = scratch()
  const port = await freePort()
  const program = svcServe(svc, port, folder.path, config)
  await using server = await start({ ...program, env: { ...program.env, ...env, NODE_OPTIONS: SMALL_HEAP } }, port)
  let done = 0
  const until = async (total: number): Promise<Point> => {
    while (done < total) done += await batch(port)
    await wait(settleMs)
    return [done, residentOf(server.pids.at(-1)!)]
  }
  const points = [await until(warm)]
  for (let look = 1; look <= LOOKS; look++) points.push(await until(warm + (more * look) / LOOKS))
  const [anchorValue, value] = [points[0]![1], points.at(-1)![1]]
  return {
    bench: 'memory',
    what: `memory after ${more.toLocaleString('en')} more ${what}`,
    value,
    unit: 'MiB',
    anchor: `after ${warm.toLocaleString('en')}`,
    anchorValue,
    ratio: value / anchorValue,
    better: 'less',
    must: 1.1,
    note: slopeNote(points, per, what),
  }
}

/** Chats on many connections, with the credentials in `headers`. */
const chats = (headers: (port: number) => Headers) => ({
  batch: async (port: number) => (await run(chatLoad(port, 64, 1_000, headers(port)))).answers,
  more: MANY,
  per: 100_000,
  settleMs: SETTLE_MS,
})

/** Streams whose readers leave in the middle. */
const leaving = {
  config: BOUNDED,
  what: 'aborted streams',
  batch: async (port: number) => {
    const request = requestFor('POST', '/api/v1/chat/stream', { message: `/pace 20\n${'word '.repeat(500)}` })
    await Promise.all(Array.from({ length: AT_ONCE }, () => leaveEarly(port, request)))
    return AT_ONCE
  },
  warm: WARM_LEFT,
  more: STREAMS,
  per: STREAMS,
  settleMs: PAUSE_MS,
}
