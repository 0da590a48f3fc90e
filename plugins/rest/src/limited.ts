import { svcError, type Use } from '@svc/core'

/** Does work for at most so many milliseconds; whether or not it listens to its signal, the answer comes in time. */
export async function limited<T>(ms: number, use: Use, work: (use: Use) => Promise<T>): Promise<T> {
  const ending = new AbortController()
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    const error = svcError('TOO_SLOW', `no answer within ${ms} ms`)
    ending.abort(error)
    late.reject(error)
  }, ms)
  try {
    return await Promise.race([work({ ...use, signal: AbortSignal.any([use.signal, ending.signal]) }), late.promise])
  } finally {
    clearTimeout(timer)
  }
}
