import { styleText } from 'node:util'
import { clipped, counted, milliseconds, oneLine, table, wrapped } from '@svc/cli/command'
import type { CommandContext, ServerChoice } from '@svc/core/contracts'
import { type CatalogTool, openCatalog } from '../catalog/open.ts'
import { categoryUnknown, toolUnknown, toolUnknownHere } from '../errors.ts'

interface ToolsOptions extends ServerChoice {
  readonly json: boolean
}

const WIDTH = 100
const bold = (text: string) => styleText('bold', text, { stream: process.stdout })

/** `svc tools list`. Throws CATEGORY_UNKNOWN. */
export async function listTools(
  command: CommandContext,
  asked: ToolsOptions & { readonly category?: string | undefined }
): Promise<number> {
  const catalog = await openCatalog(command, asked)
  const { of } = catalog
  const shown = ofCategory(await catalog.tools(command.signal), asked.category)
  command.print(asked.json ? JSON.stringify({ from: of, tools: shown.map(wireOf) }, null, 2) : listText(shown, of))
  return 0
}

function ofCategory(tools: readonly CatalogTool[], category: string | undefined): readonly CatalogTool[] {
  if (category === undefined) return tools
  const found = tools.filter(tool => tool.category === category)
  if (found.length === 0) throw categoryUnknown(category, [...new Set(tools.map(tool => tool.category))].sort())
  return found
}

/** A server does not report effects; the table then has no such column. */
function listText(tools: readonly CatalogTool[], of: string): string {
  const hasEffects = tools.some(tool => tool.effects !== undefined)
  const head = ['TOOL', 'CATEGORY', ...(hasEffects ? ['EFFECTS'] : []), 'DESCRIPTION']
  const rows = tools.map(({ name, category, effects = [], asks, description }) => [
    name,
    category,
    ...(hasEffects ? [[...effects, ...(asks ? ['asks'] : [])].join(', ')] : []),
    oneLine(description.split('\n', 1)[0]!),
  ])
  const [first = '', ...lines] = table([head, ...rows]).split('\n')
  const width = process.stdout.isTTY ? process.stdout.columns : Number.POSITIVE_INFINITY
  return [
    `${counted(tools.length)} ${tools.length === 1 ? 'tool' : 'tools'} of ${of}`,
    '',
    bold(first),
    ...lines.map(line => clipped(line, width)),
  ].join('\n')
}

/** `svc tools show`. Throws TOOL_UNKNOWN. */
export async function showTool(command: CommandContext, asked: ToolsOptions & { readonly name: string }): Promise<number> {
  const catalog = await openCatalog(command, asked)
  const { of, shared } = catalog
  const tools = await catalog.tools(command.signal)
  const found = tools.find(({ name }) => name === asked.name)
  if (!found) {
    const names = tools.map(({ name }) => name)
    throw (shared ? toolUnknown : toolUnknownHere)(asked.name, names)
  }
  const tool = await catalog.whole(found, command.signal)
  command.print(asked.json ? JSON.stringify({ from: of, ...wireOf(tool) }, null, 2) : toolText(tool, of))
  return 0
}

const wireOf = ({ timeoutMs, result, ...tool }: CatalogTool) => ({
  ...tool,
  ...(timeoutMs === undefined ? {} : { timeout_ms: timeoutMs }),
  ...(result === undefined ? {} : { result_schema: result }),
})

function toolText(tool: CatalogTool, of: string): string {
  const lines = tool.description.split('\n').flatMap(line => wrapped(oneLine(line), WIDTH))
  return [`${bold(tool.name)} of ${of}`, '', ...lines, '', parametersText(tool), '', ...factLines(tool)].join('\n')
}

function parametersText({ parameters }: CatalogTool): string {
  const all = Object.entries(parameters)
  if (all.length === 0) return 'The tool has no parameters.'
  const rows = all.map(([name, entry]) => [
    oneLine(name),
    oneLine(entry.type),
    entry.required ? 'required' : '',
    oneLine(entry.description ?? ''),
  ])
  const [head = '', ...lines] = table([['PARAMETER', 'TYPE', '', 'DESCRIPTION'], ...rows]).split('\n')
  return [bold(head), ...lines].join('\n')
}

function factLines({ category, effects, asks, timeoutMs }: CatalogTool): string[] {
  const facts = [
    ['category', category],
    ['effects', effects?.join(', ') || (effects ? 'none' : undefined)],
    ['asks', asks ? 'yes, before each call in a chat' : undefined],
    ['time-out', timeoutMs === undefined ? undefined : milliseconds(timeoutMs)],
  ].filter((fact): fact is [string, string] => fact[1] !== undefined)
  return table(facts).split('\n')
}
