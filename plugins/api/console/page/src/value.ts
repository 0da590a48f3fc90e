import { useSyncExternalStore } from 'react'

/** A value outside of components, which they can follow. */
export interface Value<T> {
  readonly get: () => T
  readonly set: (next: T) => void
  readonly subscribe: (listener: () => void) => () => void
}

export function createValue<T>(first: T): Value<T> {
  let value = first
  const listeners = new Set<() => void>()
  return {
    get: () => value,
    set(next) {
      if (Object.is(value, next)) return
      value = next
      for (const listener of listeners) listener()
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

export const useValue = <T>(value: Value<T>): T => useSyncExternalStore(value.subscribe, value.get)

/** A value that the browser keeps for this origin. */
export function createKept(name: string, first: string): Value<string> {
  const value = createValue(read(name) ?? first)
  return {
    ...value,
    set(next) {
      value.set(next)
      try {
        localStorage.setItem(name, next)
      } catch {
        // storage is off: the value lasts as long as the page
      }
    },
  }
}

function read(name: string): string | undefined {
  try {
    return localStorage.getItem(name) ?? undefined
  } catch {
    return undefined
  }
}
