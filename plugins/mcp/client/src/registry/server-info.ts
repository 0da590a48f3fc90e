import { maskArguments } from '@svc/core'
import type { Check, McpClients, McpServerInfo, McpTool } from '@svc/core/contracts'
import { STATES } from '../connection/states.ts'
import { callTimesOf } from './client-options.ts'
import type { Server } from './configured-servers.ts'
import type { ReportedStatus } from './records.ts'

export interface ServerFacts {
  /** As the owner reports it; undefined before the first report. */
  readonly status: ReportedStatus | undefined
  readonly isEnabled: boolean
  readonly tools: readonly McpTool[] | undefined
}

const NEVER_CONNECTED: ReportedStatus = { state: 'disconnected', since: 0, attempts: 0 }

/** The public description of a server, without credentials. */
export function serverInfoOf({ entry }: Server, { status = NEVER_CONNECTED, isEnabled, tools = [] }: ServerFacts): McpServerInfo {
  const named = (standing: McpTool['standing']) => tools.filter(one => one.standing === standing).map(one => one.name)
  const changed = named('changed')
  const location =
    entry.url === undefined
      ? { command: [entry.command ?? '', ...maskArguments(entry.args ?? [], '…')] }
      : { url: publicUrl(entry.url) }
  return {
    ...status,
    name: entry.name,
    ...location,
    ...(isEnabled ? {} : { state: 'disabled' }),
    tools: isEnabled && status.state !== 'quarantined' ? named('good') : [],
    ...(changed.length === 0 ? {} : { changed }),
    effects: entry.effects ?? ['execute', 'network'],
    callLimitMs: callTimesOf(entry).total,
  }
}

/** An address without its query, which may hold a key. */
export function publicUrl(url: string): string {
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname}`
}

const SHOWN = 5
const MAX_LENGTH = 200

/** Healthy while no enabled server needs attention. Reads the last reports; sends nothing to the servers. */
export const createHealth = (clients: Pick<McpClients, 'list'>): Check => ({
  async probe(ctx) {
    const all = await clients.list(ctx)
    const bad = all.filter(one => STATES[one.state].needsAttention)
    const detail = { servers: Object.fromEntries(all.map(({ name, state }) => [name, state])) }
    return bad.length === 0 ? { status: 'healthy', detail } : { status: 'degraded', reason: reasonOf(bad), detail }
  },
})

function reasonOf(bad: readonly McpServerInfo[]): string {
  const named = bad.slice(0, SHOWN).map(one => `${one.name} is ${one.state}${causeOf(one)}`)
  return `MCP servers: ${named.join(', ')}${bad.length > SHOWN ? ` and ${bad.length - SHOWN} more` : ''}`
}

/** The error class; of a degraded server the message, which names the tools. */
function causeOf({ state, lastError }: McpServerInfo): string {
  if (lastError === undefined) return ''
  return ` (${state === 'degraded' ? lastError.message.slice(0, MAX_LENGTH) : lastError.class})`
}
