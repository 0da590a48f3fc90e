import { isTree, messageOf, svcError } from '@svc/core'
import { definedOf } from '@svc/plugin-kit'

/** A server in the file of another MCP client, with the keys of `mcp.clients`. */
export interface ImportedServer {
  readonly name: string
  readonly url?: string
  readonly command?: string
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly api_key_env?: string
  readonly api_key_header?: 'x-api-key'
  readonly enabled?: boolean
}

/** The imported servers, and a line for each part that was not imported. */
interface ImportedServers {
  readonly entries: readonly ImportedServer[]
  readonly notes: readonly string[]
}

/** The keys that are read; `type` follows from command and url. */
const FOREIGN_KEYS = ['command', 'args', 'env', 'url', 'serverUrl', 'httpUrl', 'headers', 'disabled', 'type'] as const

type ForeignEntry = { readonly [key in (typeof FOREIGN_KEYS)[number]]?: unknown }

/**
 * Reads `{"mcpServers": {…}}` (or `servers`), the format of many MCP clients. Leaves out servers for which `problemOf` returns a text. Throws
 * MCP_IMPORT_INVALID.
 */
export function readClientServers(text: string, problemOf: (entry: ImportedServer) => string | undefined): ImportedServers {
  let read: unknown
  try {
    read = JSON.parse(text)
  } catch (error) {
    throw importInvalid(`the file is not valid JSON: ${messageOf(error)}`)
  }
  const servers = isTree(read) ? (read['mcpServers'] ?? read['servers']) : undefined
  if (!isTree(servers)) throw importInvalid('the file has no "mcpServers"')
  const notes: string[] = []
  const entries: ImportedServer[] = []
  for (const [name, one] of Object.entries(servers)) {
    const entry = isTree(one) ? entryOf(name, one, notes) : undefined
    const problem = entry === undefined ? 'it has neither a command nor a url' : problemOf(entry)
    if (entry === undefined || problem !== undefined) {
      notes.push(`${name}: left out: ${problem}`)
      continue
    }
    entries.push(entry)
    notes.push(...lossesOf(name, one as ForeignEntry, entry))
  }
  return { entries, notes }
}

function entryOf(foreign: string, one: ForeignEntry, notes: string[]): ImportedServer | undefined {
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
function lossesOf(name: string, one: ForeignEntry, { args = [], env = {} }: ImportedServer): string[] {
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
function keyOf(name: string, headers: unknown, notes: string[]): Pick<ImportedServer, 'api_key_env' | 'api_key_header'> {
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

export const importInvalid = (message: string) =>
  svcError('MCP_IMPORT_INVALID', message, {
    hint: 'Pass a file with {"mcpServers": {"<name>": {"command": …, "args": […]} or {"url": …}}}, or - for the standard input',
  })
