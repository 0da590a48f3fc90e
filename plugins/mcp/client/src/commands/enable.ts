import { JSON_FLAG, SvcCommand } from '@svc/cli/command'
import type { CommandContext } from '@svc/core/contracts'
import { putSwitch } from '../registry/records.ts'
import { configuredServer, openStore, SERVER_ARG, contextOf } from './shared.ts'

/** `svc mcp enable <name>`: also ends a quarantine. */
export class McpEnable extends SvcCommand {
  static override summary = 'Enable an MCP server, and end a quarantine'
  static override examples = ['<%= config.bin %> <%= command.id %> docs']
  static override args = SERVER_ARG
  static override flags = JSON_FLAG

  async run(): Promise<void> {
    const { args, flags } = await this.parse(McpEnable)
    await switchServer(this, 'enable', args.name, flags.json)
  }
}

/** `svc mcp disable <name>` */
export class McpDisable extends SvcCommand {
  static override summary = 'Disable an MCP server until it is enabled'
  static override examples = ['<%= config.bin %> <%= command.id %> docs']
  static override args = SERVER_ARG
  static override flags = JSON_FLAG

  async run(): Promise<void> {
    const { args, flags } = await this.parse(McpDisable)
    await switchServer(this, 'disable', args.name, flags.json)
  }
}

/** Writes the switch to the store, where running servers see it. */
async function switchServer(call: CommandContext, word: 'enable' | 'disable', name: string, json: boolean): Promise<void> {
  const server = await configuredServer(call, name)
  const ctx = contextOf(call, `mcp ${word}`)
  await putSwitch(await openStore(call, ctx), server, word === 'enable', ctx)
  if (json) call.print(JSON.stringify({ [`${word}d`]: server.entry.name }))
  else call.print(`${server.entry.name} is ${word}d`)
}
