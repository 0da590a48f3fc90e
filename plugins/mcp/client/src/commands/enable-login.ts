import { Flags, JSON_FLAG, MANAGED_FLAGS } from '@svc/cli/command'
import type { ServerChoice } from '@svc/core/contracts'
import { definedOf, lineInvalid } from '@svc/plugin-kit'
import type { HttpOptions } from '../connection/options.ts'
import { clientOptions } from '../registry/client-options.ts'
import { personStorage } from '../registry/records.ts'
import { McpCommand, SERVER_ARG } from './shared.ts'

abstract class SwitchCommand extends McpCommand {
  protected async switchTo(enabled: boolean, asked: string, flags: ServerChoice & { readonly json: boolean }) {
    const name = await this.checkedName(asked, flags)
    await (await this.changedClients(flags)).setEnabled(name, enabled, this.callContext)
    const done = enabled ? 'enabled' : 'disabled'
    this.print(flags.json ? JSON.stringify({ [done]: name }) : `${name} is ${done}`)
  }
}

/** `svc mcp enable <name>`: also ends a quarantine. */
export class McpEnable extends SwitchCommand {
  static override summary = 'Enable an MCP server, and end a quarantine'
  static override examples = ['<%= config.bin %> <%= command.id %> docs']
  static override args = SERVER_ARG
  static override flags = { ...MANAGED_FLAGS, ...JSON_FLAG }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(McpEnable)
    await this.switchTo(true, args.name, flags)
  }
}

/** `svc mcp disable <name>` */
export class McpDisable extends SwitchCommand {
  static override summary = 'Disable an MCP server until it is enabled'
  static override examples = ['<%= config.bin %> <%= command.id %> docs']
  static override args = SERVER_ARG
  static override flags = { ...MANAGED_FLAGS, ...JSON_FLAG }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(McpDisable)
    await this.switchTo(false, args.name, flags)
  }
}

const LOGIN = 'mcp login <name> [--port <port>]'

/** `svc mcp login <name>`: shows the login page and waits for its answer; running servers connect again. */
export class McpLogin extends McpCommand {
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
    const server = await this.serverNamed(args.name)
    const { name, url, api_key_env } = server.entry
    if (url === undefined) throw lineInvalid(`${name} is a local program and has no login`, LOGIN)
    if (api_key_env !== undefined) throw lineInvalid(`${name} uses the key of ${api_key_env} and has no login`, LOGIN)
    const ctx = this.callContext
    const storage = personStorage(await this.openStore(), server, ctx)
    const options = clientOptions(server, { env: process.env, sandbox: undefined, storage, lasting: ctx })
    const show = (page: URL) => {
      this.note('open this page in a browser on this machine:')
      this.print(page.href)
    }
    const { loginMcp } = await import('../connection/oauth/login.ts')
    await loginMcp(options as HttpOptions, { show, ...definedOf({ port: flags.port }) }, { signal: ctx.signal })
    // running servers connect again
    await storage.done()
    this.note(`logged in to ${name}`)
  }
}
