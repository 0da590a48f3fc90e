import { basename, extname } from 'node:path'
import { isTree, type JsonSchema } from '@svc/core'
import type { WorkflowDefinition, WorkflowProblem, WorkflowSchedule } from '@svc/core/contracts'
import { type DefinitionCheck, graphIn, type DefinitionContext, Notes } from './check.ts'
import { checkGraph, checkSelf } from './check-graph.ts'
import { checkQueries, checkSignals } from './check-signals.ts'
import { type ValueSchema, schemaProblems, typeOf, valueProblems } from './schemas.ts'
import { WORKFLOW_NAME, WORKFLOW_SHAPE } from './shape.ts'
import { holdsExpression } from './template.ts'
import { type Read, readYaml } from './yaml.ts'

export type { DefinitionContext, NameKind } from './check.ts'

/** A definition with its problems. An invalid definition has at least a name and nodes; other parts can be missing. */
export interface Definition {
  readonly definition: WorkflowDefinition
  readonly problems: readonly WorkflowProblem[]
}

/**
 * Reads a definition in YAML or JSON and finds all problems with their lines. If `file` has an extension, the workflow must have
 * the name of the file.
 */
export function readDefinition(text: string, file: string, context: DefinitionContext): Definition {
  const read = readYaml(text)
  const notes = new Notes(read.placeOf)
  for (const problem of read.problems) notes.note(problem)
  if (read.problems.length === 0 || isTree(read.value)) check(read.value, context, notes)
  if (read.problems.length === 0 && isTree(read.value)) checkName(read.value.name, file, notes)
  return { definition: definitionIn(read, file), problems: notes.problems }
}

/** Reads a definition without checking it. */
export const plainDefinition = (text: string, file: string): WorkflowDefinition => definitionIn(readYaml(text), file)

const NAMES = new RegExp(WORKFLOW_NAME)

/** A workflow must have the name of its file, which is used to find it. */
function checkName(name: unknown, file: string, notes: Notes): void {
  const ending = extname(file)
  const called = basename(file, ending)
  if (ending !== '' && typeof name === 'string' && NAMES.test(name) && name !== called)
    notes.add(['name'], `must be "${called}", the name of its file`, `Rename the workflow, or the file to ${name}${ending}`)
}

function definitionIn({ value }: Read, file: string): WorkflowDefinition {
  const found = isTree(value) ? value : {}
  const name = typeof found.name === 'string' ? found.name : basename(file, extname(file))
  return { ...found, name, nodes: isTree(found.nodes) ? found.nodes : {} } as WorkflowDefinition
}

/** All problems of a definition. */
export function problemsOf(definition: WorkflowDefinition, context: DefinitionContext): readonly WorkflowProblem[] {
  const notes = new Notes()
  check(definition, context, notes)
  return notes.problems
}

function check(value: unknown, context: DefinitionContext, notes: Notes): void {
  if (!isTree(value)) return notes.add([], 'must be an object with name and nodes', 'See docs/guides/write-a-workflow.md')
  if (isDeep(value))
    return notes.add([], `is nested too deeply: more than ${LEVELS} levels`, 'Move nested bodies to separate workflows')
  for (const { keys, message, keyword, nearest } of WORKFLOW_SHAPE.check({ ...value })) {
    notes.note({ keys, message, ...(keyword === 'unknown' && nearest ? { hint: `did you mean "${nearest}"?` } : {}) })
  }
  checkSchemas(value, notes)
  checkSecrets(value.secrets, context, notes)
  checkSchedule({ context, notes }, value)
  const graph = graphIn({ ...value, nodes: value.nodes ?? {} })
  const signals = isTree(value.signals) ? { signals: Object.keys(value.signals) } : {}
  const about: DefinitionCheck = { context, notes, ...signals }
  checkSignals(about, value)
  if (graph) checkQueries(about, value, graph, varsOf(value))
  if (graph) checkGraph(about, graph, { keys: [], vars: varsOf(value), depth: 0 })
  if (graph) checkSelf(about, { ...graph, name: typeof value.name === 'string' ? value.name : '' })
}

/** Maximum nesting of lists and objects in a definition. */
const LEVELS = 200

/** Without recursion, because the value can be too deep for the stack. */
function isDeep(value: object): boolean {
  let level: unknown[] = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > LEVELS) return true
    level = level.flatMap(item => (typeof item === 'object' && item !== null ? Object.values(item) : []))
  }
  return false
}

const RUN = {
  type: 'object',
  properties: { id: { type: 'string' }, workflow: { type: 'string' }, started_at: { type: 'string' } },
  additionalProperties: false,
} as const

/** Variables of all expressions in a definition. */
function varsOf({ inputs, parameters, secrets }: Readonly<Record<string, unknown>>): ReadonlyMap<string, ValueSchema> {
  const names = Array.isArray(secrets) ? secrets.filter(secret => typeof secret === 'string') : []
  const closed = (properties: object) => ({ type: 'object', properties, additionalProperties: false })
  return new Map<string, ValueSchema>([
    ['input', isTree(inputs) ? { type: 'object', ...inputs } : undefined],
    ['parameters', closed(isTree(parameters) ? parameters : {})],
    ['run', RUN],
    ['secrets', closed(Object.fromEntries(names.map(name => [name, { type: 'string' }])))],
  ])
}

function checkSecrets(secrets: unknown, context: DefinitionContext, notes: Notes): void {
  if (!Array.isArray(secrets)) return
  for (const [at, name] of secrets.entries())
    if (typeof name === 'string' && !context.secrets.includes(name))
      notes.add(
        ['secrets', String(at)],
        `the secret "${name}" is not configured`,
        `Set workflows.secrets.${name} to { env: … } or { file: … }`
      )
}

function checkSchemas({ inputs, outputs, parameters }: Readonly<Record<string, unknown>>, notes: Notes): void {
  const problemLines = (key: string, json: unknown) => {
    const problems = json === undefined ? [] : schemaProblems(json)
    for (const { keys, message, hint } of problems) notes.add([key, ...keys], message, hint)
    return problems.length === 0
  }
  if (problemLines('inputs', inputs) && isTree(inputs) && (typeOf(inputs) ?? 'object') !== 'object')
    notes.add(['inputs', 'type'], 'must be object', 'Write type: object, and the fields under properties')
  problemLines('outputs', outputs)
  for (const [name, json] of Object.entries(isTree(parameters) ? parameters : {})) checkParameter(name, json, notes)
}

/** Checks the schema and the default of a parameter. */
function checkParameter(name: string, json: unknown, notes: Notes): void {
  const at = ['parameters', name]
  const problems = schemaProblems(json)
  for (const { keys, message, hint } of problems) notes.add([...at, ...keys], message, hint)
  if (problems.length > 0 || !isTree(json) || json.default === undefined) return
  for (const { keys, message } of valueProblems(json, json.default))
    notes.add([...at, 'default', ...keys], message, 'Change the default or its schema')
}

/** Checks the schedule of a definition. The shape of the definition reports wrong types. */
function checkSchedule(
  { context, notes }: DefinitionCheck,
  { schedule, inputs, parameters }: Readonly<Record<string, unknown>>
): void {
  if (!isTree(schedule)) return
  const { cron, every } = schedule
  if ((cron === undefined) === (every === undefined))
    notes.add(['schedule'], 'must have either cron or every', 'Write cron: "0 3 * * *" or every: 15m')
  else if (isTexts(schedule)) {
    const problem = context.scheduleProblem?.(schedule as WorkflowSchedule)
    if (problem) notes.add(['schedule', problem.field], problem.message, problem.hint)
  }
  for (const key of ['input', 'parameters'])
    if (holdsExpression(schedule[key]))
      notes.add(['schedule', key], 'contains an expression, but a schedule has no variables', 'Write constant values')
  checkGiven({ context, notes }, 'input', schedule.input, { type: 'object', ...(isTree(inputs) ? inputs : {}) })
  checkGiven({ context, notes }, 'parameters', schedule.parameters, parametersSchema(parameters))
}

const isTexts = ({ cron, every, time_zone, jitter }: Readonly<Record<string, unknown>>) =>
  [cron, every, time_zone, jitter].every(value => value === undefined || typeof value === 'string')

/** Checks the constant input or parameters as the start of a run does. */
function checkGiven({ notes }: DefinitionCheck, key: string, given: unknown, json: JsonSchema): void {
  const value = given ?? {}
  if (!isTree(value) || holdsExpression(value) || schemaProblems(json).length > 0) return
  for (const { keys, message } of valueProblems(json, value))
    if (given === undefined) notes.add(['schedule'], `needs ${[key, ...keys].join('.')}, which ${message}`)
    else notes.add(['schedule', key, ...keys], message)
}

function parametersSchema(parameters: unknown): JsonSchema {
  const properties = isTree(parameters) ? parameters : {}
  const required = Object.keys(properties).filter(name => {
    const json = properties[name]
    return !(isTree(json) && Object.hasOwn(json, 'default'))
  })
  return { type: 'object', properties, required, additionalProperties: false } as JsonSchema
}
