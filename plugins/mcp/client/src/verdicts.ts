import { createHash } from 'node:crypto'
import type { McpErrorClass, McpFailure, McpTool } from '@svc/core/contracts'
import { failureOf, type ListedTool, type StepsEnd } from '@svc/mcp-protocol'
import { callFailed } from './refusals.ts'

/** Throws MCP_CALL_FAILED, class `tool_not_found`, for a tool that may not be used. */
export function checkStanding(server: string, tool: string, tools: readonly McpTool[] | undefined) {
  const found = tools?.find(one => one.name === tool)
  if (found?.standing === 'good') return
  throw callFailed(server, 'tool_not_found', STANDINGS[found?.standing ?? 'unknown'](tool, server), { delivered: 'no' })
}

const STANDINGS = {
  unknown: (tool: string) => `it has no tool "${tool.slice(0, 100)}"`,
  hidden: (tool: string) => `the configuration leaves its tool "${tool}" out`,
  changed: (tool: string, server: string) =>
    `its tool "${tool}" is not what was approved: see what is new with svc mcp tools ${server}, and approve it with svc mcp approve ${server}`,
} as const

/** Of how a call ended, what went wrong. */
export function failureIn(end: StepsEnd): McpErrorClass | undefined {
  if (end === 'mute' || end === 'left') return undefined
  if ('thrown' in end) return failureOf(end.thrown).class
  return end.last.type === 'result' && end.last.result.isError ? 'tool_error' : undefined
}

/** Why a connected server is degraded; undefined where it is not. */
export function reasonOf(server: string, changed: readonly McpTool[], faults: readonly string[]): McpFailure | undefined {
  const names = changed.map(one => one.name)
  if (names.length > 0)
    return { class: 'protocol_error', message: `tools that changed: ${listed(names)}; svc mcp approve ${server}` }
  return faults.length > 0 ? { class: 'protocol_error', message: `left out: ${listed(faults)}` } : undefined
}

const SHOWN = 5
const listed = (all: readonly string[]) =>
  all.length <= SHOWN ? all.join(', ') : `${all.slice(0, SHOWN).join(', ')} and ${all.length - SHOWN} more`

/** Of a catalogue: with another one it is another. */
export const hashOfAll = (tools: readonly ListedTool[], faults: readonly string[]) =>
  createHash('sha256')
    .update(JSON.stringify([tools.map(({ hash, stripped }) => [hash, stripped]), faults]))
    .digest('hex')
