import type { Client } from '@modelcontextprotocol/client'
import { codeOf, within } from '@svc/core'
import type { InputRequest } from '@svc/core/contracts'
import { isModern, META } from '@svc/mcp'
import { stripped } from '@svc/tool-parts'
import { capabilitiesOf, isInputMethod, noAnswer, readLog } from './calls/messages.ts'
import type { Respond } from './calls/running-call.ts'
import { failed, notConnected, tooLarge, tooSlow } from './failures.ts'
import { createExchange, type Exchange } from './json-rpc.ts'
import type { Settled } from './options.ts'
import { type Clock, raced } from './timing.ts'
import { type Link, type LinkEvents, type Message, unheard } from './transport/link.ts'
import { openStdio } from './transport/stdio.ts'

/** One connection, from its handshake to its end. What comes late on it reaches nothing else. */
export interface Connection {
  readonly exchange: Exchange
  readonly protocolVersion: string
  /** True where each request says all about itself (2026-07-28 and later). */
  readonly stateless: boolean
  /** True where each request has a stream of its own (HTTP). */
  readonly perRequest: boolean
  readonly server?: { readonly name: string; readonly version: string }
  readonly instructions?: string
  /** Why it ended, once it did. */
  readonly ended: Promise<string>
  stderr(): string | undefined
  /** `_meta` of a request: what the caller can be asked for. */
  readonly meta: (can: readonly InputRequest['method'][]) => object
  /** Answers what the server has asked, in the way of before 2026. */
  readonly respond: Respond
  /** True where somebody has logged in meanwhile, so that a new connection makes sense. */
  authorize(): Promise<boolean>
  /** Ends it at once. */
  giveUp(reason: string): void
  close(): Promise<void>
}

const CLIENT = { name: 'svc', version: '0.1.0' }
/** How long a program may be silent before it counts as one that does not know the question. */
const PROBE_MS = 10_000

/** Connects once; `legacy` where it is known that the server wants the handshake of before 2026. Throws MCP_CALL_FAILED. */
export async function openConnection(
  settled: Settled,
  generation: number,
  legacy: boolean,
  events: WiringEvents,
  signal: AbortSignal
): Promise<Connection> {
  const { name, connectMs } = settled
  let opening: Promise<Connection> | undefined
  const begin = (ending: AbortSignal) => (opening = open(settled, generation, legacy, events, ending))
  try {
    return await within(connectMs, begin, { signal, late: () => tooSlow(name, connectMs) })
  } catch (error) {
    // what it has begun is gone before anybody hears that it failed
    await opening?.then(late => late.close()).catch(() => {})
    throw signal.aborted ? (signal.reason as Error) : failed(name, error)
  }
}

/** Logging in may need several rounds: a server can want more than it said first. */
const MOST_LOGINS = 3

async function open(settled: Settled, generation: number, legacy: boolean, events: WiringEvents, signal: AbortSignal) {
  const { Client } = await import('@modelcontextprotocol/client')
  for (let [old, logins] = [legacy, 0]; ; ) {
    const wiring = await createWiring(settled, generation, events, signal)
    const client = new Client(CLIENT, {
      capabilities: capabilitiesOf(settled.can),
      versionNegotiation: {
        mode: old ? 'legacy' : 'auto',
        probe: { timeoutMs: wiring.link.perRequest ? settled.connectMs : Math.min(PROBE_MS, settled.connectMs) },
      },
    })
    client.onerror = wiring.noise
    const failure = await shakeHands(client, wiring.link, settled.connectMs, signal)
    if (failure === undefined) return connected(settled, client, wiring)
    if (!old && diedOfProbe(failure, wiring.link)) old = true
    else if (logins++ === MOST_LOGINS || !(await loggedIn(wiring.link, signal))) throw failure as Error
  }
}

/** Answers why it failed. */
async function shakeHands(client: Client, link: Link, timeout: number, signal: AbortSignal): Promise<unknown> {
  const onAbort = () => link.giveUp('it was given up')
  signal.addEventListener('abort', onAbort, { once: true })
  if (signal.aborted) onAbort()
  try {
    await client.connect(link.transport, { timeout, signal })
    signal.throwIfAborted()
    return undefined
  } catch (error) {
    if (!link.perRequest || signal.aborted) await link.close()
    return error
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

/** Programs that know no other beginning than the handshake end when they are asked something before. */
const diedOfProbe = (failure: unknown, link: Link) => !link.perRequest && codeOf(failure) === 'ERA_NEGOTIATION_FAILED'

async function loggedIn(link: Link, signal: AbortSignal): Promise<boolean> {
  try {
    return await raced(link.authorize(), signal)
  } finally {
    await link.close()
  }
}

function connected({ name, clock }: Settled, client: Client, { link, exchange, begin, toolsChanged }: Wiring): Connection {
  const protocolVersion = client.getNegotiatedProtocolVersion()!
  const stateless = isModern(protocolVersion)
  const { name: called, version } = stripped(client.getServerVersion() ?? {}, () => {}) as { name?: string; version?: string }
  const instructions = stripped(client.getInstructions(), () => {})
  begin(stateless)
  if (stateless && client.getServerCapabilities()?.tools?.listChanged) void followTools(client, link, clock, toolsChanged)
  return {
    exchange,
    protocolVersion,
    stateless,
    perRequest: link.perRequest,
    ...(called !== undefined && { server: { name: called, version: version ?? '' } }),
    ...(instructions !== undefined && { instructions }),
    ended: link.ended.then(reason => {
      exchange.end(notConnected(name, `the connection was lost: ${reason}`, 'maybe'))
      return reason
    }),
    stderr: () => link.stderr(),
    meta: can => ({ [META.version]: protocolVersion, [META.client]: CLIENT, [META.capabilities]: capabilitiesOf(can) }),
    respond: (id, answer) => link.send({ jsonrpc: '2.0', id, ...answer }, '', unheard),
    authorize: () => link.authorize(),
    giveUp: reason => link.giveUp(reason),
    close: () => link.close(),
  }
}

const FOLLOW_AGAIN_MS = 30_000

/** Stateless servers tell of changed tools on a stream that has to be asked for, and comes to its end now and then. */
async function followTools(client: Client, link: Link, clock: Clock, toolsChanged: () => void): Promise<void> {
  let over = false
  void link.ended.then(() => {
    over = true
  })
  while (!over) {
    // a server that does not keep the stream is asked again later: its tools are listed all the same
    await client.listen({ toolsListChanged: true }).then(
      stream => stream.closed,
      () => {}
    )
    if (over) return
    const again = Promise.withResolvers<void>()
    const stop = clock.after(FOLLOW_AGAIN_MS, again.resolve)
    await Promise.race([again.promise, link.ended])
    stop()
    toolsChanged()
  }
}

/** A link, and who gets what comes over it. */
interface Wiring {
  readonly link: Link
  readonly exchange: Exchange
  /** Something came that is of no use: too much of it ends the link. */
  readonly noise: () => void
  readonly toolsChanged: () => void
  /** The handshake is over. */
  readonly begin: (stateless: boolean) => void
}

export interface WiringEvents {
  /** The server says that its tools are others now. */
  readonly toolsChanged: () => void
}

async function createWiring(
  settled: Settled,
  generation: number,
  { toolsChanged }: WiringEvents,
  signal: AbortSignal
): Promise<Wiring> {
  const { name, limits } = settled
  let stateless = false
  const isTooMuch = createFloodGauge(settled)
  const noise = () => {
    if (isTooMuch()) link.giveUp('it sends more than anybody asked for')
  }
  const events: LinkEvents = {
    take(message) {
      if (message.method !== undefined || !exchange.awaits(message.id)) noise()
      return exchange.take(message) || unasked(message)
    },
    tooLong: id => exchange.tooLong(id, tooLarge(name, limits.resultBytes)),
    noise,
  }

  function unasked({ id, method, params }: Message): boolean {
    if (method === 'notifications/tools/list_changed') toolsChanged()
    else if (method === 'notifications/message') log(params)
    else if (isId(id) && isInputMethod(method) && !stateless) ask(id, method, params)
    else return false
    return true
  }
  function log(params: unknown): void {
    const step = readLog(params)
    if (step !== undefined) exchange.asker()?.step?.(step)
  }
  function ask(id: string | number, method: Parameters<typeof noAnswer>[0], params: unknown): void {
    const asker = exchange.asker()
    if (asker?.ask !== undefined) asker.ask(id, method, params)
    // nobody knows whose question it is
    else link.send({ jsonrpc: '2.0', id, ...noAnswer(method) }, '', unheard)
  }

  const link = await openLink(settled, events, signal)
  const exchange = createExchange(name, generation, link, () => stateless)
  const begin = (isStateless: boolean) => {
    stateless = isStateless
  }
  return { link, exchange, noise, toolsChanged, begin }
}

const isId = (id: unknown): id is string | number => typeof id === 'string' || typeof id === 'number'

const WINDOW_S = 10

/** Says when more came within ten seconds than a server may send unasked. */
function createFloodGauge({ limits, clock }: Settled): () => boolean {
  let [begun, count] = [clock.now(), 0]
  return () => {
    const now = clock.now()
    if (now - begun > WINDOW_S * 1_000) [begun, count] = [now, 0]
    return ++count > WINDOW_S * limits.noticesPerSecond
  }
}

/** Opens what carries the messages. */
async function openLink({ options, limits, clock, servers }: Settled, events: LinkEvents, signal: AbortSignal): Promise<Link> {
  if (options.url === undefined) return openStdio(options, limits.resultBytes, events, signal)
  const { openHttp } = await import('./transport/http.ts')
  return openHttp(options, servers(), limits.resultBytes, clock, events)
}
