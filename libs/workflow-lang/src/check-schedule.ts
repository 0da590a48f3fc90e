import { isTree, type JsonSchema } from '@svc/core'
import type { WorkflowSchedule } from '@svc/core/contracts'
import type { DefinitionCheck } from './check.ts'
import { schemaProblems, valueProblems } from './schemas.ts'
import { holdsExpression } from './template.ts'

type Tree = Readonly<Record<string, unknown>>

/** Checks the schedule of a definition. The shape of the definition reports wrong types. */
export function checkSchedule({ context, notes }: DefinitionCheck, { schedule, inputs, parameters }: Tree): void {
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

const isTexts = ({ cron, every, time_zone, jitter }: Tree) =>
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
