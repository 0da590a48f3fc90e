import { svcError, type SvcError } from '@svc/core'

export const busTooLarge = (what: string, bytes: number, limit: number): SvcError =>
  svcError('BUS_TOO_LARGE', `${what} has ${bytes} bytes, more than the limit of ${limit}`, {
    details: { bytes, limit },
    hint: 'Write large data to the store, and send its key',
  })

export const peerGone = (worker: string, reached: boolean): SvcError =>
  svcError('PEER_GONE', `worker ${worker} is not a member of the cluster, or has ended`, {
    details: { worker, retryable: true, reached },
    hint: 'Try again. Another worker has taken over the state of this worker, or the state is lost',
  })

export const peerSilent = (worker: string, topic: string): SvcError =>
  svcError('PEER_SILENT', `worker ${worker} has no handler for the topic "${topic}"`, {
    details: { worker, topic },
    hint: 'Install the same plugins on all servers of the cluster, and run `svc reload`',
  })

export const notJoined = (worker: string): SvcError =>
  svcError('BUS_NOT_JOINED', `worker ${worker} has not joined the bus`, {
    details: { worker },
    hint: 'Call join of NodeBus first',
  })
