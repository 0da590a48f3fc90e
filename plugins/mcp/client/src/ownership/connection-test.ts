import { messageOf } from '@svc/core'
import type { McpErrorClass, McpFailure, McpTestStep } from '@svc/core/contracts'
import { failureOf } from '@svc/mcp-protocol'
import { reachSteps } from '@svc/safe-fetch'
import type { Arguments, McpClient } from '../connection/client-types.ts'
import { clientOptions } from '../registry/client-options.ts'
import type { McpServerSettings } from '../registry/configured-servers.ts'
import { loginStorage } from '../registry/records.ts'
import type { McpContext } from './context.ts'

type ToolToCall = { readonly tool: string; readonly args: Arguments } | undefined

const REFUSED = 'connection_refused'

/** Tests a server step by step over a connection of its own, with a call at the end; ends with the first failed step. */
export async function* testConnection(
  context: McpContext,
  server: McpServerSettings,
  call: ToolToCall,
  signal: AbortSignal
): AsyncGenerator<McpTestStep> {
  const { url } = server.entry
  await using opened = new AsyncDisposableStack()
  let client: McpClient | undefined
  const open = async () => (client ??= opened.use(await openTestClient(context, server)))
  const reach = url === undefined ? [] : reachSteps(new URL(url))
  const steps = reach.map(({ step, run }): Work => ({ step, kind: REFUSED, work: run }))
  for (const work of [...steps, ...serverSteps(server, call, open, () => client)]) {
    const done = await timed(work, server, signal)
    yield done
    if (done.error) return
  }
}

/** Makes a client that fails with the first error: a user waits. Throws MCP_CALL_FAILED. */
async function openTestClient(context: McpContext, server: McpServerSettings): Promise<McpClient> {
  const storage = loginStorage(context.store, server, context.lasting)
  const { createMcpClient } = await import('../connection/mcp-client.ts')
  const client = createMcpClient(clientOptions(server, { ...context, storage }))
  client.setReconnectPolicy(0, 'constant')
  return client
}

interface Work {
  readonly step: McpTestStep['step']
  /** The class for an error without one. */
  readonly kind: McpErrorClass
  readonly work: (signal: AbortSignal) => Promise<string>
  /** The milliseconds of this step, if it was a part of an earlier one. */
  readonly ms?: () => number | undefined
}

async function timed({ step, kind, work, ms: own }: Work, server: McpServerSettings, signal: AbortSignal): Promise<McpTestStep> {
  const begun = performance.now()
  const ms = () => Math.round((own?.() ?? performance.now() - begun) * 10) / 10
  try {
    return { step, found: await work(signal), ms: ms() }
  } catch (error) {
    signal.throwIfAborted()
    const failure = failureOf(error)
    const isPlain = failure.class === 'protocol_error' && (error as { code?: string }).code !== 'MCP_CALL_FAILED'
    const failed = isPlain
      ? { class: kind, message: messageOf(error) }
      : { ...failure, message: messageTo(server, failure, error) }
    return { step: step === 'auth' && failed.class !== 'authentication_failed' ? 'handshake' : step, ms: ms(), error: failed }
  }
}

/** The message with the paths and the command that callers of tools do not see. */
function messageTo({ entry }: McpServerSettings, { message }: McpFailure, error: unknown): string {
  const { cause } = Object(error) as { cause?: { code?: unknown; hint?: unknown } }
  const hint = cause?.hint === undefined ? '' : `; ${cause.hint as string}`
  if (cause?.code === 'CHILD_NOT_STARTED') return `${entry.name}: ${message}: ${entry.command}${hint}`
  return /^SANDBOX_(PATH|COMMAND)$/.test(String(cause?.code)) ? `${message}: ${messageOf(cause)}${hint}` : message
}

/** `opened` is the connection, once `open` has made it. */
function serverSteps(
  server: McpServerSettings,
  call: ToolToCall,
  open: () => Promise<McpClient>,
  opened: () => McpClient | undefined
): Work[] {
  const timings = () => opened()?.status().timings
  const connect = async (signal: AbortSignal) => {
    await (await open()).connect({ signal })
    return credentialOf(server)
  }
  const shakeHands = async () => {
    const { protocolVersion = '', server: named } = (await open()).status()
    return `protocol ${protocolVersion}${named ? `, ${named.name} ${named.version}` : ''}`
  }
  const list = async (signal: AbortSignal) => {
    const { tools, problems } = await (await open()).listTools({ signal })
    return `${tools.length} ${tools.length === 1 ? 'tool' : 'tools'}${problems.length > 0 ? `, left out: ${problems.join('; ')}` : ''}`
  }
  const callTool = async ({ tool, args }: NonNullable<ToolToCall>, signal: AbortSignal) => {
    const { content, error } = await (await open()).callTool(tool, args, { signal })
    if (error) throw Object.assign(new Error(error.message), { code: 'MCP_CALL_FAILED', details: error })
    return content.map(part => (part.type === 'text' ? part.text : part.type)).join(' ')
  }
  return [
    server.entry.url === undefined
      ? { step: 'start', kind: REFUSED, work: connect, ms: () => timings()?.startMs }
      : { step: 'auth', kind: REFUSED, work: connect, ms: () => timings()?.authMs },
    { step: 'handshake', kind: 'protocol_error', work: shakeHands, ms: () => timings()?.handshakeMs },
    { step: 'list', kind: 'protocol_error', work: list },
    ...(call ? [{ step: 'call', kind: 'tool_error', work: (signal: AbortSignal) => callTool(call, signal) } as const] : []),
  ]
}

function credentialOf({ entry }: McpServerSettings): string {
  if (entry.url === undefined) return entry.sandbox ? 'in the process sandbox' : 'runs'
  if (entry.api_key_env !== undefined) return `accepted with the key of ${entry.api_key_env}`
  return entry.oauth === undefined ? 'accepted' : 'accepted with a token'
}
