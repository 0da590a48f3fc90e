import { codeOf, messageOf, type Use } from '@svc/core'
import type { ModelCall, ModelEvent, ModelFailure, ModelInfo, ModelRequest, Provider } from '@svc/core/contracts'
import { type Answer, createAnswer } from './answer.ts'
import { failureOf, invalid, modelBroke, modelFailed } from './errors.ts'
import { fitHistory } from './messages.ts'
import { type EventReader, readEvents } from './model-call.ts'
import type { ChatRoom } from './parts.ts'
import { requestOf, type Turn } from './turn.ts'

/** One round of a turn: the model is asked, tried again or elsewhere if a plugin says so, and its events are read one by one. */
export interface Round {
  readonly answer: Answer
  /** The next event; `undefined` at the end. Throws MODEL_FAILED. */
  next(): Promise<ModelEvent | undefined>
  close(): void
}

/** Begins a round; nothing is asked before the first `next`. */
export function createRound(room: ChatRoom, turn: Turn, number: number, withTools: boolean, use: Use): Round {
  const answer = createAnswer()
  let reader: EventReader | undefined
  let call: ModelCall | undefined
  let attempt = 1
  let asked = 0
  let firstMs = -1

  const begin = async () => {
    const { provider, name, info } = await target(room, turn, use)
    const request = await fitHistory(requestOf(room, turn, withTools), turn.open.turns, { provider, name, info }, use)
    checkLimits(request, info, turn.asked.maxTokens !== undefined)
    const planned: ModelCall = { selected: { ...turn.selected, ...turn.who }, request, round: number, attempt }
    const ready = await room.hooks.modelCall(planned, use)
    // from here on a failure is the model's
    call = planned
    asked = performance.now()
    if (!ready) room.counts.asked(name)
    const { first_token_timeout_ms: silentFirst, token_timeout_ms: betweenMs } = room.config
    reader = ready ? readReady(ready) : readEvents(provider, name, request, { firstMs: silentFirst, betweenMs }, use)
  }

  const done = (failure?: ModelFailure) => {
    if (!call) return
    const told = {
      ...call,
      usage: answer.usage,
      durationMs: performance.now() - asked,
      firstMs: Math.max(0, firstMs),
      ...(failure ? { failure } : {}),
    }
    call = undefined
    void room.hooks.modelDone(told, use)
  }

  const close = () => {
    reader?.close()
    done()
  }

  /** What a failed call means: another try (then it returns), or the end of the turn. */
  const failed = async (error: unknown): Promise<void> => {
    reader?.close()
    reader = undefined
    if (use.signal.aborted) throw use.signal.reason
    if (!call) throw error
    const failure = failureOf(error)
    if (codeOf(error) !== 'MODEL_FAILED')
      room.log.error({ err: error, provider: turn.who.provider }, 'a provider broke its contract')
    const message = codeOf(error) === 'MODEL_FAILED' ? messageOf(error) : `provider "${turn.who.provider}" failed`
    const mend = answer.any ? undefined : await room.hooks.modelFailed({ ...call, failure, message }, use)
    done(failure)
    if (!mend) throw modelFailed(turn.who.provider, failure, message, error)
    if (mend.waitMs) await pause(mend.waitMs, use.signal)
    if ('provider' in mend) turn.who = { provider: mend.provider, model: mend.model }
    attempt++
  }

  async function next(): Promise<ModelEvent | undefined> {
    for (;;) {
      try {
        if (!reader) await begin()
        const step = await reader!.next()
        if (firstMs < 0) firstMs = performance.now() - asked
        if (!step.done) return step.value
        if (answer.finish === undefined) throw modelBroke(turn.who.provider, 'ended its answer without a finish')
        close()
        return undefined
      } catch (error) {
        await failed(error)
      }
    }
  }
  return { answer, next, close }
}

async function target(
  room: ChatRoom,
  turn: Turn,
  use: Use
): Promise<{ provider: Provider; name: string; info: ModelInfo | undefined }> {
  const { provider: name, model } = turn.who
  const provider = room.providers.get(name)
  // it was there when it was selected: plugins come and go
  if (!provider) throw modelBroke(name, 'has left')
  const { models } = await provider.models(use)
  return { provider, name, info: models.find(one => one.id === model) }
}

function checkLimits({ maxTokens }: ModelRequest, info: ModelInfo | undefined, asked: boolean) {
  if (!asked || maxTokens === undefined || info?.output === undefined || maxTokens <= info.output) return
  throw invalid('max_tokens', `must be at most ${info.output} for the model ${info.id}`, { value: maxTokens, limit: info.output })
}

function readReady(events: readonly ModelEvent[]): EventReader {
  const source = events[Symbol.iterator]()
  return { next: async () => source.next() as IteratorResult<ModelEvent>, close: () => undefined }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const onAbort = () => reject(signal.reason)
  const timer = setTimeout(resolve, ms)
  signal.addEventListener('abort', onAbort, { once: true })
  return promise.finally(() => {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
  })
}
