import { createHash } from 'node:crypto'
import { asSvcError, filesOfCommand, type SvcError } from '@svc/core'
import { clientInvalid, nameTwice, serverUnknown, toolUnknown } from '../errors.ts'
import { readHomeFile } from './home-file.ts'
import { type EntryProblem, entryProblems, type McpClientConfig } from './settings.ts'

/** A configured server. */
export interface McpServerSettings {
  readonly entry: McpClientConfig
  /** The place of its entry: `mcp.clients[2]`, `~/.svc/mcp.yaml:12`. */
  readonly where: string
  /** A digest of the address or the command line. Pins and logins belong to it. */
  readonly identity: string
  /** A digest of the whole entry. A change leads to a new connection. */
  readonly fingerprint: string
}

const DIGITS = 16
const digest = (value: unknown) => createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, DIGITS)

const serverOf = (entry: McpClientConfig, where: string): McpServerSettings => ({
  entry,
  where,
  identity: digest(entry.url ?? [entry.command, ...(entry.args ?? [])]),
  fingerprint: digest(entry),
})

/** Reads the servers of the configuration and of a `mcp.yaml`, including disabled ones, and all problems. */
export async function readServers(
  config: readonly McpClientConfig[],
  file: string
): Promise<{ readonly servers: readonly McpServerSettings[]; readonly problems: readonly SvcError[] }> {
  const own = config.map((entry, at) => ({ entry, where: (_keys: readonly string[]) => `mcp.clients[${at}]` }))
  const home = await readHomeFile(file).catch((error: unknown) => ({
    entries: [],
    problems: [asSvcError(error, 'MCP_CLIENT_INVALID')],
  }))
  const all = [...own, ...home.entries]
  const problems = all.flatMap(({ entry, where }) =>
    entryProblems(entry).map(one => clientInvalid(messageOf(entry, one), where(one.keys), one.hint))
  )
  const servers = all.map(({ entry, where }) => serverOf(entry, where([])))
  return { servers, problems: [...home.problems, ...problems, ...duplicates(servers)] }
}

/** Why no person can log in to a server. */
export function loginProblem({ entry: { name, url, api_key_env } }: McpServerSettings): string | undefined {
  if (url === undefined) return `${name} is a local program and has no login`
  return api_key_env === undefined ? undefined : `${name} uses the key of ${api_key_env} and has no login`
}

/** Whether the server is in mcp.yaml. */
export const isRemovable = ({ where }: McpServerSettings): boolean => !where.startsWith('mcp.clients[')

const messageOf = ({ name }: McpClientConfig, { keys, message }: EntryProblem) =>
  `MCP server "${name}": ${keys.length === 0 ? 'it' : keys.join('.')} ${message}`

function duplicates(servers: readonly McpServerSettings[]): SvcError[] {
  const first = new Map<string, McpServerSettings>()
  return servers.flatMap(one => {
    const { name } = one.entry
    const other = first.get(name)
    if (other) return [nameTwice(name, one.where, other.where)]
    first.set(name, one)
    return []
  })
}

/** The program files of local servers. svc runs them with its own rights, so writing to them is running code. Leaves out servers in the sandbox. */
export function programFiles(servers: readonly McpServerSettings[], cwd: string = process.cwd()): string[] {
  const open = servers.filter(({ entry }) => entry.command !== undefined && entry.sandbox !== true)
  return [...new Set(open.flatMap(({ entry: { command = '', args = [] } }) => filesOfCommand([command, ...args], cwd)))]
}

/** Finds a server by name. Throws MCP_SERVER_UNKNOWN. */
export function serverNamed(servers: readonly McpServerSettings[], name: string): McpServerSettings {
  const server = servers.find(one => one.entry.name === name)
  if (server) return server
  const known = servers.map(one => one.entry.name)
  throw serverUnknown(name, known)
}

/** The tools of these names, or all. Throws MCP_TOOL_UNKNOWN. */
export function selected<T extends { readonly name: string }>(
  server: string,
  tools: readonly T[],
  names: readonly string[] | undefined
): readonly T[] {
  const known = tools.map(tool => tool.name)
  const unknown = names?.find(name => !known.includes(name))
  if (unknown !== undefined) throw toolUnknown(server, unknown, known)
  return names === undefined ? tools : tools.filter(tool => names.includes(tool.name))
}
