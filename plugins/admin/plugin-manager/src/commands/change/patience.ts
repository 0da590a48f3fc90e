import { setTimeout } from 'node:timers/promises'
import { codeOf } from '@svc/core'

/** A server that takes over a revision of its cluster needs some seconds, and more on a busy machine. */
const WAIT_MS = 30_000
const STEP_MS = 200

/**
 * Waits while another process changes the plugins of this home, which can be its server. `work` must throw PLUGIN_SET_BUSY before it
 * changes anything. Throws that error if the other process does not end in time.
 */
export async function patiently<T>(
  work: () => Promise<T>,
  { signal, report }: { readonly signal: AbortSignal; readonly report: (step: 'wait') => void }
): Promise<T> {
  const end = performance.now() + WAIT_MS
  for (let isFirst = true; ; isFirst = false)
    try {
      return await work()
    } catch (error) {
      if (codeOf(error) !== 'PLUGIN_SET_BUSY' || performance.now() > end) throw error
      if (isFirst) report('wait')
      await setTimeout(STEP_MS, undefined, { signal })
    }
}
