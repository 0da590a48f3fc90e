import cluster, { type Worker } from 'node:cluster'
import { type Channel, openChannel } from '../processes/channel.ts'
import { ipcTransport } from '../processes/wire.ts'
import type { SvcError } from '../src/errors.ts'
import { systemUse } from '../src/token.ts'
import type { Handoffs } from './handoffs.ts'
import { type DrainWish, TRACE, WorkerControl } from './worker-link.ts'

/** One worker, as commands see it. */
export interface WorkerInfo {
  readonly pid: number
  readonly state: 'starting' | 'ready' | 'draining'
  /** Grows with each reload. */
  readonly generation: number
  /** Unix time in milliseconds. */
  readonly startedAt: number
}

/** One worker, as the supervisor holds it. */
export interface Member<R> extends AnyMember {
  /** Its report, or why it did not come up: settled once it is ready or gone. */
  readonly up: PromiseWithResolvers<R>
}

/** What is known of a worker whatever it reports. */
export interface AnyMember {
  readonly worker: Worker
  readonly channel: Channel
  readonly control: WorkerControl
  readonly generation: number
  readonly startedAt: number
  /** The file in which it leaves whose frame it handled when it ended. */
  readonly trace: string | undefined
  readonly gone: PromiseWithResolvers<void>
  /** A reload stands or falls with it: nobody replaces it. */
  trial: boolean
  state: WorkerInfo['state']
  /** `performance.now()` when it was ready. */
  readyAt: number | undefined
  problems: readonly SvcError[] | undefined
  timer: NodeJS.Timeout | undefined
}

/** How long it has been ready. */
export const servedMs = ({ readyAt }: Pick<AnyMember, 'readyAt'>): number =>
  readyAt === undefined ? 0 : performance.now() - readyAt

/** What a worker may need to end once its requests have ended, before it is killed. */
const CLOSE_MS = 15_000

export interface ForkOptions {
  readonly exec: string
  readonly args?: readonly string[]
  readonly execArgv?: readonly string[]
  readonly env?: NodeJS.ProcessEnv
}

/**
 * Connections are dealt out in turn (SCHED_RR). Measured with 64 short connections to two workers, 12 rounds each: in turn, the lesser one never had fewer
 * than 26; on one shared socket (SCHED_NONE) 22 one at a time, and 7 and 0 when all came at once; with a socket each (SO_REUSEPORT) 22, and a socket that
 * closes drops what waits in it. It costs 0.1 ms of CPU a connection, none a request, and the same with one worker as with many; a shared socket wakes them all.
 */
export function forkMember<R>(options: ForkOptions, more: NodeJS.ProcessEnv, generation: number, handoffs: Handoffs): Member<R> {
  const { exec, args = [], execArgv = [], env } = options
  cluster.schedulingPolicy = cluster.SCHED_RR
  cluster.setupPrimary({ exec, args: [...args], execArgv: [...execArgv], serialization: 'advanced' })
  const worker = cluster.fork({ ...env, ...more })
  // Node would end this process for an error that nobody hears.
  worker.on('error', () => {})
  handoffs.watch(worker)
  const channel = openChannel(ipcTransport(worker.process), { name: `worker ${worker.process.pid}`, self: 'supervisor' })
  const up = Promise.withResolvers<R>()
  // Whoever waits for it hears of it; for the others there are events.
  up.promise.catch(() => {})
  return {
    worker,
    channel,
    control: channel.reach('worker', WorkerControl),
    generation,
    startedAt: Date.now(),
    trace: more[TRACE],
    up,
    gone: Promise.withResolvers<void>(),
    trial: false,
    state: 'starting',
    readyAt: undefined,
    problems: undefined,
    timer: undefined,
  }
}

/**
 * Lets it end what it has begun; kills it `killMs` later. Resolves when it takes no new connection any more, or is gone: it has said so on the same line,
 * before it gives the sign of life.
 */
async function drainMember(member: AnyMember, wish: DrainWish, killMs: number): Promise<void> {
  const { control, channel } = member
  clearTimeout(member.timer)
  member.timer = setTimeout(() => killMember(member), killMs)
  member.state = 'draining'
  const use = systemUse(channel.signal)
  const asked = control.drain(wish, use).catch(() => killMember(member))
  await asked.then(() => control.beat(use)).catch(() => {})
}

/** Lets all of them end what they have begun; resolves when they are gone. */
export async function drainAll(members: readonly AnyMember[], limitMs: number, handoffs: Handoffs): Promise<void> {
  await Promise.all(members.map(member => drainMember(member, { successor: false }, limitMs)))
  handoffs.closeRefused()
  await Promise.all(members.map(member => member.gone.promise))
}

/** Its successors serve: one that has served ends what it has begun, one that has not is not needed. */
export async function retire(member: AnyMember, limitMs: number): Promise<void> {
  if (member.state === 'draining') return
  if (member.state === 'ready') return drainMember(member, { successor: true, limitMs }, limitMs + CLOSE_MS)
  member.state = 'draining'
  killMember(member)
}

/** So many generations may drain when the next one is begun; one more drains when it is ready. */
const DRAINING = 1

/** Waits until so few generations drain that one more may. */
export async function roomFor(members: ReadonlySet<AnyMember>): Promise<void> {
  const draining = [...members].filter(member => member.state === 'draining')
  if (new Set(draining.map(member => member.generation)).size <= DRAINING) return
  await Promise.race(draining.map(member => member.gone.promise))
  await roomFor(members)
}

export const killMember = ({ worker }: AnyMember): void => void worker.process.kill('SIGKILL')

export const infoOf = ({ worker, state, generation, startedAt }: AnyMember): WorkerInfo => ({
  pid: worker.process.pid ?? 0,
  state,
  generation,
  startedAt,
})

/** Whether a worker of this generation that is gone must be replaced. */
export const isMissed = ({ state, trial, generation }: AnyMember, current: number): boolean =>
  state !== 'draining' && !trial && generation === current
