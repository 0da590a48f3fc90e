import type { Json } from '@svc/core/contracts'
import type { TokenStorage } from './options.ts'

/** Keeps a login as long as the process lives. */
export function createMemoryStorage(): TokenStorage {
  let kept: Json | undefined
  return {
    load: async () => kept,
    save: async value => {
      kept = value
    },
  }
}
