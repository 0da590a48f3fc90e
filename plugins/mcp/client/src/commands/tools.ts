import { Args, JSON_FLAG, MANAGED_FLAGS } from '@svc/cli/command'
import type { McpTool } from '@svc/core/contracts'
import { oneLine } from '@svc/plugin-kit'
import { selected } from '../registry/configured-servers.ts'
import { McpCommand, SERVER_ARG } from './shared.ts'

/** `svc mcp tools <name>`: lists the tools now, or as they were listed last; shows changes and removed hidden characters. */
export class McpTools extends McpCommand {
  static override summary = 'List the tools of an MCP server and their changes'
  static override examples = ['<%= config.bin %> <%= command.id %> docs']
  static override args = SERVER_ARG
  static override flags = { ...MANAGED_FLAGS, ...JSON_FLAG }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(McpTools)
    const name = await this.checkedName(args.name, flags)
    const { tools, problems, failure } = await (await this.clients(flags)).inspect(name, true, this.callContext)
    if (flags.json) return this.print(JSON.stringify({ server: name, tools, left_out: problems, ...(failure && { failure }) }))
    for (const tool of tools) for (const line of linesOf(tool)) this.print(line)
    for (const problem of problems) this.note(`left out: ${oneLine(problem)}`)
    if (failure)
      this.note(`as it listed them last, because it cannot be asked now: ${failure.class}: ${oneLine(failure.message)}`)
    if (tools.some(one => one.status === 'changed'))
      this.note(`changed tools cannot be used until you approve them: svc mcp approve ${name}`)
  }
}

const MARKS = { good: '', changed: ' (changed)', hidden: ' (excluded by the configuration)' } as const

/** Never cuts a line of a difference: its maker limits it, and a user must see all of it. */
const MAX_LINE = 10_000

/** The lines that describe a tool. */
export function linesOf({ name, description, status, difference = [], stripped = [] }: McpTool): string[] {
  return [
    `${name}${MARKS[status]}  ${oneLine(description, 120)}`.trimEnd(),
    ...difference.map(line => `  ${oneLine(line, MAX_LINE)}`),
    ...stripped.map(place => `  hidden characters removed: ${oneLine(place)}`),
  ]
}

/** `svc mcp approve <name> [<tool>...]`: shows and approves changed tools; running servers use them at once. */
export class McpApprove extends McpCommand {
  static override summary = 'Approve the changed tools of an MCP server'
  static override examples = ['<%= config.bin %> <%= command.id %> docs', '<%= config.bin %> <%= command.id %> docs search read']
  static override args = {
    ...SERVER_ARG,
    tool: Args.string({ description: 'Approve only these tools', multiple: true, ignoreStdin: true }),
  }
  static override flags = { ...MANAGED_FLAGS, ...JSON_FLAG }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(McpApprove)
    const names = args.tool?.length ? args.tool : undefined
    const name = await this.checkedName(args.name, flags)
    const clients = await this.changedClients(flags)
    const { tools } = await clients.inspect(name, true, this.callContext)
    const changed = selected(name, tools, names).filter(one => one.status === 'changed')
    // only the versions that are shown here; if the server has changed one again meanwhile, this fails
    const versions = changed.map(({ name: tool, version = '' }) => ({ name: tool, version }))
    if (changed.length > 0) await clients.approveVersions(name, versions, this.callContext)
    if (flags.json) return this.print(JSON.stringify({ server: name, approved: changed }))
    for (const tool of changed) for (const line of linesOf(tool)) this.print(line)
    this.note(changed.length === 0 ? `no tool of ${name} had changed` : `approved: ${changed.map(one => one.name).join(', ')}`)
  }
}
