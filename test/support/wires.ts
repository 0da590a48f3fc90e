import type { ModelFailureKind } from '@svc/core/contracts'
import { type FakeUpstream, openUpstream, type Received, type Reply } from '@svc/testing'
import * as sdk from '../../plugins/providers/ai-sdk/test/support/rig.ts'
import { CHAT } from '../../plugins/providers/ai-sdk/test/support/openai-wires.ts'
import * as anthropic from '../../plugins/providers/anthropic/test/support/messages-api.ts'
import { message, words } from '../../plugins/providers/anthropic/test/support/whole.ts'
import * as google from '../../plugins/providers/google/test/support/gemini-api.ts'
import { response } from '../../plugins/providers/google/test/support/whole.ts'
import { KEY as OPENAI_KEY } from '../../plugins/providers/openai/test/support/rig.ts'
import { completion } from '../../plugins/providers/openai/test/support/whole.ts'
import * as openai from '../../plugins/providers/openai/test/support/wire.ts'

export const CITIES = ['Ulm', 'Bern']
export const HUNDRED = Array.from({ length: 100 }, (_, at) => `t${at} `)

/** A wire as its own server speaks it, with all models of the plugin's tests, and the two of `saidBy` besides. */
export interface Wire {
  readonly key: string
  /** What an entry says besides its key and its models. */
  entry(url: string): object
  open(): Promise<FakeUpstream>
  /** The model that fails so; the status that its server answers with, where it does. */
  failing(kind: ModelFailureKind): string
  readonly statuses: { readonly [kind in ModelFailureKind]?: number | undefined }
  /** Tokens of each call. */
  readonly usage: { readonly input: number; readonly output: number; readonly cached?: number }
  isWhole(request: Received): boolean
  /** What of a round has come back: the signature of its thoughts where it has any, the results of its calls. */
  returned(body: unknown, round: number): unknown[]
}

/** What a model says: words, or in which round of tools it asks for the weather of all cities. */
type Said = { readonly texts: readonly string[] } | { readonly round: number }

function saidBy(model: string, round: number): Said | undefined {
  if (model === 'hundred') return { texts: HUNDRED }
  if (model !== 'rounds') return undefined
  return round < 3 ? { round } : { texts: ['Fair', ' everywhere.'] }
}

const callsOf = (round: number) => CITIES.map((city, at) => ({ id: `call_${round}_${at}`, name: 'weather', city }))

async function notify(reply: Reply, frames: readonly string[]): Promise<void> {
  for (const frame of frames) await reply.write(frame)
  reply.end()
}

type Asked = {
  readonly model: string
  readonly messages: readonly { readonly [field: string]: unknown }[]
  readonly stream?: unknown
}
const asked = ({ body }: Received) => body as Asked | undefined
const assistants = (messages: Asked['messages'] = []) => messages.filter(item => item.role === 'assistant').length
const isUnstreamed = (request: Received) => asked(request)?.stream !== true

/** Of chat completions: the messages of tools after the answer of a round. */
const toolsAfter = (body: unknown, round: number) =>
  (body as Asked).messages.slice(2 + 3 * round, 4 + 3 * round).map(item => item.content)

/** A server that is the plugin's own fake, but for the models of `saidBy`. */
const openSaying = (others: typeof openai.speak, answer: (said: Said, isWhole: boolean, reply: Reply) => unknown) =>
  openUpstream((request, reply) => {
    const { model = '', messages } = asked(request) ?? {}
    const said = saidBy(model, assistants(messages))
    return said ? answer(said, isUnstreamed(request), reply) : others(request, reply)
  })

const STATUSES = {
  rate_limited: 429,
  overloaded: 503,
  bad_request: 400,
  authentication: 401,
  context_too_long: 400,
  content_refused: 400,
  timeout: 504,
}

function speakOpenAi(said: Said, isWhole: boolean, reply: Reply): unknown {
  const { call, DONE, finish, says, usage } = openai
  if ('texts' in said) {
    if (isWhole) return reply.json(200, completion({ content: said.texts.join('') }))
    return notify(reply, [...said.texts.map(says), finish('stop') + usage() + DONE])
  }
  const calls = callsOf(said.round).map(({ city, ...item }) => ({ ...item, json: [`{"city": `, `"${city}"}`] }))
  const tool_calls = calls.map(({ id, name, json }) => ({ id, type: 'function', function: { name, arguments: json.join('') } }))
  if (isWhole) return reply.json(200, completion({ tool_calls }, 'tool_calls'))
  const pieces = [0, 1].flatMap(half => calls.map(({ json }, at) => call(at, { arguments: json[half] })))
  const begun = calls.map(({ id, name }, at) => call(at, { id, name, arguments: '' }))
  return notify(reply, [...begun, ...pieces, finish('tool_calls') + usage() + DONE])
}

function speakChat(said: Said, isWhole: boolean, reply: Reply): unknown {
  const usage = { input: 5, output: 2, cached: 2, reasoning: 1 }
  const texts = 'texts' in said ? said.texts : []
  const calls = 'round' in said ? callsOf(said.round).map(({ city, ...item }) => ({ ...item, json: `{"city":"${city}"}` })) : []
  const end = 'round' in said ? 'tool_calls' : 'stop'
  if (isWhole) return reply.json(200, CHAT.whole({ text: texts.join('') || undefined, calls, end, usage }))
  return notify(reply, [
    CHAT.begin(),
    ...texts.map(CHAT.text),
    ...(calls.length > 0 ? [CHAT.calls(calls)] : []),
    CHAT.end(end, usage),
  ])
}

function speakMessages(said: Said, isWhole: boolean, reply: Reply): unknown {
  const { block, ended, frame, started, tool } = anthropic
  if ('texts' in said) {
    if (isWhole) return reply.json(200, message([words(said.texts.join(''))]))
    const delta = (text: string) => frame('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })
    return notify(reply, [started(), ...said.texts.map(delta), ended('end_turn')])
  }
  const [calls, signature] = [callsOf(said.round), `s${said.round}`]
  if (isWhole) {
    const uses = calls.map(({ id, name, city }) => ({ type: 'tool_use', id, name, input: { city } }))
    return reply.json(200, message([{ type: 'thinking', thinking: 'Hm', signature }, ...uses], 'tool_use'))
  }
  const deltas = [
    { type: 'thinking_delta', thinking: 'Hm' },
    { type: 'signature_delta', signature },
  ]
  const uses = calls.map(({ id, name, city }, at) => tool(at + 1, id, name, '{"city":', `"${city}"}`))
  return notify(reply, [started() + block(0, { type: 'thinking' }, ...deltas), ...uses, ended('tool_use')])
}

function speakGemini(said: Said, isWhole: boolean, reply: Reply): unknown {
  const { call, ended, says, texts } = google
  if ('texts' in said) {
    if (isWhole) return reply.json(200, response([{ text: said.texts.join('') }], 'STOP'))
    return notify(reply, [...said.texts.map(text => texts(text)), ended('STOP')])
  }
  const signed = (at: number) => (at === 0 ? { thoughtSignature: `s${said.round}` } : {})
  const parts = CITIES.map((city, at) => call('weather', { city }, signed(at)))
  if (isWhole) return reply.json(200, response(parts, 'STOP'))
  return notify(reply, [...parts.map(part => says([part])), ended('STOP')])
}

type Parts<K extends string> = { readonly [key in K]: readonly { readonly [part: string]: unknown }[] }
const failing = (kind: string) => `fail-${kind}`

export const WIRES: { readonly [type: string]: Wire } = {
  openai: {
    key: OPENAI_KEY,
    entry: url => ({ base_url: `${url}/v1` }),
    open: () => openSaying(openai.speak, speakOpenAi),
    failing: kind => kind,
    statuses: STATUSES,
    usage: { input: 12, output: 7, cached: 5 },
    isWhole: isUnstreamed,
    returned: toolsAfter,
  },
  anthropic: {
    key: anthropic.KEY,
    entry: base_url => ({ base_url }),
    open: () => {
      const own =
        (model: string): NonNullable<Parameters<typeof anthropic.openMessagesApi>[0]>[string] =>
        (reply, { messages, stream }) =>
          speakMessages(saidBy(model, assistants(messages))!, stream !== true, reply)
      return anthropic.openMessagesApi({ rounds: own('rounds'), hundred: own('hundred') })
    },
    failing,
    statuses: { ...STATUSES, overloaded: 529, content_refused: undefined },
    usage: { input: 10, output: 7, cached: 3 },
    isWhole: isUnstreamed,
    returned(body, round) {
      const [said, results] = (body as { messages: Parts<'content'>[] }).messages.slice(1 + 2 * round)
      return [said!.content[0]!.signature, ...results!.content.map(item => (item.content as { text: string }[])[0]!.text)]
    },
  },
  google: {
    key: google.KEY,
    entry: base_url => ({ base_url }),
    open: () => {
      const own =
        (model: string): NonNullable<Parameters<typeof google.openGeminiApi>[0]>[string] =>
        (reply, { contents }, isWhole) =>
          speakGemini(saidBy(model, (contents.length - 1) / 2)!, isWhole, reply)
      return google.openGeminiApi({ rounds: own('rounds'), hundred: own('hundred') })
    },
    failing,
    statuses: { ...STATUSES, authentication: 400, content_refused: undefined },
    usage: { input: 5, output: 4 },
    isWhole: ({ path }) => path.endsWith(':generateContent'),
    returned(body, round) {
      const [said, results] = (body as { contents: Parts<'parts'>[] }).contents.slice(1 + 2 * round)
      const answers = results!.parts.map(part => (part.functionResponse as { response: { output: string } }).response.output)
      return [said!.parts[0]!.thoughtSignature, ...answers]
    },
  },
  'ai-sdk': {
    key: sdk.CANARY,
    entry: url => ({ base_url: `${url}/v1`, package: '@ai-sdk/openai', export: 'createOpenAI.chat' }),
    open: () => openSaying(sdk.behaving(CHAT), speakChat),
    failing,
    statuses: STATUSES,
    usage: { input: 5, output: 2, cached: 2 },
    isWhole: isUnstreamed,
    returned: toolsAfter,
  },
}
