import type { Blame } from './blame.ts'
import { fromWire } from '../processes/errors.ts'
import type { SvcError } from '../src/errors.ts'
import { systemUse } from '../src/token.ts'
import { workerBlocked, workerSlow } from './errors.ts'
import type { Handoffs } from './handoffs.ts'
import { watchBeats } from './heartbeat.ts'
import { type ForkOptions, forkMember, killMember, type Member } from './member.ts'
import type { Desk } from './peer-desk.ts'
import { HEIR, KEPT_OUT, Supervision, TRACE } from './worker-link.ts'

const START_MS = 120_000
/** Longer than it takes to import all plugins from a cold and slow disk. */
const BLOCKED_MS = 30_000

export interface HireOptions extends ForkOptions {
  /** Milliseconds a worker has until it reports. Default 120,000. */
  readonly startLimitMs?: number
  /** Milliseconds without a sign of life after which a worker that starts is killed. Default 30,000. */
  readonly blockedLimitMs?: number
}

/** What a new worker comes into. */
export interface Place<R> {
  readonly desk: Desk
  readonly handoffs: Handoffs
  readonly generation: number
  readonly env: NodeJS.ProcessEnv | undefined
  /** What the first of its generation has left; absent for the first. */
  readonly legacy: unknown
  readonly blame: Blame
  onReady(member: Member<R>, report: R): void
  onFailed(member: Member<R>, problems: readonly SvcError[]): void
  onExit(member: Member<R>, how: string): void
}

/** Forks a worker and attends to its line until it is gone. */
export function hire<R>(options: HireOptions, place: Place<R>): Member<R> {
  const { desk, handoffs, generation, legacy, blame } = place
  const { startLimitMs = START_MS, blockedLimitMs = BLOCKED_MS } = options
  const trace = blame.newTrace()
  const keptOut = blame.keptOut(generation)
  const env = {
    ...place.env,
    ...(legacy === undefined ? {} : { [HEIR]: '1' }),
    ...(trace === undefined ? {} : { [TRACE]: trace }),
    ...(keptOut.length === 0 ? {} : { [KEPT_OUT]: JSON.stringify(keptOut) }),
  }
  const member = forkMember<R>(options, env, generation, handoffs)
  member.channel.offer('supervision', Supervision, {
    ready: async report => place.onReady(member, report as R),
    failed: async problems => place.onFailed(member, problems.map(fromWire)),
    legacy: async () => legacy,
  })
  const leave = desk.seat({ pid: member.worker.process.pid ?? 0, generation }, member.channel, () => member.state === 'ready')
  const cannot = (problem: SvcError) => {
    place.onFailed(member, [problem])
    killMember(member)
  }
  member.timer = setTimeout(() => cannot(workerSlow(startLimitMs)), startLimitMs)
  const endBeats = watchBeats(
    blockedLimitMs,
    () => (member.state === 'starting' ? [member] : []),
    () => member.control.beat(systemUse(member.channel.signal)),
    () => cannot(workerBlocked(blockedLimitMs))
  )
  member.worker.once('exit', (code: number | null, signal: string | null) => {
    endBeats()
    leave()
    place.onExit(member, signal ?? `code ${code}`)
  })
  return member
}
