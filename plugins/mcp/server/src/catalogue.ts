import type { JsonSchema, Log, SlotView } from '@svc/core'
import type { Effect, Tool } from '@svc/core/contracts'
import { headersOf, type ParamHeader } from '@svc/mcp-protocol'
import type { ToolSet } from './tool-sets.ts'

/** What a client may expect of a tool, from its declared effects. */
interface ToolHints {
  readonly readOnlyHint: boolean
  readonly destructiveHint: boolean
  readonly idempotentHint: boolean
  readonly openWorldHint: boolean
}

/** A tool as clients of the tool protocol see it. */
interface ToolRecord {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly inputSchema: JsonSchema
  readonly outputSchema?: JsonSchema
  readonly annotations: ToolHints
}

/** A tool of this set, with what is made once for it. */
export interface PublishedTool {
  readonly name: string
  /** The set that it is of, by the address where clients find it: `mcp`, `mcp/files`. */
  readonly set: string
  readonly tool: Tool
  readonly record: ToolRecord
  /** Arguments that headers of a request repeat. */
  readonly headers: readonly ParamHeader[]
  /** The schema gives defaults, which its check writes into what it checks. */
  readonly hasDefaults: boolean
}

/** The eras of the protocol: stateless requests (2026-07-28), and sessions (before). */
export type Era = 'modern' | 'legacy'

/** A part of the list of tools, as it goes on the wire. */
interface ToolPage {
  /** The records as JSON, with the brackets of their list. */
  readonly json: string
  /** Leads to the next part. */
  readonly next?: string
}

/** The tools of a set as they are now, in the order of their names. */
export interface Catalogue {
  readonly tools: readonly PublishedTool[]
  get(name: string): PublishedTool | undefined
  /** The part of the list behind a cursor; `undefined` where it leads nowhere. */
  page(era: Era, cursor: string | undefined): ToolPage | undefined
}

/** So many tools go out at once. */
const PAGE = 1_000

/**
 * The tools of the slot that are published, as clients see them; made again when the slot has changed. What is for turns of some modes is not; a tool whose
 * schema is no JSON is left out, and the log says so.
 */
export function createCatalogue(tools: SlotView<Tool>, { path, isPublished }: ToolSet, log: Log): () => Catalogue {
  const set = path.slice(1)
  let version = -1
  let now = catalogueOf([])
  return () => {
    if (version === tools.version) return now
    version = tools.version
    const chosen = tools.entries().filter(([name, { modes }]) => modes === undefined && isPublished(name))
    const made = chosen.map(([name, tool]) => {
      const known = now.get(name)
      return known?.tool === tool ? known : publish(name, tool, set, log)
    })
    now = catalogueOf(made.filter(one => one !== undefined).toSorted((a, b) => (a.name < b.name ? -1 : 1)))
    return now
  }
}

function publish(name: string, tool: Tool, set: string, log: Log): PublishedTool | undefined {
  try {
    const record = recordOf(name, tool)
    const json = JSON.stringify(record.inputSchema)
    return {
      name,
      set,
      tool,
      record,
      headers: json.includes('"x-mcp-header"') ? headersFor(record) : [],
      hasDefaults: json.includes('"default"'),
    }
  } catch (error) {
    log.error({ err: error, tool: name }, 'a tool whose schema is no JSON is not published')
    return undefined
  }
}

/** Declarations that the protocol does not allow make nothing a header must repeat. */
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

/** A tool that only reads may be called again, and spoils nothing. */
function hintsOf(effects: readonly Effect[]): ToolHints {
  const isReading = !effects.includes('write') && !effects.includes('execute')
  return {
    readOnlyHint: isReading,
    destructiveHint: !isReading,
    idempotentHint: isReading,
    openWorldHint: effects.includes('network'),
  }
}

/** A cursor is the name of the last tool that is known: it leads on though tools come and go. */
const CURSOR = /^[A-Za-z0-9_.-]{1,128}$/

function catalogueOf(tools: readonly PublishedTool[]): Catalogue {
  const byName = new Map(tools.map(one => [one.name, one]))
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

/** Before 2026-07-28, structured content is an object, and so is its schema. */
function recordFor(era: Era, record: ToolRecord): ToolRecord {
  const { outputSchema, ...rest } = record
  return era === 'modern' || (outputSchema as { type?: unknown } | undefined)?.type === 'object' ? record : rest
}
