import type { Json } from '@svc/core/contracts'
import { boundedTogether } from './budget.ts'
import { type Expression, expression, type Scope } from './expression.ts'

/** A value as it is written, with expressions as `${{ … }}` in its texts; evaluated in a scope it is the value that is meant. */
export type Template = (scope: Scope) => Json

/** A `${{ … }}` in a text, from its first sign to behind its last; `$${{ … }}` stands for `${{ … }}` itself. */
interface Hole {
  readonly from: number
  readonly to: number
  readonly inside: string
  readonly isEscaped: boolean
}

const OPENING = '${{'
/** The end of a hole; quoted texts may hold anything. */
const CLOSING = /"(?:[^"\\]|\\[^])*"|'(?:[^'\\]|\\[^])*'|["']|\}\}/g

/** The holes of a text, in order. One that is not closed makes the rest plain text, so that each sign is looked at once. */
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

/** What is wrong with the holes of a text: one that is not closed would be taken for text. */
export function templateFault(text: string): { readonly message: string; readonly hint: string } | undefined {
  const end = [...holesIn(text)].at(-1)?.to ?? 0
  if (!text.includes(OPENING, end)) return undefined
  return { message: 'has ${{ without }} after it', hint: 'close it, with quotes in pairs; $${{ … }} stands for ${{ … }} itself' }
}

/** Makes a template of a value. Throws EXPRESSION_INVALID. */
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

/** A value within a text. */
const shown = (value: Json) => (typeof value === 'string' ? value : value === null ? '' : JSON.stringify(value))

function listTemplate(list: readonly unknown[]): Template {
  if (!holdsExpression(list)) return () => list as Json
  const parts = list.map(templateOf)
  return scope => parts.map(part => part(scope))
}

function objectTemplate(value: object): Template {
  if (!holdsExpression(value)) return () => value as Json
  const parts = Object.entries(value).map(([key, one]) => [key, templateOf(one)] as const)
  return scope => Object.fromEntries(parts.map(([key, part]) => [key, part(scope)]))
}

/** Whether an expression makes a part of it. */
export function holdsExpression(value: unknown): boolean {
  if (typeof value === 'string') return value.includes('${{')
  return typeof value === 'object' && value !== null && Object.values(value).some(holdsExpression)
}
