import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import type { ModelEvent, ModelFailure, ModelFailureKind, ModelRequest, ToolCallPart } from '@svc/core/contracts'
import { abortable, assertPlain, atOnce, caseMaker, frozen, type KitCase, skipped } from './kit-case.ts'
import { abortedInSilence, checkFailure, failing, leaving, manyAtOnce, readUntilFailure } from './provider-endings.ts'
import { featuring } from './provider-features.ts'
import {
  callsOf,
  checkOrder,
  finishOf,
  type Make,
  type ProviderKitOptions,
  type ProviderRequests,
  type ProviderSubject,
  readAll,
  textOf,
  usageOf,
} from './provider-subject.ts'

/**
 * Cases for every provider: `for (const one of providerKit(open, requests)) it(one.title, one.run)`. Each case opens its own
 * provider. Time-outs are tested elsewhere: chat handles them.
 */
export function providerKit(
  open: () => ProviderSubject | Promise<ProviderSubject>,
  requests: ProviderRequests,
  options: ProviderKitOptions = {}
): KitCase[] {
  if (!requests?.plain)
    throw new TypeError('providerKit needs a request `plain`: providerKit(open, { plain: { model, messages } })')
  const given = frozen(withoutFunctions(requests))
  const make = caseMaker(open)
  return [
    ...describing(make, given, options.secrets ?? []),
    ...answering(make, given),
    ...callingTools(make, given, requests.tools?.results),
    ...failing(make, given, options.secrets ?? []),
    ...gathering(make, given, options.secrets ?? []),
    ...featuring(make, given),
    ...leaving(make, given),
    ...manyAtOnce(make, given, options.concurrent ?? 50),
  ]
}

function withoutFunctions({ tools, ...rest }: ProviderRequests): ProviderRequests {
  return tools ? { ...rest, tools: { request: tools.request, calls: tools.calls } } : rest
}

function describing(make: Make, { plain, tools }: ProviderRequests, secrets: readonly string[]): KitCase[] {
  return [
    make('describes its features as plain data', async ({ provider }) => {
      assertPlain(provider.features, 'features')
      for (const word of ['tool_calling', 'streaming', 'vision'] as const)
        assert.equal(typeof provider.features[word], 'boolean', `features.${word}`)
      assert.ok(
        !provider.features.tool_calling || tools,
        'it says that it calls tools: give the kit a request `tools` that shows it'
      )
    }),
    make('lists its models, each once, with limits that are whole numbers', async ({ provider }) => {
      const list = await provider.models(abortable().ctx)
      assertPlain(list, 'models')
      assert.ok(list.open || list.models.length > 0, 'a closed list must name at least one model')
      assert.equal(new Set(list.models.map(model => model.id)).size, list.models.length, 'a model is listed twice')
      for (const { context = 1, output = 1 } of list.models)
        assert.ok([context, output].every(limit => Number.isInteger(limit) && limit > 0))
      for (const secret of secrets) assert.ok(!JSON.stringify(list).includes(secret), 'the list reveals a secret')
    }),
    make('counts the tokens of a request, and not too few', async ({ provider }) => {
      const count = await provider.countTokens(plain, abortable().ctx)
      assert.ok(Number.isInteger(count) && count > 0, `${count} is not a count`)
      const usage = usageOf(await readAll(provider, plain))
      assert.ok(usage === undefined || count >= usage.input, `it counts ${count} tokens, the call cost ${usage?.input}`)
    }),
    make('can be probed', async ({ provider }) => {
      await atOnce(provider.probe(abortable().ctx), 'the probe')
    }),
  ]
}

function answering(make: Make, given: ProviderRequests): KitCase[] {
  const { plain, length, unicode } = given
  const cut = 'says when it was cut by the limit of tokens'
  const whole = 'keeps every character whole, wherever the pieces are cut'
  return [
    make('yields its output in order: usage at most once, finish once and last', async ({ provider }) => {
      const events = await readAll(provider, plain)
      checkOrder(events)
      assert.equal(finishOf(events), 'stop')
      const pieces = events.filter(event => event.type === 'text').length
      assert.ok(pieces >= (provider.features.streaming ? 2 : 1), `it streams, so ${pieces} pieces are too few`)
    }),
    make('does not change the request', async ({ provider }) => {
      // The request is frozen, so a provider that changes it fails here.
      const before = structuredClone(plain)
      await readAll(provider, plain)
      assert.ok(isDeepStrictEqual(structuredClone(plain), before), 'it changed its argument')
    }),
    make('yields nothing after its end', async ({ provider }) => {
      const iterator = provider.chat(plain, abortable().ctx)[Symbol.asyncIterator]()
      while (!(await iterator.next()).done);
      assert.equal((await iterator.next()).done, true)
    }),
    length
      ? make(cut, async ({ provider }) => {
          const events = await readAll(provider, length)
          checkOrder(events)
          assert.equal(finishOf(events), 'length')
          const output = usageOf(events)?.output ?? 0
          assert.ok(
            output <= (length.maxTokens ?? Number.POSITIVE_INFINITY),
            `${output} tokens are more than ${length.maxTokens}`
          )
        })
      : skipped(cut, '`length`'),
    unicode
      ? make(whole, async ({ provider }) => {
          const events = await readAll(provider, unicode.request)
          checkOrder(events)
          for (const event of events)
            if (event.type === 'text') assert.ok(event.text.isWellFormed(), 'a piece ends inside a character')
          assert.equal(textOf(events), unicode.text)
        })
      : skipped(whole, '`unicode`'),
    ...telling(make, given),
  ]
}

function telling(make: Make, { usage, reasoning, filtered }: ProviderRequests): KitCase[] {
  const cost = 'reports the usage of a call'
  const thoughts = 'separates reasoning from text'
  const filter = 'says when it was cut by a filter'
  return [
    usage
      ? make(cost, async ({ provider }) => {
          const events = await readAll(provider, usage.request)
          checkOrder(events)
          assert.deepEqual(usageOf(events), structuredClone(usage.usage))
        })
      : skipped(cost, '`usage`'),
    reasoning
      ? make(thoughts, async ({ provider }) => {
          const events = await readAll(provider, reasoning.request)
          checkOrder(events)
          assert.equal(events.map(event => (event.type === 'reasoning' ? event.text : '')).join(''), reasoning.text)
          const [first, text] = ['reasoning', 'text'].map(type => events.findIndex(event => event.type === type))
          assert.ok(text! > first!, 'the text came before the reasoning')
        })
      : skipped(thoughts, '`reasoning`'),
    filtered
      ? make(filter, async ({ provider }) => {
          const events = await readAll(provider, filtered)
          checkOrder(events)
          assert.equal(finishOf(events), 'content_filter')
        })
      : skipped(filter, '`filtered`'),
  ]
}

function callingTools(
  make: Make,
  given: ProviderRequests,
  results?: (calls: readonly ToolCallPart[]) => ModelRequest
): KitCase[] {
  const { tools, pieces, badArguments } = given
  const calls = 'asks for tools, several at once, each with an id of its own'
  const mixed = 'puts tool calls together that come in pieces, mixed with each other'
  const next = 'continues with the results of the tools'
  const bad = 'forwards arguments that are not a JSON object unchanged'
  return [
    tools ? make(calls, asksFor(tools)) : skipped(calls, '`tools`'),
    pieces ? make(mixed, asksFor(pieces)) : skipped(mixed, '`pieces`'),
    tools && results
      ? make(next, async ({ provider }) => {
          const first = callsOf(await readAll(provider, tools.request))
          const events = await readAll(provider, frozen(results(first)))
          checkOrder(events)
          assert.equal(finishOf(events), 'stop')
          assert.notEqual(textOf(events), '')
        })
      : skipped(next, '`tools.results`'),
    badArguments
      ? make(bad, async ({ provider }) => {
          const events = await readAll(provider, badArguments)
          checkOrder(events)
          const [call] = callsOf(events)
          assert.equal(typeof call?.invalid, 'string', 'the call has no `invalid`')
        })
      : skipped(bad, '`badArguments`'),
  ]
}

const asksFor =
  ({ request, calls }: NonNullable<ProviderRequests['pieces']>) =>
  async ({ provider }: ProviderSubject) => {
    const events = await readAll(provider, request)
    checkOrder(events)
    assert.equal(finishOf(events), 'tool_calls')
    assert.deepEqual(
      callsOf(events).map(call => ({ tool: call.tool, arguments: call.arguments })),
      structuredClone(calls)
    )
  }

/** Cases for collected answers: the sum must be the same, in any number of pieces. */
function gathering(make: Make, given: ProviderRequests, secrets: readonly string[]): KitCase[] {
  const { plain, tools, badArguments, length, unicode, reasoning, filtered, silent } = given
  const asked: Readonly<Record<string, ModelRequest | undefined>> = {
    plain,
    tools: tools?.request,
    badArguments,
    length,
    unicode: unicode?.request,
    reasoning: reasoning?.request,
    filtered,
  }
  const fails = 'fails in the same way when the answer is collected'
  const broken = 'reports a broken answer when the answer is collected'
  const quiet = 'ends when it is aborted while it waits for the whole answer'
  return [
    ...Object.entries(asked).map(([name, request]) => {
      const title = `answers \`${name}\` the same when the answer is collected`
      return request ? make(title, answersTheSame(request)) : skipped(title, `\`${name}\``)
    }),
    given.failures ? make(fails, failsTheSame(given, secrets)) : skipped(fails, '`failures`'),
    BROKEN.some(name => given[name]) ? make(broken, breaks(given, secrets)) : skipped(broken, BROKEN.join(', ')),
    silent ? make(quiet, abortedInSilence(gathered(silent))) : skipped(quiet, '`silent`'),
  ]
}

const gathered = (request: ModelRequest): ModelRequest => Object.freeze({ ...request, gathered: true })

const answersTheSame =
  (request: ModelRequest) =>
  async ({ provider }: ProviderSubject) => {
    const whole = await readAll(provider, gathered(request))
    checkOrder(whole)
    assert.deepEqual(sumOf(whole), sumOf(await readAll(provider, request)))
  }

const sumOf = (events: readonly ModelEvent[]) => ({
  text: textOf(events),
  reasoning: events.map(event => (event.type === 'reasoning' ? event.text : '')).join(''),
  // Invalid JSON can differ in wording, because not every wire format can carry it.
  calls: callsOf(events).map(({ tool, arguments: args, invalid }) => ({ tool, arguments: args, bad: invalid !== undefined })),
  usage: usageOf(events),
  finish: finishOf(events),
})

const failsTheSame =
  ({ failures = {}, retryAfter }: ProviderRequests, secrets: readonly string[]) =>
  async (subject: ProviderSubject) => {
    for (const [kind, request] of Object.entries(failures) as [ModelFailureKind, ModelRequest][]) {
      const { events, error } = await readUntilFailure(subject, gathered(request))
      assert.deepEqual(events, [], `events came before the failure ${kind}`)
      checkFailure(error, kind, secrets)
      assert.deepEqual(detailsOf(error), detailsOf((await readUntilFailure(subject, request)).error))
    }
    if (!retryAfter) return
    const { error } = await readUntilFailure(subject, gathered(retryAfter.request))
    assert.equal(detailsOf(error).retryAfterMs, retryAfter.ms)
  }

const detailsOf = (error: unknown) => (error as { details: Partial<ModelFailure> }).details

const BROKEN = ['cut', 'endsEarly', 'malformed', 'midway'] as const

const breaks =
  ({ midway, cut, endsEarly, malformed }: ProviderRequests, secrets: readonly string[]) =>
  async (subject: ProviderSubject) => {
    for (const request of [cut, endsEarly, malformed]) if (request) await breaksAs('network', request, secrets, subject)
    if (midway) await breaksAs(midway.kind, midway.request, secrets, subject)
  }

async function breaksAs(kind: ModelFailureKind, request: ModelRequest, secrets: readonly string[], subject: ProviderSubject) {
  const { events, error } = await readUntilFailure(subject, gathered(request))
  assert.ok(!events.some(event => event.type === 'finish'), 'it finished and failed')
  checkFailure(error, kind, secrets)
}
