import type { CallContext, SlotView } from '@svc/core'
import type { Cache, CacheArea, CacheStats, Json } from '@svc/core/contracts'
import { type Area, checkKey, createAreas } from './area.ts'
import { valueInvalid } from './errors.ts'

/** Keeps texts of valid keys. */
export interface Entries {
  get(area: Area, key: string, ctx: CallContext): Promise<string | undefined>
  put(area: Area, key: string, text: string, ctx: CallContext): Promise<boolean>
  delete(area: Area, key: string, ctx: CallContext): Promise<void>
  clear(area: Area, ctx: CallContext): Promise<void>
  stats(area: Area, ctx: CallContext): Promise<CacheStats>
}

interface CacheOptions {
  readonly areas: SlotView<CacheArea>
  readonly entries: Entries
  /** Limits the bytes of each cache. */
  readonly maxBytes: number
}

/** The service over memory or a store. Values are kept as JSON, so that no caller changes the value of another. */
export function createCache({ areas, entries, maxBytes }: CacheOptions): Cache {
  const areaOf = createAreas(areas, maxBytes)
  const of = (name: string, key: string): [Area, string] => {
    const area = areaOf(name)
    checkKey(key)
    return [area, key]
  }
  return {
    async get(name, key, ctx) {
      const text = await entries.get(...of(name, key), ctx)
      return text === undefined ? undefined : (JSON.parse(text) as Json)
    },
    put: async (name, key, value, ctx) => entries.put(...of(name, key), written(value), ctx),
    delete: async (name, key, ctx) => entries.delete(...of(name, key), ctx),
    clear: async (name, ctx) => entries.clear(areaOf(name), ctx),
    stats: async (name, ctx) => entries.stats(areaOf(name), ctx),
  }
}

function written(value: Json): string {
  let text: string | undefined
  try {
    text = JSON.stringify(value)
  } catch (cause) {
    throw valueInvalid(cause)
  }
  if (text === undefined) throw valueInvalid()
  return text
}
