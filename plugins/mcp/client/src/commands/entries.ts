import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { Args, Flags, JSON_FLAG } from '@svc/cli/command'
import { messageOf, shownPath } from '@svc/core'
import { importInvalid, readClientServers } from '@svc/mcp-protocol'
import { definedOf, lineInvalid, oneLine } from '@svc/plugin-kit'
import { placementOf } from '../registry/client-options.ts'
import { addServer, forgetServer } from '../registry/edit.ts'
import { addToFile, homeFile, removeFromFile } from '../registry/configured-servers.ts'
import { firstProblem, type McpClientConfig } from '../registry/settings.ts'
import { McpCommand, SERVER_ARG } from './shared.ts'

const ADD = 'mcp add <name> <url> | -- <command> [<argument>...]'

/** `svc mcp add <name> <url | -- command args…>`: adds a server to mcp.yaml and reloads running servers. */
export class McpAdd extends McpCommand {
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
    const { entry, json } = await this.#entry()
    const { name } = entry
    const problem = firstProblem(entry)
    if (problem)
      throw lineInvalid(`${problem.keys.join('.') || 'it'} ${problem.message}${problem.hint ? `: ${problem.hint}` : ''}`, ADD)
    const file = homeFile(this.home)
    await addServer(entry, await this.servers(), file)
    const runs = placementOf(entry)
    if (json) this.print(JSON.stringify({ added: name, file, runs }))
    else this.print(`added ${name} to ${shownPath(file)}; to try it, run svc mcp test ${name}`)
    if (runs !== 'remote') this.note(`${name} runs ${PLACEMENTS[runs](name)}`)
    return this.reloadServers()
  }

  /** The entry that the command line describes. Throws COMMAND_LINE_INVALID. */
  async #entry(): Promise<{ readonly entry: McpClientConfig; readonly json: boolean }> {
    const end = this.argv.includes('--') ? this.argv.indexOf('--') : this.argv.length
    const [command, ...rest] = this.argv.slice(end + 1)
    const { args, flags } = await this.parse(McpAdd, this.argv.slice(0, end))
    const { name, url } = args
    if ((url === undefined) === (command === undefined)) throw lineInvalid('it needs either a URL or a command', ADD)
    const { env, issuer, timeout, sandbox, network, json } = flags
    const limits = definedOf({ network_access: network || undefined, allowed_paths: flags['allow-path'] })
    const hasLimits = Object.keys(limits).length > 0
    const settings = definedOf({
      url,
      command,
      args: command === undefined ? undefined : rest,
      env: env && Object.fromEntries(env.map(pairOf)),
      api_key_env: flags['api-key-env'],
      oauth: issuer === undefined ? undefined : { issuer },
      timeout: timeout === undefined ? undefined : Number(timeout),
      sandbox: sandbox || hasLimits || undefined,
      sandbox_config: hasLimits ? limits : undefined,
    })
    return { entry: { name, ...settings }, json }
  }
}

const PLACEMENTS = {
  'all rights': (name: string) =>
    `with all rights of svc; to run it in the process sandbox: svc mcp remove ${name}, then add it with --sandbox`,
  sandbox: () => 'in the process sandbox; --network and --allow-path extend its rights',
} as const

function pairOf(text: string): [string, string] {
  const at = text.indexOf('=')
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)]
  throw lineInvalid('--env must be NAME=value; NAME=${OTHER} inserts a variable of svc', ADD)
}

/** `svc mcp remove <name>`: removes a server from mcp.yaml, and deletes its approvals and its login. */
export class McpRemove extends McpCommand {
  static override summary = 'Remove an MCP server and its approvals'
  static override examples = ['<%= config.bin %> <%= command.id %> docs']
  static override args = SERVER_ARG
  static override flags = JSON_FLAG

  async run(): Promise<number> {
    const { args, flags } = await this.parse(McpRemove)
    const { name } = args
    const server = await this.serverNamed(name)
    const file = homeFile(this.home)
    await removeFromFile(file, name, `It is configured in ${server.where}: remove it there`)
    if (flags.json) this.print(JSON.stringify({ removed: name, file }))
    else this.print(`removed ${name} from ${shownPath(file)}`)
    const code = await this.reloadServers()
    await forgetServer(await this.openStore(), server, this.callContext)
    return code
  }
}

/** `svc mcp import <file or ->`: adds the servers of another client's file, except those with a name that exists. */
export class McpImport extends McpCommand {
  static override summary = "Add the MCP servers of another client's file"
  static override description = 'Reads {"mcpServers": {...}}, the format of many MCP clients.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> ~/client/mcp.json',
    'cat mcp.json | <%= config.bin %> <%= command.id %> -',
  ]
  static override args = {
    file: Args.string({ description: 'File, or - for the standard input', required: true, ignoreStdin: true }),
  }
  static override flags = JSON_FLAG

  async run(): Promise<number> {
    const { args, flags } = await this.parse(McpImport)
    const { entries, notes } = readClientServers(await contentOf(args.file), entry => firstProblem(entry)?.message)
    const known = (await this.servers()).map(one => one.entry.name)
    const names = entries.map(one => one.name)
    const fresh = entries.filter((one, at) => !known.includes(one.name) && names.indexOf(one.name) === at)
    const taken = entries
      .filter(one => !fresh.includes(one))
      .map(one => `${one.name}: left out: a server of this name exists already`)
    const file = homeFile(this.home)
    if (fresh.length > 0) await addToFile(file, fresh)
    const added = fresh.map(one => one.name)
    const all = [...notes, ...taken]
    if (flags.json) this.print(JSON.stringify({ added, notes: all, file }))
    else this.print(added.length === 0 ? 'no server was added' : `added to ${shownPath(file)}: ${added.join(', ')}`)
    for (const note of flags.json ? [] : all) this.note(oneLine(note, 300))
    const open = fresh.filter(one => placementOf(one) === 'all rights').map(one => one.name)
    if (open.length > 0)
      this.note(`with all rights of svc, unless you set sandbox: true in their entries, run: ${open.join(', ')}`)
    return added.length === 0 ? (entries.length === 0 ? 1 : 0) : this.reloadServers()
  }
}

async function contentOf(file: string): Promise<string> {
  if (file === '-') return text(process.stdin)
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    throw importInvalid(`the file cannot be read: ${messageOf(error)}`)
  }
}
