import { Flags, SvcCommand } from '@svc/cli/command'
import { lineInvalid } from '@svc/plugin-kit'
import { configuredServer, logIn, openStore, SERVER_ARG, contextOf } from './shared.ts'

const LOGIN = 'mcp login <name> [--port <port>]'

/** `svc mcp login <name>`: shows the login page and waits for its answer; running servers connect anew. */
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
