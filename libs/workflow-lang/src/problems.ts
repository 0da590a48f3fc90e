import { basename, extname } from 'node:path'
import { isTree } from '@svc/core'
import type { WorkflowDefinition, WorkflowProblem } from '@svc/core/contracts'
import { type Check, graphIn, type Ground, Notes } from './check.ts'
import { checkGraph, checkSelf } from './check-graph.ts'
import { type Known, schemaFaults, typeOf, valueFaults } from './schemas.ts'
import { WORKFLOW_NAME, WORKFLOW_SHAPE } from './shape.ts'
import { type Read, readYaml } from './yaml.ts'

export type { Ground, NameKind } from './check.ts'

/** A definition with all that is wrong with it; where there is something, it may lack what its type says, all but its name and nodes. */
export interface Definition {
  readonly definition: WorkflowDefinition
  readonly problems: readonly WorkflowProblem[]
}

/**
 * Reads a definition, of YAML or JSON, and tells all that is wrong with it, each with its line. It is called as its file, where `file` is one: has an ending.
 */
export function readDefinition(text: string, file: string, ground: Ground): Definition {
  const read = readYaml(text)
  const notes = new Notes(read.lineOf)
  for (const fault of read.faults) notes.note(fault)
  if (read.faults.length === 0 || isTree(read.value)) check(read.value, ground, notes)
  if (read.faults.length === 0 && isTree(read.value)) checkName(read.value.name, file, notes)
  return { definition: definitionIn(read, file), problems: notes.problems }
}

/** The definition in a text, whatever is wrong with it. */
export const plainDefinition = (text: string, file: string): WorkflowDefinition => definitionIn(readYaml(text), file)

const NAMES = new RegExp(WORKFLOW_NAME)

/** It is found by the name of its file. */
function checkName(name: unknown, file: string, notes: Notes): void {
  const ending = extname(file)
  const called = basename(file, ending)
  if (ending !== '' && typeof name === 'string' && NAMES.test(name) && name !== called)
    notes.add(['name'], `must be "${called}", as its file is called`, `or call the file ${name}${ending}`)
}

function definitionIn({ value }: Read, file: string): WorkflowDefinition {
  const found = isTree(value) ? value : {}
  const name = typeof found.name === 'string' ? found.name : basename(file, extname(file))
  return { ...found, name, nodes: isTree(found.nodes) ? found.nodes : {} } as WorkflowDefinition
}

/** All that is wrong with a definition. */
export function problemsOf(definition: WorkflowDefinition, ground: Ground): readonly WorkflowProblem[] {
  const notes = new Notes()
  check(definition, ground, notes)
  return notes.problems
}

function check(value: unknown, ground: Ground, notes: Notes): void {
  if (!isTree(value))
    return notes.add([], 'has to be an object: a workflow has name and nodes', 'docs/guides/write-a-workflow.md shows one')
  if (isDeep(value))
    return notes.add([], `is nested too deeply: more than ${LEVELS} levels`, 'write bodies as workflows of their own')
  for (const { keys, message, keyword, nearest } of WORKFLOW_SHAPE.check({ ...value })) {
    notes.note({ keys, message, ...(keyword === 'unknown' && nearest ? { hint: `did you mean "${nearest}"?` } : {}) })
  }
  checkSchemas(value, notes)
  checkSecrets(value.secrets, ground, notes)
  const graph = graphIn({ ...value, nodes: value.nodes ?? {} })
  const about: Check = { ground, notes }
  if (graph) checkGraph(about, graph, { keys: [], vars: varsOf(value), depth: 0 })
  if (graph) checkSelf(about, { ...graph, name: typeof value.name === 'string' ? value.name : '' })
}

/** Levels of lists and objects in a definition, whatever they are for. */
const LEVELS = 200

/** Without recursion: what has no end has no place on the stack either. */
function isDeep(value: object): boolean {
  let level: unknown[] = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > LEVELS) return true
    level = level.flatMap(one => (typeof one === 'object' && one !== null ? Object.values(one) : []))
  }
  return false
}

const RUN = {
  type: 'object',
  properties: { id: { type: 'string' }, workflow: { type: 'string' }, started_at: { type: 'string' } },
  additionalProperties: false,
} as const

/** What every expression of a definition can name. */
function varsOf({ inputs, parameters, secrets }: Readonly<Record<string, unknown>>): ReadonlyMap<string, Known> {
  const names = Array.isArray(secrets) ? secrets.filter(one => typeof one === 'string') : []
  const closed = (properties: object) => ({ type: 'object', properties, additionalProperties: false })
  return new Map<string, Known>([
    ['input', isTree(inputs) ? { type: 'object', ...inputs } : undefined],
    ['parameters', closed(isTree(parameters) ? parameters : {})],
    ['run', RUN],
    ['secrets', closed(Object.fromEntries(names.map(name => [name, { type: 'string' }])))],
  ])
}

function checkSecrets(secrets: unknown, ground: Ground, notes: Notes): void {
  if (!Array.isArray(secrets)) return
  for (const [at, name] of secrets.entries())
    if (typeof name === 'string' && !ground.secrets.includes(name))
      notes.add(
        ['secrets', String(at)],
        `the secret "${name}" is not configured`,
        `set workflows.secrets.${name}, as { env: … } or { file: … }`
      )
}

function checkSchemas({ inputs, outputs, parameters }: Readonly<Record<string, unknown>>, notes: Notes): void {
  const told = (key: string, json: unknown) => {
    const faults = json === undefined ? [] : schemaFaults(json)
    for (const { keys, message, hint } of faults) notes.add([key, ...keys], message, hint)
    return faults.length === 0
  }
  if (told('inputs', inputs) && isTree(inputs) && (typeOf(inputs) ?? 'object') !== 'object')
    notes.add(['inputs', 'type'], 'must be object: an input is one', 'write type: object, and what there is under properties')
  told('outputs', outputs)
  for (const [name, json] of Object.entries(isTree(parameters) ? parameters : {})) checkParameter(name, json, notes)
}

/** A name that expressions can write after `parameters.`, and a default that its own schema takes. */
function checkParameter(name: string, json: unknown, notes: Notes): void {
  const at = ['parameters', name]
  const faults = schemaFaults(json)
  for (const { keys, message, hint } of faults) notes.add([...at, ...keys], message, hint)
  if (faults.length > 0 || !isTree(json) || json.default === undefined) return
  for (const { keys, message } of valueFaults(json, json.default))
    notes.add([...at, 'default', ...keys], message, 'its own schema does not take it')
}
