import type { Environment } from '@marcbachmann/cel-js'
import { codeOf, messageOf, nearest } from '@svc/core'
import { LRUCache } from 'lru-cache'
import { environment, firstLine, GUARDED_LIMITS, parsed } from './expression.ts'
import { fieldOf, itemOf, type ValueSchema, typeOf } from './schemas.ts'
import { bindOf, isOpen, type Loop, loopOf, type Part, written } from './syntax.ts'

/** The names that an expression can use at its position. */
export interface Names {
  /** Variables: `input`, `item`, …, with the schemas of their values. */
  readonly vars: ReadonlyMap<string, ValueSchema>
  /** The schema of the output of a node, or why it is not available. */
  node(name: string): Named
  /** A hint for an unknown variable. */
  hintOf(name: string): string | undefined
}
export type Named = { readonly known: ValueSchema } | { readonly message: string; readonly hint?: string }

/** Required type of the result. */
export type Expected = 'bool' | 'list' | 'any'

export interface ExpressionProblem {
  readonly message: string
  readonly hint?: string
}

/** Stand-ins for variables by type. Expressions are checked with these names, so that all definitions share an environment. */
const KINDS: Readonly<Record<string, string>> = {
  _dyn: 'dyn',
  _string: 'string',
  _double: 'double',
  _bool: 'bool',
  _list: 'list<dyn>',
  _strings: 'list<string>',
  _map: 'map<string, dyn>',
}
const BY_TYPE: Readonly<Record<string, string>> = {
  string: '_string',
  number: '_double',
  integer: '_double',
  boolean: '_bool',
  object: '_map',
}

function kindOf(known: ValueSchema): string {
  const type = typeOf(known)
  if (type === 'array') return typeOf(itemOf(known)) === 'string' ? '_strings' : '_list'
  return BY_TYPE[type ?? ''] ?? '_dyn'
}

let shared: Environment | undefined
function checkedEnvironment(): Environment {
  if (shared) return shared
  const env = environment({ checked: true, limits: GUARDED_LIMITS })
  for (const [name, type] of Object.entries(KINDS)) env.registerVariable(name, type)
  shared = env
  return env
}

/** All problems of an expression at its position. */
export function expressionProblems(text: string, names: Names, expected: Expected): ExpressionProblem[] {
  try {
    return new Typing(names).problemsOf(parsed(text).ast, expected)
  } catch (error) {
    if (codeOf(error) !== 'EXPRESSION_INVALID') throw error
    const { hint } = error as { readonly hint?: string }
    return [{ message: messageOf(error), ...(hint === undefined ? {} : { hint }) }]
  }
}

/** A variable with the keys after it. */
interface Path {
  readonly known: ValueSchema
  readonly place: string
}

type Bound = ReadonlyMap<string, ValueSchema>
const NOTHING: Bound = new Map()

/** Checks the names in an expression and replaces them with stand-ins of their type. */
class Typing {
  readonly #names: Names
  readonly #problems: ExpressionProblem[] = []
  /** Additional texts to check. */
  readonly #texts: string[] = []

  constructor(names: Names) {
    this.#names = names
  }

  problemsOf(part: Part, expected: Expected): ExpressionProblem[] {
    const text = this.#text(part, NOTHING)
    for (const item of this.#texts) this.#problems.push(...typeProblems(item, 'any'))
    this.#problems.push(...typeProblems(text, expected))
    return [...new Map(this.#problems.map(problem => [problem.message, problem])).values()]
  }

  #text(part: Part, bound: Bound): string {
    const loop = loopOf(part)
    if (loop) return this.#loop(loop, bound)
    const bind = bindOf(part)
    if (bind) return this.#bind(bind, bound)
    if (part.op === 'call' && part.args[0] === 'has') return this.#has(part.args[1][0], bound)
    const path = this.#path(part, bound)
    return path ? kindOf(path.known) : written(part, item => this.#operand(part, item, bound))
  }

  /** Operands of unknown type become dynamic. */
  #operand(part: Part, item: Part, bound: Bound): string {
    const text = this.#text(item, bound)
    return isOpen(item) && isLoose(part, item) ? `dyn(${text})` : text
  }

  /** Resolves a variable with keys and indexes. */
  #path(part: Part, bound: Bound): Path | undefined {
    if (part.op === 'id') return this.#variable(part.args, bound)
    if (part.op !== '.' && part.op !== '[]') return undefined
    const key = keyOf(part)
    const [left] = part.args
    if (left.op === 'id' && left.args === 'nodes' && !bound.has('nodes') && key !== undefined) return this.#node(key)
    const value = this.#path(left, bound)
    if (!value) return undefined
    if (key !== undefined) return this.#field(value, key)
    this.#texts.push(`${kindOf(value.known)}[${this.#operand(part, part.args[1] as Part, bound)}]`)
    return { known: typeOf(value.known) === 'array' ? itemOf(value.known) : undefined, place: `${value.place}[…]` }
  }

  #variable(name: string, bound: Bound): Path | undefined {
    if (bound.has(name)) return { known: bound.get(name), place: name }
    const { vars } = this.#names
    if (vars.has(name)) return { known: vars.get(name), place: name }
    if (name === 'nodes') return { known: undefined, place: name }
    if (checkedEnvironment().hasVariable(name) && !(name in KINDS)) return undefined
    const near = nearest(name, [...vars.keys(), 'nodes', ...bound.keys()])
    this.#problem(`unknown variable "${name}"`, near ? `did you mean "${near}"?` : this.#names.hintOf(name))
    return { known: undefined, place: name }
  }

  #node(name: string): Path {
    const named = this.#names.node(name)
    if ('message' in named) this.#problem(named.message, named.hint)
    return { known: 'known' in named ? named.known : undefined, place: `nodes.${name}` }
  }

  #field({ known, place }: Path, key: string): Path {
    const field = fieldOf(known, key, place)
    if ('message' in field) this.#problem(field.message, field.hint)
    return { known: 'known' in field ? field.known : undefined, place: `${place}.${key}` }
  }

  #loop({ word, over, name, bodies }: Loop, bound: Bound): string {
    const inner = new Map(bound).set(name, itemOf(this.#quietly(over, bound)))
    return `${this.#text(over, bound)}.${word}(${[name, ...bodies.map(body => this.#text(body, inner))].join(', ')})`
  }

  #bind({ name, value, body }: NonNullable<ReturnType<typeof bindOf>>, bound: Bound): string {
    const inner = new Map(bound).set(name, this.#quietly(value, bound))
    return `cel.bind(${name}, ${this.#text(value, bound)}, ${this.#text(body, inner)})`
  }

  /** The schema of a part, without reporting its problems again. */
  #quietly(part: Part, bound: Bound): ValueSchema {
    return new Typing(this.#names).#path(part, bound)?.known
  }

  /** The argument of `has` can be missing, but it must be possible. */
  #has(asked: Part | undefined, bound: Bound): string {
    if (asked?.op !== '.') return 'has(_dyn)'
    this.#path(asked, bound)
    return 'has(_dyn.key)'
  }

  #problem(message: string, hint: string | undefined) {
    this.#problems.push({ message, ...(hint === undefined ? {} : { hint }) })
  }
}

function keyOf(part: Part): string | undefined {
  if (part.op === '.') return part.args[1]
  return part.op === '[]' && part.args[1].op === 'value' && typeof part.args[1].args === 'string' ? part.args[1].args : undefined
}

const isNull = (part: Part) => part.op === 'value' && part.args === null

function isLoose(part: Part, item: Part): boolean {
  if (part.op === '==' || part.op === '!=') return part.args.some(isNull)
  if (part.op === '?:') return item !== part.args[0]
  return part.op === 'in' ? item === part.args[0] : part.op === '[]' && item === part.args[1]
}

/** Maximum number of cached checks. Most expressions are equal after their names are replaced. */
const KEPT = 5_000
const answers = new LRUCache<string, { readonly type: string } | ExpressionProblem>({ max: KEPT })

function typeProblems(text: string, expected: Expected): ExpressionProblem[] {
  const answer = answers.get(text) ?? checked(text)
  answers.set(text, answer)
  if ('message' in answer) return [answer]
  const { type } = answer
  if (expected === 'any' || type === 'dyn' || type.startsWith(expected)) return []
  const what = expected === 'bool' ? 'a boolean' : 'a list'
  return [{ message: `must return ${what}, but returns ${type}` }]
}

function checked(text: string): { readonly type: string } | ExpressionProblem {
  const env = checkedEnvironment()
  const { type, error } = env.check(text)
  if (!error) return { type: type ?? 'dyn' }
  const message = firstLine(error)
  const hint = hintOf(message, env)
  return { message, ...(hint === undefined ? {} : { hint }) }
}

const CALLED = /matching overload for '(?:[^'(]*\.)?(\w+)\(/

function hintOf(message: string, env: Environment): string | undefined {
  const called = CALLED.exec(message)?.[1]
  if (called === undefined) return message.includes('overload') ? 'Convert with int(…), double(…) or string(…)' : undefined
  const known = env.getDefinitions().functions.map(({ name }) => name)
  if (known.includes(called))
    return message.includes('double') ? 'Convert JSON numbers, which are doubles, with int(…)' : undefined
  const near = nearest(called, known)
  return near ? `did you mean "${near}"?` : 'Use another function; this one does not exist'
}
