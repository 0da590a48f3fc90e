// Writes docs/tools.md from the tools of the curated build as they are: `npm run docs`.
import { readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { type Plugin, startHost } from '@svc/core'
import { type Tool, Tools } from '@svc/core/contracts'
import { DEFAULTS } from '../cli/src/curated.ts'
import { type Property as Setting, rows } from './config-reference.ts'

/** A schema, as far as it is told here. */
interface Schema {
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly default?: unknown
  readonly description?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly maxItems?: number
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
}

const INTRO = `# Tools

Written by \`npm run docs\` from the tools themselves. Do not edit by hand: the words are those that a model reads.

A model is offered the tools that the turn's mode allows by their **effects** (\`read\`, \`write\`, \`execute\`, \`network\`; a tool without any is allowed by every mode), narrowed by the \`tools\` of the profile
or of the request ([modes](../plugins/chat/modes/README.md), [profiles](../plugins/chat/selection/README.md#a-profile)). \`plan\`, \`review\` and \`explore\` never write or execute. A plugin that taps \`Chat.hooks.toolCall\` allows,
changes, denies or asks ([plugins.md](plugins.md#the-hooks-of-a-chat)).

What holds for every tool: arguments are checked against the schema before anything runs, and the model is told what was wrong; one call may take \`chat.tool_timeout_ms\` (60 s) unless the tool says otherwise,
may have arguments of \`chat.tool_arguments_limit\` characters, and gives the model at most \`chat.tool_result_limit\` characters of its answer (texts, resources and links; images and sounds have four million of their own), with a note where it was cut or something left out; calls of one round run at once, and their results are told in the order of the calls; who leaves
aborts them. A tool that **asks** runs only when a person has said yes: \`svc chat\` shows the call and asks, an interactive stream gets an \`ask\` event; where nobody can be asked, the call is denied and the model is told.

\`\`\`sh
svc tools list                                  # what there is, and from whom
svc tools show read_file                        # one of them (effects and schema with --local)
svc tools call read_file path=README.md         # runs it, on the command line: no model, no mode
\`\`\`
\`search_web\` is there only where \`tools.web.search\` names an endpoint, \`run_command\` only where \`tools.shell.enabled\` is true (here with \`git\` and \`ls\`). A tool of your own: [plugins.md](plugins.md#a-tool). One that asks: [examples/careful-tool](../examples/careful-tool).
`

/** So that the tools are there which need an endpoint or a switch; nobody is asked, nothing is run. */
const CONFIG = {
  tools: { web: { search: { type: 'searxng', url: 'http://127.0.0.1:9' } }, shell: { enabled: true, commands: ['git', 'ls'] } },
}

const require = createRequire(new URL('../cli/src/curated.ts', import.meta.url))
/** Tools of its own: those of connected servers have no names that are known here, and teams are a chapter of their own. */
const addsTools = (name: string) => {
  const { svc } = require(`${name}/package.json`) as { svc: { kind: string; contributes?: { tools?: readonly string[] } } }
  return svc.kind === 'tool' && (svc.contributes?.tools?.some(tool => !tool.includes('*')) ?? false)
}

function typeOf(schema: Schema): string {
  const { type, enum: words, anyOf, oneOf, items } = schema
  if (words) return words.map(word => `\`${String(word)}\``).join(', ')
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``
  const kinds = anyOf ?? oneOf
  if (kinds && !type) return [...new Set(kinds.map(typeOf))].join(' or ')
  const kind = type === 'array' ? `list${items?.type ? ` of ${kindOf(items)}` : ''}` : kindOf(schema)
  return [kind, ...limitsOf(schema)].join(', ')
}

const kindOf = ({ type = 'any' }: Schema) => [type].flat().join(' or ')

function limitsOf({ minimum, maximum, maxLength, maxItems }: Schema): string[] {
  const range = [minimum === undefined ? '' : `from ${minimum}`, maximum === undefined ? '' : `to ${maximum}`]
    .filter(Boolean)
    .join(' ')
  return [
    range,
    maxLength === undefined ? '' : `at most ${maxLength} characters`,
    maxItems === undefined ? '' : `at most ${maxItems} items`,
  ].filter(Boolean)
}

/** Many say their default in words, for the model. */
const DEFAULT = /(?:^|[;,] )default (.+)$/

function parameterRow(name: string, schema: Schema, required: boolean): string {
  const { description = '' } = schema
  const said = DEFAULT.exec(description)?.[1]
  const value = schema.default === undefined ? cell(said ?? '') : `\`${JSON.stringify(schema.default)}\``
  return `| \`${name}\` | ${typeOf(schema)} | ${required ? '**required**' : value} | ${cell(said ? description.replace(DEFAULT, '') : description)} |`
}

/** The form of an answer: `{path, files: [{path, staged?}]}`. */
function formOf({ type, properties, required = [], items, anyOf, oneOf }: Schema): string {
  if (properties) {
    const parts = Object.entries(properties).map(([name, one]) => {
      const form = formOf(one)
      return `${name}${required.includes(name) ? '' : '?'}${form === '' ? '' : `: ${form}`}`
    })
    return `{${parts.join(', ')}}`
  }
  if (type === 'array') return `[${items ? formOf(items) : ''}]`
  return [...new Set((anyOf ?? oneOf ?? []).map(formOf).filter(Boolean))].join(' | ')
}

/** What the parts of an answer mean, where that is told. */
const meanings = ({ properties = {}, items }: Schema): string[] => [
  ...Object.entries(properties).flatMap(([name, one]) => [
    ...(one.description ? [`\`${name}\`: ${cell(one.description)}`] : []),
    ...meanings(one),
  ]),
  ...(items ? meanings(items) : []),
]

/** Words of a tool as Markdown that shows them as they are; between backticks only the table is in the way. */
const cell = (text: string) =>
  text
    .replaceAll('\n', ' ')
    .split(/(`[^`]*`)/)
    .map((part, at) => part.replaceAll(at % 2 === 0 ? /[|*_<\\[]/g : /\|/g, '\\$&'))
    .join('')

function toolText(name: string, tool: Tool): string {
  const parameters = tool.parameters as Schema
  const required = new Set(parameters.required)
  const lines = Object.entries(parameters.properties ?? {}).map(([key, one]) => parameterRow(key, one, required.has(key)))
  const effects = tool.effects.length === 0 ? 'none' : tool.effects.join(', ')
  const facts = [
    `Category: ${tool.category}`,
    `effects: ${effects}`,
    ...(tool.asks ? ['**a person is asked before each call**'] : []),
    ...(tool.timeoutMs === undefined ? [] : [`at most ${tool.timeoutMs / 1000} s`]),
  ]
  const told = tool.result === undefined ? [] : [...new Set(meanings(tool.result as Schema))]
  return [
    `\n### ${name}\n\n${cell(tool.description)}\n\n${facts.join(' · ')}\n`,
    lines.length === 0 ? '\nNo arguments.\n' : `\n| Argument | Type | Default | |\n|---|---|---|---|\n${lines.join('\n')}\n`,
    tool.result === undefined
      ? ''
      : `\nAnswers \`${formOf(tool.result as Schema)}\`${told.length === 0 ? '.' : ` – ${told.join('; ')}.`}\n`,
  ].join('')
}

function pluginText(name: string, plugin: Plugin, tools: readonly (readonly [string, Tool])[]): string {
  const folder = name.replace('@svc/plugin-tools-', '../plugins/tools/')
  const json = plugin.config?.json as Setting | undefined
  const keys = json && plugin.section ? rows(plugin.section, json) : []
  const limits = keys.length === 0 ? '' : `\n| Key | Type | Default | |\n|---|---|---|---|\n${keys.join('\n')}\n`
  return `\n## ${name}\n\nWhat it holds to: [README](${folder}/README.md).\n${limits}${tools.map(one => toolText(...one)).join('')}`
}

/** What tools of the list stand on. */
const SERVICES = ['@svc/plugin-sandbox-quickjs', '@svc/plugin-sandbox-process']

/** The whole page. */
export async function toolsReference(): Promise<string> {
  const plugins = (DEFAULTS.plugins as string[]).filter(addsTools)
  const from = [new URL('../cli/', import.meta.url).href]
  await using host = await startHost({
    plugins: [...plugins, ...SERVICES],
    config: CONFIG,
    from,
    log: { destination: { write() {} } },
  })
  const tools = host.slot(Tools)
  const asking = tools.entries().flatMap(([name, { asks }]) => (asks ? [`\`${name}\``] : []))
  const who = asking.length === 0 ? 'None of these tools asks by itself.' : `Of these tools ${asking.join(', ')} ask.`
  const texts = plugins.map(async name => {
    const { default: plugin } = (await import(name)) as { default: Plugin }
    const own = tools.entries().filter(([tool]) => tools.owner(tool) === name)
    return pluginText(name, plugin, own)
  })
  return `${INTRO}\n${who}\n${(await Promise.all(texts)).join('')}`
}

if (import.meta.main) await writeFile(new URL('../docs/tools.md', import.meta.url), await toolsReference())

/** What is committed. */
export const committedTools = () => readFile(new URL('../docs/tools.md', import.meta.url), 'utf8')
