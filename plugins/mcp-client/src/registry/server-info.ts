import { maskArguments } from '@svc/core'
import type { Check, McpClients, McpServerInfo, McpState, McpTool } from '@svc/core/contracts'
import { timesOf } from './client-options.ts'
import type { Server } from './configured-servers.ts'
import type { Told } from './records.ts'

/** What is known of a server at one moment. */
export interface Facts {
  /** As its owner tells; nobody has yet where it is absent. */
  readonly told: Told | undefined
  readonly isOn: boolean
  readonly tools: readonly McpTool[] | undefined
}

const NEVER: Told = { state: 'disconnected', since: 0, attempts: 0 }

/** How a server stands, for everybody: without credentials. */
export function shownOf({ entry }: Server, { told = NEVER, isOn, tools = [] }: Facts): McpServerInfo {
  const usable = isOn && told.state !== 'quarantined'
  const named = (standing: McpTool['standing']) => tools.filter(one => one.standing === standing).map(one => one.name)
  const changed = named('changed')
  return {
    ...told,
    name: entry.name,
    ...(entry.url === undefined
      ? { command: [entry.command ?? '', ...maskArguments(entry.args ?? [], '…')] }
      : { url: addressOf(entry.url) }),
    ...(isOn ? {} : { state: 'disabled' }),
    tools: usable ? named('good') : [],
    ...(changed.length === 0 ? {} : { changed }),
    effects: entry.effects ?? ['execute', 'network'],
    callLimitMs: timesOf(entry).total,
  }
}

/** Without what may be a key: its query. */
export function addressOf(url: string): string {
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname}`
}

/** What a person has to look at. What is just being connected is not. */
const BAD: ReadonlySet<McpState> = new Set(['degraded', 'failed', 'quarantined', 'needs_auth'])
const SHOWN = 5
const LONGEST = 200

/** Healthy while every server that is switched on can be reached, and all of it be used, as far as known: asks nobody. */
export const createHealth = (clients: Pick<McpClients, 'list'>): Check => ({
  async probe(use) {
    const all = await clients.list(use)
    const bad = all.filter(one => BAD.has(one.state))
    const detail = { servers: Object.fromEntries(all.map(({ name, state }) => [name, state])) }
    return bad.length === 0 ? { status: 'healthy', detail } : { status: 'degraded', reason: reasonOf(bad), detail }
  },
})

function reasonOf(bad: readonly McpServerInfo[]): string {
  const those = bad.slice(0, SHOWN).map(one => `${one.name} is ${one.state}${whyOf(one)}`)
  return `tool servers: ${those.join(', ')}${bad.length > SHOWN ? ` and ${bad.length - SHOWN} more` : ''}`
}

/** Of one that is connected its class says too little: what of it is out of use is meant. */
function whyOf({ state, lastError }: McpServerInfo): string {
  if (lastError === undefined) return ''
  return ` (${state === 'degraded' ? lastError.message.slice(0, LONGEST) : lastError.class})`
}
