import { createHash } from 'node:crypto'
import type { CallContext } from '@svc/core'
import type { FinishReason, ModelAnswer, ModelCall, ModelDone, ModelEvent, ModelRequest } from '@svc/core/contracts'
import type { CacheCounts } from './cache-counts.ts'
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
  readonly called: (call: ModelCall, ctx: CallContext) => ModelAnswer | undefined
  /** For a tap of `Chat.hooks.modelDone`. */
  readonly done: (done: ModelDone, ctx: CallContext) => void
}

interface Keyed {
  readonly provider: string
  /** Absent if the request cannot be serialized. */
  readonly key: string | undefined
}

export function createCache({ shelf, counts, shared }: CacheParts): Cache {
  // a request comes by twice, before and after the call: in this process it is the same one, and a long history is read once
  const keys = new WeakMap<ModelRequest, Keyed>()
  const keyFor = ({ selected: { provider }, request }: ModelCall, { principal }: CallContext) => {
    const known = keys.get(request)
    if (known?.provider === provider) return known.key
    const key = keyOf({ provider, request, ...(shared ? {} : { principal: principal.id }) })
    keys.set(request, { provider, key })
    return key
  }
  return {
    called(call, ctx) {
      const key = keyFor(call, ctx)
      const text = key === undefined ? undefined : shelf.get(key)
      // a retry looks again, for another turn may have been answered meanwhile; it is no question of its own
      if (text !== undefined || call.attempt === 1) counts.asked(text !== undefined)
      if (text === undefined) return undefined
      return { events: JSON.parse(text) as ModelEvent[] }
    },
    done(done, ctx) {
      if (done.answered || done.failure || !done.events || !isWhole(done.events)) return
      const key = keyFor(done, ctx)
      if (key !== undefined) shelf.put(key, JSON.stringify(joined(done.events)))
    },
  }
}

const WHOLE: ReadonlySet<FinishReason> = new Set(['stop', 'tool_calls'])

/** Whether an answer is one that the next who asks could be given: neither cut nor refused. */
function isWhole(events: readonly ModelEvent[]): boolean {
  const last = events.at(-1)
  return last?.type === 'finish' && WHOLE.has(last.reason)
}

/** The same answer in as few pieces as it has parts: how it was cut when it came is nothing to keep. */
function joined(events: readonly ModelEvent[]): ModelEvent[] {
  const parts: ModelEvent[] = []
  let text = ''
  const close = () => {
    if (text !== '') parts.push({ type: 'text', text })
    text = ''
  }
  for (const event of events) {
    if (event.type === 'text') {
      text += event.text
      continue
    }
    close()
    parts.push(event)
  }
  close()
  return parts
}

/** Who is asked what, and for whom; an absent `principal` is everybody. */
interface Question {
  readonly provider: string
  readonly request: ModelRequest
  readonly principal?: string
}

/**
 * One text for one question: two that differ in anything that could change the answer differ in it. Whether the reply is gathered (`gathered`) changes how the
 * answer comes, not what it is. A question that is nested too deep to be written has none.
 */
export function keyOf({ provider, request: { gathered: _gathered, ...request }, principal }: Question): string | undefined {
  const text = written({ provider, principal, request })
  return text === undefined ? undefined : createHash('sha256').update(text).digest('base64url')
}

function written(value: object): string | undefined {
  try {
    return JSON.stringify(value, sorted)
  } catch {
    return undefined
  }
}

/** Objects with their keys in order, so that it does not matter how they were made. */
function sorted(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const entries = Object.entries(value)
  const keys = entries.map(([key]) => key)
  return inOrder(keys) ? value : Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
}

const inOrder = (keys: readonly string[]) => keys.every((key, at) => at === 0 || keys[at - 1]! < key)
