import type { Json } from '@svc/core/contracts'
import { boundedTogether } from './budget.ts'
import { type Expression, expression, type ExpressionScope } from './expression.ts'

/** A value with expressions as `${{ … }}` in its texts. Evaluate it in a scope to get the final value. */
export type Template = (scope: ExpressionScope) => Json

/** A `${{ … }}` in a text, with its start and end; `$${{ … }}` is an escaped `${{ … }}`. */
interface Hole {
  readonly from: number
  readonly to: number
  readonly inside: string
  readonly isEscaped: boolean
}

const OPENING = '${{'
/** The end of a placeholder, outside of quoted texts. */
const CLOSING = /"(?:[^"\\]|\\[^])*"|'(?:[^'\\]|\\[^])*'|["']|\}\}/g

/** The placeholders of a text, in order. An unclosed one makes the rest plain text, so that each character is visited once. */
function* holesIn(text: string): Generator<Hole> {
  const closing = new RegExp(CLOSING)
  for (let end = 0, at = text.indexOf(OPENING); at !== -1; at = text.indexOf(OPENING, end)) {
    const isEscaped = at > end && text[at - 1] === '$'
    closing.lastIndex = at + OPENING.length
    let found = closing.exec(text)
    while (found && found[0] !== '}}' && found[0].length > 1) found = closing.exec(text)
    if (found?.[0] !== '}}') return
    end = closing.lastIndex
    yield { from: isEscaped ? at - 1 : at, to: end, inside: text.slice(at + OPENING.length, found.index).trim(), isEscaped }
  }
}

/** The expressions in a text, in order. */
export const expressionsIn = (text: string): string[] =>
  [...holesIn(text)].flatMap(({ inside, isEscaped }) => (isEscaped ? [] : [inside]))

/** Finds an unclosed placeholder, which would be taken as text. */
export function templateProblem(text: string): { readonly message: string; readonly hint: string } | undefined {
  const end = [...holesIn(text)].at(-1)?.to ?? 0
  if (!text.includes(OPENING, end)) return undefined
  return { message: 'contains ${{ without }}', hint: 'Close it, and check its quotes; write $${{ … }} for a literal ${{ … }}' }
}

/** Compiles a template. Throws EXPRESSION_INVALID. */
export function template(value: unknown): Template {
  const made = templateOf(value)
  return scope => boundedTogether(() => made(scope))
}

function templateOf(value: unknown): Template {
  if (typeof value === 'string') return textTemplate(value)
  if (Array.isArray(value)) return listTemplate(value)
  if (typeof value === 'object' && value !== null) return objectTemplate(value)
  return () => value as Json
}

function textTemplate(text: string): Template {
  const holes = [...holesIn(text)]
  const [first] = holes
  if (!first) return () => text
  const isWhole =
    holes.length === 1 && !first.isEscaped && text.slice(0, first.from).trim() === '' && text.slice(first.to).trim() === ''
  return isWhole ? expression(first.inside) : piecesTemplate(text, holes)
}

function piecesTemplate(text: string, holes: readonly Hole[]): Template {
  const pieces: (string | Expression)[] = []
  let end = 0
  for (const { from, to, inside, isEscaped } of holes) {
    pieces.push(text.slice(end, from), isEscaped ? text.slice(from + 1, to) : expression(inside))
    end = to
  }
  pieces.push(text.slice(end))
  return scope => pieces.map(piece => (typeof piece === 'string' ? piece : shown(piece(scope)))).join('')
}

/** Formats a value inside a text. */
const shown = (value: Json) => (typeof value === 'string' ? value : value === null ? '' : JSON.stringify(value))

function listTemplate(list: readonly unknown[]): Template {
  if (!holdsExpression(list)) return () => list as Json
  const parts = list.map(templateOf)
  return scope => parts.map(part => part(scope))
}

function objectTemplate(value: object): Template {
  if (!holdsExpression(value)) return () => value as Json
  const parts = Object.entries(value).map(([key, item]) => [key, templateOf(item)] as const)
  return scope => Object.fromEntries(parts.map(([key, part]) => [key, part(scope)]))
}

/** Whether a value contains an expression. */
export function holdsExpression(value: unknown): boolean {
  if (typeof value === 'string') return value.includes('${{')
  return typeof value === 'object' && value !== null && Object.values(value).some(holdsExpression)
}
