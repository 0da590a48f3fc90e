import { Args, JSON_FLAG, SvcCommand } from '@svc/cli/command'
import { assessTools } from '../registry/pinning.ts'
import { pinListed } from '../registry/records.ts'
import { configuredServer, knownTools, listNow, openStore, PORT_FLAG, runningId, SERVER_ARG, contextOf } from './shared.ts'
import { linesOf } from './tools.ts'

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
