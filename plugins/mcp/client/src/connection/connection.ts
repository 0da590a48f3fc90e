import type { Client } from '@modelcontextprotocol/client'
import { codeOf, withTimeout } from '@svc/core'
import type { InputRequest } from '@svc/core/contracts'
import { isModern, META } from '@svc/mcp-protocol'
import { stripped } from '@svc/plugin-kit'
import { capabilitiesOf, isInputMethod, noAnswer, readLog } from './calls/messages.ts'
import type { Respond } from './calls/running-call.ts'
import { failed, notConnected, tooLarge, tooSlow } from './failures.ts'
import { ignoreFailure, JsonRpc, type Link, type LinkEvents, type Message } from './json-rpc.ts'
import type { ResolvedOptions } from './options.ts'
import { abortable, type Clock } from './timing.ts'
import { openStdio } from './transport/stdio.ts'

/** One connection, from its handshake to its end. A late message on it reaches no other connection. */
export interface Connection {
  readonly rpc: JsonRpc
  readonly protocolVersion: string
  /** True if each request carries all of its context (2026-07-28 and later). */
  readonly stateless: boolean
  /** True if each request has its own stream (HTTP). */
  readonly perRequest: boolean
  readonly server?: { readonly name: string; readonly version: string }
  readonly instructions?: string
  /** Resolves with the reason once the connection has ended. */
  readonly ended: Promise<string>
  stderr(): string | undefined
  /** `_meta` of a request: the questions that the caller supports. */
  readonly meta: (can: readonly InputRequest['method'][]) => object
  /** Answers a request of the server (protocols before 2026). */
  readonly respond: Respond
  /** True if a user has logged in meanwhile, so that a new connection can succeed. */
  authorize(): Promise<boolean>
  close(): Promise<void>
}

const CLIENT = { name: 'svc', version: '0.1.0' }
/** A program that stays silent for this long does not know the probe. */
const PROBE_MS = 10_000

/** Connects once. `legacy`: the server is known to need the handshake of before 2026. Throws MCP_CALL_FAILED. */
export async function openConnection(
  options: ResolvedOptions,
  generation: number,
  legacy: boolean,
  toolsChanged: () => void,
  signal: AbortSignal
): Promise<Connection> {
  const { name, connectMs } = options
  let opening: Promise<Connection> | undefined
  const begin = (ending: AbortSignal) => (opening = open(options, generation, legacy, toolsChanged, ending))
  try {
    return await withTimeout(connectMs, begin, { signal, late: () => tooSlow(name, connectMs) })
  } catch (error) {
    // closes the process or the session before the caller gets the error
    await opening?.then(late => late.close()).catch(() => {})
    throw signal.aborted ? (signal.reason as Error) : failed(name, error)
  }
}

/** A login can take several attempts: a server can ask for more scopes than it named first. */
const MAX_LOGINS = 3

async function open(
  options: ResolvedOptions,
  generation: number,
  legacy: boolean,
  toolsChanged: () => void,
  signal: AbortSignal
): Promise<Connection> {
  const { Client } = await import('@modelcontextprotocol/client')
  for (let [old, logins] = [legacy, 0]; ; ) {
    const channel = await openChannel(options, generation, toolsChanged, signal)
    const { link } = channel
    const client = new Client(CLIENT, {
      capabilities: capabilitiesOf(options.can),
      versionNegotiation: {
        mode: old ? 'legacy' : 'auto',
        probe: { timeoutMs: link.perRequest ? options.connectMs : Math.min(PROBE_MS, options.connectMs) },
      },
    })
    client.onerror = channel.countUnexpected
    const failure = await handshake(client, link, options.connectMs, signal)
    if (failure === undefined) return connected(options, client, channel, toolsChanged)
    if (!old && endedOnProbe(failure, link)) old = true
    else if (logins++ === MAX_LOGINS || !(await loggedIn(link, signal))) throw failure as Error
  }
}

/** Returns the error of a failed handshake. */
async function handshake(client: Client, link: Link, timeout: number, signal: AbortSignal): Promise<unknown> {
  const onAbort = () => link.giveUp('the attempt was aborted')
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

/** A program that knows only the old handshake ends when it gets another request first. */
const endedOnProbe = (failure: unknown, link: Link) => !link.perRequest && codeOf(failure) === 'ERA_NEGOTIATION_FAILED'

async function loggedIn(link: Link, signal: AbortSignal): Promise<boolean> {
  try {
    return await abortable(link.authorize(), signal)
  } finally {
    await link.close()
  }
}

/** A link, and JSON-RPC over it. */
interface Channel {
  readonly link: Link
  readonly rpc: JsonRpc
  /** Counts a message that no request expects. Too many of them end the link. */
  readonly countUnexpected: () => void
  /** To be called after the handshake. */
  readonly begin: (stateless: boolean) => void
}

async function openChannel(
  options: ResolvedOptions,
  generation: number,
  toolsChanged: () => void,
  signal: AbortSignal
): Promise<Channel> {
  const { name, limits } = options
  let stateless = false
  const isFlood = createFloodGauge(options)
  const countUnexpected = () => {
    if (isFlood()) link.giveUp('it sent too many messages without a request')
  }
  const events: LinkEvents = {
    take(message) {
      if (message.method !== undefined || !rpc.awaits(message.id)) countUnexpected()
      return rpc.take(message) || takeUnrequested(message)
    },
    tooLong: id => rpc.tooLong(id, tooLarge(name, limits.resultBytes)),
    countUnexpected,
  }
  function takeUnrequested({ id, method, params }: Message): boolean {
    if (method === 'notifications/tools/list_changed') toolsChanged()
    else if (method === 'notifications/message') {
      const step = readLog(params)
      if (step !== undefined) rpc.listener()?.step?.(step)
    } else if ((typeof id === 'string' || typeof id === 'number') && isInputMethod(method) && !stateless) {
      const listener = rpc.listener()
      if (listener?.ask !== undefined) listener.ask(id, method, params)
      // several calls run: the question cannot be attributed to one of them
      else link.send({ jsonrpc: '2.0', id, ...noAnswer(method) }, '', ignoreFailure)
    } else return false
    return true
  }
  const link = await openLink(options, events, signal)
  const rpc = new JsonRpc(name, generation, link, () => stateless)
  const begin = (isStateless: boolean) => {
    stateless = isStateless
  }
  return { link, rpc, countUnexpected, begin }
}

async function openLink(
  { input, limits, clock, servers }: ResolvedOptions,
  events: LinkEvents,
  signal: AbortSignal
): Promise<Link> {
  if (input.url === undefined) return openStdio(input, limits.resultBytes, events, signal)
  const { openHttp } = await import('./transport/http.ts')
  return openHttp(input, servers(), limits.resultBytes, clock, events)
}

const WINDOW_S = 10

/** Returns true when more messages came within ten seconds than a server can send without a request. */
function createFloodGauge({ limits, clock }: ResolvedOptions): () => boolean {
  let [begun, count] = [clock.now(), 0]
  return () => {
    const now = clock.now()
    if (now - begun > WINDOW_S * 1_000) [begun, count] = [now, 0]
    return ++count > WINDOW_S * limits.noticesPerSecond
  }
}

function connected({ name, clock }: ResolvedOptions, client: Client, channel: Channel, toolsChanged: () => void): Connection {
  const { link, rpc } = channel
  const protocolVersion = client.getNegotiatedProtocolVersion()!
  const stateless = isModern(protocolVersion)
  const { name: called, version } = stripped(client.getServerVersion() ?? {}, () => {}) as { name?: string; version?: string }
  const instructions = stripped(client.getInstructions(), () => {})
  channel.begin(stateless)
  if (stateless && client.getServerCapabilities()?.tools?.listChanged) void followTools(client, link, clock, toolsChanged)
  return {
    rpc,
    protocolVersion,
    stateless,
    perRequest: link.perRequest,
    ...(called !== undefined && { server: { name: called, version: version ?? '' } }),
    ...(instructions !== undefined && { instructions }),
    ended: link.ended.then(reason => {
      rpc.end(notConnected(name, `the connection was lost: ${reason}`, 'maybe'))
      return reason
    }),
    stderr: () => link.stderr(),
    meta: can => ({ [META.version]: protocolVersion, [META.client]: CLIENT, [META.capabilities]: capabilitiesOf(can) }),
    respond: (id, answer) => link.send({ jsonrpc: '2.0', id, ...answer }, '', ignoreFailure),
    authorize: () => link.authorize(),
    close: () => link.close(),
  }
}

const FOLLOW_AGAIN_MS = 30_000

/** A stateless server reports changed tools on a stream that the client opens, and opens again when it ends. */
async function followTools(client: Client, link: Link, clock: Clock, toolsChanged: () => void): Promise<void> {
  let over = false
  void link.ended.then(() => {
    over = true
  })
  while (!over) {
    // a server that refuses the stream is asked again later; its tools are listed all the same
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
