import type { JsonSchema } from '@svc/core'
import type { Json, WorkflowDefinition } from '@svc/core/contracts'
import { type ParametersCheck, toolSchema } from '@svc/plugin-kit/tool-schema'
import { invalid } from './errors.ts'

const checks = new WeakMap<object, Promise<ParametersCheck>>()

function schemaOf(json: JsonSchema & object): Promise<ParametersCheck> {
  const made = checks.get(json) ?? toolSchema(json)
  checks.set(json, made)
  return made
}

/** Checks a value and fills in its defaults. Throws INVALID_VALUE with the path of the violation. */
async function check(json: JsonSchema | undefined, value: Json, field: string): Promise<void> {
  if (typeof json !== 'object') return
  const [problem] = (await schemaOf(json)).check(value, 'first')
  if (!problem) return
  const place = problem.path === '' ? field : `${field}.${problem.path}`
  throw invalid(place, problem.message, problem.allowed ? { allowed: problem.allowed } : {})
}

export async function checkInput({ inputs }: WorkflowDefinition, input: Json): Promise<void> {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) throw invalid('input', 'must be an object')
  await check(inputs, input, 'input')
}

/** The result with the defaults of `outputs`. Throws INVALID_VALUE if it does not match them. */
export async function checkResult({ outputs }: WorkflowDefinition, result: Json): Promise<Json> {
  if (typeof outputs !== 'object') return result
  const whole = structuredClone(result)
  await check(outputs, whole, 'result')
  return whole
}

/** The data of an event with the defaults of its schema. Throws INVALID_VALUE. */
export async function checkData(json: JsonSchema, data: Json): Promise<Json> {
  if (json === false) throw invalid('data', 'is not accepted')
  const whole = structuredClone(data)
  await check(json, whole, 'data')
  return whole
}

/** Parameters with their defaults. Throws INVALID_VALUE for an unknown, missing or wrong parameter. */
export async function withDefaults({ parameters = {} }: WorkflowDefinition, given: Json): Promise<Json> {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) throw invalid('parameters', 'must be an object')
  const values = given as Readonly<Record<string, Json | undefined>>
  for (const name of Object.keys(values))
    if (!Object.hasOwn(parameters, name))
      throw invalid(`parameters.${name}`, 'is not a parameter of this workflow', { allowed: Object.keys(parameters) })
  const entries = Object.entries(parameters).map(async ([name, json]) => [name, await valueOf(name, json, values[name])] as const)
  return Object.fromEntries(await Promise.all(entries))
}

async function valueOf(name: string, json: JsonSchema, given: Json | undefined): Promise<Json> {
  const value = given ?? (typeof json === 'object' ? (json.default as Json | undefined) : undefined)
  if (value === undefined) throw invalid(`parameters.${name}`, 'is required')
  await check(json, value, `parameters.${name}`)
  return value
}
