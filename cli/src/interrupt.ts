import { svcError } from '@svc/core'

export const INTERRUPTED = 130

/** A signal that aborts at Ctrl-C; a second one ends the process at once. */
export function abortOnInterrupt(): { readonly signal: AbortSignal } & Disposable {
  const controller = new AbortController()
  const onInterrupt = () => {
    if (controller.signal.aborted) process.exit(INTERRUPTED)
    controller.abort(svcError('INTERRUPTED', 'interrupted'))
  }
  process.on('SIGINT', onInterrupt)
  return { signal: controller.signal, [Symbol.dispose]: () => void process.off('SIGINT', onInterrupt) }
}
