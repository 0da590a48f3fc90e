import { Flags, JSON_FLAG, SvcCommand } from '@svc/cli/command'
import type { CommandContext } from '@svc/core/contracts'
import { lineInvalid } from '@svc/plugin-kit'
import { askServersOnce, configuredServer, contextOf, logIn, openStore, PORT_FLAG, SERVER_ARG } from './shared.ts'

/** `svc mcp enable <name>`: also ends a quarantine. */
export class McpEnable extends SvcCommand {
  static override summary = 'Enable an MCP server, and end a quarantine'
  static override examples = ['<%= config.bin %> <%= command.id %> docs']
  static override args = SERVER_ARG
  static override flags = { ...PORT_FLAG, ...JSON_FLAG }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(McpEnable)
    await switchServer(this, 'enable', args.name, flags)
  }
}

/** `svc mcp disable <name>` */
export class McpDisable extends SvcCommand {
  static override summary = 'Disable an MCP server until it is enabled'
  static override examples = ['<%= config.bin %> <%= command.id %> docs']
  static override args = SERVER_ARG
  static override flags = { ...PORT_FLAG, ...JSON_FLAG }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(McpDisable)
    await switchServer(this, 'disable', args.name, flags)
  }
}

async function switchServer(
  call: CommandContext,
  word: 'enable' | 'disable',
  asked: string,
  flags: { readonly json: boolean; readonly port?: number | undefined }
): Promise<void> {
  const { name } = (await configuredServer(call, asked)).entry
  await askServersOnce(call, flags, { do: 'switch', server: name, enabled: word === 'enable' })
  if (flags.json) call.print(JSON.stringify({ [`${word}d`]: name }))
  else call.print(`${name} is ${word}d`)
}

const LOGIN = 'mcp login <name> [--port <port>]'

/** `svc mcp login <name>`: shows the login page and waits for its answer; running servers connect again. */
export class McpLogin extends SvcCommand {
  static override summary = 'Log in to an MCP server in the browser'
  static override description =
    'Prints a page to open in a browser on this machine, and waits up to five minutes for its answer on 127.0.0.1.'
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
    const server = await configuredServer(this, args.name)
    const { name, url, api_key_env } = server.entry
    if (url === undefined) throw lineInvalid(`${name} is a local program and has no login`, LOGIN)
    if (api_key_env !== undefined) throw lineInvalid(`${name} uses the key of ${api_key_env} and has no login`, LOGIN)
    const ctx = contextOf(this, 'mcp login')
    const store = await openStore(this, ctx)
    const show = (page: URL) => {
      this.note('open this page in a browser on this machine:')
      this.print(page.href)
    }
    await logIn(store, server, { show, port: flags.port ?? 0 }, ctx)
    this.note(`logged in to ${name}`)
  }
}
