import { setTimeout } from 'node:timers/promises'
import type { Log, CallContext } from '@svc/core'

/** The thing to follow. */
export interface Followed {
  /** Its name for the log: "the watch over … ended". */
  readonly what: string
  /** Runs until it ends, fails, or the signal aborts. */
  watch(ctx: CallContext): Promise<void>
  /** Reads the present state, after `watch` has begun. */
  read(ctx: CallContext): Promise<void>
}

const FIRST_MS = 100
const LONGEST_MS = 10_000

/**
 * Follows changes until `lasting.signal` aborts. Restarts watch and read after 0.1 s, doubled up to 10 s while they fail at
 * once.
 */
export async function follow({ what, ...both }: Followed, lasting: CallContext, log: Log): Promise<void> {
  for (let waitMs = FIRST_MS; ; waitMs = Math.min(waitMs * 2, LONGEST_MS)) {
    const began = performance.now()
    const err = await attempt(both, lasting)
    if (performance.now() - began > LONGEST_MS) waitMs = FIRST_MS
    await setTimeout(waitMs, undefined, { signal: lasting.signal, ref: false }).catch(() => {})
    if (lasting.signal.aborted) return
    log.warn({ err }, `the watch over ${what} ended; it restarts`)
  }
}

async function attempt({ watch, read }: Pick<Followed, 'watch' | 'read'>, lasting: CallContext): Promise<unknown> {
  const ending = new AbortController()
  const ctx = { ...lasting, signal: AbortSignal.any([lasting.signal, ending.signal]) }
  try {
    // begins before the read, so that no change is missed
    await Promise.all([watch(ctx), read(ctx)])
    return undefined
  } catch (error) {
    return error
  } finally {
    ending.abort()
  }
}

/** A message of a channel. One without a channel says that others can be lost. */
interface Notice {
  readonly channel?: string
  readonly payload?: string
}

/** Most notices that wait for their reader. */
const MOST_NOTICES = 10_000

/** Notices that their reader has not taken yet. */
export function createNotices() {
  let notices: Notice[] = []
  let wake = () => {}
  return {
    add(notice: Notice) {
      // further notices change nothing for a reader that must read anyway
      if (notices.length >= MOST_NOTICES) notices = [{}]
      else if (notice.channel !== undefined || notices.at(-1)?.channel !== undefined || notices.length === 0) notices.push(notice)
      wake()
    },
    take: (): readonly Notice[] => notices.splice(0),
    wake: () => wake(),
    async some(signal: AbortSignal): Promise<void> {
      if (notices.length > 0 || signal.aborted) return
      const { promise, resolve } = Promise.withResolvers<void>()
      wake = resolve
      await promise
    },
  }
}
