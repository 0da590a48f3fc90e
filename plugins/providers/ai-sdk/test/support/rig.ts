import type { LogOptions, RunningHost, SvcError } from '@svc/core'
import {
  type ModelEvent,
  type ModelFailure,
  type ModelMessage,
  type ModelRequest,
  type Provider,
  Providers,
} from '@svc/core/contracts'
import { type Answerer, type FakeUpstream, openUpstream, type Reply, testHost, testContext } from '@svc/testing'
import type { Wire, WireAnswer, WireCall, WireUsage } from './wire.ts'

export const CANARY = 'sk-canary-0123456789abcdef'
export const KEY_ENV = 'SVC_TEST_AI_SDK_KEY'

/** A package, the version it speaks, and the wire it speaks on. */
export interface Dialect {
  readonly title: string
  readonly entry: { readonly package: string; readonly export?: string }
  readonly wire: Wire
}

export interface Rig extends AsyncDisposable {
  readonly upstream: FakeUpstream
  readonly provider: Provider
  readonly host: RunningHost
  close(): Promise<void>
}

/** The plugin in a strict host, before a fake upstream. */
export async function openRig(dialect: Pick<Dialect, 'entry'>, by: Answerer, entry: object = {}, log?: LogOptions): Promise<Rig> {
  process.env[KEY_ENV] = CANARY
  const upstream = await openUpstream(by)
  const mine = { type: 'ai-sdk', ...dialect.entry, base_url: `${upstream.url}/v1`, api_key_env: KEY_ENV, ...entry }
  const host = await testHost([new URL('../..', import.meta.url)], { config: { providers: { mine } }, ...(log ? { log } : {}) })
  const close = async () => {
    await host.close()
    await upstream.close()
  }
  return { upstream, host, provider: host.slot(Providers).get('mine')!, close, [Symbol.asyncDispose]: close }
}

export const USAGE: WireUsage = { input: 5, output: 2, cached: 2, reasoning: 1 }
export const UNICODE = 'Grüße, 👩‍👩‍👧 🏳️‍🌈 e\u0301 한국어 𝕏'
const CALLS: readonly WireCall[] = [
  { id: 'call_a', name: 'weather', json: '{"city":"Ulm"}' },
  { id: 'call_b', name: 'weather', json: '{"city":"Bern"}' },
]

const BAD_CALL: WireCall = { id: 'call_a', name: 'weather', json: '{"city": "Ul' }

const ENDS: { readonly [model: string]: 'length' | 'content_filter' | undefined } = {
  length: 'length',
  filtered: 'content_filter',
}

/** An upstream whose models behave as they are called: the model `silent` says nothing, `fail-overloaded` is overloaded. */
export function behaving(wire: Wire): Answerer {
  return async ({ method, path, body, text }, reply) => {
    if (method === 'HEAD') return reply.raw(404, 'text/plain', '')
    if (path === '/v1/embeddings') return embed(body as AskedVectors, reply)
    if (path !== `/v1${wire.path}`) return reply.raw(599, 'text/plain', `no such path ${path}`)
    const { model, stream } = body as { model: string; stream?: boolean }
    if (model === 'silent') return reply.silence()
    const answer = featured(model, body as Readonly<Record<string, never>>)
    if (answer && !stream) return reply.json(200, wire.whole({ end: 'stop', usage: USAGE, ...answer }))
    if (answer?.calls) return reply.end(wire.begin() + wire.calls(answer.calls) + wire.end('tool_calls', USAGE))
    if (answer?.top !== undefined)
      return reply.end(wire.begin() + wire.text('Hello', answer.top) + wire.text(' there', answer.top) + wire.end('stop', USAGE))
    if (answer) return reply.end(wire.begin() + wire.text(answer.text ?? '') + wire.end('stop', USAGE))
    if (model === 'fail-network') return reply.cut()
    const refusal = wire.refusals(CANARY)[model.replace('fail-', '') as ModelFailure['kind']]
    if (refusal) return reply.json(refusal.status, refusal.body, refusal.headers)
    if (!stream) return answerWhole(wire, model, text, reply)
    await reply.write(wire.begin())
    if (model === 'thoughts') await reply.write(wire.thoughts?.(['let me ', 'think']) ?? '')
    if (model === 'endless') return reply.endless(at => wire.text(`piece ${at} `))
    if (model === 'unicode') await reply.split(wire.text(UNICODE))
    else if (model === 'bad-arguments') return reply.end(wire.calls([BAD_CALL]) + wire.end('tool_calls', USAGE))
    else if (model === 'tools' && !text.includes('sunny')) return reply.end(wire.calls(CALLS) + wire.end('tool_calls', USAGE))
    else await reply.write(wire.text('Hello') + wire.text(' there'))
    if (model === 'cut') return reply.cut()
    if (model === 'stalled') return reply.silence()
    if (model === 'early') return reply.end()
    if (model === 'malformed') return reply.end('data: {"broken\n\n')
    reply.end(wire.end(ENDS[model] ?? 'stop', USAGE))
  }
}

/** How models answer that show a feature. */
function featured(model: string, body: Readonly<Record<string, unknown>>): Partial<WireAnswer> | undefined {
  if (model.endsWith('data')) return { text: '{"a":"b"}' }
  if (model === 'stop') return { text: 'Hello there'.split(((body.stop ?? body.stop_sequences) as string[])[0]!)[0]! }
  if (model === 'probable') return { text: 'Hello there', top: body.top_logprobs as number | undefined }
  if (model !== 'choice') return undefined
  const choice = body.tool_choice as { readonly name?: string; readonly function?: { readonly name: string } }
  const name = choice.name ?? choice.function?.name ?? ''
  return { calls: [{ id: 'call_a', name, json: '{"city":"Ulm"}' }], end: 'tool_calls' }
}

interface AskedVectors {
  readonly input: readonly string[]
  readonly dimensions?: number
}
function embed({ input, dimensions = 4 }: AskedVectors, reply: Reply): void {
  const data = input.map((text, index) => ({
    object: 'embedding',
    index,
    embedding: Array.from({ length: dimensions }, (_, at) => (at === 0 ? text.length : at / 8)),
  }))
  reply.json(200, { object: 'list', data, model: 'm', usage: { prompt_tokens: 9, total_tokens: 9 } })
}

async function answerWhole(wire: Wire, model: string, asked: string, reply: Reply) {
  const say = (more: Partial<WireAnswer>) =>
    wire.whole({ text: 'Hello there', end: ENDS[model] ?? 'stop', usage: USAGE, ...more })
  const half = JSON.stringify(say({})).slice(0, -20)
  if (model === 'malformed') return reply.raw(200, 'application/json', half)
  if (model === 'cut') {
    reply.begin({ 'content-type': 'application/json' })
    await reply.write(half)
    return reply.cut()
  }
  if (model === 'early') return reply.json(200, say({ end: null }))
  if (model === 'thoughts') return reply.json(200, say({ thoughts: 'let me think' }))
  if (model === 'unicode') return reply.json(200, say({ text: UNICODE }))
  if (model === 'bad-arguments') return reply.json(200, say({ text: undefined, calls: [BAD_CALL], end: 'tool_calls' }))
  if (model === 'tools' && !asked.includes('sunny'))
    return reply.json(200, say({ text: undefined, calls: CALLS, end: 'tool_calls' }))
  reply.json(200, say({}))
}

export const user = (text: string): ModelMessage => ({ role: 'user', parts: [{ type: 'text', text }] })
export const says = (model: string, more: Partial<ModelRequest> = {}): ModelRequest => ({
  model,
  messages: [user('a message of a few words')],
  ...more,
})
export const WEATHER = {
  name: 'weather',
  description: 'tells the weather',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}

export const endlessContext = () => testContext({ requestId: 'request-1' })
export const ask = (provider: Provider, request: ModelRequest): Promise<ModelEvent[]> =>
  Array.fromAsync(provider.chat(request, endlessContext()))
export const textOf = (events: readonly ModelEvent[]) => events.map(event => (event.type === 'text' ? event.text : '')).join('')
export const failureOf = (work: Promise<unknown>): Promise<SvcError> =>
  work.then(
    () => Promise.reject(new Error('it did not fail')),
    (error: SvcError) => error
  )
