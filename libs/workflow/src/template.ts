import type { Json } from '@svc/core/contracts'
import { type Expression, expression, type Scope } from './expression.ts'

/** A value as it is written, with expressions as `${{ … }}` in its texts; evaluated in a scope it is the value that is meant. */
export type Template = (scope: Scope) => Json

const HOLE = /\$(\$)?\{\{((?:[^}"']|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\}(?!\}))*)\}\}/g
const WHOLE = new RegExp(`^\\s*${HOLE.source}\\s*$`)

/** The expressions in a text, in order. */
export const expressionsIn = (text: string): string[] =>
  [...text.matchAll(HOLE)].filter(([, escaped]) => !escaped).map(([, , inside]) => inside!.trim())

/** What is wrong with the holes of a text: one that is not closed would be taken for text. */
export function templateFault(text: string): { readonly message: string; readonly mend: string } | undefined {
  if (!text.includes('${{') || !text.replaceAll(HOLE, '').includes('${{')) return undefined
  return { message: 'has ${{ without }} after it', mend: 'close it, with quotes in pairs; $${{ … }} stands for ${{ … }} itself' }
}

/** Makes a template of a value. Throws EXPRESSION_INVALID. */
export function template(value: unknown): Template {
  if (typeof value === 'string') return textTemplate(value)
  if (Array.isArray(value)) return listTemplate(value)
  if (typeof value === 'object' && value !== null) return objectTemplate(value)
  return () => value as Json
}

function textTemplate(text: string): Template {
  if (!text.includes('${{')) return () => text
  const whole = WHOLE.exec(text)
  if (whole && !whole[1]) return expression(whole[2]!.trim())
  return piecesTemplate(text)
}

/** `$${{ a }}` stands for `${{ a }}` itself. */
function piecesTemplate(text: string): Template {
  const pieces: (string | Expression)[] = []
  let end = 0
  for (const hole of text.matchAll(HOLE)) {
    pieces.push(text.slice(end, hole.index), hole[1] ? hole[0].slice(1) : expression(hole[2]!.trim()))
    end = hole.index + hole[0].length
  }
  pieces.push(text.slice(end))
  return scope => pieces.map(piece => (typeof piece === 'string' ? piece : shown(piece(scope)))).join('')
}

/** A value within a text. */
const shown = (value: Json) => (typeof value === 'string' ? value : value === null ? '' : JSON.stringify(value))

function listTemplate(list: readonly unknown[]): Template {
  if (!holdsExpression(list)) return () => list as Json
  const parts = list.map(template)
  return scope => parts.map(part => part(scope))
}

function objectTemplate(value: object): Template {
  if (!holdsExpression(value)) return () => value as Json
  const parts = Object.entries(value).map(([key, one]) => [key, template(one)] as const)
  return scope => Object.fromEntries(parts.map(([key, part]) => [key, part(scope)]))
}

function holdsExpression(value: unknown): boolean {
  if (typeof value === 'string') return value.includes('${{')
  return typeof value === 'object' && value !== null && Object.values(value).some(holdsExpression)
}
