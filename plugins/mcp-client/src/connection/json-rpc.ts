import type { ToolStep } from '@svc/core/contracts'
import { callFailed } from '@svc/mcp'
import { failed, type RpcError } from './failures.ts'
import { type Link, type Message, unheard } from './transport/link.ts'

/** What a server answered: JSON-RPC's result, or its error. */
export type Answer = { readonly result: unknown } | { readonly error: RpcError }

/** Who made a request, and hears of it until it is answered. */
export interface Asker {
  /** Who is behind it: what a server asks while requests of several are under way cannot be told apart else. */
  readonly owner?: string
  step?(step: ToolStep): void
  /** The server asks for something, in the way of before 2026. */
  ask?(id: string | number, method: string, params: unknown): void
}

interface AskOptions {
  readonly headers?: Readonly<Record<string, string>>
  /** Gives the request up: the server is told. */
  readonly signal: AbortSignal
  readonly asker?: Asker
}

/** Requests over one link, past the SDK: what it answers is passed on as it came. test/fast.spec.ts holds that the SDK's client is answered the same. */
export interface Exchange {
  /** Throws MCP_CALL_FAILED where the link fails, and what the signal aborted with. */
  request(method: string, params: (token: string) => object, options: AskOptions): Promise<Answer>
  /** Whether somebody waits for the answer of this id. */
  awaits(id: unknown): boolean
  /** True where the message was for a request of ours. */
  take(message: Message): boolean
  /** The answer of this request was too long; of an unknown one, all fail. */
  tooLong(id: string | undefined, error: Error): void
  /** Whose call a message belongs to that names none. */
  asker(): Asker | undefined
  /** All requests fail, and each new one. */
  end(error: Error): void
}

interface Pending {
  readonly asker: Asker | undefined
  resolve(answer: Answer): void
  reject(error: Error): void
}

/** The form of our ids: the SDK's are numbers, or words. */
const OURS = /^\d+\.\d+$/
const LONGEST_MESSAGE = 2_000

/** `name` is the server's, `generation` this connection's: an answer to an older one is nobody's here. */
export function createExchange(name: string, generation: number, link: Link, isStateless: () => boolean): Exchange {
  const pending = new Map<string, Pending>()
  const given = createGivenUp()
  const line: Line = { name, link, isStateless, pending, given }
  let last = 0
  let over: Error | undefined
  const rejectAll = (error: Error) => {
    for (const one of pending.values()) one.reject(error)
  }
  return {
    request(method, params, options) {
      if (over !== undefined) return Promise.reject(over)
      if (options.signal.aborted) return Promise.reject(options.signal.reason as Error)
      const id = `${generation}.${++last}`
      const message = { jsonrpc: '2.0', id, method, params: params(id) }
      return new Promise((resolve, reject) => ask(line, message, options, { resolve, reject }))
    },
    awaits: id => pending.has(id as string),
    take(message) {
      if (message.method === undefined) return answer(name, message, line)
      return message.method === 'notifications/progress' && progress(message.params, pending)
    },
    tooLong(id, error) {
      if (id === undefined) rejectAll(error)
      else pending.get(id)?.reject(error)
    },
    asker() {
      const sender = link.sender()
      return sender === undefined ? onlyOne(pending, given.owners()) : pending.get(sender)?.asker
    },
    end(error) {
      over ??= error
      rejectAll(error)
    },
  }
}

interface Request {
  readonly id: string
}

/** What requests of one exchange share. */
interface Line {
  readonly name: string
  readonly link: Link
  readonly isStateless: () => boolean
  readonly pending: Map<string, Pending>
  readonly given: GivenUp
}

/** Requests that were given up. What a server still sends for one must not reach another caller. */
interface GivenUp {
  add(id: string, owner: string | undefined): void
  /** Its answer has come: now it is over. */
  over(id: string): void
  owners(): readonly (string | undefined)[]
}

/** Milliseconds for which a server may go on sending for such a request; meanwhile its questions reach no other caller. */
const GOES_ON_MS = 5_000
const MOST_GIVEN_UP = 1_000

function createGivenUp(): GivenUp {
  const all = new Map<string, { readonly owner: string | undefined; readonly until: number }>()
  return {
    add(id, owner) {
      if (all.size >= MOST_GIVEN_UP) all.delete(all.keys().next().value!)
      all.set(id, { owner, until: performance.now() + GOES_ON_MS })
    },
    over: id => void all.delete(id),
    owners() {
      const now = performance.now()
      for (const [id, { until }] of all) if (until < now) all.delete(id)
      return [...all.values()].map(one => one.owner)
    },
  }
}

/** Sends a request, and ends it once: with its answer, a failure, or the signal. */
function ask(
  { name, link, isStateless, pending, given }: Line,
  message: Request,
  { headers, signal, asker }: AskOptions,
  ending: Pick<Pending, 'resolve' | 'reject'>
): void {
  const { id } = message
  const streams = link.perRequest ? new AbortController() : undefined
  const forget = () => {
    pending.delete(id)
    signal.removeEventListener('abort', onAbort)
  }
  const resolve = (answer: Answer) => {
    forget()
    ending.resolve(answer)
  }
  const reject = (error: Error) => {
    forget()
    ending.reject(error)
  }
  const onAbort = () => {
    if (asker !== undefined) given.add(id, asker.owner)
    reject(signal.reason as Error)
    if (!link.perRequest || !isStateless()) cancel(link, id)
    streams?.abort()
  }
  signal.addEventListener('abort', onAbort, { once: true })
  pending.set(id, { asker, resolve, reject })
  const more = streams && {
    ...(headers && { headers }),
    requestSignal: streams.signal,
    onRequestStreamEnd: () => reject(cutOff(name)),
  }
  link.send(message, id, error => reject(failed(name, error)), more)
}

/** Who no longer wants an answer does not wait for the server to know it. */
function cancel(link: Link, id: string): void {
  const told = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id, reason: 'cancelled' } }
  link.send(told, '', unheard)
}

const cutOff = (name: string) => callFailed(name, 'connection_refused', 'the connection was lost before the answer came')

const isRpcError = (error: unknown): error is RpcError =>
  typeof error === 'object' && error !== null && typeof (error as RpcError).code === 'number'

function answer(name: string, { id, result, error }: Message, { pending, given }: Line): boolean {
  if (typeof id !== 'string') return false
  const one = pending.get(id)
  given.over(id)
  // what comes too late is nobody's
  if (one === undefined) return OURS.test(id)
  if (isRpcError(error)) one.resolve({ error })
  else if (typeof result === 'object' && result !== null) one.resolve({ result })
  else one.reject(callFailed(name, 'protocol_error', 'its answer is neither a result nor an error', { delivered: 'yes' }))
  return true
}

function progress(params: unknown, pending: Map<string, Pending>): boolean {
  const { progressToken, progress: done, total, message } = (params ?? {}) as Record<string, unknown>
  const one = typeof progressToken === 'string' ? pending.get(progressToken) : undefined
  if (one === undefined || typeof done !== 'number') return false
  one.asker?.step?.({
    type: 'progress',
    progress: done,
    ...(typeof total === 'number' && { total }),
    ...(typeof message === 'string' && { message: message.slice(0, LONGEST_MESSAGE) }),
  })
  return true
}

/** Whose request is under way, where no other's is, nor was given up just now. */
function onlyOne(pending: Map<string, Pending>, givenUp: readonly (string | undefined)[]): Asker | undefined {
  const askers = [...pending.values()].flatMap(one => (one.asker === undefined ? [] : [one.asker]))
  const [first] = askers
  const isAlone = askers.length === 1 && givenUp.length === 0
  const owners = [...askers.map(one => one.owner), ...givenUp]
  const isOne = isAlone || (first?.owner !== undefined && owners.every(owner => owner === first.owner))
  return isOne ? askers.at(-1) : undefined
}
