import type { ASTNode } from '@marcbachmann/cel-js'
import { PRODUCTS } from './functions.ts'

/** A part of an expression, as the parser reads it. */
export type Part = ASTNode

/** Loops over a list or an object; their first argument names what their other ones have besides. */
const LOOPS: ReadonlySet<string> = new Set(['all', 'exists', 'exists_one', 'filter', 'map'])

/** A loop: `list.map(name, …)`, `list.filter(name, …)`, … */
export interface Loop {
  readonly word: string
  readonly over: Part
  readonly name: string
  readonly bodies: readonly Part[]
}

/** A part as a loop, where it is one. */
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

/** The parts of a part, in the order they are written. */
function partsOf(part: Part): readonly Part[] {
  const { op } = part
  if (op === 'value' || op === 'id') return []
  if (op === '.' || op === '.?') return [part.args[0]]
  if (op === '!_' || op === '-_') return [part.args]
  if (op === 'call') return part.args[1]
  if (op === 'rcall') return [part.args[1], ...part.args[2]]
  return op === 'map' ? part.args.flat() : part.args
}

/** How many parts an expression has, it among them. */
const countOf = (part: Part): number => partsOf(part).reduce((sum, one) => sum + countOf(one), 1)

/** Whether its value depends on more than what is written in it. */
export const isOpen = (part: Part): boolean =>
  part.op === 'id' || part.op === 'call' || part.op === 'rcall' || partsOf(part).some(isOpen)

/** The text of a part, from the texts of its parts: as it is written but for spaces, with parentheses. */
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

/** Operators whose work grows with their operands. */
const GROWING = new Set(['+', '==', '!=', '<', '<=', '>', '>=', 'in'])
/** Functions that take the same time whatever they are given, and those that pay themselves. */
const STEADY = new Set(
  'has int uint double bool dyn type timestamp duration json startsWith endsWith bind hasValue value or orValue none of'.split(
    ' '
  )
)

/** Texts of expressions that pay for what they do, so that none runs for ever; what they answer is the same. */
export function guarded(part: Part): string {
  const loop = loopOf(part)
  if (loop) return loopText(loop)
  if (part.op === '[]' && isOpen(part.args[1])) return `${guarded(part.args[0])}[_index(${guarded(part.args[1])})]`
  if (part.op === 'call' && !STEADY.has(part.args[0])) return written(part, paying(payOf(part.args[0])))
  if (part.op === 'rcall') return methodText(part)
  return GROWING.has(part.op) && !hasNumber(part) ? written(part, paying('_deep')) : written(part, guarded)
}

/** A sum with a number in it is one of numbers, and nothing is equal to a number but a number. */
const hasNumber = (part: Part) =>
  partsOf(part).some(one => one.op === 'value' && (typeof one.args === 'number' || typeof one.args === 'bigint'))

const payOf = (word: string) => (word === 'size' ? '_flat' : '_deep')

const paying = (how: string) => (part: Part) => (isOpen(part) ? `${how}(${guarded(part)})` : guarded(part))

function methodText(part: Part & { readonly op: 'rcall' }): string {
  const [word, receiver, args] = part.args
  if (PRODUCTS.has(word)) return `${guarded(receiver)}._${word}(${args.map(guarded).join(', ')})`
  return STEADY.has(word) ? written(part, guarded) : written(part, paying(payOf(word)))
}

/** How a loop asks before each turn: all and exists swallow errors, so they are ended by their own word. */
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
