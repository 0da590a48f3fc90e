import { closeSync, openSync } from 'node:fs'

const FORCED = 130
/** npm sends its children the signal that the terminal has sent them already. */
const ECHO_MS = process.env.npm_lifecycle_event === undefined ? 0 : 500

/** What signals do. */
export interface SignalActions {
  /** Whether this process was started on a terminal. */
  readonly hadTerminal: boolean
  /** Says that it drains; what it gives says that it has ended. */
  readonly draining: () => (() => void) | undefined
  /** Called once to drain, a second time to end at once. */
  readonly stop: () => Promise<void>
  readonly reload: () => void
}

/** Signals, as long as they are taken. */
export interface Signals {
  /** What the first SIGTERM does. */
  readonly stop: () => void
  /** The exit code, once it has ended: 0, or 130 when it was forced. */
  readonly ended: Promise<number>
  /** Whether it was asked to end. */
  readonly asked: () => boolean
  readonly forget: () => void
}

/** The first SIGINT or SIGTERM drains, the second ends at once; SIGHUP reloads, or drains when it says that the terminal has gone. */
export function takeSignals({ hadTerminal, draining, stop: end, reload }: SignalActions): Signals {
  const ended = Promise.withResolvers<number>()
  let since: number | undefined
  let forced = false
  const stop = () => {
    if (since !== undefined && performance.now() - since < ECHO_MS) return
    forced = since !== undefined
    since ??= performance.now()
    const over = forced ? undefined : draining()
    void end().then(() => {
      if (!forced) over?.()
      ended.resolve(0)
    })
    if (forced) ended.resolve(FORCED)
  }
  const hup = () => (hadTerminal && isTerminalGone() ? stop() : reload())
  const taken = [['SIGINT', stop] as const, ['SIGTERM', stop] as const, ['SIGHUP', hup] as const]
  for (const [signal, act] of taken) process.on(signal, act)
  return {
    stop,
    ended: ended.promise,
    asked: () => since !== undefined,
    forget: () => taken.forEach(([signal, act]) => process.off(signal, act)),
  }
}

function isTerminalGone(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return false
  } catch {
    return true
  }
}

/**
 * Ends the process, quietly and with 0, when nobody reads its standard output any more: `svc … | head -1` has what it wanted. Not with 141, as a program
 * that SIGPIPE ends: nothing has failed, and under `set -o pipefail` the whole line would. Without this oclif waits for a drain that never comes.
 */
export function endWithReader(): void {
  process.stdout.on('error', leave)
  process.stderr.on('error', stay)
}

/** Goes on instead: a server serves, whoever reads what it says. */
export function outliveReader(): void {
  process.stdout.off('error', leave).on('error', stay)
  process.stderr.on('error', stay)
}

function leave(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error
  process.exit(0)
}

const stay = () => {}
