import type { Log, SlotView, Use } from '@svc/core'
import type { AuthScheme } from '@svc/core/contracts'
import { follow } from '@svc/space/follow'
import type { Authentication } from './authentication.ts'
import { isEndless } from './crowd.ts'
import type { Exchange, Gate } from './exchange.ts'

interface StandingParts {
  readonly schemes: SlotView<AuthScheme>
  readonly authentication: Pick<Authentication, 'again' | 'asks'>
  readonly log: Log
  /** The circumstances of work that no request waits for. */
  readonly lasting: Use
}

/** A credential that is taken beyond its own end (clocks differ) is asked for again so often. */
const SECOND = 1_000
/** What a timer of Node can wait for. */
const LONGEST_TIMER = 2 ** 31 - 1

/**
 * The gate of streams without an end: each lasts no longer than the credential that opened it. It is asked for again when a scheme tells a change and when it
 * expires; where it does not hold any more, or nobody can say so, the stream is cut off, and who comes back is refused like others.
 */
export function createStanding({ schemes, authentication, log, lasting }: StandingParts): Gate {
  const open = new Map<Exchange, NodeJS.Timeout | undefined>()
  const watched = new Set<string>()
  /** Streams whose credential is being looked at; true: once more, for something has changed since. */
  const asking = new Map<Exchange, boolean>()

  /** A scheme that reports changes without end makes no more than one look at a time for each stream. */
  const ask = async (x: Exchange): Promise<void> => {
    if (asking.has(x)) return void asking.set(x, true)
    do {
      asking.set(x, false)
      await look(x)
    } while (asking.get(x) && open.has(x))
    asking.delete(x)
  }
  const look = async (x: Exchange): Promise<void> => {
    const standing = await authentication.again(x)
    if (!open.has(x)) return
    if (standing) return arm(x, standing.expires)
    x.refused = 'AUTHENTICATION_FAILED'
    x.res.destroy()
  }
  const arm = (x: Exchange, expires: number | undefined) => {
    clearTimeout(open.get(x))
    const left = expires === undefined ? undefined : expires - Date.now()
    open.set(x, left === undefined ? undefined : setTimeout(() => void ask(x), left > 0 ? Math.min(left, LONGEST_TIMER) : SECOND))
  }
  const watch = (name: string) => {
    watched.add(name)
    const parts = {
      what: `the credentials of ${name}`,
      watch: async (use: Use) => {
        for await (const _ of schemes.get(name)?.changes?.(use) ?? []) for (const x of open.keys()) void ask(x)
      },
      read: async () => {},
    }
    follow(parts, lasting, log).catch((err: unknown) =>
      log.error({ err, scheme: name }, 'changes of credentials are no longer seen')
    )
  }
  return x => {
    if (x.gone || !isEndless(x) || !authentication.asks(x)) return
    open.set(x, undefined)
    x.res.once('close', () => {
      clearTimeout(open.get(x))
      open.delete(x)
    })
    for (const [name, scheme] of schemes.entries()) if (scheme.changes && !watched.has(name)) watch(name)
    // what was taken back since the gate has asked
    void ask(x)
  }
}
