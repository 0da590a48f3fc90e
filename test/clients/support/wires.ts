import { setTimeout as sleep } from 'node:timers/promises'
import { type Answerer, type FakeUpstream, openUpstream, type Received, type Reply } from '@svc/testing'

type Tree = ReturnType<typeof JSON.parse>

/** A tool that a request offers. */
interface Offered {
  readonly name: string
  readonly schema: Tree
}

/** How an upstream of a wire reads requests and writes answers. */
interface Wire {
  tools(body: Tree): readonly Offered[]
  /** The results of tools in the request, as JSON. */
  results(body: Tree): string
  say(reply: Reply, words: string): Promise<void>
  call(reply: Reply, name: string, input: object): Promise<void>
  /** A piece of text, and then the end of the connection. */
  cut(reply: Reply, words: string): Promise<void>
  limited(reply: Reply): void
  tooLong(reply: Reply): void
}

const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
const DONE = `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [], usage: { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 } })}\n\ndata: [DONE]\n\n`

const chat: Wire = {
  tools: ({ tools = [] }) => tools.map(({ function: { name, parameters } }: Tree) => ({ name, schema: parameters })),
  results: ({ messages = [] }) => JSON.stringify(messages.filter(({ role }: Tree) => role === 'tool')),
  async say(reply, words) {
    await reply.write(chunk({ role: 'assistant', content: words }))
    reply.end(chunk({}, 'stop') + DONE)
  },
  async call(reply, name, input) {
    const call = { index: 0, id: 'call_1', type: 'function', function: { name, arguments: JSON.stringify(input) } }
    await reply.write(chunk({ role: 'assistant', content: null, tool_calls: [call] }))
    reply.end(chunk({}, 'tool_calls') + DONE)
  },
  async cut(reply, words) {
    await reply.write(chunk({ role: 'assistant', content: words }))
    await sleep(200)
    reply.cut()
  },
  limited: reply =>
    reply.json(
      429,
      { error: { message: 'slow down', type: 'rate_limit_error', code: 'rate_limit_exceeded' } },
      { 'retry-after': '1' }
    ),
  tooLong: reply =>
    reply.json(400, {
      error: {
        message: "This model's maximum context length is 1000 tokens. However, your messages resulted in 2000 tokens.",
        type: 'invalid_request_error',
        param: 'messages',
        code: 'context_length_exceeded',
      },
    }),
}

const USED = { input_tokens: 9, output_tokens: 5, total_tokens: 14 }
/** The events of a response with one item; its text comes in pieces. */
const made = (item: object, ...deltas: readonly string[]) =>
  [
    frame('response.created', { response: {} }),
    frame('response.output_item.added', { output_index: 0, item: { ...item, arguments: '', content: [] } }),
    ...deltas.map(delta => frame('response.output_text.delta', { output_index: 0, content_index: 0, delta })),
  ].join('')
const completed = (item: object) =>
  frame('response.output_item.done', { output_index: 0, item }) +
  frame('response.completed', { response: { id: 'resp_1', status: 'completed', output: [item], usage: USED } })
const SAID = { type: 'message', id: 'msg_1', role: 'assistant' }

/** The server gets namespaces and hosted tools as svc translates them: functions. */
const responses: Wire = {
  tools: ({ tools = [] }) => tools.map(({ name, parameters }: Tree) => ({ name, schema: parameters })),
  results: ({ input }) => JSON.stringify(input.filter(({ type }: Tree) => type === 'function_call_output')),
  async say(reply, words) {
    await reply.write(made(SAID, words))
    reply.end(completed({ ...SAID, content: [{ type: 'output_text', text: words, annotations: [] }] }))
  },
  async call(reply, name, input) {
    const item = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name, arguments: JSON.stringify(input) }
    await reply.write(made(item))
    reply.end(completed(item))
  },
  async cut(reply, words) {
    await reply.write(made(SAID, words))
    await sleep(200)
    reply.cut()
  },
  limited: chat.limited,
  tooLong: chat.tooLong,
}

const frame = (type: string, rest: object = {}) => `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`
const START = frame('message_start', {
  message: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [],
    stop_reason: null,
    usage: { input_tokens: 9, output_tokens: 1 },
  },
})
const stop = (reason: string) =>
  frame('content_block_stop', { index: 0 }) +
  frame('message_delta', { delta: { stop_reason: reason, stop_sequence: null }, usage: { output_tokens: 5 } }) +
  frame('message_stop')
const block = (content: object, delta: object) =>
  frame('content_block_start', { index: 0, content_block: content }) + frame('content_block_delta', { index: 0, delta })
const textBlock = (words: string) => block({ type: 'text', text: '' }, { type: 'text_delta', text: words })

const messages: Wire = {
  tools: ({ tools = [] }) => tools.map(({ name, input_schema: schema }: Tree) => ({ name, schema })),
  results: body =>
    JSON.stringify(
      body.messages
        .flatMap(({ content }: Tree) => (Array.isArray(content) ? content : []))
        .filter(({ type }: Tree) => type === 'tool_result')
    ),
  async say(reply, words) {
    await reply.write(START + textBlock(words))
    reply.end(stop('end_turn'))
  },
  async call(reply, name, input) {
    const delta = { type: 'input_json_delta', partial_json: JSON.stringify(input) }
    await reply.write(START + block({ type: 'tool_use', id: 'toolu_1', name, input: {} }, delta))
    reply.end(stop('tool_use'))
  },
  async cut(reply, words) {
    await reply.write(START + textBlock(words))
    await sleep(200)
    reply.cut()
  },
  limited: reply => reply.json(429, failed('rate_limit_error', 'slow down'), { 'retry-after': '1' }),
  tooLong: reply => reply.json(400, failed('invalid_request_error', 'prompt is too long: 2000 tokens > 1000 maximum')),
}

const failed = (type: string, message: string) => ({ type: 'error', error: { type, message }, request_id: 'req_1' })

const part = (one: object, rest: object = {}) =>
  `data: ${JSON.stringify({ candidates: [{ content: { role: 'model', parts: [one] }, index: 0, ...rest }] })}\n\n`
const ENDED = `data: ${JSON.stringify({
  candidates: [{ finishReason: 'STOP', index: 0 }],
  usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 5, totalTokenCount: 14 },
})}\n\n`

const gemini: Wire = {
  tools: ({ tools = [] }) =>
    tools
      .flatMap(({ functionDeclarations = [] }: Tree) => functionDeclarations)
      .map(({ name, parameters, parametersJsonSchema: schema = parameters }: Tree) => ({ name, schema })),
  results: body =>
    JSON.stringify(
      body.contents.flatMap(({ parts = [] }: Tree) => parts).filter(({ functionResponse }: Tree) => functionResponse)
    ),
  async say(reply, words) {
    await reply.write(part({ text: words }))
    reply.end(ENDED)
  },
  async call(reply, name, args) {
    await reply.write(part({ functionCall: { name, args }, thoughtSignature: 'CpQB+/8=' }))
    reply.end(ENDED)
  },
  async cut(reply, words) {
    await reply.write(part({ text: words }))
    await sleep(200)
    reply.cut()
  },
  limited: reply =>
    reply.json(429, { error: { code: 429, message: 'slow down', status: 'RESOURCE_EXHAUSTED' } }, { 'retry-after': '1' }),
  tooLong: reply =>
    reply.json(400, {
      error: {
        code: 400,
        message: 'The input token count (2000) exceeds the maximum number of tokens allowed (1000).',
        status: 'INVALID_ARGUMENT',
      },
    }),
}

/** The providers of the server by their names, with the wire of their upstream. */
const WIRES = { oai: chat, res: responses, ant: messages, goo: gemini } as const
export type WireName = keyof typeof WIRES

/** What an upstream does with the requests of the agent itself, in order; the last goes on. Requests without tools, for titles, are aside. */
export type Step = (wire: Wire, reply: Reply, body: Tree) => unknown

export interface Scripted extends AsyncDisposable {
  readonly upstream: FakeUpstream
  /** Begins a script. Returns the requests of the agent itself. */
  script(...steps: readonly Step[]): Tree[]
}

export async function openScripted(name: WireName): Promise<Scripted> {
  const wire = WIRES[name]
  const upstream = await openUpstream((_, reply) => reply.json(500, {}))
  return {
    upstream,
    script(...steps) {
      const own: Tree[] = []
      const by: Answerer = ({ body, path }: Received, reply: Reply) => {
        if (path.endsWith('/models') || path.includes('/models?'))
          return reply.json(200, { data: [{ id: 'm', object: 'model', type: 'model' }] })
        if (wire.tools(body).length === 0) return wire.say(reply, 'A title')
        own.push(body)
        return steps[Math.min(own.length, steps.length) - 1]!(wire, reply, body)
      }
      upstream.answer(by)
      return own
    },
    [Symbol.asyncDispose]: () => upstream.close(),
  }
}

const SHELL = /^(bash|shell|exec_command|shell_command|run_shell_command|execute_command|run_commands|local_shell)$/i

/** The arguments of a command for the shell tool of an agent, made by its schema. */
export function shellCall(offered: readonly Offered[], command: string): { readonly name: string; readonly input: object } {
  const tool = offered.find(({ name }) => SHELL.test(name))
  if (!tool) throw new Error(`no tool runs commands: ${offered.map(({ name }) => name).join(', ')}`)
  const { properties = {}, required = [] } = tool.schema
  const input = Object.fromEntries(
    required.map((key: string) => [key, valueOf(properties[key], /^(command|cmd)s?$/.test(key) ? command : 'a command')])
  )
  return { name: tool.name, input }
}

function valueOf(schema: Tree, words: string): unknown {
  const { type, anyOf } = Object(schema) as { type?: string; anyOf?: Tree[] }
  if (anyOf?.[0]) return valueOf(anyOf[0], words)
  if (type === 'array')
    return Object(schema.items).type === 'string' || !schema.items?.type ? [words] : [valueOf(schema.items, words)]
  if (type === 'boolean') return false
  return type === 'number' || type === 'integer' ? 60_000 : words
}
