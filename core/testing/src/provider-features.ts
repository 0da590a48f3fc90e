import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import type { JsonSchema } from '@svc/core'
import type { EmbedRequest, MessagePart, ModelEvent, ModelFeature, ModelRequest, Provider, ToolSpec } from '@svc/core/contracts'
import { Ajv } from 'ajv'
import { abortable, assertPlain, type KitCase, outcome, skipped } from './kit-case.ts'
import {
  callsOf,
  checkOrder,
  choiceOf,
  type FeatureSamples,
  finishOf,
  type Make,
  ofChoice,
  type ProviderRequests,
  type ProviderSubject,
  readAll,
  textOf,
} from './provider-subject.ts'

type Check = (provider: Provider, request: never) => Promise<void>

/** The features that a sample shows: the title of the case, and its check. */
const SHOWN: { readonly [F in keyof FeatureSamples]-?: readonly [string, Check] } = {
  stop: ['ends before a text of `stop`', endsBefore],
  seed: ['answers the same with the same seed', repeats],
  n: ['gives as many answers as `n` asks for', answersOften],
  logprobs: ['gives the log probability of each token', tellsLogprobs],
  tool_choice: ['calls the tool that `toolChoice` names', callsNamed],
  tool_call_deltas: ['reports the arguments of tool calls while they arrive', reportsDeltas],
  json: ['answers a JSON object', answersJson],
  response_schema: ['answers JSON of the schema', answersSchema],
  embeddings: ['makes embeddings in the order of the input', embeds],
}

/** Cases for the features in `features.supports`. */
export function featuring(make: Make, { features = {}, native, effects, ...given }: ProviderRequests): KitCase[] {
  const original = 'sends an original request, and returns the original answer'
  return [
    make('has a sample of each feature that it supports', async ({ provider }) => {
      for (const feature of await supportedBy(provider))
        assert.ok(
          !Object.hasOwn(SHOWN, feature) || Object.hasOwn(features, feature),
          `it says that it supports ${feature}: give the kit a request \`features.${feature}\` that shows it`
        )
    }),
    ...Object.entries(SHOWN).map(([feature, [title, check]]) => {
      const sample = features[feature as keyof FeatureSamples]
      if (sample === undefined) return skipped(title, `\`features.${feature}\``)
      return make(title, ({ provider }) => check(provider, sample as never))
    }),
    make('ignores no feature that it supports', async subject => {
      const supported = await supportedBy(subject.provider, given.plain.model)
      const { own = [] } = subject
      if (subject.sent)
        return sendsAll(
          subject,
          given.plain,
          supported.filter(feature => !own.includes(feature))
        )
      if (!effects) return supported.length === 0 ? undefined : { missing: '`sent`' }
      await showsAll(subject.provider, effects, supported)
    }),
    native ? make(original, ({ provider }) => returnsNative(provider, native)) : skipped(original, '`native`'),
  ]
}

/** The features of a provider: of one model, or of all its models. */
async function supportedBy(provider: Provider, model?: string): Promise<readonly ModelFeature[]> {
  const own = provider.features.supports ?? []
  const { models } = await provider.models(abortable().ctx)
  if (model !== undefined) return models.find(({ id }) => id === model)?.features?.supports ?? own
  return [...new Set([...own, ...models.flatMap(({ features }) => features?.supports ?? [])])]
}

async function endsBefore(provider: Provider, { request, text, stopText }: NonNullable<FeatureSamples['stop']>): Promise<void> {
  const events = await readAll(provider, request)
  checkOrder(events)
  assert.equal(textOf(events), text)
  assert.equal(finishOf(events), 'stop')
  const last = events.at(-1)
  if (stopText !== undefined) assert.equal(last?.type === 'finish' && last.stopText, stopText)
}

const withoutIds = (events: readonly ModelEvent[]) =>
  events.map(event => (event.type === 'tool_call' || event.type === 'tool_call_delta' ? { ...event, id: '' } : event))

async function repeats(provider: Provider, request: ModelRequest): Promise<void> {
  assert.equal(typeof request.seed, 'number', 'the sample has no `seed`')
  const [first, second] = [await readAll(provider, request), await readAll(provider, request)]
  checkOrder(first)
  assert.deepEqual(withoutIds(second), withoutIds(first))
}

async function answersOften(provider: Provider, request: ModelRequest): Promise<void> {
  for (const gathered of [false, true]) {
    const events = await readAll(provider, { ...request, gathered })
    checkOrder(events)
    const finished = events.filter(event => event.type === 'finish').map(choiceOf)
    const wanted = Array.from({ length: request.n ?? 1 }, (_, at) => at)
    assert.deepEqual(
      finished.toSorted((a, b) => a - b),
      wanted,
      `it gave ${finished.length} of ${request.n} answers`
    )
    for (const choice of wanted)
      assert.ok(
        ofChoice(events, choice).some(event => event.type === 'text' || event.type === 'tool_call'),
        `answer ${choice} is empty`
      )
  }
}

async function tellsLogprobs(provider: Provider, request: ModelRequest): Promise<void> {
  for (const gathered of [false, true]) {
    const events = await readAll(provider, { ...request, gathered })
    checkOrder(events)
    const tokens = events.flatMap(event => (event.type === 'logprobs' ? event.tokens : []))
    assert.equal(tokens.map(({ token }) => token).join(''), textOf(events), 'the tokens are not the text')
    for (const { token, top = [] } of tokens)
      assert.ok(top.length > 0 && top.length <= (request.logprobs ?? 0), `"${token}" has ${top.length} alternatives`)
  }
}

async function callsNamed(provider: Provider, request: ModelRequest): Promise<void> {
  const { toolChoice, tools = [] } = request
  const named = typeof toolChoice === 'object' ? toolChoice.tool : assert.fail('the sample names no tool in `toolChoice`')
  const events = await readAll(provider, request)
  checkOrder(events)
  const calls = callsOf(events)
  assert.ok(calls.length > 0, 'it called no tool')
  const schema = tools.find(tool => tool.name === named)?.parameters ?? {}
  for (const call of calls) {
    assert.equal(call.tool, named)
    assertFits(schema, call.arguments, 'the arguments')
  }
}

function assertFits(schema: JsonSchema, value: unknown, what: string): void {
  const ajv = new Ajv({ strict: false, validateFormats: false })
  assert.ok(ajv.validate(schema as object, structuredClone(value)), `${what} do not fit the schema: ${ajv.errorsText()}`)
}

async function reportsDeltas(provider: Provider, request: ModelRequest): Promise<void> {
  const plain = await readAll(provider, request)
  assert.ok(!plain.some(event => event.type === 'tool_call_delta'), 'it reports deltas that the request does not ask for')
  const events = await readAll(provider, { ...request, toolCallDeltas: true })
  checkOrder(events)
  const calls = callsOf(events)
  assert.ok(calls.length > 0, 'it called no tool')
  const deltas = events.filter(event => event.type === 'tool_call_delta')
  for (const [index, call] of calls.entries()) {
    const own = deltas.filter(delta => delta.index === index)
    assert.ok(own.length > 0, `call ${index} has no delta`)
    for (const { id, tool } of own) assert.deepEqual({ id, tool }, { id: call.id, tool: call.tool })
    const text = own.map(delta => delta.text).join('')
    if (call.invalid === undefined) assert.deepEqual(JSON.parse(text || '{}'), structuredClone(call.arguments))
    else assert.equal(text, call.invalid)
    assert.ok(events.indexOf(own.at(-1)!) < events.indexOf(call), 'a delta came after its call')
  }
  assert.ok(
    deltas.every(({ index }) => index < calls.length),
    'a delta belongs to no call'
  )
}

async function answersJson(provider: Provider, request: ModelRequest): Promise<void> {
  assert.equal(request.responseFormat, 'json', 'the sample has no `responseFormat`')
  const value: unknown = JSON.parse(textOf(await readAll(provider, request)))
  assert.ok(typeof value === 'object' && value !== null && !Array.isArray(value), 'the reply is no JSON object')
}

async function answersSchema(provider: Provider, request: ModelRequest): Promise<void> {
  assert.ok(request.responseSchema !== undefined, 'the sample has no `responseSchema`')
  assertFits(request.responseSchema, JSON.parse(textOf(await readAll(provider, request))), 'the data of the reply')
}

async function embeds(provider: Provider, request: EmbedRequest): Promise<void> {
  assert.ok(provider.embed, 'it has no method `embed`')
  const embed = (input: EmbedRequest['input']) => provider.embed!({ ...request, input }, abortable().ctx)
  const { vectors, usage } = await embed(request.input)
  assertPlain(vectors, 'vectors')
  assert.ok(Number.isInteger(usage.input) && usage.input >= 0, `usage is ${JSON.stringify(usage)}`)
  assert.equal(vectors.length, request.input.length, 'each input has one vector')
  const length = request.dimensions ?? vectors[0]?.length ?? 0
  for (const vector of vectors) {
    assert.equal(vector.length, length, 'a vector has another length')
    assert.ok(vector.every(Number.isFinite), 'a vector has something else than numbers')
  }
  assert.ok(request.input.length > 1 && !isDeepStrictEqual(vectors[0], vectors.at(-1)), 'different texts have the same vector')
  const turned = await embed(request.input.toReversed())
  for (const [at, vector] of turned.vectors.toReversed().entries())
    for (const [place, value] of vector.entries())
      assert.ok(Math.abs(value - vectors[at]![place]!) < 1e-3, 'the vectors are not in the order of the input')
  const aborted = abortable()
  aborted.abort()
  assert.ok((await outcome(provider.embed(request, aborted.ctx))).failed, 'it answered a call that was aborted before')
}

async function returnsNative(
  provider: Provider,
  { request, events: wanted }: NonNullable<ProviderRequests['native']>
): Promise<void> {
  const events = await readAll(provider, request)
  checkOrder(events)
  const natives = events.filter(event => event.type === 'native')
  assert.deepEqual(
    natives.map(({ event, data }) => ({ ...(event === undefined ? {} : { event }), data })),
    structuredClone(wanted)
  )
  assert.equal(events[0]?.type, 'native', 'the original event comes before the events that are made of it')
  assert.ok(textOf(events) !== '' || callsOf(events).length > 0, 'it does not read the original answer')
  const gathered = await readAll(provider, { ...request, gathered: true })
  checkOrder(gathered)
  assert.equal(gathered.filter(event => event.type === 'native').length, 1, 'a whole answer is one original event')
  assert.equal(textOf(gathered), textOf(events))
}

const TOOLS: readonly ToolSpec[] = ['first', 'second'].map(name => ({
  name,
  description: `the tool ${name}`,
  parameters: { type: 'object', properties: {}, required: [], additionalProperties: false },
}))
const STRICT = TOOLS.map(tool => ({ ...tool, strict: true }))
const CLOSED: JsonSchema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false }
const hinted = (request: ModelRequest): Partial<ModelRequest> => ({
  messages: request.messages.map(message => ({
    ...message,
    parts: message.parts.map(part => (part.type === 'text' ? { ...part, cacheHint: { ttl: '1h' } } : part)),
  })),
})
const having =
  (part: MessagePart) =>
  ({ messages }: ModelRequest): Partial<ModelRequest> => ({
    messages: [...messages.slice(0, -1), { ...messages.at(-1)!, parts: [...messages.at(-1)!.parts, part] }],
  })

type Change = (plain: ModelRequest) => Partial<ModelRequest>

/** What a feature adds to a request. */
const CHANGES: { readonly [F in ModelFeature]?: Change } = {
  stop: () => ({ stop: ['STOP'] }),
  top_p: () => ({ topP: 0.5 }),
  top_k: () => ({ topK: 3 }),
  seed: () => ({ seed: 7 }),
  n: () => ({ n: 2 }),
  frequency_penalty: () => ({ frequencyPenalty: 0.5 }),
  presence_penalty: () => ({ presencePenalty: 0.5 }),
  logit_bias: () => ({ logitBias: { 50256: -50 } }),
  logprobs: () => ({ logprobs: 2 }),
  reasoning_effort: () => ({ reasoningEffort: 'high' }),
  parallel_tool_calls: () => ({ tools: TOOLS, parallelToolCalls: false }),
  strict_tools: () => ({ tools: STRICT }),
  tool_choice: () => ({ tools: TOOLS, toolChoice: { tool: 'second' } }),
  json: () => ({ responseFormat: 'json' }),
  response_schema: () => ({ responseSchema: CLOSED }),
  cache_hints: hinted,
  high_temperature: () => ({ temperature: 1.7 }),
  image_urls: having({ type: 'image_url', url: 'https://images.example/cat.png' }),
  files: having({ type: 'file', data: 'JVBERi0xLjQK', mimeType: 'application/pdf', name: 'report.pdf' }),
  audio: having({ type: 'audio', data: 'UklGRiQAAABXQVZF', mimeType: 'audio/wav' }),
}
const WITH_TOOLS: ReadonlySet<ModelFeature> = new Set(['parallel_tool_calls', 'strict_tools', 'tool_choice'])

/** Compares what the upstream receives with a feature, and without it. A call that fails does not ignore the feature in silence. */
async function sendsAll(subject: ProviderSubject, plain: ModelRequest, supported: readonly ModelFeature[]): Promise<void> {
  const sent = async (request: ModelRequest) => {
    const { failed } = await outcome(readAll(subject.provider, request))
    return failed ? undefined : JSON.stringify(subject.sent!())
  }
  const [bare, tools] = [await sent(plain), await sent({ ...plain, tools: TOOLS })]
  const ignored: string[] = []
  for (const feature of supported) {
    const change = CHANGES[feature]
    if (change && (await sent({ ...plain, ...change(plain) })) === (WITH_TOOLS.has(feature) ? tools : bare)) ignored.push(feature)
  }
  assert.deepEqual(ignored, [], 'it says that it supports these, but the upstream receives the same request without them')
}

async function showsAll(
  provider: Provider,
  effects: NonNullable<ProviderRequests['effects']>,
  supported: readonly ModelFeature[]
): Promise<void> {
  for (const feature of supported) {
    if (!CHANGES[feature]) continue
    const pair =
      effects[feature] ?? assert.fail(`it says that it supports ${feature}: give the kit two requests \`effects.${feature}\``)
    const [having, without] = [await readAll(provider, pair[0]), await readAll(provider, pair[1])]
    assert.notDeepEqual(having, without, `it says that it supports ${feature}, but answers the same without it`)
  }
}
