import type { McpClients } from '@svc/core/contracts'
import { loginUnknown, serverUnknown } from '../errors.ts'
import type { EditContext } from './settings.ts'

const unknown = (server: string) => Promise.reject(serverUnknown(server, []))
const unknownStream = (server: string) => ({ [Symbol.asyncIterator]: () => ({ next: () => unknown(server) }) })

/** The service without a configured server. It loads the editor with the first change. */
export function noServers(context: EditContext): McpClients {
  const editor = async () => (await import('./edit.ts')).createEditor(context)
  return {
    add: async (entry, ctx) => (await editor()).add(entry, ctx),
    remove: async (server, ctx) => (await editor()).remove(server, ctx),
    list: async () => [],
    tools: unknown,
    app: unknown,
    approve: unknown,
    setEnabled: unknown,
    inspect: unknown,
    approveVersions: unknown,
    call: unknownStream,
    test: unknownStream,
    login: unknownStream,
    answerLogin: () => Promise.reject(loginUnknown()),
  }
}
