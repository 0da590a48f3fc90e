import type { ASTNode } from '@marcbachmann/cel-js'
import { PRODUCTS } from './functions.ts'

/** A parsed part of an expression. */
export type Part = ASTNode

/** Macros that loop over a list or object. Their first argument is the name of the loop variable. */
const LOOPS: ReadonlySet<string> = new Set(['all', 'exists', 'exists_one', 'filter', 'map'])

/** A loop: `list.map(name, …)`, `list.filter(name, …)`, … */
export interface Loop {
  readonly word: string
  readonly over: Part
  readonly name: string
  readonly bodies: readonly Part[]
}

/** A part as a loop; undefined if it is not one. */
export function loopOf(part: Part): Loop | undefined {
  if (part.op !== 'rcall') return undefined
  const [word, over, [first, ...bodies]] = part.args
  return LOOPS.has(word) && first?.op === 'id' && bodies.length > 0 ? { word, over, name: first.args, bodies } : undefined
}

/** `cel.bind(name, value, body)`. */
export function bindOf(part: Part): { readonly name: string; readonly value: Part; readonly body: Part } | undefined {
  if (part.op !== 'rcall' || part.args[0] !== 'bind' || part.args[1].op !== 'id' || part.args[1].args !== 'cel') return undefined
  const [name, value, body] = part.args[2]
  return name?.op === 'id' && value && body ? { name: name.args, value, body } : undefined
}

/** The direct parts of a part, in order. */
function partsOf(part: Part): readonly Part[] {
  const { op } = part
  if (op === 'value' || op === 'id') return []
  if (op === '.' || op === '.?') return [part.args[0]]
  if (op === '!_' || op === '-_') return [part.args]
  if (op === 'call') return part.args[1]
  if (op === 'rcall') return [part.args[1], ...part.args[2]]
  return op === 'map' ? part.args.flat() : part.args
}

/** Number of parts of an expression, including itself. */
const countOf = (part: Part): number => partsOf(part).reduce((sum, item) => sum + countOf(item), 1)

/** Whether its value depends on variables or calls. */
export const isOpen = (part: Part): boolean =>
  part.op === 'id' || part.op === 'call' || part.op === 'rcall' || partsOf(part).some(isOpen)

/** The text of a part, built from the texts of its parts, with parentheses. */
export function written(part: Part, textOf: (part: Part) => string): string {
  const { op } = part
  const all = (parts: readonly Part[]) => parts.map(textOf).join(', ')
  if (op === 'value') return `(${part.input.slice(part.start, part.end)})`
  if (op === 'id') return part.args
  if (op === '.' || op === '.?') return `${textOf(part.args[0])}${op}${part.args[1]}`
  if (op === '[]' || op === '[?]') return `${textOf(part.args[0])}${op.slice(0, -1)}${textOf(part.args[1])}]`
  if (op === '!_' || op === '-_') return `(${op[0]}(${textOf(part.args)}))`
  if (op === 'call') return `${part.args[0]}(${all(part.args[1])})`
  if (op === 'rcall') return `${textOf(part.args[1])}.${part.args[0]}(${all(part.args[2])})`
  if (op === 'list') return `[${all(part.args)}]`
  if (op === 'map') return `{${part.args.map(([key, value]) => `${textOf(key)}: ${textOf(value)}`).join(', ')}}`
  if (op === '?:') return `(${textOf(part.args[0])} ? ${textOf(part.args[1])} : ${textOf(part.args[2])})`
  return `(${textOf(part.args[0])} ${op} ${textOf(part.args[1])})`
}

/** Operators whose cost grows with their operands. */
const GROWING = new Set(['+', '==', '!=', '<', '<=', '>', '>=', 'in'])
/** Functions with constant cost, and those that add their own cost. */
const STEADY = new Set(
  'has int uint double bool dyn type timestamp duration json startsWith endsWith bind hasValue value or orValue none of'.split(
    ' '
  )
)

/** Rewrites an expression so that it adds its cost and cannot run forever. Its result stays the same. */
export function guarded(part: Part): string {
  const loop = loopOf(part)
  if (loop) return loopText(loop)
  if (part.op === '[]' && isOpen(part.args[1])) return `${guarded(part.args[0])}[_index(${guarded(part.args[1])})]`
  if (part.op === 'call' && !STEADY.has(part.args[0])) return written(part, paying(payOf(part.args[0])))
  if (part.op === 'rcall') return methodText(part)
  return GROWING.has(part.op) && !hasNumber(part) ? written(part, paying('_deep')) : written(part, guarded)
}

/** With a number as operand, sums and comparisons have constant cost. */
const hasNumber = (part: Part) =>
  partsOf(part).some(item => item.op === 'value' && (typeof item.args === 'number' || typeof item.args === 'bigint'))

const payOf = (word: string) => (word === 'size' ? '_flat' : '_deep')

const paying = (how: string) => (part: Part) => (isOpen(part) ? `${how}(${guarded(part)})` : guarded(part))

function methodText(part: Part & { readonly op: 'rcall' }): string {
  const [word, receiver, args] = part.args
  if (PRODUCTS.has(word)) return `${guarded(receiver)}._${word}(${args.map(guarded).join(', ')})`
  return STEADY.has(word) ? written(part, guarded) : written(part, paying(payOf(word)))
}

/** How a loop adds the cost of an iteration. `all` and `exists` swallow errors, so they end by their own result. */
const ASKING: Readonly<Record<string, (cost: number, body: string) => string>> = {
  all: (cost, body) => `_left(${cost}) && ${body}`,
  exists: (cost, body) => `!_left(${cost}) || ${body}`,
  exists_one: (cost, body) => `_go(${cost}) && ${body}`,
  filter: (cost, body) => `_go(${cost}) && ${body}`,
}

function loopText({ word, over, name, bodies }: Loop): string {
  const cost = bodies.reduce((sum, body) => sum + countOf(body), 1)
  const [first, ...rest] = bodies.map(body => `(${guarded(body)})`)
  const ask =
    ASKING[word === 'map' && rest.length > 0 ? 'filter' : word] ?? ((units, body) => `(_go(${units}) ? dyn(${body}) : dyn(null))`)
  return `_flat(${guarded(over)}).${word}(${[name, ask(cost, first!), ...rest].join(', ')})`
}
