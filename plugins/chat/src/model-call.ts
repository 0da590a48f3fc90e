import type { Use } from '@svc/core'
import type { ModelEvent, ModelRequest, Provider } from '@svc/core/contracts'
import { modelSilent } from './errors.ts'

/** Reads the events of one model call; every wait has a limit and ends with the turn. */
export interface EventReader {
  next(): Promise<IteratorResult<ModelEvent>>
  /** Stops the call: the provider closes its upstream. */
  close(): void
}

export interface SilenceLimits {
  readonly firstMs: number
  readonly betweenMs: number
}

/** Begins a model call. A provider that neither answers nor heeds the abort is left behind, not waited for. */
export function readEvents(
  provider: Provider,
  name: string,
  request: ModelRequest,
  limits: SilenceLimits,
  use: Use
): EventReader {
  const ending = new AbortController()
  const source = provider.chat(request, { ...use, signal: ending.signal })[Symbol.asyncIterator]()
  let waiting: ((reason: unknown) => void) | undefined
  let first = true
  let ended = false
  const stop = (reason: unknown) => {
    ending.abort(reason)
    waiting?.(reason)
  }
  const silent = () => stop(modelSilent(name, first ? limits.firstMs : limits.betweenMs, first))
  const onAbort = () => stop(use.signal.reason)
  use.signal.addEventListener('abort', onAbort, { once: true })
  let timer = setTimeout(silent, limits.firstMs)

  const heard = () => {
    if (!first) return void timer.refresh()
    first = false
    clearTimeout(timer)
    timer = setTimeout(silent, limits.betweenMs)
  }
  return {
    next: () =>
      new Promise((resolve, reject) => {
        if (ending.signal.aborted) return reject(ending.signal.reason)
        waiting = reject
        source.next().then(step => {
          ended = step.done === true
          heard()
          resolve(step)
        }, reject)
      }),
    close() {
      clearTimeout(timer)
      use.signal.removeEventListener('abort', onAbort)
      waiting = undefined
      if (ended) return
      ending.abort(new Error('the model call has ended'))
      // a provider that hangs in its own finally must not hold up the turn
      void source.return?.().catch(() => {})
    },
  }
}
