import type { Log, SlotView, CallContext } from '@svc/core'
import type { AuthScheme } from '@svc/core/contracts'
import { follow } from '@svc/storage-kit/follow'
import type { Authentication } from './authentication.ts'
import type { Context, Middleware } from './context.ts'
import { isEndless } from './concurrency-limit.ts'

interface RevalidationParts {
  readonly schemes: SlotView<AuthScheme>
  readonly authentication: Pick<Authentication, 'again' | 'asks'>
  readonly log: Log
  /** The circumstances of work that no request waits for. */
  readonly lasting: CallContext
}

/** A credential that is taken beyond its own end (clocks differ) is asked for again so often. */
const SECOND = 1_000
/** What a timer of Node can wait for. */
const LONGEST_TIMER = 2 ** 31 - 1

/**
 * Watches streams without an end: each lasts no longer than the credential that opened it. It is asked for again when a scheme tells a change and when it
 * expires; where it does not hold any more, or nobody can say so, the stream is cut off, and who comes back is refused like others.
 */
export function createCredentialRevalidation({ schemes, authentication, log, lasting }: RevalidationParts): Middleware {
  const open = new Map<Context, NodeJS.Timeout | undefined>()
  const watched = new Set<string>()
  /** Streams whose credential is being looked at; true: once more, for something has changed since. */
  const asking = new Map<Context, boolean>()

  /** A scheme that reports changes without end makes no more than one look at a time for each stream. */
  const ask = async (ctx: Context): Promise<void> => {
    if (asking.has(ctx)) return void asking.set(ctx, true)
    do {
      asking.set(ctx, false)
      await look(ctx)
    } while (asking.get(ctx) && open.has(ctx))
    asking.delete(ctx)
  }
  const look = async (ctx: Context): Promise<void> => {
    const standing = await authentication.again(ctx.state)
    if (!open.has(ctx)) return
    if (standing) return arm(ctx, standing.expires)
    ctx.state.refused = 'AUTHENTICATION_FAILED'
    ctx.res.destroy()
  }
  const arm = (ctx: Context, expires: number | undefined) => {
    clearTimeout(open.get(ctx))
    const left = expires === undefined ? undefined : expires - Date.now()
    open.set(
      ctx,
      left === undefined ? undefined : setTimeout(() => void ask(ctx), left > 0 ? Math.min(left, LONGEST_TIMER) : SECOND)
    )
  }
  const watch = (name: string) => {
    watched.add(name)
    const parts = {
      what: `the credentials of ${name}`,
      watch: async (callContext: CallContext) => {
        for await (const _ of schemes.get(name)?.changes?.(callContext) ?? []) for (const ctx of open.keys()) void ask(ctx)
      },
      read: async () => {},
    }
    follow(parts, lasting, log).catch((err: unknown) =>
      log.error({ err, scheme: name }, 'changes of credentials are no longer seen')
    )
  }
  return (ctx, next) => {
    if (ctx.state.gone || !isEndless(ctx) || !authentication.asks(ctx.state)) return next()
    open.set(ctx, undefined)
    ctx.res.once('close', () => {
      clearTimeout(open.get(ctx))
      open.delete(ctx)
    })
    for (const [name, scheme] of schemes.entries()) if (scheme.changes && !watched.has(name)) watch(name)
    // what was taken back since authentication has asked
    void ask(ctx)
    return next()
  }
}
