import assert from 'node:assert/strict'
import type { ModelEvent, ModelFailure, ModelFailureKind, ModelRequest } from '@svc/core/contracts'
import { skipped } from './kit-case.ts'
import type { KitCase } from './kit.ts'
import { abortedInSilence, checkFailure, readUntilFailure } from './provider-endings.ts'
import { callsOf, checkOrder, finishOf, readAll, textOf, usageOf } from './provider-events.ts'
import type { Make, ProviderRequests, ProviderSubject } from './provider-subject.ts'

/** That an answer nobody reads along is the same in sum, however many pieces it comes in. */
export function gathering(make: Make, given: ProviderRequests, secrets: readonly string[]): KitCase[] {
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
  const fails = 'fails the same when nobody reads along'
  const broken = 'takes no broken answer for a whole one when nobody reads along'
  const quiet = 'ends when it is aborted while it waits for the whole answer'
  return [
    ...Object.entries(asked).map(([name, request]) => {
      const title = `answers \`${name}\` the same when nobody reads along`
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
  // what was no JSON may stand there in other words: not every wire has a place for it
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
