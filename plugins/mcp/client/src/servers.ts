import { createHash } from 'node:crypto'
import { asSvcError, type SvcError } from '@svc/core'
import { entryFaults } from './entry-faults.ts'
import { clientInvalid, nameTwice } from './errors.ts'
import { readHomeFile } from './home-file.ts'
import type { McpClientConfig } from './settings.ts'

/** A configured server. */
export interface Server {
  readonly entry: McpClientConfig
  /** Where it stands: `mcp.clients[2]`, `~/.svc/mcp.yaml:12`. */
  readonly where: string
  /** What server it is, whatever is set about it: of its address, or its command line. Pins and logins hang on it. */
  readonly identity: string
  /** Of the whole entry: with another one it is connected anew. */
  readonly fingerprint: string
}

const DIGITS = 16
const digest = (value: unknown) => createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, DIGITS)

const serverOf = (entry: McpClientConfig, where: string): Server => ({
  entry,
  where,
  identity: digest(entry.url ?? [entry.command, ...(entry.args ?? [])]),
  fingerprint: digest(entry),
})

/** The servers of the configuration and of a `mcp.yaml`, those that are switched off too, and all that is wrong with them. */
export async function readServers(
  config: readonly McpClientConfig[],
  file: string
): Promise<{ readonly servers: readonly Server[]; readonly problems: readonly SvcError[] }> {
  const own = config.map((entry, at) => ({ entry, where: (_keys: readonly string[]) => `mcp.clients[${at}]` }))
  const home = await readHomeFile(file).catch((error: unknown) => ({
    entries: [],
    problems: [asSvcError(error, 'MCP_CLIENT_INVALID')],
  }))
  const all = [...own, ...home.entries]
  const problems = all.flatMap(({ entry, where }) =>
    entryFaults(entry).map(one => clientInvalid(said(entry, one.keys, one.message), where(one.keys), one.hint))
  )
  const servers = all.map(({ entry, where }) => serverOf(entry, where([])))
  return { servers, problems: [...home.problems, ...problems, ...twice(servers)] }
}

const said = ({ name }: McpClientConfig, keys: readonly string[], message: string) =>
  `tool server "${name}": ${keys.length === 0 ? 'it' : keys.join('.')} ${message}`

function twice(servers: readonly Server[]): SvcError[] {
  const first = new Map<string, Server>()
  return servers.flatMap(one => {
    const { name } = one.entry
    const other = first.get(name)
    if (other) return [nameTwice(name, one.where, other.where)]
    first.set(name, one)
    return []
  })
}
