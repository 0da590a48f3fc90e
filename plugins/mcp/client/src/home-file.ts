import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Fault, nearest, readConfigFile, shownPath, svcHome, type SvcError } from '@svc/core'
import { clientInvalid } from './errors.ts'
import { MCP_FILE, type McpClientConfig } from './settings.ts'

/** An entry, and where in the file its keys stand. */
export interface HomeEntry {
  readonly entry: McpClientConfig
  readonly where: (keys: readonly string[]) => string
}

/** The file that `svc mcp add` writes: the same entries as `mcp.clients`, under `clients`. */
export const homeFile = (home: string = svcHome()): string => join(home, 'mcp.yaml')

/** The servers of the file; none where there is no file. Faults come with their lines. Throws CONFIG_UNREADABLE. */
export async function readHomeFile(file: string): Promise<{ entries: HomeEntry[]; problems: SvcError[] }> {
  // reading YAML takes a tenth of a start to load
  if (!existsSync(file)) return { entries: [], problems: [] }
  const layer = await readConfigFile(file)
  const { value } = layer
  const where = (keys: readonly string[]) => `${shownPath(file)}:${layer.line?.(keys) ?? 1}`
  const faults = MCP_FILE.check(value)
  if (faults.length > 0)
    return { entries: [], problems: faults.map(one => clientInvalid(`${one.path} ${one.message}`, where(one.keys), hintOf(one))) }
  const { clients } = value as { clients: readonly McpClientConfig[] }
  const entries = clients.map((entry, at) => ({
    entry,
    where: (keys: readonly string[]) => where(['clients', String(at), ...keys]),
  }))
  return { entries, problems: [] }
}

function hintOf(fault: Fault): string {
  if (fault.keyword === 'required') return `set ${fault.path}`
  if (fault.keyword !== 'unknown') return 'fix the value'
  const known = (fault.allowed ?? []) as string[]
  const near = fault.nearest ?? nearest(fault.keys.at(-1) ?? '', known)
  return near ? `did you mean "${near}"?` : `known here: ${known.join(', ')}`
}
