import { Flags, JSON_FLAG, MANAGED_FLAGS } from '@svc/cli/command'
import { isTree } from '@svc/core'
import { McpClients, type McpServerInfo, type McpTestStep, type ServerChoice } from '@svc/core/contracts'
import { lineInvalid, oneLine, table, toRecord } from '@svc/plugin-kit'
import { reachServerIfAny } from '@svc/runtime'
import type { Arguments } from '../connection/client-types.ts'
import { type Placement, placementOf } from '../registry/client-options.ts'
import { loginProblem } from '../registry/configured-servers.ts'
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
    const rows = await this.#rows(flags)
    const records = rows.map(({ info, where, runs }) => toRecord({ ...info, changed: info.changed ?? [], where, runs }))
    if (flags.json) return this.print(JSON.stringify({ servers: records }))
    if (rows.length === 0) return this.note('no MCP servers are configured; add one: svc mcp add <name> <url>')
    for (const line of table([HEAD, ...rows.map(cells)])) this.print(line)
    if (flags.url !== undefined) return
    using running = await reachServerIfAny(this.home, flags)
    if (!running) return this.note('no server is running; to try an MCP server, run svc mcp test <name>')
    const late = rows.filter(row => !row.isLoaded).map(row => row.info.name)
    if (late.length > 0) this.note(`the running server has not loaded ${late.join(', ')}; run svc reload`)
  }

  /** The configured servers of this home, or those of a server elsewhere, whose configuration is not known here. */
  async #rows(choice: ServerChoice): Promise<Row[]> {
    const servers = choice.url === undefined ? await this.servers() : undefined
    if (servers?.length === 0) return []
    const known = await (await this.clients(choice)).list(this.callContext)
    if (!servers) return known.map(info => ({ info, runs: info.runs ?? 'remote', isLoaded: true }))
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

function cells({ info, runs }: Row): string[] {
  const tools = `${info.tools.length}${info.changed ? ` (${info.changed.length} changed)` : ''}`
  const error =
    info.lastError === undefined || info.state === 'connected' ? '' : `${info.lastError.class}: ${info.lastError.message}`
  return [info.name, info.state, tools, runs, oneLine(info.url ?? (info.command ?? []).join(' '), 60), oneLine(error)]
}

/** `svc mcp test <name>`: connects step by step over a connection of its own; exits with 1 if a step fails. */
export class McpTest extends McpCommand {
  static override summary = 'Test the connection to an MCP server step by step'
  static override description =
    'Resolves the host name, connects, authenticates, performs the handshake and lists the tools over a connection of its own, and prints the time of each step. The running server does this; if none runs, this command does. Exits with 1 if a step fails.'
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
    const steps: McpTestStep[] = []
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

const lineOf = ({ step, ms, found = '', error }: McpTestStep): string =>
  error
    ? `✗ ${step.padEnd(WIDTH)} ${ms} ms  ${error.class}: ${oneLine(error.message, 300)}`
    : `✓ ${step.padEnd(WIDTH)} ${ms} ms  ${oneLine(found, 300)}`.trimEnd()

function argsOf(text: string): Arguments {
  try {
    const read = JSON.parse(text) as unknown
    if (isTree(read)) return read as Arguments
  } catch {
    // reported below
  }
  throw lineInvalid('--args must be a JSON object', 'mcp test <name> --tool <tool> --args <json>')
}

abstract class SwitchCommand extends McpCommand {
  static override examples = ['<%= config.bin %> <%= command.id %> docs']
  static override args = SERVER_ARG
  static override flags = { ...MANAGED_FLAGS, ...JSON_FLAG }
  protected abstract readonly isEnabled: boolean

  async run(): Promise<void> {
    const { args, flags } = await this.parse(SwitchCommand)
    const name = await this.checkedName(args.name, flags)
    await (await this.changedClients(flags)).setEnabled(name, this.isEnabled, this.callContext)
    const done = this.isEnabled ? 'enabled' : 'disabled'
    this.print(flags.json ? JSON.stringify({ [done]: name }) : `${name} is ${done}`)
  }
}

/** `svc mcp enable <name>`: also ends a quarantine. */
export class McpEnable extends SwitchCommand {
  static override summary = 'Enable an MCP server, and end a quarantine'
  protected override readonly isEnabled = true
}

/** `svc mcp disable <name>` */
export class McpDisable extends SwitchCommand {
  static override summary = 'Disable an MCP server until it is enabled'
  protected override readonly isEnabled = false
}

/** `svc mcp login <name>`: shows the login page and waits for its answer; running servers connect again. */
export class McpLogin extends McpCommand {
  static override summary = 'Log in to an MCP server in the browser'
  static override description =
    'Prints the address of a login page. Open it in a browser on this machine. The command waits up to five minutes for the answer on 127.0.0.1.'
  static override examples = ['<%= config.bin %> <%= command.id %> docs']
  static override args = SERVER_ARG
  static override flags = {
    port: Flags.integer({
      summary: 'Port to wait on, if the authorization server allows only one (default: any)',
      helpValue: '<int>',
      min: 1,
      max: 65_535,
    }),
  }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(McpLogin)
    const server = await this.serverNamed(args.name)
    const { name } = server.entry
    const problem = loginProblem(server)
    if (problem !== undefined) throw lineInvalid(problem, 'mcp login <name> [--port <port>]')
    // a login in the store of this process only would be lost
    await this.openStore()
    for await (const step of (await this.host()).service(McpClients).login(name, flags.port, this.callContext)) {
      if (step.type === 'done') this.note(`logged in to ${name}`)
      else {
        this.note('open this page in a browser on this machine:')
        this.print(step.url)
      }
    }
  }
}
