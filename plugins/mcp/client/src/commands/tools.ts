import { JSON_FLAG, SvcCommand } from '@svc/cli/command'
import { oneLine } from '@svc/plugin-kit'
import type { McpTool } from '@svc/core/contracts'
import { assessTools, withNewPins } from '../registry/pinning.ts'
import { changePins } from '../registry/records.ts'
import { configuredServer, knownTools, listNow, openStore, PORT_FLAG, runningId, SERVER_ARG, contextOf } from './shared.ts'

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
    if (flags.json) return this.print(JSON.stringify({ server: server.entry.name, tools: all, left_out: read.faults }))
    for (const tool of all) for (const line of linesOf(tool)) this.print(line)
    for (const fault of read.faults) this.note(`left out: ${oneLine(fault)}`)
    if (all.some(one => one.standing === 'changed'))
      this.note(`changed tools cannot be used until you approve them: svc mcp approve ${server.entry.name}`)
  }
}

const MARKS = { good: '', changed: ' (changed)', hidden: ' (excluded by the configuration)' } as const

/** Never cuts a line of a difference: its maker limits it, and a person must see all of it. */
const MAX_LINE = 10_000

/** The lines that describe a tool. */
export function linesOf({ name, description, standing, difference = [], stripped = [] }: McpTool): string[] {
  return [
    `${name}${MARKS[standing]}  ${oneLine(description, 120)}`.trimEnd(),
    ...difference.map(line => `  ${oneLine(line, MAX_LINE)}`),
    ...stripped.map(place => `  hidden characters removed: ${oneLine(place)}`),
  ]
}
