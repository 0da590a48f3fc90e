import type { Check, McpClients, McpServerInfo, McpState } from '@svc/core/contracts'

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
