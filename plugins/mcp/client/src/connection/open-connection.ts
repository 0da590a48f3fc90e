import type { Client } from '@modelcontextprotocol/client'
import { abortable, codeOf, pause, withTimeout } from '@svc/core'
import { capabilitiesOf, tooSlow, undelivered } from '@svc/mcp-protocol'
import { CLIENT, McpConnection, type ServerTransport } from './connection.ts'
import type { ResolvedOptions } from './resolved-options.ts'
import { openStdio } from './transport/stdio.ts'

interface ConnectionRequest {
  /** Counts the connections of a client. */
  readonly generation: number
  /** The server is known to need the handshake of before 2026. */
  readonly isLegacy: boolean
  readonly toolsChanged: () => void
}

/** A program that stays silent for this long does not know the probe. */
const PROBE_MS = 10_000
/** A login can take several attempts: a server can ask for more scopes than it named first. */
const MAX_LOGINS = 3

/** Connects once. Throws MCP_CALL_FAILED, and the reason of an abort. */
export async function openConnection(
  options: ResolvedOptions,
  request: ConnectionRequest,
  signal: AbortSignal
): Promise<McpConnection> {
  const { name, connectMs } = options
  let opening: Promise<McpConnection> | undefined
  const begin = (ending: AbortSignal) => (opening = open(options, request, ending))
  try {
    return await withTimeout(connectMs, begin, { signal, late: () => tooSlow(name, connectMs, 'no') })
  } catch (error) {
    // closes the process or the session before the caller gets the error
    await opening?.then(({ transport }) => transport.end()).catch(() => {})
    throw signal.aborted ? (signal.reason as Error) : undelivered(name, error)
  }
}

async function open(options: ResolvedOptions, request: ConnectionRequest, signal: AbortSignal): Promise<McpConnection> {
  const { Client } = await import('@modelcontextprotocol/client')
  for (let [{ isLegacy }, logins] = [request, 0]; ; ) {
    const connection = new McpConnection(options, request.generation, request.toolsChanged)
    const begun = performance.now()
    const transport = await openTransport(options, connection, signal)
    connection.transport = transport
    const opened = performance.now()
    const client = new Client(CLIENT, {
      capabilities: capabilitiesOf(options.can),
      versionNegotiation: {
        mode: isLegacy ? 'legacy' : 'auto',
        probe: { timeoutMs: transport.hasPerRequestStream ? options.connectMs : Math.min(PROBE_MS, options.connectMs) },
      },
    })
    client.onerror = () => connection.countUnexpected()
    try {
      await handshake(client, transport, options.connectMs, signal)
      connection.connected(client)
      const authMs = transport.authMs()
      connection.timings = { startMs: opened - begun, authMs, handshakeMs: performance.now() - opened - authMs }
      if (connection.isStateless && client.getServerCapabilities()?.tools?.listChanged)
        void followTools(client, transport, request.toolsChanged)
      return connection
    } catch (error) {
      const isOld = !isLegacy && isEndedOnProbe(error, transport)
      isLegacy ||= isOld
      const canLogIn = logins++ < MAX_LOGINS && !signal.aborted
      const login = canLogIn ? abortable(transport.authorize(), signal) : Promise.resolve(false)
      const isLoggedIn = await login.finally(() => transport.end())
      if (!isOld && !isLoggedIn) throw error
    }
  }
}

async function openTransport({ input, limits, servers }: ResolvedOptions, connection: McpConnection, signal: AbortSignal) {
  if (input.url === undefined) return openStdio(input, limits.resultBytes, connection, signal)
  const { openHttp } = await import('./transport/http.ts')
  return openHttp(input, servers(), limits.resultBytes, connection)
}

async function handshake(client: Client, transport: ServerTransport, timeout: number, signal: AbortSignal): Promise<void> {
  const onAbort = () => transport.abort('the attempt was aborted')
  signal.addEventListener('abort', onAbort, { once: true })
  if (signal.aborted) onAbort()
  try {
    await client.connect(transport, { timeout, signal })
    signal.throwIfAborted()
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

/** A program that knows only the old handshake ends when it gets another request first. */
const isEndedOnProbe = (error: unknown, transport: ServerTransport) =>
  !transport.hasPerRequestStream && codeOf(error) === 'ERA_NEGOTIATION_FAILED'

const FOLLOW_AGAIN_MS = 30_000

/** A stateless server reports changed tools on a stream that the client opens, and opens again when it ends. */
async function followTools(client: Client, { ended }: ServerTransport, toolsChanged: () => void): Promise<void> {
  const over = new AbortController()
  void ended.then(() => over.abort())
  while (!over.signal.aborted) {
    // a server that refuses the stream is asked again later; its tools are listed all the same
    await client.listen({ toolsListChanged: true }).then(
      stream => stream.closed,
      () => {}
    )
    await pause(FOLLOW_AGAIN_MS, over.signal).then(toolsChanged, () => {})
  }
}
