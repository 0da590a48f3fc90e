import { SYSTEM, type CallContext, withTimeout } from '@svc/core'
import type { ModelInfo, ModelList } from '@svc/core/contracts'
import { type ConfiguredModel, modelInfo } from './entry.ts'

export interface ModelListOptions {
  /** The models of the configuration. If set, `load` is not called. */
  readonly configured: readonly ConfiguredModel[] | undefined
  /** Requests the list from the server. It must end when its signal aborts. */
  readonly load: (ctx: CallContext) => Promise<readonly ModelInfo[]>
  /** True if ids that the server does not list can exist. */
  readonly open: boolean
  /** Adds to a model of the configuration what the provider knows about it. */
  readonly describe?: (model: ModelInfo) => ModelInfo
  /** The plugin's signal: it aborts a running load. */
  readonly signal: AbortSignal
}

const FRESH_MS = 5 * 60_000
const FAILED_MS = 5_000
const LOAD_MS = 30_000
const MOST = 5000

/**
 * The models of a provider: from its configuration, else from the list of its server. One request at a time loads the list for all waiting calls. After
 * five minutes the next call reloads it and still returns the old list. A failure is cached for a few seconds, so that a dead server does not get a
 * request for every turn.
 */
export function modelList({
  configured,
  open,
  describe = model => model,
  ...options
}: ModelListOptions): (ctx: CallContext) => Promise<ModelList> {
  if (configured) {
    const fixed: ModelList = { models: configured.map(model => describe(modelInfo(model))), open: false }
    return async () => fixed
  }
  let list: ModelList | undefined
  let until = 0
  let answer: Promise<ModelList> | undefined
  const ask = async (ctx: CallContext): Promise<ModelList> => {
    until = Number.POSITIVE_INFINITY
    try {
      // Several callers share this request: the signal of one caller must not abort it.
      const signal = AbortSignal.any([options.signal, AbortSignal.timeout(LOAD_MS)])
      list = { models: distinct(await options.load({ ...ctx, principal: SYSTEM, signal })), open }
      until = performance.now() + FRESH_MS
      return list
    } catch (error) {
      until = performance.now() + FAILED_MS
      throw error
    }
  }
  return async ctx => {
    ctx.signal.throwIfAborted()
    if (!answer || performance.now() > until) {
      answer = ask(ctx)
      answer.catch(() => {})
    }
    return list ?? withTimeout(LOAD_MS, () => answer as Promise<ModelList>, { signal: ctx.signal })
  }
}

function distinct(models: readonly ModelInfo[]): ModelInfo[] {
  return [...new Map(models.slice(0, MOST).map(model => [model.id, model])).values()]
}
