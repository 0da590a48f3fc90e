import { fromWire } from '../processes/errors.ts'
import type { SvcError } from '../src/errors.ts'
import { workerSlow } from './errors.ts'
import type { Handoffs } from './handoffs.ts'
import { type ForkOptions, forkMember, killMember, type Member } from './member.ts'
import type { Desk } from './peer-desk.ts'
import { HEIR, Supervision } from './worker-link.ts'

const START_MS = 120_000

/** What a new worker comes into. */
export interface Place<R> {
  readonly desk: Desk
  readonly handoffs: Handoffs
  readonly generation: number
  readonly env: NodeJS.ProcessEnv | undefined
  readonly startLimitMs: number | undefined
  /** What the first of its generation has left; absent for the first. */
  readonly legacy: unknown
  onReady(member: Member<R>, report: R): void
  onFailed(member: Member<R>, problems: readonly SvcError[]): void
  onExit(member: Member<R>, how: string): void
}

/** Forks a worker and attends to its line until it is gone. */
export function hire<R>(options: ForkOptions, place: Place<R>): Member<R> {
  const { desk, handoffs, generation, legacy, startLimitMs = START_MS } = place
  const env = { ...place.env, ...(legacy === undefined ? {} : { [HEIR]: '1' }) }
  const member = forkMember<R>(options, env, generation, handoffs)
  member.channel.offer('supervision', Supervision, {
    ready: async report => place.onReady(member, report as R),
    failed: async problems => place.onFailed(member, problems.map(fromWire)),
    legacy: async () => legacy,
  })
  const leave = desk.seat({ pid: member.worker.process.pid ?? 0, generation }, member.channel, () => member.state === 'ready')
  member.timer = setTimeout(() => {
    place.onFailed(member, [workerSlow(startLimitMs)])
    killMember(member)
  }, startLimitMs)
  member.worker.once('exit', (code: number | null, signal: string | null) => {
    leave()
    place.onExit(member, signal ?? `code ${code}`)
  })
  return member
}
