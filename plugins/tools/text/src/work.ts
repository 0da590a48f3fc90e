// Entry of the worker processes of this plugin. It does not load @svc/core, and loads each library at its first use.
import { refusal, serveWork } from '@svc/worker-pool/child'

const DIGITS = 15
const FUNCTIONS = ['min', 'max', 'hypot', 'pow', 'atan2', 'roundTo', 'gamma']
/** Without `log`, which means ln to some users and log10 to others. */
const OPERATORS = (
  '- + ! not abs ceil floor round trunc sign sqrt cbrt exp expm1 ln log1p log2 log10 ' +
  'sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh'
).split(' ')
/** Only numbers: no variables, functions, texts, lists or random numbers. */
const OFF = { assignment: false, fndef: false, concatenate: false, in: false, random: false, length: false }

async function calculate({ expression }: { expression: string }): Promise<{ result: number | boolean; note?: string }> {
  const value = await evaluated(expression)
  if (typeof value === 'boolean') return { result: value }
  if (typeof value !== 'number') throw expressionInvalid('the result is not a number')
  if (Number.isNaN(value)) throw expressionInvalid('the result is undefined (such as 0 / 0, or the root of -1)')
  if (!Number.isFinite(value)) throw expressionInvalid('the result is infinite, or above 1.8e308')
  // so that 0.1 + 0.2 is 0.3
  const result = Number(value.toPrecision(DIGITS))
  const exact = Number.isInteger(value) && Math.abs(value) > Number.MAX_SAFE_INTEGER
  return exact ? { result: value, note: `only the first ${DIGITS} digits are exact` } : { result }
}

async function evaluated(expression: string): Promise<unknown> {
  const { Parser } = await import('expr-eval-fork')
  const parser = new Parser({ allowMemberAccess: false, operators: OFF })
  const functions = Object.assign(only(parser.functions as object, FUNCTIONS), { gcd: all(gcd), lcm: all(lcm) })
  // public members of the parser, replaced by tables without inherited names, so that `constructor` is neither an operator nor a constant
  Object.assign(parser, {
    functions,
    unaryOps: only(parser.unaryOps as object, OPERATORS),
    consts: only(parser.consts as object),
  })
  try {
    return parser.evaluate(expression)
  } catch (error) {
    if (error instanceof RangeError) throw error
    throw expressionInvalid(messageOf(error))
  }
}

/** Copies members by name, without inherited ones. */
const only = (table: object, names = Object.keys(table)): object =>
  Object.assign(Object.create(null), Object.fromEntries(Object.entries(table).filter(([name]) => names.includes(name))))

const gcd = (a: number, b: number): number => (b === 0 ? Math.abs(a) : gcd(b, a % b))
const lcm = (a: number, b: number): number => (a === 0 || b === 0 ? 0 : Math.abs(a / gcd(a, b)) * Math.abs(b))
const all =
  (two: (a: number, b: number) => number) =>
  (...numbers: number[]): number => {
    if (numbers.length === 0 || !numbers.every(Number.isSafeInteger)) throw new Error('gcd and lcm need integers')
    return numbers.reduce(two)
  }

const expressionInvalid = (why: string) =>
  refusal('EXPRESSION_INVALID', `invalid expression: ${why}`, { hint: 'Write arithmetic such as (1 + 2) * 3 ^ 2' })

interface TemplateInput {
  readonly template: string
  readonly values: object
  readonly escape: boolean
}

async function renderTemplate({ template, values, escape }: TemplateInput) {
  const { default: mustache } = await import('mustache')
  const missing = new Set<string>()

  /** Looks up only own members of values, no prototypes and functions. */
  class Values extends mustache.Context {
    override push(view: unknown) {
      return new Values(view, this)
    }
    override lookup(name: string): unknown {
      const found = name === '.' ? { value: this.view as unknown } : this.#find(name.split('.'))
      if (!found) missing.add(name)
      return found?.value
    }
    #find(path: readonly string[]): FoundValue | undefined {
      if (hasOwnMember(this.view, path[0]!)) return path.reduce<FoundValue | undefined>(ownMember, { value: this.view })
      const parent = this.parent as Values | undefined
      return parent === undefined ? undefined : parent.#find(path)
    }
  }
  const writer = new mustache.Writer()
  const shown = (value: unknown) => (typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value))
  const text = rendered(() =>
    writer.render(template, new Values(values), {}, { escape: value => (escape ? mustache.escape(shown(value)) : shown(value)) })
  )
  notTooLong(text.length, 'Pass fewer or shorter values')
  return { text, missing: [...missing] }
}

interface FoundValue {
  readonly value: unknown
}

const hasOwnMember = (value: unknown, name: string) => typeof value === 'object' && value !== null && Object.hasOwn(value, name)

const ownMember = (found: FoundValue | undefined, name: string): FoundValue | undefined =>
  found && hasOwnMember(found.value, name) ? { value: (found.value as Record<string, unknown>)[name] } : undefined

function rendered(work: () => string): string {
  try {
    return work()
  } catch (error) {
    if (error instanceof RangeError) throw error
    throw refusal('TEMPLATE_INVALID', `the template is invalid: ${messageOf(error)}`, {
      hint: 'Close each {{#section}} with {{/section}}',
    })
  }
}

interface RegexInput {
  readonly pattern: string
  readonly text: string
  readonly flags: string
  readonly most: number
}

type RegexMatch = {
  readonly match: string
  readonly index: number
  readonly line: number
  readonly groups: (string | null)[]
  readonly named?: Record<string, string | null>
}

function matchRegex({ pattern, text, flags, most }: RegexInput) {
  const matches: RegexMatch[] = []
  let [line, seen, size] = [1, 0, 0]
  for (const found of text.matchAll(compiledRegex(pattern, flags))) {
    if (matches.length === most) return { matches, count: most, more: true }
    for (; seen < found.index; seen++) if (text[seen] === '\n') line++
    matches.push(toMatch(found, line))
    size += sizeOf(found)
    notTooLong(size, 'Set "max_matches" to request fewer matches, or use fewer groups')
  }
  return { matches, count: matches.length, more: false }
}

function compiledRegex(pattern: string, flags: string): RegExp {
  try {
    return new RegExp(pattern, `${flags}g`)
  } catch (error) {
    throw refusal('REGEX_INVALID', messageOf(error), {
      hint: 'Fix the pattern; write a JavaScript regular expression',
    })
  }
}

/** Size of a group that did not match. Without it, many matches with many groups would make a huge result. */
const GROUP = 5

/** The approximate size of a match in the result. */
const sizeOf = (found: RegExpExecArray) =>
  [...found, ...Object.entries(found.groups ?? {}).flat()].reduce((sum, entry) => sum + (entry?.length ?? 0) + GROUP, 0)

function toMatch(found: RegExpExecArray, line: number): RegexMatch {
  const [match, ...groups] = found.map(group => group ?? null)
  const named = Object.entries(found.groups ?? {}).map(([name, group]) => [name, group ?? null] as const)
  return { match: match ?? '', index: found.index, line, groups, ...(named.length > 0 && { named: Object.fromEntries(named) }) }
}

/** Returns the result as JSON; `undefined` if nothing matches. */
async function queryJson({ json, query }: { json: string; query: string }): Promise<string | undefined> {
  const { default: jsonata } = await import('jsonata')
  const data = parsedJson(json)
  const result: unknown = await runQuery(async () => jsonata(query).evaluate(data))
  const text = JSON.stringify(result, refuseFunctions)
  if (text !== undefined) notTooLong(text.length, 'Select fewer values in the query')
  return text
}

function parsedJson(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch (error) {
    throw refusal('JSON_INVALID', `"json" is not valid JSON: ${messageOf(error)}`, { hint: 'Pass the complete JSON as text' })
  }
}

async function runQuery<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const { position } = error as { position?: number }
    const where = position === undefined ? '' : ` (at ${position})`
    throw refusal('QUERY_INVALID', `the query fails: ${messageOf(error)}${where}`, { hint: 'Fix the JSONata expression' })
  }
}

const refuseFunctions = (_: string, value: unknown) => {
  if (typeof value === 'function' || (value !== null && typeof value === 'object' && '_jsonata_lambda' in value))
    throw refusal('QUERY_INVALID', 'the query returns a function', { hint: 'Call the function in the query' })
  return value
}

interface DiffInput {
  readonly before: string
  readonly after: string
  readonly context: number
  readonly name: string
}

async function diffText({ before, after, context, name }: DiffInput) {
  if (before === after) return { equal: true, added: 0, removed: 0, diff: '' }
  const { formatPatch, structuredPatch } = await import('diff')
  const patch = structuredPatch(`a/${name}`, `b/${name}`, before, after, undefined, undefined, { context })
  const lines = patch.hunks.flatMap(hunk => hunk.lines)
  const diff = formatPatch(patch).replace(/^=+\n/, '')
  notTooLong(diff.length, 'Compare smaller parts')
  const count = (mark: string) => lines.filter(line => line.startsWith(mark)).length
  return { equal: false, added: count('+'), removed: count('-'), diff }
}

interface CsvInput {
  readonly text: string
  readonly delimiter?: string
  readonly header: boolean
  readonly offset: number
  readonly limit: number
}

async function parseCsv({ text, delimiter = delimiterOf(text), header, offset, limit }: CsvInput) {
  const { parse } = await import('csv-parse/sync')
  const all = readCsv(() => parse(text, { delimiter, bom: true, skip_empty_lines: true }) as string[][])
  const columns = header ? all.shift() : undefined
  const rows = all.slice(offset, offset + limit)
  notTooLong(
    rows.flat().reduce((sum, field) => sum + field.length, 0),
    'Set "limit" to request fewer rows'
  )
  const end = offset + rows.length
  const more = end < all.length ? { next_offset: end } : {}
  return { ...(columns && { columns }), rows, row_count: all.length, offset, delimiter, ...more }
}

function readCsv<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw refusal('CSV_INVALID', `the CSV cannot be readCsv: ${messageOf(error)}`, {
      hint: 'Fix that line, or set the delimiter',
    })
  }
}

const DELIMITERS = [',', ';', '\t', '|']

/** The most frequent delimiter in the first line, outside of quotes. */
function delimiterOf(text: string): string {
  const line =
    text
      .slice(0, 10_000)
      .replaceAll(/"[^"]*"/g, '')
      .split(/\r?\n/, 1)[0] ?? ''
  const counts = DELIMITERS.map(item => line.split(item).length)
  return DELIMITERS[counts.indexOf(Math.max(...counts))]!
}

const work = serveWork({
  query_json: queryJson,
  parse_csv: parseCsv,
  diff_text: diffText,
  match_regex: matchRegex,
  render_template: renderTemplate,
  calculate,
})

export type TextWork = typeof work

/** Maximum length of a result. */
const LONGEST = 1_000_000

/** Rejects a result that is too long. */
function notTooLong(characters: number, hint: string): void {
  if (characters > LONGEST) throw refusal('RESULT_TOO_LARGE', `the result has more than ${LONGEST} characters`, { hint })
}

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String((error as { message?: unknown })?.message ?? error)
