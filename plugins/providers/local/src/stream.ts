import { setTimeout } from 'node:timers/promises'
import type { ModelEvent } from '@svc/core/contracts'
import type { Plan } from './plan.ts'

type Stream = AsyncIterableIterator<ModelEvent, undefined, undefined>
const END: IteratorReturnResult<undefined> = { done: true, value: undefined }

/**
 * Plays a plan as fast as it is read. An iterator by hand: an async generator costs three turns of the microtask queue for each piece, and this is
 * what a load run spends its time in.
 */
export function play(begin: () => Promise<Plan>, signal: AbortSignal): Stream {
  let begun: Promise<Plan> | undefined
  let plan: Plan | undefined
  let at = 0
  let over = false
  const end = (error?: unknown) => {
    over = true
    return error === undefined ? Promise.resolve(END) : Promise.reject(error)
  }
  const start = async () => {
    try {
      plan = await (begun ??= begin())
    } catch (error) {
      return end(error)
    }
    return next()
  }
  const next = (): Promise<IteratorResult<ModelEvent, undefined>> => {
    if (over) return Promise.resolve(END)
    if (signal.aborted) return end(signal.reason)
    if (!plan) return start()
    const value = plan.events[at++]
    return value ? Promise.resolve({ done: false, value }) : end(plan.failure)
  }
  return { next, return: () => end(), [Symbol.asyncIterator]: asItself }
}

function asItself(this: Stream): Stream {
  return this
}

/** Plays a plan with a wait before the first piece and between two of them. */
export async function* playSlowly(
  begin: () => Promise<Plan>,
  delayMs: number,
  paceMs: number,
  signal: AbortSignal
): AsyncGenerator<ModelEvent, undefined> {
  const plan = await begin()
  await wait(delayMs, signal)
  let first = true
  for (const event of plan.events) {
    if (!first && event.type === 'text') await wait(paceMs, signal)
    first = false
    signal.throwIfAborted()
    yield event
  }
  if (plan.failure) throw plan.failure
}

async function wait(ms: number, signal: AbortSignal): Promise<void> {
  if (ms === 0) return
  try {
    await setTimeout(ms, undefined, { signal })
  } catch (error) {
    // The timer's own AbortError hides why.
    signal.throwIfAborted()
    throw error
  }
}
