import { isTree } from '@svc/core'
import type { InputRequest, Json, ToolDialog } from '@svc/core/contracts'
import { META } from '@svc/mcp-protocol'
import type { Server, ServerContext } from './sdk.ts'

const ASKABLE = [
  ['elicitation', 'elicitation/create'],
  ['sampling', 'sampling/createMessage'],
  ['roots', 'roots/list'],
] as const

/** What a client that declares these capabilities can be asked for. */
export function askable(capabilities: unknown): InputRequest['method'][] {
  const can = isTree(capabilities) ? capabilities : {}
  return ASKABLE.flatMap(([capability, method]) => (can[capability] === undefined ? [] : [method]))
}

/** What the caller of a request can be asked for, and what it has answered. */
export function dialogOf(server: Server, { mcpReq }: ServerContext): ToolDialog {
  const envelope: { readonly [key: string]: unknown } | undefined = mcpReq.envelope
  const capabilities = envelope === undefined ? server.getClientCapabilities() : envelope[META.capabilities]
  const state = mcpReq.requestState<unknown>()
  return {
    can: askable(capabilities),
    ...(mcpReq.inputResponses === undefined ? {} : { answers: mcpReq.inputResponses as { readonly [key: string]: Json } }),
    ...(typeof state === 'string' ? { state } : {}),
  }
}
