import { type CallContext, type Coalescer, createCoalescer, type Log, isTree, type JsonSchema } from '@svc/core'
import type { McpClients, McpServerInfo, McpTool, Tool, InputRequest, Json, ToolDialog, ToolStep } from '@svc/core/contracts'
import { bridgedName, isSafePage, protocolError } from '@svc/mcp-protocol'
import { nameClash, callerCannotAnswer, noResult } from './errors.ts'
import type { CallReporter } from './call-reporter.ts'

interface ToolBridgeOptions {
  readonly clients: McpClients
  readonly reporter: CallReporter
  /** Adds a tool to the service and returns a function that removes it. Throws if the name is taken. */
  readonly add: (name: string, tool: Tool) => () => void
  readonly log: Log
  /** Call context of work that no request started. */
  readonly ctx: CallContext
}

/** Publishes the tools of the connected servers as tools of this service. */
export interface Bridge {
  /** Updates the tools of all servers in parallel, so that a slow server does not delay the others. */
  syncAll(): Promise<void>
  /** Updates the tools of a server that has changed. A change during an update starts another update afterwards. */
  sync(server: string): Promise<void>
}

/** A tool in the slot. `fingerprint` identifies the description that it was made from. */
interface AddedTool {
  readonly fingerprint: string
  readonly remove: () => void
}

export function createBridge(options: ToolBridgeOptions): Bridge {
  const added = new Map<string, Map<string, AddedTool>>()
  const syncs = new Map<string, Coalescer<void>>()
  const sync = (server: string): Promise<void> => {
    const of = syncs.get(server) ?? createCoalescer(() => update(server))
    syncs.set(server, of)
    return of.request()
  }
  const update = async (server: string) => {
    if (!options.ctx.signal.aborted) await syncOne(options, server, added).catch(error => logFailure(options, server, error))
  }
  return {
    sync,
    async syncAll() {
      const servers = await options.clients.list(options.ctx)
      await Promise.all(servers.map(({ name }) => sync(name)))
    },
  }
}

/** The tools of the server stay as they are. The next change reads them again. */
function logFailure({ log, ctx }: ToolBridgeOptions, server: string, error: unknown) {
  if (!ctx.signal.aborted) log.warn({ err: error, server }, 'failed to read the tools of an MCP server')
}

async function syncOne(options: ToolBridgeOptions, server: string, all: Map<string, Map<string, AddedTool>>): Promise<void> {
  const { clients, ctx } = options
  const info = (await clients.list(ctx)).find(({ name }) => name === server)
  const offered = info && info.tools.length > 0 ? await clients.tools(server, ctx) : []
  if (ctx.signal.aborted) return
  const tools = offered.filter(({ name, status }) => status === 'good' && info?.tools.includes(name))
  const added = all.get(server) ?? new Map<string, AddedTool>()
  all.set(server, added)
  const wanted = new Map(info ? tools.map(tool => [bridgedName(server, tool.name), withFingerprint(info, tool)]) : [])
  for (const [name, { fingerprint, remove }] of added) {
    if (wanted.get(name)?.fingerprint === fingerprint) continue
    remove()
    added.delete(name)
  }
  for (const [name, { tool, fingerprint }] of wanted)
    if (info && !added.has(name)) addOne(options, info, tool, { name, fingerprint }, added)
}

/** The fingerprint contains everything that callers see. */
const withFingerprint = ({ effects, callLimitMs, workplace }: McpServerInfo, tool: McpTool) => ({
  tool,
  fingerprint: JSON.stringify([tool, effects, callLimitMs, workplace]),
})

function addOne(
  options: ToolBridgeOptions,
  server: McpServerInfo,
  tool: McpTool,
  as: { name: string; fingerprint: string },
  added: Map<string, AddedTool>
) {
  const { clients, reporter, add, log } = options
  try {
    const remove = add(as.name, createBridgedTool({ name: as.name, server, tool, clients, reporter }))
    added.set(as.name, { fingerprint: as.fingerprint, remove })
  } catch (error) {
    log.error({ err: nameClash(as.name, server.name, error), server: server.name }, 'failed to add a tool of an MCP server')
  }
}

interface BridgedToolOptions {
  /** Name in this service. */
  readonly name: string
  readonly server: McpServerInfo
  readonly tool: McpTool
  readonly clients: McpClients
  readonly reporter: CallReporter
}

type Arguments = { readonly [name: string]: Json | undefined }

/** A caller of `call` cannot answer questions. */
const NO_DIALOG: ToolDialog = { can: [] }

/** The deadline of the caller overrides the call timeout of the server. */
const timeoutOf = ({ deadline }: CallContext) => (deadline === undefined ? {} : { timeoutMs: Math.max(1, deadline - Date.now()) })

/** Without a list of its server, models and apps can call a tool. */
const EVERYBODY = { visibility: ['model', 'app'] } as const

/** Creates a tool of this service from a tool of another server. Text and schemas come from that server, `effects` from the configuration. */
function createBridgedTool({ name, server, tool, clients, reporter }: BridgedToolOptions): Tool {
  const run = (args: Arguments, dialog: ToolDialog, ctx: CallContext): AsyncIterable<ToolStep> =>
    reporter.report(
      { server: server.name, tool: name },
      withLabelledQuestions(server.name, clients.call(server.name, tool.name, args, { dialog, ...timeoutOf(ctx) }, ctx)),
      ctx
    )
  return {
    ...(tool.title === undefined ? {} : { title: tool.title }),
    description: tool.description || tool.title || `The tool "${tool.name}" of the server "${server.name}".`,
    category: 'mcp',
    effects: server.effects,
    ...(server.workplace ? { workplace: true } : {}),
    parameters: tool.inputSchema as JsonSchema,
    ...(tool.outputSchema === undefined ? {} : { result: tool.outputSchema as JsonSchema }),
    timeoutMs: server.callLimitMs,
    mcp: { server: server.name, tool: tool.name, ...(tool.ui ?? EVERYBODY) },
    async call(args, ctx) {
      for await (const step of run(args, NO_DIALOG, ctx)) {
        if (step.type === 'result') return step.result
        if (step.type === 'input')
          throw callerCannotAnswer(
            name,
            Object.values(step.requests).map(({ method }) => method)
          )
      }
      throw noResult(name, server.name)
    },
    run,
  }
}

/** Returns the same steps with questions that are safe to show. A hand-written iterator, because each nested generator slows down every step. */
const withLabelledQuestions = (server: string, steps: AsyncIterable<ToolStep>): AsyncIterable<ToolStep> => ({
  [Symbol.asyncIterator]() {
    const source = steps[Symbol.asyncIterator]()
    const leave = () => source.return?.() ?? Promise.resolve({ done: true as const, value: undefined })
    return {
      async next() {
        const item = await source.next()
        if (item.done || item.value.type !== 'input') return item
        try {
          return { done: false, value: questionOf(server, item.value) }
        } catch (error) {
          await leave()
          throw error
        }
      },
      return: leave,
    }
  },
})

type Input = Extract<ToolStep, { readonly type: 'input' }>
type Params = NonNullable<InputRequest['params']>

/**
 * Makes the question of a tool server safe to show: it begins with the name of the server, so that it does not look like a question of svc. Throws MCP_CALL_FAILED
 * for a form that asks for a credential, which the protocol forbids, and for a page that is not https.
 */
function questionOf(server: string, step: Input): Input {
  const requests = Object.entries(step.requests).map(([key, request]) => [key, labelled(server, request)] as const)
  return { ...step, requests: Object.fromEntries(requests) }
}

function labelled(server: string, { method, params = {} }: InputRequest): InputRequest {
  if (method !== 'elicitation/create') return { method, ...(Object.keys(params).length > 0 && { params }) }
  if (params['mode'] === 'url') checkPage(server, params['url'])
  else checkForm(server, params)
  const message = typeof params['message'] === 'string' ? params['message'].slice(0, MAX_MESSAGE) : ''
  return { method, params: { ...params, message: `The tool server "${server}" asks: ${message}` } }
}

const MAX_MESSAGE = 2_000

function checkPage(server: string, written: Json | undefined): void {
  const url = typeof written === 'string' ? URL.parse(written) : null
  if (url === null || !isSafePage(url) || url.username !== '' || url.password !== '')
    throw protocolError(server, 'it asks the user to open a page that does not use https')
}

/** Field names that ask for a credential. */
const CREDENTIAL =
  /pass(word|phrase|code|wd)|\bpwd\b|secret|api[\s_-]?key|(access|auth|bearer|refresh|session)[\s_-]?token|\btoken\b|private[\s_-]?key|credential|(credit|debit)[\s_-]?card|card[\s_-]?number|\bcv[vc]2?\b|\bpin\b|one[\s_-]?time|\botp\b|\b2fa\b|\bssn\b|social[\s_-]?security|(recovery|seed|backup)[\s_-]?(code|phrase)/i

function checkForm(server: string, params: Params): void {
  const schema = params['requestedSchema']
  const properties = isTree(schema) && isTree(schema['properties']) ? schema['properties'] : {}
  for (const [name, field] of Object.entries(properties)) {
    const { title, format, type } = (isTree(field) ? field : {}) as { title?: unknown; format?: unknown; type?: unknown }
    const words = [name.replace(/([a-z\d])([A-Z])/g, '$1 $2').replaceAll('_', ' '), typeof title === 'string' ? title : '']
    const isText = type === undefined || type === 'string' || type === 'number' || type === 'integer'
    if (isText && (format === 'password' || words.some(word => CREDENTIAL.test(word))))
      throw protocolError(
        server,
        `it asks the user for a credential ("${name.slice(0, 100)}") in a form, which the protocol forbids`
      )
  }
}
