import type { Alias, Node, YAMLMap } from 'yaml'
import { yaml } from './late.ts'
import type { ValueProblem } from './schemas.ts'

/** A place in a text; line and column count from 1. */
export interface TextPlace {
  readonly line: number
  readonly column: number
}

/** Parsed YAML, with the places of its parts. */
export interface Read {
  /** Undefined if the text cannot be parsed. */
  readonly value: unknown
  readonly problems: readonly (ValueProblem & TextPlace)[]
  /** The place of a value, or of its nearest parent. */
  readonly placeOf: (keys: readonly string[]) => TextPlace
}

/** Limits: bytes of the text, number of values, and nesting. */
const [LONGEST, MOST, DEEPEST] = [1_048_576, 200_000, 100]

const START: TextPlace = { line: 1, column: 1 }

/** Parses YAML 1.2, which includes JSON. */
export function readYaml(text: string): Read {
  const refused = refusal(text)
  if (refused) return { value: undefined, problems: [{ keys: [], ...START, ...refused }], placeOf: () => START }
  const { LineCounter, parseDocument } = yaml()
  const lines = new LineCounter()
  const document = parseDocument(text, {
    lineCounter: lines,
    uniqueKeys: false,
    schema: 'core',
    prettyErrors: false,
    stringKeys: false,
  })
  const placeAt = (offset: number): TextPlace => {
    const { line, col } = lines.linePos(offset)
    // an empty text has no lines
    return line === 0 ? START : { line, column: col }
  }
  const reader = new Reader(placeAt)
  const value = document.contents ? reader.read(document.contents, [], 0) : undefined
  const syntax = [...document.errors, ...document.warnings].map(({ message, pos }) => ({
    keys: [],
    message,
    ...placeAt(pos[0]),
  }))
  return { value, problems: [...syntax, ...reader.problems], placeOf: keys => placeAt(reader.offsetOf(value, keys)) }
}

/** Detects deep nesting, because the parser takes quadratic time in the depth. */
const NESTED = new RegExp(`^[ \\t]*(?:[-?:&!*][^\\s]*[ \\t]+){${DEEPEST},}`, 'm')

function refusal(text: string): { readonly message: string; readonly hint: string } | undefined {
  if (text.length > LONGEST || Buffer.byteLength(text) > LONGEST)
    return { message: `is longer than ${LONGEST} bytes`, hint: 'Split the file; a workflow can have nodes of type subworkflow' }
  let depth = 0
  for (const [sign] of text.matchAll(/[[{\]}]/g)) {
    depth = Math.max(0, depth + (sign === '[' || sign === '{' ? 1 : -1))
    if (depth > 5 * DEEPEST) break
  }
  if (depth > 5 * DEEPEST || NESTED.test(text))
    return { message: 'is nested too deeply', hint: `Write at most ${DEEPEST} levels` }
  return undefined
}

/** Converts the nodes of the parser to plain data. */
class Reader {
  readonly problems: (ValueProblem & TextPlace)[] = []
  readonly #placeAt: (offset: number) => TextPlace
  readonly #offsets = new WeakMap<object, ReadonlyMap<string, number>>()
  readonly #anchors = new Map<string, Node>()
  #count = 0

  constructor(placeAt: (offset: number) => TextPlace) {
    this.#placeAt = placeAt
  }

  read(node: unknown, keys: readonly string[], depth: number): unknown {
    const found = node as Node | null
    if (found && 'anchor' in found && found.anchor !== undefined) this.#anchors.set(found.anchor, found)
    this.#count += 1
    if (this.#count === MOST || depth > DEEPEST)
      this.#problem(keys, found, `is too large: more than ${MOST} values, or ${DEEPEST} levels`)
    if (this.#count >= MOST || depth > DEEPEST) return null
    const { isAlias, isMap, isScalar, isSeq } = yaml()
    if (isAlias(found)) return this.#alias(found, keys, depth)
    if (isMap(found)) return this.#map(found, keys, depth)
    if (isSeq(found)) return this.#list(found.items, keys, depth)
    return isScalar(found) ? this.#scalar(found.value, keys, found) : null
  }

  #alias(alias: Alias, keys: readonly string[], depth: number): unknown {
    const meant = this.#anchors.get(alias.source)
    if (meant) return this.read(meant, keys, depth + 1)
    this.#problem(keys, alias, `*${alias.source} refers to an undefined anchor`)
    return null
  }

  #map({ items }: YAMLMap, keys: readonly string[], depth: number): object {
    const made: Record<string, unknown> = {}
    const offsets = new Map<string, number>()
    for (const { key, value } of items) {
      const name = this.#key(key, keys)
      const at = [...keys, name]
      if (offsets.has(name)) this.#problem(at, key, 'is a duplicate key')
      offsets.set(name, offsetOf(key))
      Object.defineProperty(made, name, {
        value: this.read(value, at, depth + 1),
        enumerable: true,
        writable: true,
        configurable: true,
      })
    }
    this.#offsets.set(made, offsets)
    return made
  }

  /** Keys such as `true`, `false` and numbers become text as written. */
  #key(key: unknown, keys: readonly string[]): string {
    if (yaml().isScalar(key)) return typeof key.value === 'string' ? key.value : (key.source ?? String(key.value))
    this.#problem(keys, key, 'has a key that is not text')
    return ''
  }

  #list(items: readonly unknown[], keys: readonly string[], depth: number): unknown[] {
    const made = items.map((item, at) => this.read(item, [...keys, String(at)], depth + 1))
    this.#offsets.set(made, new Map(items.map((item, at) => [String(at), offsetOf(item)])))
    return made
  }

  #scalar(value: unknown, keys: readonly string[], node: Node): unknown {
    if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
    if (typeof value === 'number' && Number.isFinite(value)) return value
    this.#problem(keys, node, 'is not a JSON value')
    return null
  }

  #problem(keys: readonly string[], node: unknown, message: string) {
    this.problems.push({ keys, message, ...this.#placeAt(offsetOf(node)) })
  }

  offsetOf(value: unknown, keys: readonly string[]): number {
    let [offset, found] = [0, value]
    for (const key of keys) {
      if (typeof found !== 'object' || found === null) break
      const at = this.#offsets.get(found)?.get(key)
      if (at === undefined) break
      offset = at
      found = (found as Readonly<Record<string, unknown>>)[key]
    }
    return offset
  }
}

const offsetOf = (node: unknown) => (node as Partial<Node> | null)?.range?.[0] ?? 0
