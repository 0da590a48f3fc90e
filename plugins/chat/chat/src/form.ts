import { codeOf, type Fault, type JsonSchema, messageOf } from '@svc/core'
import type { Json } from '@svc/core/contracts'
import { type ToolSchema, toolSchema } from '@svc/plugin-kit/tool-schema'
import { invalid } from './errors.ts'

/** What a reply has to be. */
export type Form = Pick<ToolSchema, 'check'>

const forms = new WeakMap<object, Promise<Form>>()

/** The form that a schema describes. Throws INVALID_VALUE for what is none. */
export async function formOf(json: JsonSchema): Promise<Form> {
  if (typeof json !== 'object') return made(json)
  const form = forms.get(json) ?? made(json)
  forms.set(json, form)
  return form
}

async function made(json: JsonSchema): Promise<Form> {
  try {
    const form = await toolSchema(json)
    // only a first check reads the whole schema
    form.check(null, 'first')
    return form
  } catch (error) {
    throw invalid('response_schema', `is no JSON Schema: ${messageOf(error).slice(0, 200)}`)
  }
}

const TOLD = 10

/** The data of an answer, or why it is not of the form. */
export function readAs(form: Form, text: string): { readonly data: Json } | { readonly reason: string } {
  const data = jsonIn(text)
  if (data === undefined) return { reason: 'it is no JSON' }
  try {
    const faults = form.check(data)
    return faults.length === 0 ? { data } : { reason: faults.slice(0, TOLD).map(words).join('; ') }
  } catch (error) {
    if (codeOf(error) === 'ARGUMENTS_TOO_LONG' || error instanceof RangeError)
      return { reason: 'it is too long, or nested too deeply' }
    throw error
  }
}

const words = (fault: Fault) => `${(fault.path || 'the whole').slice(0, 200)} ${fault.message.slice(0, 500)}`

/** Models that know no schema like to put JSON between fences. */
const FENCED = /^\s*```(?:json)?\s*\n(.*)\n\s*```\s*$/s

function jsonIn(text: string): Json | undefined {
  try {
    return JSON.parse(FENCED.exec(text)?.[1] ?? text) as Json
  } catch {
    return undefined
  }
}
