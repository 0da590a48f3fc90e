import { setTimeout } from 'node:timers/promises'
import type { Log, Use } from '@svc/core'

const FIRST_MS = 100
const LONGEST_MS = 10_000

/**
 * Keeps to something that changes until `lasting.signal` aborts: `watch` goes on until it ends or fails, `read` takes what is there once it has begun. Both
 * begin anew after 0.1 s, doubled up to 10 s while it fails at once.
 */
export async function follow(
  watch: (use: Use) => Promise<void>,
  read: (use: Use) => Promise<void>,
  lasting: Use,
  log: Log
): Promise<void> {
  for (let waitMs = FIRST_MS; ; waitMs = Math.min(waitMs * 2, LONGEST_MS)) {
    const began = performance.now()
    const err = await attempt(watch, read, lasting)
    if (performance.now() - began > LONGEST_MS) waitMs = FIRST_MS
    await setTimeout(waitMs, undefined, { signal: lasting.signal, ref: false }).catch(() => {})
    if (lasting.signal.aborted) return
    log.warn({ err }, 'the watch over tool servers ended; it begins anew')
  }
}

async function attempt(watch: (use: Use) => Promise<void>, read: (use: Use) => Promise<void>, lasting: Use): Promise<unknown> {
  const ending = new AbortController()
  const use = { ...lasting, signal: AbortSignal.any([lasting.signal, ending.signal]) }
  try {
    // begun before the reading, so that no change falls between the two
    await Promise.all([watch(use), read(use)])
    return undefined
  } catch (error) {
    return error
  } finally {
    ending.abort()
  }
}
