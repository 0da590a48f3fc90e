import { type FakeUpstream, openUpstream, type Received, type Reply } from '@svc/testing'

interface Asked {
  readonly model: string
  readonly stream?: boolean
  readonly messages: readonly { readonly role: string; readonly content?: string | null }[]
  readonly tools?: readonly { readonly function: { readonly name: string } }[]
}

/** A server that speaks what Ollama speaks below `/v1`: its list of models, and a chat that looks at the clock when it is asked for the time. */
export const openFakeOllama = (models: readonly string[]): Promise<FakeUpstream> =>
  openUpstream((request, reply) => {
    if (request.path === '/v1/models')
      return reply.json(200, { object: 'list', data: models.map(id => ({ id, object: 'model', owned_by: 'library' })) })
    if (request.path === '/v1/chat/completions') return chat(request, reply, models)
    return reply.raw(404, 'text/plain', '404 page not found')
  })

function chat({ body }: Received, reply: Reply, models: readonly string[]): void {
  const asked = body as Asked
  if (!models.includes(asked.model))
    return reply.json(404, { error: { message: `model "${asked.model}" not found, try pulling it first`, type: 'api_error' } })
  const message = answerTo(asked)
  const finish_reason = message.tool_calls ? 'tool_calls' : 'stop'
  const usage = { prompt_tokens: 20, completion_tokens: 8, total_tokens: 28 }
  const head = { id: 'chatcmpl-7', model: asked.model, system_fingerprint: 'fp_ollama' }
  if (!asked.stream)
    return reply.json(200, { ...head, object: 'chat.completion', choices: [{ index: 0, message, finish_reason }], usage })
  const chunk = (choices: readonly object[], more = {}) =>
    `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices, ...more })}\n\n`
  const pieces = message.tool_calls ? [message] : message.content.split(/(?<= )/).map(content => ({ role: 'assistant', content }))
  const frames = pieces.map(delta => chunk([{ index: 0, delta, finish_reason: null }]))
  const last = chunk([{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason }])
  reply.end([...frames, last, chunk([], { usage }), 'data: [DONE]\n\n'].join(''))
}

/** Asked for the time, the model adds the clock with `find_tools` and looks at it. Ollama gives calls whole, in one piece. */
function answerTo({ model, messages, tools = [] }: Asked) {
  const { role, content } = messages.at(-1) ?? { role: 'user' }
  const has = (name: string) => tools.some(tool => tool.function.name === name)
  if (role === 'user' && /time/.test(content ?? '') && has('find_tools')) return callOf('find_tools', { query: 'current_time' })
  if (role === 'tool' && /tools are added/.test(content ?? '') && has('current_time'))
    return callOf('current_time', { time_zone: 'Asia/Tokyo' })
  const text = role === 'tool' ? `It is ${content}` : `${model} says hello`
  return { role: 'assistant', content: text, tool_calls: undefined }
}

const callOf = (name: string, args: object) => ({
  role: 'assistant',
  content: '',
  tool_calls: [{ id: `call_${name}`, index: 0, type: 'function', function: { name, arguments: JSON.stringify(args) } }],
})
