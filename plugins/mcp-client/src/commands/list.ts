import { JSON_FLAG, oneLine, readLine, table } from '@svc/command-line'
import type { Use } from '@svc/core'
import type { Command, McpServerInfo, Store } from '@svc/core/contracts'
import { shownOf } from '../info.ts'
import { readCatalogue, readNote, readPins } from '../notes.ts'
import type { Server } from '../servers.ts'
import { type Ground, groundOf } from '../sandboxed.ts'
import { type StateNote, type SwitchNote, switchKey } from '../space.ts'
import { standings } from '../standing.ts'
import { configuredServers, openStore, placeOf, runningId, statesOf, useOf } from './ground.ts'
import { PORT_FLAG, portOf, USAGE } from './line.ts'

const HEAD = ['NAME', 'STATE', 'TOOLS', 'RUNS', 'SERVER', 'LAST ERROR']

/** `svc mcp list`: the configured servers, and how they stand in the server that runs. */
const list: Command = async call => {
  const { values } = readLine(call.args, USAGE.list, { ...JSON_FLAG, ...PORT_FLAG }, [0, 0])
  const port = portOf(values.port, USAGE.list)
  const servers = await configuredServers(call)
  if (servers.length === 0 && !values.json) return call.note('there are no tool servers; svc mcp add <name> <url> adds one')
  const use = useOf(call, 'mcp list')
  const running = await runningId(call, port, use)
  const store = await openStore(call, use)
  const states = running === undefined ? new Map<string, never>() : await statesOf(store, running, use)
  const rows = await Promise.all(servers.map(server => rowOf(store, server, states.get(server.entry.name), use)))
  if (values.json)
    return call.print(
      JSON.stringify({ servers: rows.map(({ info, ...row }) => ({ ...info, ...row, changed: info.changed ?? [] })) })
    )
  for (const line of table([HEAD, ...rows.map(cells)])) call.print(line)
  if (running === undefined) call.note('no server runs: svc mcp test <name> tries one')
  const late = servers.filter(one => running !== undefined && !states.has(one.entry.name) && one.entry.enabled !== false)
  if (late.length > 0)
    call.note(`the server that runs knows nothing of ${late.map(one => one.entry.name).join(', ')}: svc reload`)
}

export default list

interface Row {
  readonly info: McpServerInfo
  readonly where: string
  readonly runs: Ground
}

async function rowOf(
  store: Store,
  server: Server,
  state: (StateNote & { readonly key: string }) | undefined,
  use: Use
): Promise<Row> {
  const switched = (await readNote(store, switchKey(server), use)).value as unknown as SwitchNote | undefined
  const pins = await readPins(store, server, use)
  const catalogue = state?.catalogue ? await readCatalogue(store, state.key, use) : undefined
  const tools = standings(catalogue?.tools ?? Object.values(pins), pins, server.entry)
  const isOn = switched?.enabled ?? server.entry.enabled ?? true
  return { info: shownOf(server, { told: state?.told, isOn, tools }), where: server.where, runs: groundOf(server.entry) }
}

function cells({ info, runs }: Row): string[] {
  const tools = `${info.tools.length}${info.changed ? ` (${info.changed.length} changed)` : ''}`
  const error =
    info.lastError === undefined || info.state === 'connected' ? '' : `${info.lastError.class}: ${info.lastError.message}`
  return [info.name, info.state, tools, runs, oneLine(placeOf(info), 60), oneLine(error)]
}
