// What a user does with the packed client, in Node.js and in Chromium. It returns what happened, so that both are compared with one
// expectation. It imports nothing else: a page has no more.
import { createClient, isApiError } from '@svc/client'

async function codeOf(work) {
  try {
    await work
    return 'no error'
  } catch (error) {
    return isApiError(error) ? `${error.status} ${error.code}` : String(error)
  }
}

async function collect(stream) {
  const events = []
  for await (const event of stream) events.push(event)
  return events
}

/** A run whose question is answered while the proxy cuts each of its connections. */
async function resumedRun(svc, cut) {
  const { workflow_id: id, status } = await svc.runs.start({ workflow: 'ask' }, { waitSeconds: 0 })
  const resumed = []
  for await (const event of cut.runs.events(id)) {
    resumed.push(event)
    if (event.type === 'node_waiting') await svc.runs.answer(id, { step: event.step, value: true })
  }
  const whole = await collect(svc.runs.events(id))
  const { status: last } = await svc.runs.get(id)
  return { status, last, resumed, whole }
}

const WORDS = Array.from({ length: 40 }, (_, at) => `word${at}`).join(' ')
const textOf = events => events.map(event => (event.type === 'token' ? event.content : '')).join('')

/** A chat while the proxy cuts each of its connections and the server reloads, which the test does when it sees this stream. */
async function resumedChat(svc, cut) {
  const events = await collect(cut.chat.stream({ message: `/pace 60\n${WORDS}` }))
  const { messages } = await svc.get('/api/v1/conversations/{id}', { path: { id: events[0].conversation_id } })
  const text = textOf(events)
  return { isStored: text === messages.at(-1).content, hasAll: text.includes('word0 ') && text.includes('word39') }
}

/** What becomes of a turn whose loop is left. */
async function leftChat(svc, body) {
  const stream = svc.chat.stream({ message: `/pace 40\n${WORDS}`, ...body })
  for await (const event of stream) if (event.type === 'token') break
  const { status } = (await collect(svc.chat.resume(stream.turnId))).at(-1)
  return status
}

async function twoRuns(svc) {
  const options = { idempotencyKey: 'the-same', waitSeconds: 30 }
  const runs = [1, 2].map(() => svc.runs.start({ workflow: 'sum', input: { a: 2 } }, options))
  const [first, second] = await Promise.all(runs)
  return { result: first.result, areSame: first.workflow_id === second.workflow_id }
}

async function asked(svc, allow) {
  const tools = []
  let result
  const onAsk = ({ tool }) => {
    tools.push(tool)
    return allow ? true : { allow: false, reason: 'not today' }
  }
  let text = ''
  for await (const event of svc.chat.stream({ message: '/tool whereabouts {}' }, { onAsk })) {
    if (event.type === 'tool_result') result = { success: event.success, error: event.error }
    if (event.type === 'token') text += event.content
  }
  return { tools, result, hasText: text.length > 0 }
}

/** Events of the server, from the place where an earlier stream ended before it had an event. */
async function feed(svc) {
  const controller = new AbortController()
  const first = svc.events({ types: 'turn_completed' }, { signal: controller.signal })
  const reading = codeOf(collect(first))
  while (first.lastEventId === undefined) await new Promise(resolve => setTimeout(resolve, 10))
  controller.abort(new Error('left'))
  const error = await reading
  const { conversation_id } = await svc.chat.reply({ message: 'after' })
  for await (const event of svc.events({ types: 'turn_completed' }, { after: first.lastEventId }))
    if (event.data.conversation_id === conversation_id) return { error, after: event.type }
}

/** `url`: the server; `cutUrl`: a proxy that breaks each stream after some events. */
export async function scenario({ url, cutUrl, apiKey }) {
  const svc = createClient({ url, apiKey })
  const cut = createClient({ url: cutUrl, apiKey: async () => apiKey, reconnect: { minDelayMs: 1, retries: 20 } })
  const { response } = await svc.chat.reply({ message: 'Hello' })
  const controller = new AbortController()
  const aborted = codeOf(collect(svc.events({}, { signal: controller.signal })))
  controller.abort(new Error('left'))
  return {
    response,
    cut: await resumedRun(svc, cut),
    chat: await resumedChat(svc, cut),
    left: [await leftChat(svc, {}), await leftChat(svc, { detach: true })],
    runs: await twoRuns(svc),
    allowed: await asked(svc, true),
    denied: await asked(svc, false),
    feed: await feed(svc),
    me: (await svc.get('/api/v1/me')).scheme,
    status: (await svc.request('get', '/api/v1/status')).status,
    errors: {
      unknown: await codeOf(svc.get('/api/v1/conversations/{id}', { path: { id: 'none' } })),
      missing: await codeOf(svc.post('/api/v1/chat', { body: {} })),
      key: await codeOf(createClient({ url, apiKey: 'wrong' }).get('/api/v1/status')),
      none: await codeOf(createClient({ url }).get('/api/v1/status')),
      tooMany: await codeOf(svc.chat.answer({ request_id: 'none', call_id: 'none', allow: true })),
      run: await codeOf(collect(svc.runs.events('none'))),
      lost: await codeOf(collect(svc.chat.resume(`turn_${'0'.repeat(32)}_AA`))),
      aborted: await aborted,
    },
  }
}
