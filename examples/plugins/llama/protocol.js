import { cutShort, ToolCalls } from '@svc/provider-http'

/** @typedef {import('@svc/core/contracts').ModelMessage} ModelMessage */
/** @typedef {import('@svc/core/contracts').ModelRequest} ModelRequest */
/** @typedef {import('@svc/core/contracts').MessagePart} MessagePart */

/**
 * One line of an answer, or the whole answer.
 *
 * @typedef {{
 *   message?: { content?: string, thinking?: string, tool_calls?: { id?: string, function: { name: string, arguments: unknown } }[] },
 *   done?: boolean, done_reason?: string, prompt_eval_count?: number, eval_count?: number, error?: string
 * }} Line
 */

/** The body of `POST /api/chat`. JSON leaves out what is undefined. @type {(request: ModelRequest) => object} */
export const toRequest = ({
  model,
  messages,
  tools = [],
  toolChoice,
  temperature,
  maxTokens,
  responseSchema,
  gathered = false,
}) => ({
  model,
  stream: !gathered,
  messages: messages.flatMap(toMessages),
  ...(toolChoice !== 'none' && tools.length > 0 && { tools: tools.map(tool => ({ type: 'function', function: tool })) }),
  format: responseSchema,
  options: { temperature, num_predict: maxTokens },
})

/** Each tool result is a message of its own. @type {(message: ModelMessage) => object[]} */
function toMessages({ role, parts }) {
  if (role === 'tool') return parts.flatMap(part => (part.type === 'tool_result' ? [toResult(part)] : []))
  const calls = parts.flatMap(part =>
    part.type === 'tool_call' ? [{ function: { name: part.tool, arguments: part.arguments } }] : []
  )
  const images = parts.flatMap(part => (part.type === 'image' ? [part.data] : []))
  return [
    {
      role,
      content: textOf(parts, 'text'),
      thinking: textOf(parts, 'reasoning') || undefined,
      images: images.length > 0 ? images : undefined,
      tool_calls: calls.length > 0 ? calls : undefined,
    },
  ]
}

/** @type {(part: import('@svc/core/contracts').ToolResultPart) => object} */
const toResult = ({ tool, content, isError }) => {
  const text = content.map(item => (item.type === 'text' ? item.text : `[${item.type}]`)).join('\n')
  return { role: 'tool', tool_name: tool, content: isError ? `Error: ${text}` : text }
}

/** @type {(parts: readonly MessagePart[], type: 'text' | 'reasoning') => string} */
const textOf = (parts, type) => parts.map(part => (part.type === type ? part.text : '')).join('')

/** The models of `GET /api/tags`. @type {(body: unknown) => import('@svc/core/contracts').ModelInfo[]} */
export function modelsIn(body) {
  const { models = [] } = /** @type {{ models?: { name: string }[] }} */ (body)
  return models.map(({ name }) => ({ id: name }))
}

/**
 * Reads one answer: lines of JSON, or one JSON value.
 *
 * @type {(provider: string, upstream: Pick<import('@svc/provider-http').Upstream, 'failed'>) => import('@svc/provider-http').FrameReader}
 */
export function createReader(provider, upstream) {
  const calls = new ToolCalls(provider)
  /** @type {Line | undefined} */
  let last
  /** @type {(line: Line, emit: (event: import('@svc/core/contracts').ModelEvent) => void) => void} */
  const read = (line, emit) => {
    if (line.error !== undefined) throw upstream.failed(503, line)
    const { content, thinking, tool_calls: pieces = [] } = line.message ?? {}
    if (thinking) emit({ type: 'reasoning', text: thinking })
    if (content) emit({ type: 'text', text: content })
    for (const { function: call } of pieces) {
      // Some servers send the arguments as text, as OpenAI does.
      const text = typeof call.arguments === 'string' ? call.arguments : JSON.stringify(call.arguments)
      calls.add(calls.count, { tool: call.name, text })
    }
    if (line.done) last = line
  }
  return {
    frame: (data, _event, emit) => read(JSON.parse(data), emit),
    whole: (body, emit) => read(/** @type {Line} */ (body), emit),
    end(emit) {
      if (!last) throw cutShort(provider)
      const isCut = last.done_reason === 'length' // the last call can be incomplete
      if (!isCut) calls.emit(emit)
      const { prompt_eval_count: input = 0, eval_count: output = 0 } = last
      emit({ type: 'usage', usage: { input, output } })
      emit({ type: 'finish', reason: isCut ? 'length' : calls.count > 0 ? 'tool_calls' : 'stop' })
    },
  }
}
