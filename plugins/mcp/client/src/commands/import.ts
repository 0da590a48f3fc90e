import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { Args, JSON_FLAG } from '@svc/cli/command'
import { isTree, messageOf, shownPath } from '@svc/core'
import { definedOf, oneLine } from '@svc/plugin-kit'
import { importInvalid } from '../errors.ts'
import { placementOf } from '../registry/client-options.ts'
import { addToFile, homeFile } from '../registry/home-file.ts'
import { firstProblem, type McpClientConfig } from '../registry/settings.ts'
import { McpCommand } from './shared.ts'

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
    const { entries, notes } = importServers(await contentOf(args.file))
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

/** The keys that are read; `type` follows from command and url. */
const FOREIGN_KEYS = ['command', 'args', 'env', 'url', 'serverUrl', 'httpUrl', 'headers', 'disabled', 'type'] as const

/** The entry of a server in the file of another MCP client. */
type ForeignEntry = { readonly [key in (typeof FOREIGN_KEYS)[number]]?: unknown }

/** The imported entries, and a line for each part that was not imported. */
export interface Imported {
  readonly entries: readonly McpClientConfig[]
  readonly notes: readonly string[]
}

/** Reads `{"mcpServers": {…}}` (or `servers`). Throws MCP_IMPORT_INVALID. */
export function importServers(text: string): Imported {
  const servers = serversIn(text)
  const notes: string[] = []
  const entries: McpClientConfig[] = []
  for (const [name, one] of Object.entries(servers)) {
    const entry = isTree(one) ? entryOf(name, one, notes) : undefined
    const problem = entry === undefined ? 'it has neither a command nor a url' : firstProblem(entry)?.message
    if (entry === undefined || problem !== undefined) {
      notes.push(`${name}: left out: ${problem}`)
      continue
    }
    entries.push(entry)
    notes.push(...lossesOf(name, one as ForeignEntry, entry))
  }
  return { entries, notes }
}

function serversIn(text: string): Record<string, unknown> {
  let read: unknown
  try {
    read = JSON.parse(text)
  } catch (error) {
    throw importInvalid(`the file is not valid JSON: ${messageOf(error)}`)
  }
  const found = isTree(read) ? (read['mcpServers'] ?? read['servers']) : undefined
  if (!isTree(found)) throw importInvalid('the file has no "mcpServers"')
  return found
}

function entryOf(foreign: string, one: ForeignEntry, notes: string[]): McpClientConfig | undefined {
  const name = foreign
    .replace(/[^A-Za-z0-9_-]+/g, '-')
    .replace(/^[-_]+|-+$/g, '')
    .slice(0, 32)
  if (name !== foreign) notes.push(`${foreign}: renamed to ${name}`)
  const { command, args, env, headers } = one
  const enabled = one.disabled === true ? false : undefined
  const url = one.url ?? one.serverUrl ?? one.httpUrl
  if (typeof url === 'string') return { name, url, ...keyOf(foreign, headers, notes), ...definedOf({ enabled }) }
  if (typeof command !== 'string') return undefined
  const variables = isTree(env) ? Object.entries(env).map(([key, value]) => [key, plainVariables(value)]) : undefined
  return {
    name,
    command,
    ...definedOf({
      args: Array.isArray(args) ? args.map(String) : undefined,
      env: variables && (Object.fromEntries(variables) as Record<string, string>),
      enabled,
    }),
  }
}

/** The parts of a server that are not imported, or that have another meaning here. */
function lossesOf(name: string, one: ForeignEntry, { args = [], env = {} }: McpClientConfig): string[] {
  const keys = Object.keys(one).filter(key => !FOREIGN_KEYS.some(one => one === key))
  const isLeft = (text: string) => text.replace(/\$\{[A-Za-z_]\w*\}/g, '').includes('${')
  return [
    ...keys.map(key => `${name}: its ${key} is not imported`),
    ...(one.type === 'sse' ? [`${name}: it uses SSE, which is obsolete; svc connects to its URL over Streamable HTTP`] : []),
    ...(args.some(arg => arg.includes('${'))
      ? [`${name}: its arguments contain \${…}, which svc does not replace; write the value instead`]
      : []),
    ...Object.entries(env).flatMap(([key, value]) =>
      isLeft(value) ? [`${name}: its variable ${key} contains more than \${NAME}, which svc does not replace`] : []
    ),
  ]
}

/** Replaces `${env:NAME}` with `${NAME}`. */
const plainVariables = (value: unknown) => String(value).replace(/\$\{env:(\w+)\}/g, '${$1}')

/** The variable of a key header. A key itself is not copied. */
function keyOf(name: string, headers: unknown, notes: string[]): Pick<McpClientConfig, 'api_key_env' | 'api_key_header'> {
  if (!isTree(headers)) return {}
  for (const [header, value] of Object.entries(headers)) {
    const isKey = /^(authorization|x-api-key)$/i.test(header)
    const [, variable] = /^(?:Bearer\s+)?\$\{(\w+)\}$/i.exec(plainVariables(value)) ?? []
    if (isKey && variable !== undefined)
      return { api_key_env: variable, ...(header.toLowerCase() === 'x-api-key' ? { api_key_header: 'x-api-key' as const } : {}) }
    notes.push(
      `${name}: its header ${header} is not imported${isKey ? ': put the key into a variable and set api_key_env to its name' : ''}`
    )
  }
  return {}
}
