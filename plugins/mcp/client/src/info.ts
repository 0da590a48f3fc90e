import { maskArguments } from '@svc/core'
import type { McpServerInfo, McpTool } from '@svc/core/contracts'
import { timesOf } from './client-options.ts'
import type { Server } from './servers.ts'
import type { Told } from './space.ts'

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
