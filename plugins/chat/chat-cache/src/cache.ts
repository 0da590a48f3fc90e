import type { Use } from '@svc/core'
import type { ModelAnswer, ModelCall, ModelDone, ModelEvent, ModelRequest } from '@svc/core/contracts'
import { isWhole, joined } from './answer.ts'
import type { CacheCounts } from './cache-counts.ts'
import { keyOf } from './key.ts'
import type { LruCache } from './lru-cache.ts'

export interface CacheParts {
  readonly shelf: LruCache
  readonly counts: Pick<CacheCounts, 'asked'>
  /** Whether principals have each other's answers. */
  readonly shared: boolean
}

/** Answers what was answered before. */
export interface Cache {
  /** For a tap of `Chat.hooks.modelCall`. */
  readonly called: (call: ModelCall, use: Use) => ModelAnswer | undefined
  /** For a tap of `Chat.hooks.modelDone`. */
  readonly done: (done: ModelDone, use: Use) => void
}

interface Keyed {
  readonly provider: string
  /** Absent for what cannot be told from others. */
  readonly key: string | undefined
}

export function createCache({ shelf, counts, shared }: CacheParts): Cache {
  // a request comes by twice, before and after the call: in this process it is the same one, and a long history is read once
  const keys = new WeakMap<ModelRequest, Keyed>()
  const keyFor = ({ selected: { provider }, request }: ModelCall, { principal }: Use) => {
    const known = keys.get(request)
    if (known?.provider === provider) return known.key
    const key = keyOf({ provider, request, ...(shared ? {} : { principal: principal.id }) })
    keys.set(request, { provider, key })
    return key
  }
  return {
    called(call, use) {
      const key = keyFor(call, use)
      const text = key === undefined ? undefined : shelf.get(key)
      // a retry looks again, for another turn may have been answered meanwhile; it is no question of its own
      if (text !== undefined || call.attempt === 1) counts.asked(text !== undefined)
      if (text === undefined) return undefined
      return { events: JSON.parse(text) as ModelEvent[] }
    },
    done(done, use) {
      if (done.answered || done.failure || !done.events || !isWhole(done.events)) return
      const key = keyFor(done, use)
      if (key !== undefined) shelf.put(key, JSON.stringify(joined(done.events)))
    },
  }
}
