import { type Principal, SYSTEM, type CallContext } from '@svc/core'

/** The circumstances of a call in a test; `abort` ends it. */
export function testContext(parts: { principal?: Principal; signal?: AbortSignal; requestId?: string } = {}): CallContext {
  const { principal = SYSTEM, signal = new AbortController().signal, requestId = 'test' } = parts
  return { principal, signal, requestId }
}

/** Gathers a stream. */
export async function gather<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}
