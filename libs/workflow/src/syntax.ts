import type { ASTNode } from '@marcbachmann/cel-js'

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
export function partsOf(part: Part): readonly Part[] {
  switch (part.op) {
    case 'value':
    case 'id':
      return []
    case '.':
    case '.?':
      return [part.args[0]]
    case '!_':
    case '-_':
      return [part.args]
    case 'call':
      return part.args[1]
    case 'rcall':
      return [part.args[1], ...part.args[2]]
    case 'map':
      return part.args.flat()
    case 'list':
    case '?:':
      return part.args
    default:
      return part.args as readonly Part[]
  }
}

/** How many parts an expression has, it among them. */
export const countOf = (part: Part): number => partsOf(part).reduce((sum, one) => sum + countOf(one), 1)

/** Whether its value depends on more than what is written in it. */
export const isOpen = (part: Part): boolean =>
  part.op === 'id' || part.op === 'call' || part.op === 'rcall' || partsOf(part).some(isOpen)

/** The text of a part, from the texts of its parts: as it is written but for spaces, with parentheses. */
export function written(part: Part, textOf: (part: Part) => string): string {
  const all = (parts: readonly Part[]) => parts.map(textOf).join(', ')
  switch (part.op) {
    case 'value':
      return `(${part.input.slice(part.start, part.end)})`
    case 'id':
      return part.args
    case '.':
    case '.?':
      return `${textOf(part.args[0])}${part.op}${part.args[1]}`
    case '[]':
    case '[?]':
      return `${textOf(part.args[0])}${part.op.slice(0, -1)}${textOf(part.args[1])}]`
    case '!_':
    case '-_':
      return `(${part.op[0]}(${textOf(part.args)}))`
    case 'call':
      return `${part.args[0]}(${all(part.args[1])})`
    case 'rcall':
      return `${textOf(part.args[1])}.${part.args[0]}(${all(part.args[2])})`
    case 'list':
      return `[${all(part.args)}]`
    case 'map':
      return `{${part.args.map(([key, value]) => `${textOf(key)}: ${textOf(value)}`).join(', ')}}`
    case '?:':
      return `(${textOf(part.args[0])} ? ${textOf(part.args[1])} : ${textOf(part.args[2])})`
    default:
      return `(${textOf(part.args[0])} ${part.op} ${textOf(part.args[1])})`
  }
}
