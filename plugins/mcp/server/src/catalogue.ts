import { type JsonSchema, type Log, nearest, type SlotView, type SvcError } from '@svc/core'
import type { Effect, Mode, Tool } from '@svc/core/contracts'
import { headersOf, type ParamHeader, toolMatcher } from '@svc/mcp-protocol'
import { isForModels } from '@svc/plugin-kit'
import { toolsUnknown, type UnknownName } from './errors.ts'
import type { McpServerConfig } from './settings.ts'

/** Annotations of a tool, derived from its declared effects. */
interface ToolHints {
  readonly readOnlyHint: boolean
  readonly destructiveHint: boolean
  readonly idempotentHint: boolean
  readonly openWorldHint: boolean
}

/** A tool as MCP clients see it. */
interface ToolRecord {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly inputSchema: JsonSchema
  readonly outputSchema?: JsonSchema
  readonly annotations: ToolHints
}

/** A tool of a set, with values that are computed once. */
export interface PublishedTool {
  readonly name: string
  /** The path of its set without the slash: `mcp`, `mcp/files`. */
  readonly set: string
  readonly tool: Tool
  /** The plugin that added the tool. */
  readonly plugin?: string
  readonly record: ToolRecord
  /** Arguments that requests repeat in headers. */
  readonly headers: readonly ParamHeader[]
  /** Whether the schema has defaults. The validation writes them into its input. */
  readonly hasDefaults: boolean
}

/** The era of the protocol: `modern` has stateless requests (since 2026-07-28), `legacy` has sessions. */
export type Era = 'modern' | 'legacy'

/** A page of the list of tools, serialized. */
interface ToolPage {
  /** JSON array of the records. */
  readonly json: string
  /** Cursor of the next page. */
  readonly next?: string
}

/** The current tools of a set, sorted by name. */
export interface Catalogue {
  readonly tools: readonly PublishedTool[]
  get(name: string): PublishedTool | undefined
  /** Returns the page after a cursor, `undefined` if the cursor is invalid. */
  page(era: Era, cursor: string | undefined): ToolPage | undefined
}

/** The mode of the server. Its effects decide which tools are published. */
export interface ModeGate {
  /** Changes whenever `allows` can have another result. */
  readonly version: string
  readonly mode: string
  allows(tool: Tool): boolean
  /** Returns whether the mode is another one. */
  set(mode: string): boolean
}

/** Without a mode, for a host without the service `Selection`, every tool is allowed. */
export function createModeGate(modes: SlotView<Mode>): ModeGate {
  let mode = ''
  return {
    get version() {
      return `${modes.version} ${mode}`
    },
    get mode() {
      return mode
    },
    allows({ effects }) {
      const allowed = modes.get(mode)?.effects
      return allowed === undefined || effects.every(effect => allowed.includes(effect))
    },
    set(next) {
      const isOther = next !== mode
      mode = next
      return isOther
    },
  }
}

/** Tools per page. */
const PAGE = 1_000

/** The tools that a catalogue chooses from. */
export interface ToolSource {
  readonly tools: SlotView<Tool>
  readonly gate: ModeGate
}

/**
 * Returns the published tools of the slot that the mode allows, and rebuilds them after a change of the slot or the mode. Tools that are limited to some modes are
 * not published. A tool with a schema that is not valid JSON is skipped with an error in the log.
 */
export function createCatalogue({ tools, gate }: ToolSource, { path, isPublished }: ToolSet, log: Log): () => Catalogue {
  const set = path.slice(1)
  let version = ''
  let now = catalogueOf([])
  return () => {
    const current = `${tools.version} ${gate.version}`
    if (version === current) return now
    version = current
    const isChosen = (name: string, tool: Tool) =>
      tool.modes === undefined && isForModels(tool) && isPublished(name) && gate.allows(tool)
    const chosen = tools.entries().filter(([name, tool]) => isChosen(name, tool))
    const made = chosen.map(([name, tool]) => {
      const known = now.get(name)
      return known?.tool === tool ? known : publish(name, tool, { set, plugin: tools.owner(name) }, log)
    })
    now = catalogueOf(made.filter(item => item !== undefined).toSorted((a, b) => (a.name < b.name ? -1 : 1)))
    return now
  }
}

function publish(
  name: string,
  tool: Tool,
  { set, plugin }: { readonly set: string; readonly plugin: string | undefined },
  log: Log
): PublishedTool | undefined {
  try {
    const record = recordOf(name, tool)
    const json = JSON.stringify(record.inputSchema)
    return {
      name,
      set,
      tool,
      ...(plugin === undefined ? {} : { plugin }),
      record,
      headers: json.includes('"x-mcp-header"') ? headersFor(record) : [],
      hasDefaults: json.includes('"default"'),
    }
  } catch (error) {
    log.error({ err: error, tool: name }, 'cannot publish a tool: its schema is not valid JSON')
    return undefined
  }
}

/** Ignores declarations that the protocol does not allow. */
function headersFor({ inputSchema }: ToolRecord): readonly ParamHeader[] {
  const found = headersOf(inputSchema as Parameters<typeof headersOf>[0])
  return typeof found === 'string' ? [] : found
}

const recordOf = (name: string, tool: Tool): ToolRecord => ({
  name,
  title: tool.title ?? name,
  description: tool.description,
  inputSchema: { type: 'object', ...(tool.parameters as object) },
  ...(tool.result === undefined ? {} : { outputSchema: tool.result }),
  annotations: hintsOf(tool.effects),
})

/** A tool that only reads is idempotent and not destructive. */
function hintsOf(effects: readonly Effect[]): ToolHints {
  const isReading = !effects.includes('write') && !effects.includes('execute')
  return {
    readOnlyHint: isReading,
    destructiveHint: !isReading,
    idempotentHint: isReading,
    openWorldHint: effects.includes('network'),
  }
}

/** A cursor is the name of the last tool of a page, so it stays valid when tools are added or removed. */
const CURSOR = /^[A-Za-z0-9_.-]{1,128}$/

function catalogueOf(tools: readonly PublishedTool[]): Catalogue {
  const byName = new Map(tools.map(tool => [tool.name, tool]))
  const first = new Map<Era, ToolPage>()
  return {
    tools,
    get: name => byName.get(name),
    page(era, cursor) {
      if (cursor !== undefined) return CURSOR.test(cursor) ? pageOf(tools, era, cursor) : undefined
      const page = first.get(era) ?? pageOf(tools, era, '')
      first.set(era, page)
      return page
    },
  }
}

function pageOf(tools: readonly PublishedTool[], era: Era, after: string): ToolPage {
  const rest = tools.filter(({ name }) => name > after)
  const part = rest.slice(0, PAGE)
  const json = `[${part.map(({ record }) => JSON.stringify(recordFor(era, record))).join(',')}]`
  return part.length < rest.length ? { json, next: part.at(-1)!.name } : { json }
}

/** Before 2026-07-28, the type of structured content must be an object. */
function recordFor(era: Era, record: ToolRecord): ToolRecord {
  const { outputSchema, ...rest } = record
  return era === 'modern' || (outputSchema as { type?: unknown } | undefined)?.type === 'object' ? record : rest
}

type Choice = Pick<McpServerConfig, 'tools' | 'sets'>

/** A set of tools that is published at one path. */
export interface ToolSet {
  readonly path: string
  readonly isPublished: (name: string) => boolean
}

/** Returns the set of all published tools, followed by the configured sets, which are subsets of it. */
export function toolSets({ tools, sets }: Choice): readonly [ToolSet, ...ToolSet[]] {
  const isPublished = matcher(tools)
  const chosen = Object.entries(sets).map(([name, patterns]): ToolSet => {
    const isChosen = matcher(patterns)
    return { path: `/mcp/${name}`, isPublished: tool => isPublished(tool) && isChosen(tool) }
  })
  return [{ path: '/mcp', isPublished }, ...chosen]
}

/** Returns the mode if it is the reason that a tool of this set is not published. */
export function createFindForbidden({ tools, gate }: ToolSource, { isPublished }: ToolSet): (name: string) => string | undefined {
  return name => {
    const tool = isPublished(name) ? tools.get(name) : undefined
    return tool === undefined || tool.modes !== undefined || gate.allows(tool) ? undefined : gate.mode
  }
}

/** Tools of connected servers are named `<server>__<tool>`. They can be absent while their server is down. */
const isBridged = (name: string) => name.includes('__')

/** Returns an error for names that match no tool. Patterns and names of bridged tools are not checked. */
export function findUnknownNames({ tools, sets }: Choice, known: readonly string[]): SvcError | undefined {
  const isPublished = matcher(tools)
  const unknown = (key: string, names: readonly string[]) =>
    names.filter(isExact).flatMap((name): UnknownName[] => {
      if (known.includes(name)) return isPublished(name) ? [] : [{ key, name, isExcluded: true }]
      return isBridged(name) ? [] : [{ key, name, near: nearest(name, known), isExcluded: false }]
    })
  const all = [
    ...unknown('mcp.server.tools', tools ?? []),
    ...Object.entries(sets).flatMap(([set, names]) => unknown(`mcp.server.sets.${set}`, names)),
  ]
  return all.length > 0 ? toolsUnknown(all) : undefined
}

const isExact = (name: string) => !name.includes('*')

/** Without patterns, every name matches. */
const matcher = (patterns: readonly string[] | undefined) => (patterns === undefined ? () => true : toolMatcher(patterns))
