import { createHash } from 'node:crypto'
import type { ModelRequest } from '@svc/core/contracts'

/** Who is asked what, and for whom; an absent `principal` is everybody. */
export interface Question {
  readonly provider: string
  readonly request: ModelRequest
  readonly principal?: string
}

/**
 * One text for one question: two that differ in anything that could change the answer differ in it. That nobody reads along (`gathered`) changes how the
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
