import { svcError } from '@svc/core'

/** A limit that cannot be counted is not waived: the request is refused until it can be. */
export const cannotCount = (cause: unknown) =>
  svcError('UNAVAILABLE', 'requests cannot be counted just now', {
    cause,
    hint: 'see /health for the state of the store; without limits (server.rate_limit.enabled: false) nothing is counted',
  })
