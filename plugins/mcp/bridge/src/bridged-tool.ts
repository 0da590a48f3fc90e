import { isTree, type JsonSchema, type CallContext } from '@svc/core'
import type { InputRequest, Json, McpClients, McpServerInfo, McpTool, Tool, ToolDialog, ToolStep } from '@svc/core/contracts'
import { isSafePage, protocolError } from '@svc/mcp-protocol'
import { callerCannotAnswer, noResult } from './errors.ts'
import type { CallReporter } from './call-reporter.ts'

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

/** Creates a tool of this service from a tool of another server. Text and schemas come from that server, `effects` from the configuration. */
export function createBridgedTool({ name, server, tool, clients, reporter }: BridgedToolOptions): Tool {
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
    parameters: tool.inputSchema as JsonSchema,
    ...(tool.outputSchema === undefined ? {} : { result: tool.outputSchema as JsonSchema }),
    timeoutMs: server.callLimitMs,
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
