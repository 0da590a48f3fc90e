import { messageOf } from '@svc/core'
import { importInvalid } from '../errors.ts'
import { entryProblems, MCP_CLIENTS, type McpClientConfig } from '../registry/settings.ts'

/** What other clients of the tool protocol keep of a server. */
interface ForeignEntry {
  readonly command?: unknown
  readonly args?: unknown
  readonly env?: unknown
  readonly url?: unknown
  readonly serverUrl?: unknown
  readonly httpUrl?: unknown
  readonly headers?: unknown
  readonly disabled?: unknown
  readonly type?: unknown
}

/** All that is looked at; of `type`, what it says is known by command and url. */
const LOOKED_AT = new Set<string>(['command', 'args', 'env', 'url', 'serverUrl', 'httpUrl', 'headers', 'disabled', 'type'])

/** What came of reading: entries of ours, and what could not be taken over, a line each. */
export interface Imported {
  readonly entries: readonly McpClientConfig[]
  readonly notes: readonly string[]
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Reads `{"mcpServers": {…}}` (or `servers`, as some write it). Throws MCP_IMPORT_INVALID. */
export function importServers(text: string): Imported {
  const servers = serversIn(text)
  const notes: string[] = []
  const entries: McpClientConfig[] = []
  for (const [name, one] of Object.entries(servers)) {
    const entry = isObject(one) ? entryOf(name, one, notes) : undefined
    const fault = entry === undefined ? 'it has neither a command nor a url' : problemOf(entry)
    if (entry === undefined || fault !== undefined) {
      notes.push(`${name}: left out: ${fault}`)
      continue
    }
    entries.push(entry)
    notes.push(...lossesOf(name, one as ForeignEntry, entry))
  }
  return { entries, notes }
}

const problemOf = (entry: McpClientConfig): string | undefined =>
  MCP_CLIENTS.check([structuredClone(entry)])[0]?.message ?? entryProblems(entry)[0]?.message

function serversIn(text: string): Record<string, unknown> {
  let read: unknown
  try {
    read = JSON.parse(text)
  } catch (error) {
    throw importInvalid(`it is no JSON: ${messageOf(error)}`)
  }
  const found = isObject(read) ? (read['mcpServers'] ?? read['servers']) : undefined
  if (!isObject(found)) throw importInvalid('it has no "mcpServers"')
  return found
}

function entryOf(foreign: string, one: ForeignEntry, notes: string[]): McpClientConfig | undefined {
  const name = foreign
    .replace(/[^A-Za-z0-9_-]+/g, '-')
    .replace(/^[-_]+|-+$/g, '')
    .slice(0, 32)
  if (name !== foreign) notes.push(`${foreign}: is called ${name} here`)
  const enabled = one.disabled === true ? { enabled: false } : {}
  const url = one.url ?? one.serverUrl ?? one.httpUrl
  if (typeof url === 'string') return { name, url, ...keyOf(foreign, one.headers, notes), ...enabled }
  if (typeof one.command !== 'string') return undefined
  return {
    name,
    command: one.command,
    ...(Array.isArray(one.args) ? { args: one.args.map(String) } : {}),
    ...(isObject(one.env)
      ? { env: Object.fromEntries(Object.entries(one.env).map(([key, value]) => [key, unfolded(value)])) }
      : {}),
    ...enabled,
  }
}

/** What of a server that is taken over stays behind, or means something else here. */
function lossesOf(name: string, one: ForeignEntry, { args = [], env = {} }: McpClientConfig): string[] {
  const keys = Object.keys(one).filter(key => !LOOKED_AT.has(key))
  const isLeft = (text: string) => text.replace(/\$\{[A-Za-z_]\w*\}/g, '').includes('${')
  return [
    ...keys.map(key => `${name}: its ${key} is not taken over`),
    ...(one.type === 'sse' ? [`${name}: it speaks over SSE, which is no more: svc uses its address over Streamable HTTP`] : []),
    ...(args.some(arg => arg.includes('${'))
      ? [`${name}: its arguments hold \${…}, which stays as it is: write what it stands for`]
      : []),
    ...Object.entries(env).flatMap(([key, value]) =>
      isLeft(value) ? [`${name}: its variable ${key} holds more than \${NAME}, which stays as it is`] : []
    ),
  ]
}

/** `${env:NAME}` is how some write `${NAME}`. */
const unfolded = (value: unknown) => String(value).replace(/\$\{env:(\w+)\}/g, '${$1}')

/** The key of a header, where the header names a variable; a key itself is not copied around. */
function keyOf(name: string, headers: unknown, notes: string[]): Pick<McpClientConfig, 'api_key_env' | 'api_key_header'> {
  if (!isObject(headers)) return {}
  for (const [header, value] of Object.entries(headers)) {
    const isKey = /^(authorization|x-api-key)$/i.test(header)
    const [, variable] = /^(?:Bearer\s+)?\$\{(\w+)\}$/i.exec(unfolded(value)) ?? []
    if (isKey && variable !== undefined)
      return { api_key_env: variable, ...(header.toLowerCase() === 'x-api-key' ? { api_key_header: 'x-api-key' as const } : {}) }
    notes.push(
      `${name}: its header ${header} is not taken over${isKey ? ': put the key into a variable and name it in api_key_env' : ''}`
    )
  }
  return {}
}
