// Writes the reference in docs/workflows.md from the types of nodes and the schemas as they are: `npm run docs`.
import { readFile, writeFile } from 'node:fs/promises'
import { startHost } from '@svc/core'
import { type BranchRule, type WorkflowNode, WorkflowNodes } from '@svc/core/contracts'
import { workflowSchema } from '@svc/workflow-lang'
import { pluginFolder } from '../test/support/plugin-folder.ts'

/** A schema, as far as it is told here. */
interface Schema {
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly default?: unknown
  readonly description?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly pattern?: string
  readonly expression?: string
  readonly late?: boolean
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly $defs?: Readonly<Record<string, Schema>>
}

const [BEGIN, END] = ['<!-- reference: written by `npm run docs` -->\n', '<!-- end of the reference -->']
const PAGE = new URL('../docs/workflows.md', import.meta.url)

/** Words as Markdown that shows them as they are; between backticks only the table is in the way. */
const cell = (text: string) =>
  text
    .replaceAll('\n', ' ')
    .split(/(`[^`]*`)/)
    .map((part, at) => part.replaceAll(at % 2 === 0 ? /[|*_<\\[]/g : /\|/g, '\\$&'))
    .join('')

function typeOf({ type, enum: words, minimum, maximum, expression, items, pattern }: Schema): string {
  if (expression !== undefined)
    return expression === 'bool' ? 'expression, true or false' : expression === 'list' ? 'expression, a list' : 'expression'
  if (words) return words.map(word => `\`${String(word)}\``).join(', ')
  if (pattern?.includes('ms|s|m')) return 'length of time'
  const range = [minimum === undefined ? '' : `from ${minimum}`, maximum === undefined ? '' : `to ${maximum}`]
    .filter(Boolean)
    .join(' ')
  const kind =
    type === 'array' && items?.type ? `list of ${[items.type].flat().join(' or ')}` : [type ?? 'any'].flat().join(' or ')
  return range ? `${kind}, ${range}` : kind
}

function row(name: string, schema: Schema, isRequired: boolean): string {
  const value = isRequired ? '**required**' : schema.default === undefined ? '' : `\`${JSON.stringify(schema.default)}\``
  return `| \`${name}\` | ${typeOf(schema)} | ${value} | ${cell(schema.description ?? '')} |\n`
}

/** A table of the keys of an object; those of objects within follow their own. */
function table({ properties = {}, required = [] }: Schema): string {
  const rows = Object.entries(properties).flatMap(([name, one]) => [
    row(name, one, required.includes(name)),
    ...Object.entries(one.properties ?? {}).map(([key, inner]) =>
      row(`${name}.${key}`, inner, one.required?.includes(key) ?? false)
    ),
  ])
  return rows.length === 0 ? 'No keys of its own.\n' : `| Key | Type | Default | |\n|---|---|---|---|\n${rows.join('')}`
}

const REPEATABLE = {
  true: 'repeatable',
  itself: 'repeatable where it changes nothing',
  false: 'not repeatable unless you say so',
}

function nodeText(name: string, node: WorkflowNode): string {
  const bodies = node.body === 'do' ? 'one body, `do`' : node.body === 'bodies' ? 'several bodies, `bodies`' : undefined
  const vars = node.vars
    ? ` with ${Object.keys(node.vars)
        .map(one => `\`${one}\``)
        .join(', ')}`
    : ''
  const facts = [bodies && bodies + vars, branchesText(node), REPEATABLE[`${node.repeatable ?? false}`]].filter(Boolean)
  const output = node.output ? `\nAnswers ${formOf(node.output as Schema)}.\n` : ''
  return `\n### ${name}\n\n${cell(node.description)}\n\n${facts.join(' · ')}\n\n${table(node.settings as Schema)}${output}`
}

const words = (list: readonly string[]) => list.map(one => `\`${one}\``).join(', ')

/** The branches that a node answers, with the settings that decide of them. */
function branchesText({ branches, answers = [] }: WorkflowNode): string | undefined {
  if (branches !== 'any') return branches && `branches: ${words(branches)}`
  return answers.length === 0 ? 'branches: as its settings say' : `branches: ${answers.flatMap(ruleText).join('; ')}`
}

function ruleText({ given = [], having = {}, branches = [], listed, optional = [] }: BranchRule): string[] {
  const all = [...(listed === undefined ? [] : [`each of \`${listed}\``]), ...branches.map(one => `\`${one}\``)]
  if (all.length + optional.length === 0) return []
  const settings = [...given, ...Object.entries(having).map(([key, value]) => `${key}: ${value}`)]
  const told = optional.length === 0 ? all.join(', ') : `${all.join(', ')}, and if written ${words(optional)}`
  return [settings.length === 0 ? `else ${told}` : `with ${words(settings)} ${told}`]
}

const formOf = ({ type, properties, description }: Schema) =>
  [
    properties ? `\`{${Object.keys(properties).join(', ')}}\`` : `\`${[type ?? 'any'].flat().join(' or ')}\``,
    description && cell(description),
  ]
    .filter(Boolean)
    .join(': ')

/** What `docs/workflows.md` says between its marks. */
async function reference(): Promise<string> {
  const plugin = { name: '@svc/plugin-workflow-nodes', use: new URL('../plugins/workflows/nodes', import.meta.url) }
  await using host = await startHost({ plugins: [...NEEDED, plugin], log: { destination: { write() {} } } })
  const nodes = host
    .slot(WorkflowNodes)
    .entries()
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
  const whole = workflowSchema(nodes) as Schema
  const node = (nodes[0] && nodeProperties(whole)) ?? {}
  return [
    `\n### A workflow\n\n${table(whole)}`,
    `\n### Every node\n\n${table({ properties: node, required: ['type'] })}`,
    ...nodes.map(([name, one]) => nodeText(name, one)),
  ].join('')
}

/** Keys that each type of node has: those of its schema that are not its own. */
function nodeProperties({ $defs }: Schema): Readonly<Record<string, Schema>> | undefined {
  const { allOf = [] } = ($defs?.node ?? {}) as { readonly allOf?: readonly { readonly then: Schema }[] }
  const [first, ...rest] = allOf.map(({ then }) => then)
  const common = Object.entries(first?.properties ?? {}).filter(([key]) => rest.every(one => one.properties?.[key] !== undefined))
  return Object.fromEntries(
    common.map(([key, one]) => (key === 'type' ? [key, { type: 'string', description: 'What kind of node it is' }] : [key, one]))
  )
}

/** What nodes stand on. */
const NEEDED = ['store-memory', 'queue-store'].map(name => ({
  name: `@svc/plugin-${name}`,
  use: pluginFolder(name),
}))

/** The whole page, with its reference as the types of nodes are now. */
export async function workflowPage(): Promise<string> {
  const text = await committedWorkflowPage()
  const [before, rest = ''] = text.split(BEGIN)
  return `${before}${BEGIN}${await reference()}\n${END}${rest.split(END)[1] ?? ''}`
}

/** What is committed. */
export const committedWorkflowPage = () => readFile(PAGE, 'utf8')

if (import.meta.main) await writeFile(PAGE, await workflowPage())
