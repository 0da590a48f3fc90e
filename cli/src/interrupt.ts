import { once } from 'node:events'
import { svcError } from '@svc/core'
import { INTERRUPTED } from './command/errors.ts'

export { INTERRUPTED }

/** Resolves when the signal aborts: for a race against work that cannot be aborted. */
export const interruption = async (signal: AbortSignal): Promise<undefined> => {
  if (!signal.aborted) await once(signal, 'abort')
}

/** Reports that an interrupted change has changed nothing, and exits. Unfinished work would keep the process alive. */
export function endUnchanged(): never {
  process.stderr.write('interrupted: nothing was changed\n')
  process.exit(INTERRUPTED)
}

/** A signal that aborts at Ctrl-C; a second Ctrl-C ends the process at once. */
export function abortOnInterrupt(): { readonly signal: AbortSignal } & Disposable {
  const controller = new AbortController()
  const onInterrupt = () => {
    if (controller.signal.aborted) process.exit(INTERRUPTED)
    controller.abort(svcError('INTERRUPTED', 'interrupted'))
  }
  process.on('SIGINT', onInterrupt)
  return { signal: controller.signal, [Symbol.dispose]: () => void process.off('SIGINT', onInterrupt) }
}
