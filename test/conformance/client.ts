import type { ToolDialog } from '@svc/core/contracts'
import { createMcpClient, type HttpOptions, type McpClient, openLoopback } from '@svc/plugin-mcp-client/client'
import type { ListedTool } from '@svc/mcp-protocol'

/** What the official suite tells a client that it drives. */
export interface Scenario {
  readonly url: string
  readonly name: string
  readonly context: {
    readonly client_id?: string
    readonly client_secret?: string
    readonly toolCalls?: readonly { readonly name: string; readonly arguments: Arguments }[]
  }
}
type Arguments = Parameters<McpClient['call']>[1]

const CAN: ToolDialog['can'] = ['elicitation/create', 'sampling/createMessage', 'roots/list']
const WAIT_MS = 70_000

const ANSWERS: Readonly<Record<string, ToolDialog['answers']>> = {
  'elicitation/create': { action: 'accept', content: {} },
  'sampling/createMessage': { role: 'assistant', model: 'none', content: { type: 'text', text: 'nothing' } },
  'roots/list': { roots: [] },
}

/** Does what any host would do with a server: lists its tools, calls them, answers what it is asked, logs in where it has to. */
export async function play({ url, name, context }: Scenario): Promise<void> {
  const common: HttpOptions = { url, can: CAN, connectMs: WAIT_MS, retryAttempts: 0 }
  if (!name.startsWith('auth/')) return run(common, context)
  await using person = await openLoopback(async page => void (await fetch(page).then(answer => answer.text())), 0)
  const { client_id: clientId, client_secret: clientSecret } = context
  const oauth = {
    person,
    clientMetadataUrl: 'https://conformance-test.local/client-metadata.json',
    ...(clientId !== undefined && { clientId }),
    ...(clientSecret !== undefined && { clientSecret }),
  }
  // the authorization servers of the suite are on other ports of this machine
  await run({ ...common, oauth, allow: ['localhost', '127.0.0.1', '::1'] }, context)
}

async function run(options: HttpOptions, context: Scenario['context']): Promise<void> {
  const ctx = { signal: AbortSignal.timeout(WAIT_MS) }
  await using client = createMcpClient(options)
  const { tools } = await client.listTools(ctx)
  const calls = context.toolCalls ?? tools.map(tool => ({ name: tool.name, arguments: sampleOf(tool, tools[0]!) }))
  for (const item of calls) await call(client, item.name, item.arguments, { can: CAN }, ctx)
}

async function call(
  client: McpClient,
  name: string,
  args: Arguments,
  dialog: ToolDialog,
  ctx: { signal: AbortSignal }
): Promise<void> {
  for await (const step of client.call(name, args, { dialog }, ctx)) {
    if (step.type !== 'input') continue
    const answers = Object.fromEntries(Object.entries(step.requests).map(([key, { method }]) => [key, ANSWERS[method]!]))
    return call(client, name, args, { can: CAN, answers, ...(step.state !== undefined && { state: step.state }) }, ctx)
  }
}

const SAMPLES: Readonly<Record<string, Arguments[string]>> = {
  number: 1,
  integer: 1,
  string: 'text',
  boolean: true,
  array: [],
  object: {},
}

function sampleOf({ name, inputSchema }: ListedTool, first: ListedTool): Arguments {
  // so the suite sees what has become of a schema
  if (name === 'json_schema_echo') return { schema: first.inputSchema as Arguments[string] }
  const { properties = {} } = inputSchema as { properties?: Record<string, { type?: string }> }
  return Object.fromEntries(Object.entries(properties).map(([name, { type = 'string' }]) => [name, SAMPLES[type] ?? 'text']))
}
