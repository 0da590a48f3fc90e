import { SYSTEM, type CallContext, withTimeout } from '@svc/core'
import type { ModelInfo, ModelList } from '@svc/core/contracts'
import { type ConfiguredModel, modelInfo } from './entry.ts'

export interface ModelListOptions {
  /** The models of the configuration. If set, the server is not asked. */
  readonly configured: readonly ConfiguredModel[] | undefined
  /** Asks the server. Ends with its signal. */
  readonly load: (ctx: CallContext) => Promise<readonly ModelInfo[]>
  /** Other ids than those the server lists may exist. */
  readonly open: boolean
  /** Ends what is being loaded: the plugin's. */
  readonly signal: AbortSignal
}

const FRESH_MS = 5 * 60_000
const FAILED_MS = 5_000
const LOAD_MS = 30_000
const MOST = 5000

/**
 * The models of a provider: those of its configuration, else its server's list. One request at a time loads it for all waiting calls; when it is
 * older than five minutes it is asked for anew while the old one still counts. A failure is kept for a few seconds, so that a dead server is not asked at
 * every turn.
 */
export function modelList({ configured, open, ...options }: ModelListOptions): (ctx: CallContext) => Promise<ModelList> {
  if (configured) {
    const fixed: ModelList = { models: configured.map(modelInfo), open: false }
    return async () => fixed
  }
  let list: ModelList | undefined
  let until = 0
  let answer: Promise<ModelList> | undefined
  const ask = async (ctx: CallContext): Promise<ModelList> => {
    until = Number.POSITIVE_INFINITY
    try {
      // The caller's signal is not the others': each of them leaves alone.
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
