import { codeOf, messageOf } from '@svc/core'
import type { Check, Keys } from './check.ts'
import { expressionsIn, templateFault } from './template.ts'
import { type Expected, expressionFaults, type Names } from './typed.ts'

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

export function checkExpression({ notes }: Check, text: string, keys: Keys, names: Names, expected: Expected): void {
  try {
    for (const fault of expressionFaults(text, names, expected)) notes.note({ keys, ...fault })
  } catch (error) {
    // deeper than the stack
    notes.add(keys, `"${text.slice(0, 200)}" is no expression: ${codeOf(error) ?? messageOf(error)}`)
  }
}
