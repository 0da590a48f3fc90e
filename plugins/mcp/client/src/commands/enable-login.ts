import { Flags, JSON_FLAG, MANAGED_FLAGS } from '@svc/cli/command'
import { McpClients } from '@svc/core/contracts'
import { lineInvalid } from '@svc/plugin-kit'
import { loginProblem } from '../registry/configured-servers.ts'
import { McpCommand, SERVER_ARG } from './shared.ts'

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
    const { name } = server.entry
    const problem = loginProblem(server)
    if (problem !== undefined) throw lineInvalid(problem, LOGIN)
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
