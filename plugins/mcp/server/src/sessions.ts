import { networkOf } from '@svc/plugin-kit'
import { isTree, type Principal, type CallContext } from '@svc/core'
import { methodWrong, sessionMissing, sessionsFull, sessionUnknown, unreadable } from './faults.ts'
import type { HttpAnswer, HttpMessage } from './message.ts'
import type { Published } from './published.ts'
import { openSession, type Session } from './session.ts'

export interface SessionLimits {
  /** Of one principal, in this worker. */
  readonly perPrincipal: number
  /** In this worker. */
  readonly inAll: number
  /** Milliseconds without a request and without an open stream after which one ends. */
  readonly idleMs: number
}

/** The sessions of one address, those of this worker. */
export interface Sessions {
  /** Answers a request of the era with sessions. `id` is that of the session; absent where the request names none. */
  answer(message: HttpMessage, body: unknown, id: string | undefined, ctx: CallContext): Promise<HttpAnswer>
  /** Streams without an end end for good: whoever comes back for one begins a new session where another worker serves. */
  retire(): void
  close(): Promise<void>
}

/** All sessions of this worker, by name: the limits are for those of all addresses together. */
export type SessionRoom = Map<string, Held>

export interface SessionsParts {
  /** The address. */
  readonly path: string
  readonly room: SessionRoom
  readonly published: Published
  readonly limits: SessionLimits
  /** A new session's name. */
  readonly name: (ctx: CallContext) => Promise<string>
  readonly own: CallContext
}

interface Held {
  /** Its address. */
  readonly path: string
  readonly session: Session
  readonly principal: string
  /** Whose share of the limit it takes. */
  readonly share: string
}

export function createSessions({ path, room: held, published, limits, name, own }: SessionsParts): Sessions {
  const sweeping = createSweep(held, limits.idleMs)
  let retired = false
  const begin = async (message: HttpMessage, body: unknown, ctx: CallContext) => {
    const share = shareOf(ctx.principal)
    const id = await name(ctx)
    const onclose = () => void held.delete(id)
    const session = await openSession({ id, published, own, onclose })
    // those that were begun at the same time have come first
    if (!makeRoom(held, share, limits)) {
      await session.close()
      return sessionsFull()
    }
    held.set(id, { path, session, principal: ctx.principal.id, share })
    sweeping.start()
    const answer = await session.answer(message, body, ctx)
    // without its name in the answer nothing has begun
    if (answer.headers['mcp-session-id'] === undefined) await session.close()
    return answer
  }
  return {
    async answer(message, body, id, ctx) {
      const { method } = message
      if (!['POST', 'GET', 'DELETE'].includes(method)) return methodWrong()
      if (id === undefined) {
        if (method === 'POST' && body === undefined) return unreadable('the body is not valid JSON')
        return isInitialize(body) ? begin(message, body, ctx) : sessionMissing()
      }
      const one = held.get(id)
      if (one?.path !== path || one.principal !== ctx.principal.id || (retired && method === 'GET')) return sessionUnknown()
      return one.session.answer(message, body, ctx)
    },
    retire() {
      retired = true
    },
    async close() {
      sweeping.stop()
      const here = [...held.values()].filter(one => one.path === path)
      await Promise.all(here.map(({ session }) => session.close()))
    },
  }
}

const isInitialize = (body: unknown) => isTree(body) && body.method === 'initialize'

/** Who has no name shares it with all who have none: then it is the network that counts. */
const shareOf = ({ id, address }: Principal) => (id === 'anonymous' && address ? `address/${networkOf(address)}` : `id/${id}`)

/** Ends the one that was idle for longest, where there is no room for one more: of the same caller, or of all. */
function makeRoom(held: ReadonlyMap<string, Held>, share: string, { perPrincipal, inAll }: SessionLimits): boolean {
  const own = [...held.values()].filter(one => one.share === share)
  const crowd = own.length >= perPrincipal ? own : held.size >= inAll ? [...held.values()] : undefined
  if (!crowd) return true
  const idle = crowd.filter(({ session }) => !session.busy).toSorted((a, b) => a.session.touched - b.session.touched)
  void idle[0]?.session.close()
  return idle.length > 0
}

const SWEEP_MS = 60_000

/** Ends sessions that were idle for too long; runs while there are some. */
function createSweep(held: ReadonlyMap<string, Held>, idleMs: number) {
  let timer: NodeJS.Timeout | undefined
  const stop = () => {
    clearInterval(timer)
    timer = undefined
  }
  const sweep = () => {
    const before = performance.now() - idleMs
    for (const { session } of held.values()) if (!session.busy && session.touched <= before) void session.close()
    if (held.size === 0) stop()
  }
  return {
    start: () => void (timer ??= setInterval(sweep, Math.min(SWEEP_MS, Math.max(1, idleMs / 2)))),
    stop,
  }
}
