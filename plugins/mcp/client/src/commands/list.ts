import { JSON_FLAG, SvcCommand } from '@svc/cli/command'
import type { CallContext } from '@svc/core'
import type { McpServerInfo, Store } from '@svc/core/contracts'
import { oneLine, table } from '@svc/plugin-kit'
import { type Placement, placementOf } from '../registry/client-options.ts'
import type { Server } from '../registry/configured-servers.ts'
import { assessTools } from '../registry/pinning.ts'
import { readRecord, switchKey, type SwitchRecord } from '../registry/records.ts'
import { serverInfoOf } from '../registry/server-status.ts'
import {
  configuredServers,
  contextOf,
  type KeyedState,
  locationOf,
  openStore,
  PORT_FLAG,
  runningId,
  statesOf,
  toolsIn,
} from './shared.ts'

const HEAD = ['NAME', 'STATE', 'TOOLS', 'RUNS', 'SERVER', 'LAST ERROR']

/** `svc mcp list`: the configured servers, with their state in the running server. */
export class McpList extends SvcCommand {
  static override summary = 'List the MCP servers and their state'
  static override examples = ['<%= config.bin %> <%= command.id %>', '<%= config.bin %> <%= command.id %> --port 9000 --json']
  static override flags = { ...PORT_FLAG, ...JSON_FLAG }

  async run(): Promise<void> {
    const { flags } = await this.parse(McpList)
    const servers = await configuredServers(this)
    if (servers.length === 0 && !flags.json) return this.note('no MCP servers are configured; add one: svc mcp add <name> <url>')
    const ctx = contextOf(this, 'mcp list')
    const running = await runningId(this, flags.port, ctx)
    const store = await openStore(this, ctx)
    const states = running === undefined ? new Map<string, never>() : await statesOf(store, running, ctx)
    const rows = await Promise.all(servers.map(server => rowOf(store, server, states.get(server.entry.name), ctx)))
    if (flags.json)
      return this.print(
        JSON.stringify({ servers: rows.map(({ info, ...row }) => ({ ...info, ...row, changed: info.changed ?? [] })) })
      )
    for (const line of table([HEAD, ...rows.map(cells)])) this.print(line)
    if (running === undefined) this.note('no server is running; to try an MCP server, run svc mcp test <name>')
    const late = servers.filter(one => running !== undefined && !states.has(one.entry.name) && one.entry.enabled !== false)
    if (late.length > 0)
      this.note(`the running server has not loaded ${late.map(one => one.entry.name).join(', ')}; run svc reload`)
  }
}

interface Row {
  readonly info: McpServerInfo
  readonly where: string
  readonly runs: Placement
}

async function rowOf(store: Store, server: Server, state: KeyedState | undefined, ctx: CallContext): Promise<Row> {
  const switched = (await readRecord(store, switchKey(server), ctx)).value as unknown as SwitchRecord | undefined
  const { catalogue, pins } = await toolsIn(state, store, server, ctx)
  const tools = assessTools(catalogue?.tools ?? Object.values(pins), pins, server.entry)
  const isEnabled = switched?.enabled ?? server.entry.enabled ?? true
  const info = serverInfoOf(server, { status: state?.status, isEnabled, tools })
  return { info, where: server.where, runs: placementOf(server.entry) }
}

function cells({ info, runs }: Row): string[] {
  const tools = `${info.tools.length}${info.changed ? ` (${info.changed.length} changed)` : ''}`
  const error =
    info.lastError === undefined || info.state === 'connected' ? '' : `${info.lastError.class}: ${info.lastError.message}`
  return [info.name, info.state, tools, runs, oneLine(locationOf(info), 60), oneLine(error)]
}
