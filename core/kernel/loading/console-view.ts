import { schema, type SchemaProblem } from '../config/schema.ts'
import { messageOf } from '../src/errors.ts'
import { type ConsolePlace, matchesPattern } from './manifest.ts'

// A page of the console as data. The console draws it; none of it is code. The language has no expressions: a value is found by its path,
// and the only parameters of a request are the members of a row and the id of the run or conversation. In the place `tool_result`, a part
// without a request shows the result.

/** A view that was checked. */
interface ConsoleView {
  readonly parts: readonly Part[]
}

interface Part {
  readonly type: keyof typeof PARTS
  readonly request?: string
  readonly query?: Readonly<Record<string, string | number | boolean>>
  readonly actions?: readonly { readonly request: string }[]
  /** Of a text. */
  readonly text?: string
  readonly cursor?: string
}

const LARGEST = 65_536
const FIELD = '[A-Za-z_][\\w-]{0,63}(?:\\.[A-Za-z_][\\w-]{0,63}){0,7}'
const SEGMENT = `(?:[\\w~-][\\w.~-]*|\\{(?:row\\.${FIELD}|run|conversation)\\})`

const closed = (properties: object, required: string[]) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
})
const list = (items: object, maxItems: number) => ({ type: 'array', items, minItems: 1, maxItems })
/** Without control characters and those that change the direction of text. */
const line = (maxLength: number) => ({
  type: 'string',
  maxLength,
  pattern: '^(?=.*\\S)(?:[^\\p{C}\\p{Zl}\\p{Zp}]|[\\u200C\\u200D])+$',
  patternHint: 'must be one line of visible characters',
})
const field = {
  type: 'string',
  pattern: `^${FIELD}$`,
  patternHint: 'must be the path of a value, like usage.total',
}
const request = (methods: string) => ({
  type: 'string',
  maxLength: 500,
  pattern: `^(?:${methods}) (?:/${SEGMENT})+$`,
  patternHint: `must be ${methods.replaceAll('|', ', ')} and a path, like ${methods.split('|')[0]} /notes`,
})
const source = {
  request: {
    ...request('GET'),
    description:
      '`GET /notes`. In a tab of a run or conversation, `{run}` or `{conversation}` stands for its id. In the place `tool_result`, a part without it shows the result.',
  },
  query: {
    description: 'Fixed values; a text can be `{run}` or `{conversation}`, too.',
    type: 'object',
    maxProperties: 10,
    propertyNames: { pattern: '^[A-Za-z_][\\w-]{0,63}$' },
    additionalProperties: { type: ['string', 'number', 'boolean'], maxLength: 200 },
  },
}
const title = line(60)
const value = closed(
  {
    title,
    value: field,
    format: { enum: ['text', 'number', 'time', 'link'], description: '`link`: a path below `/console/`; others are text.' },
  },
  ['title', 'value']
)
const action = closed(
  {
    title: line(30),
    request: { ...request('DELETE|POST|PUT|PATCH'), description: '`{row.id}` stands for the member `id` of the row.' },
    confirm: { ...line(200), description: 'The console asks this first. It always asks before a DELETE request.' },
  },
  ['title', 'request']
)
const items = { ...field, description: 'The path of the list. Default: the answer is the list.' }
const scalar = { type: ['string', 'number', 'boolean'], maxLength: 200 }
const limit = { type: 'integer', minimum: 0, maximum: 100_000 }
/** What a form can ask: no references and no combinations, so that a form is as large as its schema. */
const input = {
  title,
  description: line(200),
  enum: list(scalar, 100),
  minLength: limit,
  maxLength: limit,
  minimum: { type: 'number' },
  maximum: { type: 'number' },
}
const TYPES = ['string', 'number', 'integer', 'boolean']
const inputs = closed(
  {
    ...input,
    type: { enum: [...TYPES, 'array'] },
    default: scalar,
    format: { enum: ['textarea'] },
    items: closed({ ...input, type: { enum: TYPES } }, ['type']),
    minItems: limit,
    maxItems: limit,
  },
  ['type']
)
const formSchema = closed(
  {
    type: { const: 'object' },
    properties: {
      type: 'object',
      minProperties: 1,
      maxProperties: 30,
      propertyNames: { pattern: '^[A-Za-z]\\w{0,63}$' },
      additionalProperties: inputs,
    },
    required: { type: 'array', items: { type: 'string', maxLength: 64 }, maxItems: 30 },
  },
  ['type', 'properties']
)

/** The JSON Schemas of the parts of a view. */
const PARTS = {
  table: closed(
    {
      type: { const: 'table' },
      title,
      ...source,
      items,
      cursor: {
        ...field,
        description: 'The path of the cursor of the next part of the list, which the console sends as `cursor`.',
      },
      columns: list(value, 12),
      actions: list(action, 4),
    },
    ['type', 'title', 'columns']
  ),
  stats: closed({ type: { const: 'stats' }, title, ...source, stats: list(value, 12) }, ['type', 'stats']),
  chart: closed(
    {
      type: { const: 'chart' },
      title,
      ...source,
      items,
      time: { ...field, description: 'The path of the time in an item.' },
      lines: list(closed({ title, value: field }, ['title', 'value']), 6),
    },
    ['type', 'title', 'time', 'lines']
  ),
  markdown: {
    ...closed({ type: { const: 'markdown' }, title, ...source, value: field, text: { type: 'string', maxLength: 10_000 } }, [
      'type',
    ]),
    dependencies: { request: ['value'] },
    if: { required: ['text'] },
    // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
    then: { properties: { request: false, value: false, query: false } },
    else: { required: ['value'] },
  },
  form: closed(
    {
      type: { const: 'form' },
      title,
      request: { ...request('POST|PUT|PATCH'), description: 'Gets the values of the form as its body.' },
      schema: formSchema,
      submit: line(30),
    },
    ['type', 'title', 'request', 'schema']
  ),
} as const

/** The JSON Schema of a view. */
export const CONSOLE_VIEW = {
  title: 'ConsoleView',
  ...closed({ $schema: { type: 'string', maxLength: 500 }, parts: list({ anyOf: Object.values(PARTS) }, 20) }, ['parts']),
} as const

/** Each part is checked for its type alone, so that a problem names one form of a part and not all of them. */
const outline = schema<ConsoleView>(
  closed(
    {
      $schema: { type: 'string', maxLength: 500 },
      parts: list({ type: 'object', properties: { type: { enum: Object.keys(PARTS) } }, required: ['type'] }, 20),
    },
    ['parts']
  )
)
const partSchemas = Object.fromEntries(Object.entries(PARTS).map(([type, json]) => [type, schema(json)])) as Readonly<
  Record<keyof typeof PARTS, ReturnType<typeof schema>>
>

interface ViewPlace {
  /** `permissions.console` of the manifest. */
  readonly rights: readonly string[]
  /** Where the page is shown. */
  readonly place: ConsolePlace
}

/** A view, or what is wrong with it, for its author. */
export interface CheckedConsoleView {
  /** Undefined if there are problems. It is then as `CONSOLE_VIEW` says. */
  readonly view?: object
  readonly problems: readonly string[]
}

/** Reads a view from the text of its file, and checks that the console can draw it. */
export function readConsoleView(text: string, about: ViewPlace): CheckedConsoleView {
  if (text.length > LARGEST) return { problems: [`it has more than ${LARGEST} characters`] }
  let view: unknown
  try {
    view = JSON.parse(text)
  } catch (error) {
    return { problems: [`it is not valid JSON: ${messageOf(error)}`] }
  }
  const problems = problemsOf(view, about)
  return problems.length > 0 ? { problems } : { view: Object(view) as object, problems }
}

const MOST_PROBLEMS = 20
const textOf = ({ path, message, nearest }: SchemaProblem, prefix = '') =>
  `${[prefix, path].filter(Boolean).join('.') || '(all)'} ${message}${nearest ? `: did you mean "${nearest}"?` : ''}`

function problemsOf(view: unknown, about: ViewPlace): string[] {
  const found = outline.check(view).map(problem => textOf(problem))
  if (found.length > 0) return found.slice(0, MOST_PROBLEMS)
  const { parts } = view as ConsoleView
  return parts
    .flatMap((part, at) => {
      const prefix = `parts[${at}]`
      const problems = partSchemas[part.type].check(part).map(problem => textOf(problem, prefix))
      return problems.length > 0 ? problems : requestProblems(part, prefix, about)
    })
    .slice(0, MOST_PROBLEMS)
}

const PLACES_WITH_ID = ['run', 'conversation']

/** A part gets its values from a request, or is for the result of a tool. */
function sourceProblems({ request, text, ...part }: Part, prefix: string, { place }: ViewPlace): string[] {
  if (request !== undefined || text !== undefined) return []
  if (place !== 'tool_result')
    return [`${prefix} must have "request": only a page in the place tool_result has values without one`]
  return (['query', 'cursor'] as const)
    .filter(name => part[name] !== undefined)
    .map(name => `${prefix}.${name} must not be there without "request"`)
}

function requestProblems(part: Part, prefix: string, about: ViewPlace): string[] {
  const { request, query = {}, actions = [] } = part
  const ids = PLACES_WITH_ID.filter(place => place === about.place)
  const own = request === undefined ? [] : [[`${prefix}.request`, request] as const]
  const ofRows = actions.map((action, at) => [`${prefix}.actions[${at}].request`, action.request] as const)
  return [
    ...sourceProblems(part, prefix, about),
    ...own.flatMap(([at, text]) => unknownParameters(at, text, ids)),
    ...Object.entries(query).flatMap(([name, text]) => unknownParameters(`${prefix}.query.${name}`, String(text), ids)),
    ...ofRows.flatMap(([at, text]) => unknownParameters(at, text, [...ids, 'row'])),
    ...[...own, ...ofRows].flatMap(([at, text]) => permissionProblems(at, text, about)),
  ]
}

function unknownParameters(at: string, text: string, known: readonly string[]): string[] {
  const names = [...text.matchAll(/\{([^{}]*)\}/g)].map(([, name = '']) => name)
  return names
    .filter(name => !known.includes(name.replace(/\..*$/, '')))
    .map(name => `${at} must not have the parameter {${name}}, which has no value there`)
}

function permissionProblems(at: string, request: string, { rights }: ViewPlace): string[] {
  if (isReservedRequest(request)) return [`${at} must be another request: the console sends ${request} for no page`]
  const sample = request.replaceAll(/\{[^{}]*\}/g, 'x')
  return rights.some(right => matchesPattern(right, sample))
    ? []
    : [`${at} must be listed in "permissions.console" of the manifest, was ${request}`]
}

/** Requests that the console sends for no page: they give credentials, or change plugins. */
const RESERVED = /^\w+ \/(?:api\/v1\/(?:console|tokens|plugins\/plans)|console)(?:\/|$)/

/** Whether the console refuses a request of a page, whatever the manifest of its plugin lists. */
export const isReservedRequest = (request: string): boolean => RESERVED.test(request)
