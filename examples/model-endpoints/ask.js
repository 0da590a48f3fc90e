// Calls the model endpoints of a running server, as SDKs do.
const server = process.env.SVC_URL ?? 'http://127.0.0.1:8080'

async function post(path, body) {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${process.env.SVC_API_KEY ?? 'any'}` }
  const response = await fetch(`${server}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  return response
}

/** A stream of chat completions from a model: svc adds nothing. */
async function stream() {
  const messages = [{ role: 'user', content: 'Hello' }]
  const response = await post('/v1/chat/completions', { model: 'local/local-1', messages, stream: true })
  const frames = (await response.text()).split('\n\n').filter(frame => frame.startsWith('data: {'))
  const words = frames.map(frame => JSON.parse(frame.slice(6)).choices[0]?.delta.content ?? '')
  console.log('chat completions:', words.join(''))
}

/** An agent with a tool of svc and a tool of the client, over the Messages API. */
async function tools() {
  const order = { model: 'profile:clock', max_tokens: 500, tools: [{ name: 'weather', input_schema: { type: 'object' } }] }
  const question = { role: 'user', content: '/tool weather {"city":"Ulm"}' }
  const first = await (await post('/v1/messages', { ...order, messages: [question] })).json()
  const call = first.content.find(({ type }) => type === 'tool_use')
  console.log('messages, call:', call.name, JSON.stringify(call.input))
  // a real client runs its tool here
  const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: 'sunny' }] }
  const messages = [question, { role: 'assistant', content: first.content }, result]
  const { content } = await (await post('/v1/messages', { ...order, messages })).json()
  console.log('messages, answer:', content[0].text.split('\n')[0])
}

/** A stored response, and one that continues it. */
async function stored() {
  const model = 'local/local-1'
  const { id } = await (await post('/v1/responses', { model, input: 'Remember me', store: true })).json()
  const { output } = await (await post('/v1/responses', { model, input: 'Again', previous_response_id: id })).json()
  console.log('responses:', output[0].content[0].text)
}

await stream()
await tools()
await stored()
