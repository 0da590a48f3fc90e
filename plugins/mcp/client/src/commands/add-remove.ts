import { Args, Flags, JSON_FLAG, SvcCommand } from '@svc/cli/command'
import { shownPath } from '@svc/core'
import { lineInvalid } from '@svc/plugin-kit'
import { nameTaken } from '../errors.ts'
import { placementOf } from '../registry/client-options.ts'
import { addToFile, homeFile, removeFromFile } from '../registry/home-file.ts'
import { KEYS, RECORDS } from '../registry/records.ts'
import { entryProblems, MCP_CLIENTS, type McpClientConfig } from '../registry/settings.ts'
import { configuredServer, configuredServers, contextOf, openStore, reloadServers, SERVER_ARG } from './shared.ts'

const ADD = 'mcp add <name> <url> | -- <command> [<argument>...]'

/** `svc mcp add <name> <url | -- command args…>`: adds a server to mcp.yaml and reloads running servers. */
export class McpAdd extends SvcCommand {
  static override summary = 'Add an MCP server'
  static override description =
    'Writes the server to mcp.yaml in the svc home, and reloads running servers. A server is a URL, or a local program: write its command line after --.'
  static override usage = ['<%= command.id %> <name> <url>', '<%= command.id %> <name> -- <command> [<argument>...]']
  static override examples = [
    '<%= config.bin %> <%= command.id %> docs https://docs.example/mcp --api-key-env DOCS_KEY',
    '<%= config.bin %> <%= command.id %> files --allow-path /data -- /opt/servers/node_modules/.bin/mcp-server-filesystem /data',
  ]
  static override args = {
    ...SERVER_ARG,
    url: Args.string({ description: 'URL of the server', ignoreStdin: true }),
  }
  static override flags = {
    env: Flags.string({
      summary: 'Variable of the command, repeatable; NAME=${OTHER} inserts a variable of svc',
      helpValue: '<NAME=value>',
      multiple: true,
      multipleNonGreedy: true,
    }),
    'api-key-env': Flags.string({ summary: 'Variable that holds the API key', helpValue: '<variable>' }),
    issuer: Flags.string({ summary: 'Only authorization server for logins', helpValue: '<url>' }),
    timeout: Flags.string({ summary: 'Maximum seconds of a call', helpValue: '<seconds>' }),
    sandbox: Flags.boolean({ summary: 'Run the command in the process sandbox' }),
    'allow-path': Flags.string({
      summary: 'Path that it may write in the sandbox, repeatable; implies --sandbox',
      helpValue: '<path>',
      multiple: true,
      multipleNonGreedy: true,
    }),
    network: Flags.boolean({ summary: 'Allow network access in the sandbox; implies --sandbox' }),
    ...JSON_FLAG,
  }

  async run(): Promise<number> {
    const end = this.argv.includes('--') ? this.argv.indexOf('--') : this.argv.length
    const program = this.argv.slice(end + 1)
    const { args, flags } = await this.parse(McpAdd, this.argv.slice(0, end))
    const { name, url } = args
    if ((url === undefined) === (program.length === 0)) throw lineInvalid('it needs either a URL or a command', ADD)
    const entry = entryOf({ ...flags, name, ...(url === undefined ? {} : { url }), program })
    const servers = await configuredServers(this)
    const other = servers.find(one => one.entry.name === name)
    if (other) throw nameTaken(name, other.where)
    const file = homeFile(this.home)
    await addToFile(file, [entry])
    const runs = placementOf(entry)
    if (flags.json) this.print(JSON.stringify({ added: name, file, runs }))
    else this.print(`added ${name} to ${shownPath(file)}; to try it, run svc mcp test ${name}`)
    if (runs !== 'remote') this.note(`${name} runs ${PLACEMENTS[runs](name)}`)
    return reloadServers(this, contextOf(this, 'mcp add'))
  }
}

const PLACEMENTS = {
  'all rights': (name: string) =>
    `with all rights of svc; to run it in the process sandbox: svc mcp remove ${name}, then add it with --sandbox`,
  sandbox: () => 'in the process sandbox; --network and --allow-path extend its rights',
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

/** The entry for mcp.yaml. Throws COMMAND_LINE_INVALID. */
function entryOf(request: AddRequest): McpClientConfig {
  const [command, ...args] = request.program
  const limits = {
    ...(request.network ? { network_access: true } : {}),
    ...(request['allow-path'] === undefined ? {} : { allowed_paths: request['allow-path'] }),
  }
  const hasLimits = Object.keys(limits).length > 0
  const entry: McpClientConfig = {
    name: request.name,
    ...(request.url === undefined ? {} : { url: request.url }),
    ...(command === undefined ? {} : { command, args }),
    ...(request.env === undefined ? {} : { env: Object.fromEntries(request.env.map(pairOf)) }),
    ...(request['api-key-env'] === undefined ? {} : { api_key_env: request['api-key-env'] }),
    ...(request.issuer === undefined ? {} : { oauth: { issuer: request.issuer } }),
    ...(request.timeout === undefined ? {} : { timeout: Number(request.timeout) }),
    ...(request.sandbox || hasLimits ? { sandbox: true } : {}),
    ...(hasLimits ? { sandbox_config: limits } : {}),
  }
  const [invalid] = MCP_CLIENTS.check([structuredClone(entry)])
  if (invalid) throw lineInvalid(`${invalid.keys.slice(1).join('.')} ${invalid.message}`, ADD)
  const [problem] = entryProblems(entry)
  if (problem) throw lineInvalid(`${problem.keys.join('.') || 'it'} ${problem.message}: ${problem.hint}`, ADD)
  return entry
}

function pairOf(text: string): [string, string] {
  const at = text.indexOf('=')
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)]
  throw lineInvalid('--env must be NAME=value; NAME=${OTHER} inserts a variable of svc', ADD)
}

/** `svc mcp remove <name>`: removes a server from mcp.yaml, and deletes its approvals and its login. */
export class McpRemove extends SvcCommand {
  static override summary = 'Remove an MCP server and its approvals'
  static override examples = ['<%= config.bin %> <%= command.id %> docs']
  static override args = SERVER_ARG
  static override flags = JSON_FLAG

  async run(): Promise<number> {
    const { args, flags } = await this.parse(McpRemove)
    const { name } = args
    const server = await configuredServer(this, name)
    const file = homeFile(this.home)
    await removeFromFile(file, name, `It is configured in ${server.where}: remove it there`)
    if (flags.json) this.print(JSON.stringify({ removed: name, file }))
    else this.print(`removed ${name} from ${shownPath(file)}`)
    const ctx = contextOf(this, 'mcp remove')
    const code = await reloadServers(this, ctx)
    // after the reload: a server that still uses it would write the records again
    const store = await openStore(this, ctx)
    const keys = [KEYS.switch(server), KEYS.pins(server), KEYS.login(server)]
    await store.batch(
      keys.map(key => ({ op: 'delete', collection: RECORDS, key })),
      {},
      ctx
    )
    return code
  }
}
