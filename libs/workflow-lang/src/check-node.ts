import { codeOf, isTree, messageOf, nearest } from '@svc/core'
import type { NodeDefinition, WorkflowNode } from '@svc/core/contracts'
import { callProblems } from './check-call.ts'
import type { DefinitionCheck, KeyPath, NameKind } from './check.ts'
import { NODE_KEYS } from './graph.ts'
import { namesAt, type GraphScope } from './places.ts'
import type { ValueSchema } from './schemas.ts'
import { NODE_PROPERTIES, NODE_SHAPE, nodeShape, settingsOfType } from './shape.ts'
import { expressionsIn, holdsExpression, templateProblem } from './template.ts'
import { type Expected, expressionProblems, type Names } from './typed.ts'

/** A node and its position. */
export interface PlacedNode {
  readonly place: GraphScope
  readonly name: string
  readonly node: NodeDefinition
  readonly keys: KeyPath
}

/** Checks a node without its edges and bodies. */
export function checkNode(check: DefinitionCheck, placed: PlacedNode): void {
  const { node, keys } = placed
  const type = typeof node.type === 'string' ? check.context.typeOf(node.type) : undefined
  if (typeof node.type === 'string' && !type) unknownType(check, node.type, keys)
  checkShape(check, type, node, keys)
  if (type) {
    checkSettings(check, type, placed)
    checkNames(check, type, node, keys)
    checkCalled(check, type, node, keys)
  } else checkTemplates(check, settingsIn(node), keys, namesAt(placed.place, { node: placed.name }))
}

const settingsIn = (node: NodeDefinition) => Object.fromEntries(Object.entries(node).filter(([key]) => !NODE_KEYS.has(key)))

function unknownType({ context, notes }: DefinitionCheck, type: string, keys: KeyPath): void {
  const near = nearest(type, context.types())
  notes.add(
    [...keys, 'type'],
    `unknown node type "${type}"`,
    near ? `did you mean "${near}"?` : `Use one of: ${context.types().join(', ')}; or install the plugin that adds it`
  )
}

/** Checks the shape of a node. Parts of settings that come from expressions are not checked. */
function checkShape({ notes }: DefinitionCheck, type: WorkflowNode | undefined, node: NodeDefinition, keys: KeyPath): void {
  const shape = type ? nodeShape(type) : NODE_SHAPE
  const settings = type ? settingsOfType(type) : {}
  const copy = structuredClone(node) as unknown
  for (const problem of shape.check(copy)) {
    const [key = ''] = problem.keys
    if (!Object.hasOwn(NODE_PROPERTIES, key) && isMade(settings, node, problem)) continue
    const hint =
      problem.keyword === 'unknown' && problem.nearest
        ? { hint: `did you mean "${problem.nearest}"?` }
        : unknownHint(problem, settings)
    notes.note({ keys: [...keys, ...problem.keys], message: problem.message, ...hint })
  }
}

const unknownHint = ({ keyword, keys }: { readonly keyword: string; readonly keys: readonly string[] }, settings: object) =>
  keyword === 'unknown' && keys.length === 1 && Object.keys(settings).length > 0
    ? { hint: `Use one of its settings: ${Object.keys(settings).join(', ')}` }
    : {}

function isMade(
  settings: ReturnType<typeof settingsOfType>,
  node: NodeDefinition,
  problem: { readonly keys: readonly string[]; readonly keyword: string }
) {
  const [key] = problem.keys
  if (problem.keyword === 'unknown' || problem.keyword === 'required') return false
  if (key !== undefined && isExpression(settings[key]) && typeof node[key] === 'string') return true
  let value: unknown = node
  for (const item of problem.keys) {
    if (typeof value !== 'object' || value === null) break
    value = (value as Readonly<Record<string, unknown>>)[item]
  }
  return key !== undefined && holdsExpression(value)
}

/** The keywords by which the schema of a setting marks an expression. */
interface SettingSchema {
  readonly expression?: string
  readonly late?: boolean
}
const settingOf = (known: ValueSchema): SettingSchema => (typeof known === 'object' ? known : {})
const isExpression = (known: ValueSchema) => settingOf(known).expression !== undefined

const LATE: ReadonlyMap<string, ValueSchema> = new Map<string, ValueSchema>([
  ['results', { type: 'array' }],
  ['last', undefined],
])

function checkSettings(check: DefinitionCheck, type: WorkflowNode, { place, name, node, keys }: PlacedNode): void {
  const settings = settingsOfType(type)
  const early = namesAt(place, { node: name })
  const late = Object.values(settings).some(setting => settingOf(setting).late) ? namesAt(place, { node: name }, LATE) : early
  for (const [key, value] of Object.entries(settingsIn(node))) {
    const { expression, late: isLate } = settingOf(settings[key])
    const names = isLate ? late : early
    if (expression !== undefined && typeof value === 'string')
      checkExpression(check, value, [...keys, key], names, expectedOf(expression))
    else checkTemplates(check, value, [...keys, key], names)
  }
}

const expectedOf = (word: string): Expected => (word === 'bool' || word === 'list' ? word : 'any')

/** Checks that names in settings exist. Names from expressions are only known at run time. */
function checkNames(check: DefinitionCheck, { names = {} }: WorkflowNode, node: NodeDefinition, keys: KeyPath): void {
  for (const [key, word] of Object.entries(names)) {
    const kind = word === 'tools' ? 'tool' : word
    const value = Object.hasOwn(node, key) ? node[key] : undefined
    const named: (readonly [KeyPath, unknown])[] = Array.isArray(value)
      ? value.map((item: unknown, at) => [[...keys, key, String(at)], item])
      : [[[...keys, key], value]]
    for (const [at, item] of named) {
      if (typeof item !== 'string' || item.includes('${{')) continue
      if (kind === 'signal') checkSignal(check, item, at)
      else checkName(check, kind, item, at)
    }
  }
}

function checkSignal({ notes, signals }: DefinitionCheck, name: string, keys: KeyPath): void {
  if (!signals || signals.includes(name)) return
  const near = nearest(name, signals)
  notes.add(keys, `the event "${name}" is not in signals`, near ? `did you mean "${near}"?` : 'Add it to signals with its schema')
}

function checkName({ context, notes }: DefinitionCheck, kind: NameKind, name: string, keys: KeyPath): void {
  if (context.has(kind, name)) return
  const known = context.names?.(kind) ?? []
  const near = nearest(name, known)
  notes.add(keys, `${kind} "${name}" does not exist`, near ? `did you mean "${near}"?` : (LISTS[kind] ?? oneOf(known)))
}

const oneOf = (names: readonly string[]) =>
  names.length > 0 ? `Use one of: ${names.slice(0, 20).join(', ')}` : `Define the name first; none exists`

/** Commands that list names. Profiles and modes are few, so the hint lists them. */
const LISTS: Readonly<Partial<Record<NameKind, string>>> = {
  tool: 'Run `svc tools list` to see the tools',
  team: 'Run `svc teams list` to see the teams',
  workflow: 'Run `svc workflows list` to see the workflows',
}

type Settings = Readonly<Record<string, unknown>>

const own = (settings: Settings, key: string) => (Object.hasOwn(settings, key) ? settings[key] : undefined)

/** Checks constant arguments in a setting against the schema of the named thing. */
function checkCalled({ context, notes }: DefinitionCheck, type: WorkflowNode, node: Settings, keys: KeyPath): void {
  for (const [setting, by] of Object.entries(type.calledWith ?? {})) {
    const [kind, name] = [type.names?.[by], own(node, by)]
    if (kind === undefined || kind === 'tools' || kind === 'signal' || typeof name !== 'string' || name.includes('${{')) continue
    const takes = context.takes?.(kind, name, setting)
    const value = Object.hasOwn(node, setting) ? node[setting] : defaultOf(type, setting)
    // the shape of the node reports values that are not objects
    if (!isTree(takes) || !isTree(value)) continue
    for (const problem of callProblems(takes, value)) notes.note({ ...problem, keys: [...keys, setting, ...problem.keys] })
  }
}

function defaultOf(type: WorkflowNode, setting: string): unknown {
  const schema = settingsOfType(type)[setting]
  return typeof schema === 'object' ? schema.default : undefined
}

/** Checks every expression in a value. */
export function checkTemplates(check: DefinitionCheck, value: unknown, keys: KeyPath, names: Names): void {
  if (typeof value === 'string') return checkText(check, value, keys, names)
  if (typeof value !== 'object' || value === null) return
  for (const [key, item] of Object.entries(value)) checkTemplates(check, item, [...keys, key], names)
}

function checkText(check: DefinitionCheck, text: string, keys: KeyPath, names: Names): void {
  const problem = templateProblem(text)
  if (problem) check.notes.add(keys, problem.message, problem.hint)
  for (const expression of expressionsIn(text)) checkExpression(check, expression, keys, names, 'any')
}

function checkExpression({ notes }: DefinitionCheck, text: string, keys: KeyPath, names: Names, expected: Expected): void {
  try {
    for (const problem of expressionProblems(text, names, expected)) notes.note({ keys, ...problem })
  } catch (error) {
    // nested deeper than the stack
    notes.add(keys, `"${text.slice(0, 200)}" is not a valid expression: ${codeOf(error) ?? messageOf(error)}`)
  }
}
