import type { Client } from '@modelcontextprotocol/client'
import { codeOf, within } from '@svc/core'
import type { InputRequest } from '@svc/core/contracts'
import { isModern, META } from '@svc/mcp-protocol'
import { stripped } from '@svc/plugin-kit'
import { capabilitiesOf } from './call/capabilities.ts'
import type { Respond } from './call/running.ts'
import type { Exchange } from './exchange.ts'
import { failed, notConnected, tooSlow } from './failures.ts'
import type { Clock } from './options.ts'
import { raced } from './raced.ts'
import type { Settled } from './settled.ts'
import { type Link, unheard } from './transport/link.ts'
import { createWiring, type Wiring, type WiringEvents } from './wiring.ts'

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
