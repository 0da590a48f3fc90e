import { codeOf, isTree, messageOf, nearest } from '@svc/core'
import type { NodeDefinition, WorkflowNode } from '@svc/core/contracts'
import { callFaults } from './check-call.ts'
import type { Check, Keys, NameKind } from './check.ts'
import { NODE_KEYS } from './graph.ts'
import { namesAt, type Place } from './places.ts'
import type { Known } from './schemas.ts'
import { NODE_PROPERTIES, NODE_SHAPE, nodeShape, settingsOfType } from './shape.ts'
import { expressionsIn, holdsExpression, templateFault } from './template.ts'
import { type Expected, expressionFaults, type Names } from './typed.ts'

/** A node where it stands. */
export interface Standing {
  readonly place: Place
  readonly name: string
  readonly node: NodeDefinition
  readonly keys: Keys
}

/** What a node says for itself; its ways and bodies are the graph's. */
export function checkNode(check: Check, standing: Standing): void {
  const { node, keys } = standing
  const type = typeof node.type === 'string' ? check.ground.typeOf(node.type) : undefined
  if (typeof node.type === 'string' && !type) unknownType(check, node.type, keys)
  checkShape(check, type, node, keys)
  if (type) {
    checkSettings(check, type, standing)
    checkNames(check, type, node, keys)
    checkCalled(check, type, node, keys)
  } else checkTemplates(check, settingsIn(node), keys, namesAt(standing.place, { node: standing.name }))
}

const settingsIn = (node: NodeDefinition) => Object.fromEntries(Object.entries(node).filter(([key]) => !NODE_KEYS.has(key)))

function unknownType({ ground, notes }: Check, type: string, keys: Keys): void {
  const near = nearest(type, ground.types())
  notes.add(
    [...keys, 'type'],
    `there is no type of node "${type}"`,
    near ? `did you mean "${near}"?` : `there are ${ground.types().join(', ')}`
  )
}

/** The parts of a setting that an expression makes when it runs are not held against its schema. */
function checkShape({ notes }: Check, type: WorkflowNode | undefined, node: NodeDefinition, keys: Keys): void {
  const shape = type ? nodeShape(type) : NODE_SHAPE
  const settings = type ? settingsOfType(type) : {}
  const copy = structuredClone(node) as unknown
  for (const fault of shape.check(copy)) {
    const [key = ''] = fault.keys
    if (!Object.hasOwn(NODE_PROPERTIES, key) && isMade(settings, node, fault)) continue
    const hint =
      fault.keyword === 'unknown' && fault.nearest ? { hint: `did you mean "${fault.nearest}"?` } : unknownHint(fault, settings)
    notes.note({ keys: [...keys, ...fault.keys], message: fault.message, ...hint })
  }
}

const unknownHint = ({ keyword, keys }: { readonly keyword: string; readonly keys: readonly string[] }, settings: object) =>
  keyword === 'unknown' && keys.length === 1 && Object.keys(settings).length > 0
    ? { hint: `its own keys are ${Object.keys(settings).join(', ')}` }
    : {}

function isMade(
  settings: ReturnType<typeof settingsOfType>,
  node: NodeDefinition,
  fault: { readonly keys: readonly string[]; readonly keyword: string }
) {
  const [key] = fault.keys
  if (fault.keyword === 'unknown' || fault.keyword === 'required') return false
  if (key !== undefined && isExpression(settings[key]) && typeof node[key] === 'string') return true
  let value: unknown = node
  for (const one of fault.keys) {
    if (typeof value !== 'object' || value === null) break
    value = (value as Readonly<Record<string, unknown>>)[one]
  }
  return key !== undefined && holdsExpression(value)
}

/** How the schema of a setting says that it is an expression. */
interface SettingSchema {
  readonly expression?: string
  readonly late?: boolean
}
const settingOf = (known: Known): SettingSchema => (typeof known === 'object' ? known : {})
const isExpression = (known: Known) => settingOf(known).expression !== undefined

const LATE: ReadonlyMap<string, Known> = new Map<string, Known>([
  ['results', { type: 'array' }],
  ['last', undefined],
])

function checkSettings(check: Check, type: WorkflowNode, { place, name, node, keys }: Standing): void {
  const settings = settingsOfType(type)
  const early = namesAt(place, { node: name })
  const late = Object.values(settings).some(one => settingOf(one).late) ? namesAt(place, { node: name }, LATE) : early
  for (const [key, value] of Object.entries(settingsIn(node))) {
    const { expression, late: isLate } = settingOf(settings[key])
    const names = isLate ? late : early
    if (expression !== undefined && typeof value === 'string')
      checkExpression(check, value, [...keys, key], names, expectedOf(expression))
    else checkTemplates(check, value, [...keys, key], names)
  }
}

const expectedOf = (word: string): Expected => (word === 'bool' || word === 'list' ? word : 'any')

/** What settings name must be there; what an expression names is known only when it runs. */
function checkNames(check: Check, { names = {} }: WorkflowNode, node: NodeDefinition, keys: Keys): void {
  for (const [key, word] of Object.entries(names)) {
    const kind = word === 'tools' ? 'tool' : word
    const value = Object.hasOwn(node, key) ? node[key] : undefined
    const named: (readonly [Keys, unknown])[] = Array.isArray(value)
      ? value.map((one: unknown, at) => [[...keys, key, String(at)], one])
      : [[[...keys, key], value]]
    for (const [at, one] of named) if (typeof one === 'string' && !one.includes('${{')) checkName(check, kind, one, at)
  }
}

function checkName({ ground, notes }: Check, kind: NameKind, name: string, keys: Keys): void {
  if (ground.has(kind, name)) return
  const known = ground.names?.(kind) ?? []
  const near = nearest(name, known)
  notes.add(keys, `there is no ${kind} "${name}"`, near ? `did you mean "${near}"?` : (LISTS[kind] ?? oneOf(known)))
}

const oneOf = (names: readonly string[]) => (names.length > 0 ? `one of: ${names.slice(0, 20).join(', ')}` : 'there is none')

/** Commands that tell names; profiles and modes are few. */
const LISTS: Readonly<Partial<Record<NameKind, string>>> = {
  tool: '`svc tools list` tells which there are',
  team: '`svc teams list` tells which there are',
  workflow: '`svc workflows list` tells which there are',
}

type Settings = Readonly<Record<string, unknown>>

const own = (settings: Settings, key: string) => (Object.hasOwn(settings, key) ? settings[key] : undefined)

/** What a setting calls a named thing with has to fit what that takes, as far as it is written. */
function checkCalled({ ground, notes }: Check, type: WorkflowNode, node: Settings, keys: Keys): void {
  for (const [setting, by] of Object.entries(type.calledWith ?? {})) {
    const [kind, name] = [type.names?.[by], own(node, by)]
    if (kind === undefined || kind === 'tools' || typeof name !== 'string' || name.includes('${{')) continue
    const takes = ground.takes?.(kind, name, setting)
    const value = Object.hasOwn(node, setting) ? node[setting] : defaultOf(type, setting)
    // what is no object is told by the shape of its node
    if (!isTree(takes) || !isTree(value)) continue
    for (const fault of callFaults(takes, value)) notes.note({ ...fault, keys: [...keys, setting, ...fault.keys] })
  }
}

function defaultOf(type: WorkflowNode, setting: string): unknown {
  const schema = settingsOfType(type)[setting]
  return typeof schema === 'object' ? schema.default : undefined
}

/** Looks at every expression in a value. */
export function checkTemplates(check: Check, value: unknown, keys: Keys, names: Names): void {
  if (typeof value === 'string') return checkText(check, value, keys, names)
  if (typeof value !== 'object' || value === null) return
  for (const [key, one] of Object.entries(value)) checkTemplates(check, one, [...keys, key], names)
}

function checkText(check: Check, text: string, keys: Keys, names: Names): void {
  const fault = templateFault(text)
  if (fault) check.notes.add(keys, fault.message, fault.hint)
  for (const one of expressionsIn(text)) checkExpression(check, one, keys, names, 'any')
}

function checkExpression({ notes }: Check, text: string, keys: Keys, names: Names, expected: Expected): void {
  try {
    for (const fault of expressionFaults(text, names, expected)) notes.note({ keys, ...fault })
  } catch (error) {
    // deeper than the stack
    notes.add(keys, `"${text.slice(0, 200)}" is no expression: ${codeOf(error) ?? messageOf(error)}`)
  }
}
