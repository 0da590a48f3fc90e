import { messageOf } from '@svc/core'
import type { Json, McpErrorClass, McpFailure, McpTestStep as TestStep } from '@svc/core/contracts'
import { failureOf } from '@svc/mcp-protocol'
import { reachSteps } from '@svc/safe-fetch'
import type { McpClient } from '../connection/client-types.ts'
import { clientOptions } from '../registry/client-options.ts'
import type { McpServerSettings } from '../registry/configured-servers.ts'
import { loginStorage } from '../registry/records.ts'
import type { McpContext } from './context.ts'

/** What to test. */
interface ConnectionTest {
  readonly server: McpServerSettings
  /** A tool to call at the end. */
  readonly call: { readonly tool: string; readonly args: { readonly [name: string]: Json | undefined } } | undefined
  readonly signal: AbortSignal
}

const REFUSED = 'connection_refused'

/** Tests a server step by step over a connection of its own; ends with the first failed step. */
export async function* testConnection(context: McpContext, test: ConnectionTest): AsyncGenerator<TestStep> {
  const { url } = test.server.entry
  const steps = [
    ...(url === undefined ? [] : reachSteps(new URL(url))).map(({ step, run }): Work => ({ step, kind: REFUSED, work: run })),
    ...serverSteps(test, () => openTestClient(context, test.server)),
  ]
  try {
    for (const step of steps) {
      const done = await timed(step, test)
      yield done
      if (done.error) return
    }
  } finally {
    for (const { end } of steps) await end?.()
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
  readonly step: TestStep['step']
  /** The class for an error without one. */
  readonly kind: McpErrorClass
  readonly work: (signal: AbortSignal) => Promise<string>
  /** The milliseconds of this step, if it was a part of an earlier one. */
  readonly ms?: () => number | undefined
  readonly end?: () => Promise<void>
}

async function timed({ step, kind, work, ms: own }: Work, { signal, server }: ConnectionTest): Promise<TestStep> {
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

function serverSteps({ server, call }: ConnectionTest, open: () => Promise<McpClient>): Work[] {
  let client: McpClient | undefined
  const opened = async () => (client ??= await open())
  const timings = () => client?.status().timings
  const isLocal = server.entry.url === undefined
  const steps: Work[] = [
    {
      step: isLocal ? 'start' : 'auth',
      kind: REFUSED,
      async work(signal) {
        await (await opened()).connect({ signal })
        return credentialOf(server)
      },
      ms: () => timings()?.[isLocal ? 'startMs' : 'authMs'],
      end: async () => client?.close(),
    },
    {
      step: 'handshake',
      kind: 'protocol_error',
      async work() {
        const { protocolVersion = '', server: named } = (await opened()).status()
        return `protocol ${protocolVersion}${named ? `, ${named.name} ${named.version}` : ''}`
      },
      ms: () => timings()?.handshakeMs,
    },
    {
      step: 'list',
      kind: 'protocol_error',
      async work(signal) {
        const { tools, problems } = await (await opened()).listTools({ signal })
        return `${tools.length} tools${problems.length > 0 ? `, left out: ${problems.join('; ')}` : ''}`
      },
    },
  ]
  if (call)
    steps.push({
      step: 'call',
      kind: 'tool_error',
      async work(signal) {
        const { content, error } = await (await opened()).callTool(call.tool, call.args, { signal })
        if (error) throw Object.assign(new Error(error.message), { code: 'MCP_CALL_FAILED', details: error })
        return content.map(part => (part.type === 'text' ? part.text : part.type)).join(' ')
      },
    })
  return steps
}

function credentialOf({ entry }: McpServerSettings): string {
  if (entry.url === undefined) return entry.sandbox ? 'in the process sandbox' : 'runs'
  if (entry.api_key_env !== undefined) return `accepted with the key of ${entry.api_key_env}`
  return entry.oauth === undefined ? 'accepted' : 'accepted with a token'
}
