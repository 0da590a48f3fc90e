import { readFileSync } from 'node:fs'
import type { ToolStep } from '@svc/core/contracts'
import {
  createMcpClient,
  type HttpOptions,
  type McpChange,
  type McpClient,
  type StdioOptions,
} from '@svc/plugin-mcp-client/client'
import { type Misbehavior, hostileCommand } from '../../../../../test/support/hostile.ts'

/** A client of a hostile server over stdio. */
export const hostile = (problems: Misbehavior = {}, options: Partial<StdioOptions> = {}): McpClient =>
  createMcpClient({ name: 'hostile', ...hostileCommand(problems), backoff: () => 0, ...options })

export const remote = (url: string, options: Partial<Omit<HttpOptions, 'url'>> = {}): McpClient =>
  createMcpClient({ name: 'remote', url, backoff: () => 0, ...options })

/** Resolves with the first change that fits. */
export const changeOf = <T extends McpChange['type']>(
  client: McpClient,
  type: T,
  fits: (change: Extract<McpChange, { type: T }>) => boolean = () => true
) =>
  new Promise<Extract<McpChange, { type: T }>>(resolve => {
    const end = client.onChange(change => {
      if (change.type !== type || !fits(change as Extract<McpChange, { type: T }>)) return
      end()
      resolve(change as Extract<McpChange, { type: T }>)
    })
  })

export const reached = (client: McpClient, state: string) => changeOf(client, 'state', change => change.status.state === state)

/** All steps of a call. */
export const steps = (all: AsyncIterable<ToolStep>): Promise<ToolStep[]> => Array.fromAsync(all)
export const forever = () => ({ signal: new AbortController().signal })

/** What a tool of the hostile server tells in JSON. */
export async function replyOf(client: McpClient, tool: string): Promise<unknown> {
  const { content, error } = await client.callTool(tool, {})
  const [part] = content
  if (error !== null || part?.type !== 'text') throw new Error(`${tool} said nothing: ${JSON.stringify(error)}`)
  return JSON.parse(part.text)
}

/** Whether a process runs. A zombie does not. */
export function isAlive(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}
