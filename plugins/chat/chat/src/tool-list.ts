import type { SlotView } from '@svc/core'
import type { Json, Mode, StoredMessage, Tool, ToolCallPart, ToolResult, ToolSpec } from '@svc/core/contracts'
import { answerOf, isForModels, modeAllows, stripWords } from '@svc/plugin-kit'
import { toolForbidden, toolUnknown } from './errors.ts'

/** The tools of a turn: by name, and as the model sees them. */
export interface TurnTools {
  readonly tools: ReadonlyMap<string, Tool>
  readonly specs: readonly ToolSpec[]
  /** Set for a long list: the model receives this index instead of `specs`. */
  readonly index?: ToolIndex
}

/** The tools that a model step offers. */
interface OfferedTools {
  readonly tools?: readonly ToolSpec[]
  readonly indexed?: readonly string[]
}

/** The tools of a request. `added`: the names of indexed tools whose schemas the model needs, in the order of their addition. */
export function offeredTools({ specs, index }: TurnTools, added: ReadonlySet<string>): OfferedTools {
  if (index) return { tools: index.specsWith(added), indexed: index.names }
  return specs.length > 0 ? { tools: specs } : {}
}

/** The tool that a model calls by this name. */
export const toolIn = ({ tools, index }: TurnTools, name: string): Tool | undefined =>
  tools.get(name) ?? (name === index?.name ? index.finder : undefined)

/** Searches of past turns that are repeated. */
const MAX_REPEATED = 32

/** Adds the indexed tools that these messages have called or found. A later turn of the conversation offers them again. */
export function addCalled({ tools, index }: TurnTools, messages: readonly StoredMessage[], added: Set<string>): void {
  if (!index) return
  const done = doneCalls(messages)
  let searches = done.filter(({ call }) => call.tool === index.name).length
  for (const { call, isError } of done) {
    // a failed call gets its schema too, so that the model can correct it
    if (call.tool !== index.name) {
      if (tools.has(call.tool)) added.add(call.tool)
    } else if (searches-- <= MAX_REPEATED && !isError) for (const name of index.find(call.arguments['query'])) added.add(name)
  }
}

/** The tool calls that have a result. */
function doneCalls(messages: readonly StoredMessage[]): { readonly call: ToolCallPart; readonly isError: boolean }[] {
  const calls = new Map<string, ToolCallPart>()
  return messages.flatMap(({ parts }) =>
    parts.flatMap(part => {
      if (part.type === 'tool_call') calls.set(part.id, part)
      const call = part.type === 'tool_result' ? calls.get(part.id) : undefined
      return call && part.type === 'tool_result' ? [{ call, isError: part.isError }] : []
    })
  )
}

/** The index of a long list of tools: one line for each, and the tool that adds their schemas. */
interface ToolIndex {
  /** The name of `finder`: `find_tools`, or with a number if another tool has this name. */
  readonly name: string
  readonly finder: Tool
  /** All tools of the list. */
  readonly names: readonly string[]
  /** The specs of the finder and of these tools. Equal names give the same array: providers cache its JSON and its tokens. */
  specsWith(added: ReadonlySet<string>): readonly ToolSpec[]
  /** The names of the tools that a query means. Any value is a valid query. */
  find(query: Json | undefined): readonly string[]
}

const FINDER = 'find_tools'
const MAX_QUERY = 1_000
/** Choices of schemas that an index keeps. */
const MAX_CHOICES = 64

function indexOf(tools: ReadonlyMap<string, Tool>): ToolIndex {
  const names = [...tools.keys()]
  const find = createSearch(tools)
  const finder = createFinder(tools, find)
  const name = freeName(tools)
  const own: ToolSpec = { name, description: finder.description, parameters: finder.parameters }
  const choices = new Map<string, readonly ToolSpec[]>()
  return {
    name,
    finder,
    names,
    find,
    specsWith(added) {
      const wanted = [...added]
      const key = JSON.stringify(wanted)
      const specs = choices.get(key) ?? [own, ...wanted.map(one => specOf(one, tools.get(one)!))]
      // the most recently used choices are the last
      choices.delete(key)
      choices.set(key, specs)
      if (choices.size > MAX_CHOICES) choices.delete(choices.keys().next().value!)
      return specs
    },
  }
}

function freeName(tools: ReadonlyMap<string, Tool>): string {
  let name = FINDER
  for (let number = 2; tools.has(name); number++) name = `${FINDER}_${number}`
  return name
}

const createFinder = (tools: ReadonlyMap<string, Tool>, find: ToolIndex['find']): Tool => ({
  description: `Adds tools: the next request contains their descriptions and parameters. A listed tool can also be called directly, if its arguments are known.\n${indexText(tools)}`,
  category: 'tools',
  effects: [],
  parameters: {
    type: 'object',
    properties: { query: { type: 'string', maxLength: MAX_QUERY, description: 'Names from the list, or words' } },
    required: ['query'],
    additionalProperties: false,
  },
  async call({ query }) {
    const found = find(query)
    if (found.length === 0) return failure('No tool matches. Use names from the list, or other words.')
    return answerOf(['These tools are added:', ...found.map(name => lineOf(name, tools.get(name)!))])
  },
})

/** Characters of all lines of an index. Longer lists have names only, and then the number of missing names. */
const MAX_INDEX = 8_000
/** Characters of a description in a line. */
const MAX_LINE = 80

function indexText(tools: ReadonlyMap<string, Tool>): string {
  const lines = [...tools].map(([name, tool]) => lineOf(name, tool)).join('\n')
  if (lines.length <= MAX_INDEX) return `Tools:\n${lines}`
  const names: string[] = []
  let left = MAX_INDEX
  for (const name of tools.keys()) if ((left -= name.length + 1) >= 0) names.push(plain(name))
  const missing = tools.size - names.length
  return `Tools: ${names.join(' ')}${missing > 0 ? `\n${missing} more tools are not listed. Search for them with words.` : ''}`
}

/** The name of a tool and the beginning of its description. The description is untrusted: it cannot begin a line of its own. */
function lineOf(name: string, { description }: Tool): string {
  const text = plain(description.slice(0, 1_000))
  const [sentence = ''] = /^.*?[.:;](?=\s|$)/.exec(text) ?? [text]
  const short = sentence.length > MAX_LINE ? `${text.slice(0, MAX_LINE).replace(/\s\S*$/, '')} …` : sentence.replace(/[.:;]$/, '')
  return short === '' ? plain(name) : `${plain(name)}: ${short}`
}

/** One line of text without hidden characters. */
const plain = (text: string) => stripWords(text.replace(/\s+/g, ' ')).text.trim()

/** Tools that a search by words returns. */
const MAX_FOUND = 5
const MAX_TERMS = 30
/** Words and characters of a description that a search compares: a long list is searched in a millisecond. */
const MAX_WORDS = 8
const MAX_TEXT = 300
/** Weight of a word in the name of a tool; in its description it has weight 1. */
const IN_NAME = 3

/** Finds tools by their names. A query that contains no name matches words. */
function createSearch(tools: ReadonlyMap<string, Tool>): ToolIndex['find'] {
  let texts: readonly (readonly [name: string, lower: string, text: string])[] | undefined
  return query => {
    if (typeof query !== 'string' || query.length > MAX_QUERY) return []
    const terms = [...new Set(query.split(/[\s,;"'`()[\]]+/))].filter(Boolean).slice(0, MAX_TERMS)
    const named = terms.filter(term => tools.has(term))
    if (named.length > 0) return named
    texts ??= [...tools].map(([name, { description }]) => [
      name,
      name.toLowerCase(),
      description.slice(0, MAX_TEXT).toLowerCase(),
    ])
    const words = terms
      .map(term => term.toLowerCase())
      .filter(word => word.length > 2)
      .slice(0, MAX_WORDS)
    const weightOf = (lower: string, text: string) =>
      words.reduce((sum, word) => sum + (lower.includes(word) ? IN_NAME : 0) + (text.includes(word) ? 1 : 0), 0)
    return texts
      .map(([name, lower, text]) => ({ name, weight: weightOf(lower, text) }))
      .filter(({ weight }) => weight > 0)
      .sort((a, b) => b.weight - a.weight)
      .slice(0, MAX_FOUND)
      .map(({ name }) => name)
  }
}

/** Maximum names of a list that is kept, and maximum kept lists of a mode. */
const MAX_NAMED = 100

/** The lists of one mode. */
interface ModeLists {
  readonly all: TurnTools
  /** Lists by their names: providers cache JSON and token counts by array, so equal names give the same list. */
  readonly named: Map<string, TurnTools>
}

/** Lists the tools of each turn. The lists of a mode are computed again only after a change of the slots. */
export function createToolLists(slot: SlotView<Tool>, modes: SlotView<Mode>, inline: number) {
  let version = -1
  let lists = new Map<string, ModeLists>()
  const listsOf = (mode: string): ModeLists => {
    const now = slot.version + modes.version
    if (now !== version) [version, lists] = [now, new Map()]
    const known = lists.get(mode)
    if (known) return known
    const allowed = slot.entries().filter(([, tool]) => isForModels(tool) && modeAllows(mode, modes.get(mode), tool))
    const made = { all: listOf(allowed, inline), named: new Map<string, TurnTools>() }
    lists.set(mode, made)
    return made
  }

  /**
   * `asked` takes precedence over the profile's list. Throws INVALID_VALUE for an unknown or forbidden tool. The model receives the schemas of all
   * tools in `asked`, and an index of any other list with more than `inline` tools.
   */
  return function toolsFor(
    asked: readonly string[] | undefined,
    profile: readonly string[] | undefined,
    mode: string
  ): TurnTools {
    const { all, named } = listsOf(mode)
    const names = asked ?? profile
    if (!names) return all
    const key = JSON.stringify([asked ? 'asked' : 'profile', names])
    const known = named.get(key)
    if (known) return known
    const made = asked
      ? listOf(asked.map(name => [name, pick(name, all, slot, mode)]))
      : listOf(
          names.flatMap(name => (all.tools.has(name) ? [[name, all.tools.get(name)!]] : [])),
          inline
        )
    if (names.length > MAX_NAMED) return made
    if (named.size >= MAX_NAMED) named.delete(named.keys().next().value!)
    named.set(key, made)
    return made
  }
}

function pick(name: string, all: TurnTools, slot: SlotView<Tool>, mode: string): Tool {
  const tool = all.tools.get(name)
  if (tool) return tool
  const hidden = slot.get(name)
  throw hidden && isForModels(hidden)
    ? toolForbidden(name, mode, [...all.tools.keys()])
    : toolUnknown(name, [...all.tools.keys()])
}

function listOf(entries: readonly (readonly [string, Tool])[], inline = Number.POSITIVE_INFINITY): TurnTools {
  const tools = new Map(entries)
  const specs = [...tools].map(([name, tool]) => specOf(name, tool))
  return tools.size > inline ? { tools, specs, index: indexOf(tools) } : { tools, specs }
}

const specOf = (name: string, { description, parameters }: Tool): ToolSpec => ({ name, description, parameters })

/** An error result with a text for the model. */
export const failure = (text: string): ToolResult => ({ content: [{ type: 'text', text }], isError: true })
