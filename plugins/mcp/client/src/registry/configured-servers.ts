import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { asSvcError, filesOfCommand, readConfigFile, type SchemaProblem, shownPath, type SvcError, svcHome } from '@svc/core'
import { nameHint } from '@svc/plugin-kit'
import { changeDocument, type DocumentChange } from '@svc/runtime/home-files'
import { clientInvalid, nameTaken, nameTwice, notInFile, serverUnknown, toolUnknown } from '../errors.ts'
import { type EntryProblem, entryProblems, MCP_FILE, type McpClientConfig } from './settings.ts'

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

/** The same without problems. Throws the first one. */
export async function readValidServers(config: readonly McpClientConfig[], file: string): Promise<readonly McpServerSettings[]> {
  const { servers, problems } = await readServers(config, file)
  for (const problem of problems) throw problem
  return servers
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

/** An entry of the file; `where` returns the place of a key. */
interface HomeEntry {
  readonly entry: McpClientConfig
  readonly where: (keys: readonly string[]) => string
}

/** The path of mcp.yaml, which `svc mcp add` writes: the entries of `mcp.clients`, under `clients`. */
export const homeFile = (home: string = svcHome()): string => join(home, 'mcp.yaml')

/** Reads the servers of the file, and its problems with their lines; both are empty if there is no file. Throws CONFIG_UNREADABLE. */
async function readHomeFile(file: string): Promise<{ entries: HomeEntry[]; problems: SvcError[] }> {
  // loading the YAML parser takes a tenth of a start
  if (!existsSync(file)) return { entries: [], problems: [] }
  const layer = await readConfigFile(file)
  const { value } = layer
  const where = (keys: readonly string[]) => `${shownPath(file)}:${layer.line?.(keys) ?? 1}`
  const problems = MCP_FILE.check(value)
  if (problems.length > 0)
    return {
      entries: [],
      problems: problems.map(one => clientInvalid(`${one.path} ${one.message}`, where(one.keys), hintOf(one))),
    }
  const { clients } = value as { clients: readonly McpClientConfig[] }
  const entries = clients.map((entry, at) => ({
    entry,
    where: (keys: readonly string[]) => where(['clients', String(at), ...keys]),
  }))
  return { entries, problems: [] }
}

function hintOf({ path, keys, keyword, allowed = [], nearest }: SchemaProblem): string {
  if (keyword === 'required') return `Set ${path}`
  return keyword === 'unknown' ? nameHint(nearest ?? keys.at(-1) ?? '', allowed as string[], 'Remove it') : 'Correct the value'
}

const FIRST = `# MCP servers that svc connects to, with the keys of mcp.clients (docs/guides/bridge-mcp-servers.md). svc mcp add and svc mcp remove edit this file and keep your changes.
# This file may contain keys: keep it private.
clients: []
`

/** Adds servers at the end of the file, and keeps its other content. Throws MCP_CLIENT_INVALID for a file with problems, and for a name that another command has added meanwhile. */
export async function addToFile(file: string, entries: readonly McpClientConfig[]): Promise<void> {
  const change: DocumentChange['change'] = async (document, { isSeq }) => {
    const names = (await validEntries(file)).map(({ entry }) => entry.name)
    const twice = entries.find(({ name }) => names.includes(name))
    if (twice) throw nameTaken(twice.name, shownPath(file))
    if (!document.has('clients')) document.set('clients', document.createNode([]))
    for (const entry of entries) document.addIn(['clients'], document.createNode(entry))
    const list = document.get('clients')
    if (isSeq(list)) list.flow = false
  }
  await changeDocument(file, { first: FIRST, change })
}

/** Removes a server from the file. Throws MCP_SERVER_UNKNOWN if the file does not have it. */
export async function removeFromFile(file: string, name: string, hint: string): Promise<void> {
  const change: DocumentChange['change'] = async document => {
    const at = (await validEntries(file)).findIndex(({ entry }) => entry.name === name)
    if (at < 0) throw notInFile(name, shownPath(file), hint)
    document.deleteIn(['clients', at])
  }
  await changeDocument(file, { first: FIRST, change })
}

async function validEntries(file: string): Promise<readonly HomeEntry[]> {
  const { entries, problems } = await readHomeFile(file)
  for (const problem of problems) throw problem
  return entries
}
