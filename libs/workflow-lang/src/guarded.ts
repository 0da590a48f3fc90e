import { PRODUCTS } from './functions.ts'
import { countOf, isOpen, type Loop, loopOf, type Part, partsOf, written } from './syntax.ts'

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
