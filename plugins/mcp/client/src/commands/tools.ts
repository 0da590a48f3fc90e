import { Args, JSON_FLAG, SvcCommand } from '@svc/cli/command'
import type { McpTool } from '@svc/core/contracts'
import { oneLine } from '@svc/plugin-kit'
import { assessTools, withNewPins } from '../registry/pinning.ts'
import { changePins, pinListed } from '../registry/records.ts'
import { configuredServer, contextOf, knownTools, listNow, openStore, PORT_FLAG, runningId, SERVER_ARG } from './shared.ts'

/** `svc mcp tools <name>`: the last list of the running server, or a new one; shows changes and removed hidden characters. */
export class McpTools extends SvcCommand {
  static override summary = 'List the tools of an MCP server and their changes'
  static override examples = ['<%= config.bin %> <%= command.id %> docs']
  static override args = SERVER_ARG
  static override flags = { ...PORT_FLAG, ...JSON_FLAG }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(McpTools)
    const server = await configuredServer(this, args.name)
    const ctx = contextOf(this, 'mcp tools')
    const running = await runningId(this, flags.port, ctx)
    const store = await openStore(this, ctx)
    const known = await knownTools(store, running, server, ctx)
    const read = known.catalogue ?? (await listNow(this, store, server, ctx))
    // pins new tools, as a running server does
    if (!known.catalogue) await changePins(store, server, pins => withNewPins(pins, read.tools), ctx)
    const all = assessTools(read.tools, known.pins, server.entry)
    if (flags.json) return this.print(JSON.stringify({ server: server.entry.name, tools: all, left_out: read.problems }))
    for (const tool of all) for (const line of linesOf(tool)) this.print(line)
    for (const fault of read.problems) this.note(`left out: ${oneLine(fault)}`)
    if (all.some(one => one.standing === 'changed'))
      this.note(`changed tools cannot be used until you approve them: svc mcp approve ${server.entry.name}`)
  }
}

const MARKS = { good: '', changed: ' (changed)', hidden: ' (excluded by the configuration)' } as const

/** Never cuts a line of a difference: its maker limits it, and a user must see all of it. */
const MAX_LINE = 10_000

/** The lines that describe a tool. */
export function linesOf({ name, description, standing, difference = [], stripped = [] }: McpTool): string[] {
  return [
    `${name}${MARKS[standing]}  ${oneLine(description, 120)}`.trimEnd(),
    ...difference.map(line => `  ${oneLine(line, MAX_LINE)}`),
    ...stripped.map(place => `  hidden characters removed: ${oneLine(place)}`),
  ]
}

/** `svc mcp approve <name> [<tool>...]`: shows and approves changed tools; running servers use them at once. */
export class McpApprove extends SvcCommand {
  static override summary = 'Approve the changed tools of an MCP server'
  static override examples = ['<%= config.bin %> <%= command.id %> docs', '<%= config.bin %> <%= command.id %> docs search read']
  static override args = {
    ...SERVER_ARG,
    tool: Args.string({ description: 'Approve only these tools', multiple: true, ignoreStdin: true }),
  }
  static override flags = { ...PORT_FLAG, ...JSON_FLAG }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(McpApprove)
    const { name, tool: names = [] } = args
    const server = await configuredServer(this, name)
    const ctx = contextOf(this, 'mcp approve')
    const running = await runningId(this, flags.port, ctx)
    const store = await openStore(this, ctx)
    const { pins, catalogue } = await knownTools(store, running, server, ctx)
    const { tools } = catalogue ?? (await listNow(this, store, server, ctx))
    const isSelected = (tool: string) => names.length === 0 || names.includes(tool)
    const changed = assessTools(tools, pins, server.entry).filter(one => one.standing === 'changed' && isSelected(one.name))
    // pins the tools that are shown here, even if the server has changed them again meanwhile
    await pinListed(store, server, tools, names.length === 0 ? undefined : names, ctx)
    if (flags.json) return this.print(JSON.stringify({ server: name, approved: changed }))
    for (const tool of changed) for (const line of linesOf(tool)) this.print(line)
    this.note(changed.length === 0 ? `no tool of ${name} had changed` : `approved: ${changed.map(one => one.name).join(', ')}`)
  }
}
