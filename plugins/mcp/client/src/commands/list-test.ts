import { JSON_FLAG, MANAGED_FLAGS, Flags } from '@svc/cli/command'
import type { McpServerInfo, McpTestStep as TestStep, Json, ServerChoice } from '@svc/core/contracts'
import { lineInvalid, oneLine, snakeCase, table } from '@svc/plugin-kit'
import { reachServerIfAny } from '@svc/runtime'
import { type Placement, placementOf } from '../registry/client-options.ts'
import { serverInfoOf } from '../registry/server-status.ts'
import { McpCommand, SERVER_ARG } from './shared.ts'

const HEAD = ['NAME', 'STATE', 'TOOLS', 'RUNS', 'SERVER', 'LAST ERROR']

/** `svc mcp list`: the configured servers, with their state in the running server. */
export class McpList extends McpCommand {
  static override summary = 'List the MCP servers and their state'
  static override examples = ['<%= config.bin %> <%= command.id %>', '<%= config.bin %> <%= command.id %> --port 9000 --json']
  static override flags = { ...MANAGED_FLAGS, ...JSON_FLAG }

  async run(): Promise<void> {
    const { flags } = await this.parse(McpList)
    const rows = flags.url === undefined ? await this.#ownRows(flags) : await this.#rowsOf(flags)
    if (flags.json)
      return this.print(
        JSON.stringify({
          servers: rows.map(({ info, where, runs }) => recordOf({ ...info, changed: info.changed ?? [], where, runs })),
        })
      )
    if (rows.length === 0) return this.note('no MCP servers are configured; add one: svc mcp add <name> <url>')
    for (const line of table([HEAD, ...rows.map(cells)])) this.print(line)
    if (flags.url !== undefined) return
    using running = await reachServerIfAny(this.home, flags)
    if (!running) return this.note('no server is running; to try an MCP server, run svc mcp test <name>')
    const late = rows.filter(row => !row.isLoaded).map(row => row.info.name)
    if (late.length > 0) this.note(`the running server has not loaded ${late.join(', ')}; run svc reload`)
  }

  /** The servers of a server elsewhere. Its configuration is not known here. */
  async #rowsOf(choice: ServerChoice): Promise<Row[]> {
    const known = await (await this.clients(choice)).list(this.callContext)
    return known.map(info => ({ info, runs: info.runs ?? 'remote', isLoaded: true }))
  }

  /** The configured servers of this home. */
  async #ownRows(choice: ServerChoice): Promise<Row[]> {
    const servers = await this.servers()
    if (servers.length === 0) return []
    const known = await (await this.clients(choice)).list(this.callContext)
    return servers.map(server => {
      const loaded = known.find(one => one.name === server.entry.name)
      const place = { where: server.where, runs: placementOf(server.entry) }
      return { ...place, info: loaded ?? serverInfoOf(server), isLoaded: loaded !== undefined }
    })
  }
}

interface Row {
  readonly info: McpServerInfo
  readonly runs: Placement
  /** The file of its entry. */
  readonly where?: string
  readonly isLoaded: boolean
}

/** A record and its parts with names in snake_case, as all JSON of svc has them. */
function recordOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(recordOf)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [snakeCase(name), recordOf(part)]))
}

function cells({ info, runs }: { readonly info: McpServerInfo; readonly runs: Placement }): string[] {
  const tools = `${info.tools.length}${info.changed ? ` (${info.changed.length} changed)` : ''}`
  const error =
    info.lastError === undefined || info.state === 'connected' ? '' : `${info.lastError.class}: ${info.lastError.message}`
  return [info.name, info.state, tools, runs, oneLine(info.url ?? (info.command ?? []).join(' '), 60), oneLine(error)]
}

/** `svc mcp test <name>`: connects step by step over a connection of its own; exits with 1 if a step fails. */
export class McpTest extends McpCommand {
  static override summary = 'Test the connection to an MCP server step by step'
  static override description =
    'Resolves, connects, authenticates, shakes hands and lists the tools over a connection of its own, and prints the time of each step. The running server does this; if none runs, this command does. Exits with 1 if a step fails.'
  static override examples = [`<%= config.bin %> <%= command.id %> files --tool read_file --args '{"path": "/data/notes.txt"}'`]
  static override args = SERVER_ARG
  static override flags = {
    tool: Flags.string({ summary: 'Tool to call at the end', helpValue: '<tool>' }),
    args: Flags.string({ summary: 'Arguments of the call', helpValue: '<json>', dependsOn: ['tool'] }),
    ...MANAGED_FLAGS,
    ...JSON_FLAG,
  }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(McpTest)
    const name = await this.checkedName(args.name, flags)
    const call = flags.tool === undefined ? undefined : { tool: flags.tool, args: argsOf(flags.args ?? '{}') }
    const clients = await this.clients(flags)
    const steps: TestStep[] = []
    for await (const step of clients.test(name, call, this.callContext)) {
      steps.push(step)
      if (!flags.json) this.print(lineOf(step))
    }
    const failed = steps.some(step => step.error !== undefined)
    if (flags.json) this.print(JSON.stringify({ server: name, ok: !failed, steps }))
    return failed ? 1 : 0
  }
}

const WIDTH = 10

const lineOf = ({ step, ms, found = '', error }: TestStep): string =>
  error
    ? `✗ ${step.padEnd(WIDTH)} ${ms} ms  ${error.class}: ${oneLine(error.message, 300)}`
    : `✓ ${step.padEnd(WIDTH)} ${ms} ms  ${oneLine(found, 300)}`.trimEnd()

function argsOf(text: string): { readonly [name: string]: Json | undefined } {
  try {
    const read = JSON.parse(text) as unknown
    if (typeof read === 'object' && read !== null && !Array.isArray(read)) return read as { [name: string]: Json }
  } catch {
    // reported below
  }
  throw lineInvalid('--args must be a JSON object', 'mcp test <name> --tool <tool> --args <json>')
}
