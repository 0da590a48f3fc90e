import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { codeOf, messageOf } from '@svc/core'
import type { ModelEvent, ModelFailure, ModelFailureKind, ModelRequest, Provider } from '@svc/core/contracts'
import { abortable, assertPlain, atOnce, becomes, type KitCase, outcome, skipped } from './kit-case.ts'
import {
  checkOrder,
  type Make,
  type ProviderRequests,
  type ProviderSubject,
  readAll,
  RETRYABLE,
  textOf,
} from './provider-subject.ts'

/** Cases for failing calls. */
export function failing(make: Make, given: ProviderRequests, secrets: readonly string[]): KitCase[] {
  const { failures = {}, midway, retryAfter } = given
  const kinds = Object.keys(RETRYABLE) as ModelFailureKind[]
  const late = 'reports a failure in the middle after the pieces before it'
  const beforeAnything = kinds.map(kind => {
    const [request, title] = [failures[kind], `reports the failure ${kind} before anything else`]
    if (!request) return skipped(title, `\`failures.${kind}\``)
    return make(title, async subject => {
      const { events, error } = await readUntilFailure(subject, request)
      assert.deepEqual(events, [], 'events came before the failure')
      checkFailure(error, kind, secrets)
    })
  })
  const wait = 'reports when a retry makes sense, if the upstream says so'
  return [
    ...beforeAnything,
    retryAfter
      ? make(wait, async subject => {
          const { error } = await readUntilFailure(subject, retryAfter.request)
          assert.equal((error as { details?: Partial<ModelFailure> }).details?.retryAfterMs, retryAfter.ms)
        })
      : skipped(wait, '`retryAfter`'),
    midway ? make(late, failsAfterPieces(midway.request, midway.kind, secrets)) : skipped(late, '`midway`'),
    ...BROKEN_STREAMS.map(([field, title]) => {
      const request = given[field]
      return request ? make(title, failsAfterPieces(request, 'network', secrets)) : skipped(title, `\`${field}\``)
    }),
  ]
}

const BROKEN_STREAMS = [
  ['cut', 'reports a connection that breaks in the middle'],
  ['endsEarly', 'takes an answer that ends too soon for no whole one'],
  ['malformed', 'reports a piece that cannot be read'],
] as const

const failsAfterPieces =
  (request: ModelRequest, kind: ModelFailureKind, secrets: readonly string[]) => async (subject: ProviderSubject) => {
    const { events, error } = await readUntilFailure(subject, request)
    assert.ok(events.length > 0, 'it failed before its first piece')
    assert.ok(!events.some(event => event.type === 'finish'), 'it finished and failed')
    checkFailure(error, kind, secrets)
  }

/** Returns the events before a failure, and the failure. */
export async function readUntilFailure(
  subject: ProviderSubject,
  request: ModelRequest
): Promise<{ readonly events: readonly ModelEvent[]; readonly error: unknown }> {
  const { value, error } = await outcome(collect(subject.provider, request))
  await nobodyServed(subject)
  return error === undefined ? { events: value!.events, error: value!.error } : assert.fail(messageOf(error))
}

async function collect(provider: Provider, request: ModelRequest) {
  const events: ModelEvent[] = []
  try {
    for await (const event of provider.chat(request, abortable().ctx)) events.push(event)
  } catch (error) {
    return { events, error }
  }
  return assert.fail('it did not fail')
}

/** Checks a failure against the contract. */
export function checkFailure(error: unknown, kind: ModelFailureKind, secrets: readonly string[]): void {
  assert.equal(codeOf(error), 'MODEL_FAILED', `it threw ${messageOf(error)}`)
  const details = (error as { details?: unknown }).details as Partial<ModelFailure> | undefined
  assertPlain(details, 'details')
  assert.equal(details?.kind, kind)
  assert.equal(details.retryable, RETRYABLE[kind], `retryable of ${kind}`)
  for (const name of ['retryAfterMs', 'upstreamStatus', 'limit', 'count'] as const) {
    const value = details[name]
    assert.ok(value === undefined || (Number.isFinite(value) && value >= 0), `details.${name} is ${value}`)
  }
  const words = `${messageOf(error)} ${JSON.stringify(details)} ${(error as { hint?: string }).hint ?? ''}`
  assert.notEqual(messageOf(error), '', 'the error says nothing')
  for (const secret of secrets) assert.ok(!words.includes(secret), 'the error reveals a secret')
}

/** Cases for calls that are no longer awaited. */
export function leaving(make: Make, { plain, endless, silent, stalled }: ProviderRequests): KitCase[] {
  const midway = 'ends when it is aborted in the middle'
  const quiet = 'ends when it is aborted while it waits for the first piece'
  const stuck = 'ends when it is aborted while it waits for the next piece'
  const left = 'ends its work when the reader leaves, and can be asked again'
  const closed = 'closes the connection upstream when it is aborted'
  return [
    make('does not begin what is aborted already', async subject => {
      const { ctx, abort } = abortable()
      abort()
      const events: unknown[] = []
      const reading = readInto(events, subject.provider, plain, ctx)
      await atOnce(outcome(reading), 'the end of an aborted call')
      assert.deepEqual(events, [], 'it answered a call that was aborted before')
      await nobodyServed(subject)
    }),
    endless
      ? make(midway, async subject => {
          const { ctx, abort } = abortable()
          const iterator = subject.provider.chat(endless, ctx)[Symbol.asyncIterator]()
          await iterator.next()
          abort()
          await atOnce(drainAborted(iterator), 'the end of an aborted stream')
          await nobodyServed(subject)
        })
      : skipped(midway, '`endless`'),
    silent ? make(quiet, abortedInSilence(silent)) : skipped(quiet, '`silent`'),
    stalled ? make(stuck, abortedWaiting(stalled)) : skipped(stuck, '`stalled`'),
    endless
      ? make(left, async subject => {
          for (let times = 0; times < 20; times++) {
            const iterator = subject.provider.chat(endless, abortable().ctx)[Symbol.asyncIterator]()
            await iterator.next()
            await atOnce(Promise.resolve(iterator.return?.()), 'the end of an unread stream')
            assert.equal((await iterator.next()).done, true)
          }
          await nobodyServed(subject)
          checkOrder(await readAll(subject.provider, plain))
        })
      : skipped(left, '`endless`'),
    endless || silent || stalled ? make(closed, closesUpstream([endless, silent, stalled])) : skipped(closed, '`endless`'),
  ]
}

/** Checks that the provider closes the upstream connection of each call. Without `connections` the case skips itself. */
const closesUpstream = (requests: readonly (ModelRequest | undefined)[]) => async (subject: ProviderSubject) => {
  const { provider, connections } = subject
  if (!connections) return { missing: '`connections`' }
  for (const request of requests) {
    if (!request) continue
    const { ctx, abort } = abortable()
    const reading = outcome(drainAborted(provider.chat(request, ctx)[Symbol.asyncIterator]()))
    await becomes('the call upstream', async () => (await connections()) > 0)
    abort()
    await atOnce(reading, 'the end of an aborted call')
    await nobodyServed(subject)
  }
}

/** Aborts a call that the upstream does not answer. */
export const abortedInSilence = (silent: ModelRequest) => async (subject: ProviderSubject) => {
  const { ctx, abort } = abortable()
  const iterator = subject.provider.chat(silent, ctx)[Symbol.asyncIterator]()
  const ended = outcome(drainAborted(iterator, iterator.next()))
  if (subject.connections) await becomes('the call upstream', async () => (await subject.connections!()) > 0)
  abort()
  const { error } = await atOnce(ended, 'the end of an aborted call')
  assert.ok(!(error instanceof assert.AssertionError), messageOf(error))
  await nobodyServed(subject)
}

const abortedWaiting = (stalled: ModelRequest) => async (subject: ProviderSubject) => {
  const { ctx, abort } = abortable()
  const iterator = subject.provider.chat(stalled, ctx)[Symbol.asyncIterator]()
  assert.equal((await iterator.next()).done, false)
  const ended = outcome(drainAborted(iterator, iterator.next()))
  abort()
  const { error } = await atOnce(ended, 'the end of an aborted call')
  assert.ok(!(error instanceof assert.AssertionError), messageOf(error))
  await nobodyServed(subject)
}

async function readInto(events: unknown[], provider: Provider, ...[request, ctx]: Parameters<Provider['chat']>): Promise<void> {
  for await (const event of provider.chat(request, ctx)) events.push(event)
}

/** After an abort, further pieces are allowed, but no `finish`, and the only allowed error is the abort's. */
async function drainAborted(iterator: AsyncIterator<{ type: string }>, first = iterator.next()): Promise<void> {
  const read = async () => {
    for (let item = await first; !item.done; item = await iterator.next()) if (item.value.type === 'finish') return true
    return false
  }
  const { value } = await outcome(read())
  assert.notEqual(value, true, 'it finished though it was aborted')
}

async function nobodyServed(subject: ProviderSubject): Promise<void> {
  if (subject.connections) await becomes('closing the connection upstream', async () => (await subject.connections!()) === 0)
}

/** Cases for concurrent calls. */
export function manyAtOnce(make: Make, { plain, endless, unicode, length }: ProviderRequests, many: number): KitCase[] {
  // Different requests, so that a swapped answer shows.
  const asked = [plain, unicode?.request, length].filter(item => item !== undefined)
  return [
    make(`answers ${many} at once, each for itself, and nothing stays open`, async subject => {
      const { provider } = subject
      const alone: string[] = []
      for (const request of asked) alone.push(textOf(await readAll(provider, request)))
      const { ctx, abort } = abortable()
      // An aborted call must not affect the others.
      const givenUp = endless && provider.chat(endless, ctx)[Symbol.asyncIterator]()
      await givenUp?.next()
      const shared = abortable().ctx
      const reading = Promise.all(
        Array.from({ length: many }, (_, at) => Array.fromAsync(provider.chat(asked[at % asked.length]!, shared)))
      )
      abort()
      if (givenUp) await atOnce(drainAborted(givenUp), 'the end of an aborted stream')
      for (const [at, events] of (await reading).entries()) {
        checkOrder(events)
        assert.equal(textOf(events), alone[at % asked.length], 'among many it is another answer than alone')
      }
      await nobodyServed(subject)
      await becomes('letting go of the signal', () => getEventListeners(shared.signal, 'abort').length === 0)
    }),
  ]
}
