import { type SvcError, svcError } from '@svc/core'

/** Each worker would have conversations, tokens and counts of its own. */
export const memoryNotShared = (kind: string, workers: number): SvcError =>
  svcError(
    'MEMORY_NOT_SHARED',
    `${workers} workers cannot share a store of the kind "${kind}": each would have conversations of its own`,
    {
      details: { kind, workers },
      hint: 'take a store that processes share, such as @svc/plugin-store-sqlite, or set server.workers to 1',
    }
  )

export const peerSilent = (topic: string): SvcError =>
  svcError('PEER_SILENT', `this worker answers to no topic "${topic}"`, {
    details: { topic },
    hint: 'it has another set of plugins than the worker that asked: svc reload brings up both anew',
  })
