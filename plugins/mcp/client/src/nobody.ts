import type { McpClients } from '@svc/core/contracts'
import { serverUnknown } from './errors.ts'

const unknown = (server: string) => Promise.reject(serverUnknown(server, []))

/** The service where no server is configured. */
export const NOBODY: McpClients = {
  list: async () => [],
  tools: unknown,
  approve: unknown,
  setEnabled: unknown,
  call: server => ({ [Symbol.asyncIterator]: () => ({ next: () => unknown(server) }) }),
}
