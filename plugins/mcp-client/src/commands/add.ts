import { Args, Flags, JSON_FLAG, SvcCommand } from '@svc/cli/command'
import { lineInvalid } from '@svc/command-line'
import { shownPath } from '@svc/core'
import { nameTaken } from '../errors.ts'
import { placementOf } from '../registry/client-options.ts'
import { addToFile, homeFile } from '../registry/home-file.ts'
import { entryProblems, MCP_CLIENTS, type McpClientConfig } from '../registry/settings.ts'
import { configuredServers, SERVER_ARG, reloadServers, useOf } from './shared.ts'

const ADD = 'mcp add <name> <url> | -- <command> [<argument>...]'

/** `svc mcp add <name> <url | -- command args…>`: writes it to mcp.yaml; a running server takes it up. */
export class McpAdd extends SvcCommand {
  static override summary = 'Add a tool server'
  static override description =
    'Writes it to mcp.yaml in the svc home; servers that run take it up. A server is an address, or a program of this machine: its command line stands behind --.'
  static override usage = ['<%= command.id %> <name> <url>', '<%= command.id %> <name> -- <command> [<argument>...]']
  static override examples = [
    '<%= config.bin %> <%= command.id %> docs https://docs.example/mcp --api-key-env DOCS_KEY',
    '<%= config.bin %> <%= command.id %> files --allow-path /data -- /opt/servers/node_modules/.bin/mcp-server-filesystem /data',
  ]
  static override args = {
    ...SERVER_ARG,
    url: Args.string({ description: 'Address of the server', ignoreStdin: true }),
  }
  static override flags = {
    env: Flags.string({
      summary: 'A variable of the command, once for each; NAME=${OTHER} takes the value of a variable of the server',
      helpValue: '<NAME=value>',
      multiple: true,
      multipleNonGreedy: true,
    }),
    'api-key-env': Flags.string({ summary: 'Variable that holds its key', helpValue: '<variable>' }),
    issuer: Flags.string({ summary: 'The only authorization server for logins', helpValue: '<url>' }),
    timeout: Flags.string({ summary: 'Seconds a call may take', helpValue: '<seconds>' }),
    sandbox: Flags.boolean({ summary: 'Run the command in the process sandbox' }),
    'allow-path': Flags.string({
      summary: 'Path that it may write there, once for each; implies --sandbox',
      helpValue: '<path>',
      multiple: true,
      multipleNonGreedy: true,
    }),
    network: Flags.boolean({ summary: 'Let it reach the network from there; implies --sandbox' }),
    ...JSON_FLAG,
  }

  async run(): Promise<number> {
    const end = this.argv.includes('--') ? this.argv.indexOf('--') : this.argv.length
    const program = this.argv.slice(end + 1)
    const { args, flags } = await this.parse(McpAdd, this.argv.slice(0, end))
    const { name, url } = args
    if ((url === undefined) === (program.length === 0)) throw lineInvalid('it takes an address or a command', ADD)
    const entry = entryOf({ ...flags, name, ...(url === undefined ? {} : { url }), program })
    const servers = await configuredServers(this)
    const other = servers.find(one => one.entry.name === name)
    if (other) throw nameTaken(name, other.where)
    const file = homeFile(this.home)
    await addToFile(file, [entry])
    const runs = placementOf(entry)
    if (flags.json) this.print(JSON.stringify({ added: name, file, runs }))
    else this.print(`added ${name} to ${shownPath(file)}; svc mcp test ${name} tries it`)
    if (runs !== 'remote') this.note(`${name} runs ${PLACEMENTS[runs](name)}`)
    return reloadServers(this, useOf(this, 'mcp add'))
  }
}

const PLACEMENTS = {
  'all rights': (name: string) =>
    `with all rights of svc; to have it in the process sandbox: svc mcp remove ${name}, then add it with --sandbox`,
  sandbox: () => 'in the process sandbox; --network and --allow-path are what gives it more',
} as const

interface AddRequest {
  readonly name: string
  readonly url?: string
  readonly program: readonly string[]
  readonly env?: readonly string[] | undefined
  readonly 'api-key-env'?: string | undefined
  readonly issuer?: string | undefined
  readonly 'allow-path'?: readonly string[] | undefined
  readonly timeout?: string | undefined
  readonly sandbox?: boolean | undefined
  readonly network?: boolean | undefined
}

/** The entry as it is written. Throws COMMAND_LINE_INVALID for what an entry cannot say. */
function entryOf(wish: AddRequest): McpClientConfig {
  const [command, ...args] = wish.program
  const limits = {
    ...(wish.network ? { network_access: true } : {}),
    ...(wish['allow-path'] === undefined ? {} : { allowed_paths: wish['allow-path'] }),
  }
  const hasLimits = Object.keys(limits).length > 0
  const entry: McpClientConfig = {
    name: wish.name,
    ...(wish.url === undefined ? {} : { url: wish.url }),
    ...(command === undefined ? {} : { command, args }),
    ...(wish.env === undefined ? {} : { env: Object.fromEntries(wish.env.map(pairOf)) }),
    ...(wish['api-key-env'] === undefined ? {} : { api_key_env: wish['api-key-env'] }),
    ...(wish.issuer === undefined ? {} : { oauth: { issuer: wish.issuer } }),
    ...(wish.timeout === undefined ? {} : { timeout: Number(wish.timeout) }),
    ...(wish.sandbox || hasLimits ? { sandbox: true } : {}),
    ...(hasLimits ? { sandbox_config: limits } : {}),
  }
  const [fault] = MCP_CLIENTS.check([structuredClone(entry)])
  if (fault) throw lineInvalid(`${fault.keys.slice(1).join('.')} ${fault.message}`, ADD)
  const [wrong] = entryProblems(entry)
  if (wrong) throw lineInvalid(`${wrong.keys.join('.') || 'it'} ${wrong.message}: ${wrong.hint}`, ADD)
  return entry
}

function pairOf(text: string): [string, string] {
  const at = text.indexOf('=')
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)]
  throw lineInvalid('--env is NAME=value; NAME=${OTHER} takes the value of a variable of the server', ADD)
}
