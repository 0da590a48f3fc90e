import { setImmediate } from 'node:timers/promises'
import { type JsonSchema, isTree, messageOf, pathOf, schema } from '@svc/core'
import type { EvaluationCase, EvaluationCheck, EvaluationRequest } from '@svc/core/contracts'
import { toolSchema } from '@svc/plugin-kit/tool-schema'

/** A problem of a request; with line and column if it comes from a file. */
export interface EvaluationProblem {
  readonly path: string
  readonly message: string
  readonly hint?: string
  readonly line?: number
  readonly column?: number
}
interface Problem {
  readonly keys: readonly string[]
  readonly message: string
  readonly hint?: string
}

/** Limits of one evaluation. */
export const LIMITS = {
  bytes: 1_000_000,
  cases: 200,
  checks: 20,
  /** Checks of all cases, and characters of JSON of a schema: each is compiled. */
  allChecks: 1_000,
  schema: 20_000,
  repeat: 20,
  /** Turns: cases, times repeats, times targets. */
  samples: 1_000,
  checkResults: 5_000,
  concurrency: 16,
  turns: 100,
  /** Nesting of lists and objects. */
  levels: 100,
} as const

const closed = (properties: { readonly [name: string]: JsonSchema }, required: readonly string[] = []): JsonSchema => ({
  type: 'object',
  additionalProperties: false,
  properties,
  required,
})
const text = (description: string, maxLength = 1_000_000): JsonSchema => ({
  type: 'string',
  minLength: 1,
  maxLength,
  description,
})
const name = (description: string): JsonSchema => text(description, 200)
const names = (description: string): JsonSchema => ({
  type: 'array',
  maxItems: 200,
  items: { type: 'string', minLength: 1, maxLength: 200 },
  description,
})
const share = (description: string): JsonSchema => ({ type: 'number', minimum: 0, maximum: 1, description })
const count = (maximum: number, description: string): JsonSchema => ({ type: 'integer', minimum: 1, maximum, description })
/** A text or several. */
const texts = (description: string): JsonSchema => ({
  type: ['string', 'array'],
  minLength: 1,
  minItems: 1,
  maxItems: 50,
  items: { type: 'string', minLength: 1 },
  description,
})

const MODEL = { profile: name('A profile.'), provider: name('A provider.'), model: name('A model of the provider.') }
const model = (description: string): JsonSchema => ({ ...(closed(MODEL) as object), description })
const repeat = count(LIMITS.repeat, 'How often a case runs. Default: 1.')

const CHECK: JsonSchema = {
  ...(closed({
    exact: { type: 'string', description: 'The reply is this text, apart from white space at its ends.' },
    contains: texts('The reply contains this text, or all of these.'),
    not_contains: texts('The reply contains none of these.'),
    regex: text('The reply matches this regular expression (RE2).', 1_000),
    schema: { type: 'object', description: 'The reply is JSON that matches this JSON Schema.' },
    similarity: closed(
      {
        to: text('The text to compare with.', 100_000),
        threshold: share('Minimum cosine similarity of the embeddings. Default: 0.8.'),
      },
      ['to']
    ),
    judge: closed(
      {
        ...MODEL,
        rubric: text('By what a model grades the reply.', 20_000),
        threshold: share('Minimum score. Default: 0.5.'),
      },
      ['rubric']
    ),
    cost: { type: 'number', minimum: 0, description: 'Maximum cost of the turn, in the currency of the prices.' },
    latency: { type: 'number', minimum: 0, description: 'Maximum milliseconds of the turn.' },
    tools: closed({ called: names('Tools that the turn has to call.'), not_called: names('Tools that it must not call.') }),
  }) as object),
  minProperties: 1,
  maxProperties: 1,
}

const RECORD = closed(
  {
    tool: name('Name of a tool.'),
    arguments: { type: 'object', description: 'The arguments of the call. Absent: any.' },
    result: { description: 'The result: text, or JSON that the model gets as text.' },
    error: text('The tool fails with this text.', 20_000),
  },
  ['tool']
)

const CASE = closed(
  {
    ...MODEL,
    name: { ...(name('A unique name.') as object), pattern: '\\S', patternHint: 'must be text that is not blank' },
    message: text('The message of the user.'),
    messages: {
      type: 'array',
      minItems: 1,
      maxItems: 200,
      items: closed({ role: { enum: ['system', 'user', 'assistant'] }, content: text('The text.') }, ['role', 'content']),
      description: 'The conversation so far, in place of a message. The last one is of the user.',
    },
    parts: {
      type: 'array',
      maxItems: 32,
      items: closed(
        {
          type: { enum: ['image', 'file'] },
          media_type: name('The media type, such as image/png.'),
          data: text('The content in base64.'),
          name: name('The name of the file.'),
        },
        ['type', 'media_type', 'data']
      ),
      description: 'Images and files beside the message.',
    },
    system: text('Replaces the system prompt of the profile.', 200_000),
    response_schema: { type: 'object', description: 'JSON Schema of the reply, as in a chat request.' },
    temperature: share('Temperature.'),
    max_tokens: { type: 'integer', minimum: 1, description: 'Maximum tokens of the reply.' },
    tools: names('Tools that the model can call. Default: those of the profile.'),
    record: {
      type: 'array',
      maxItems: 200,
      items: RECORD,
      description: 'Answers all tool calls, so that no tool runs. A call that is not in the record fails.',
    },
    repeat,
    checks: { type: 'array', maxItems: LIMITS.checks, items: CHECK, description: 'Without checks, a reply passes.' },
  },
  ['name']
)

const CASES: JsonSchema = { type: 'array', minItems: 1, maxItems: LIMITS.cases, items: CASE, description: 'The cases.' }
/** The members of a request that a file of cases can have. */
const OF_FILE = {
  cases: CASES,
  judge: model('The model of judge checks that name none.'),
  embedding: model('The model of similarity checks.'),
  repeat,
  concurrency: count(LIMITS.concurrency, 'Maximum turns at the same time. Default: 4.'),
}
const time = (description: string): JsonSchema => ({
  type: 'string',
  pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d(:\\d\\d(\\.\\d{1,9})?)?(Z|[+-]\\d\\d:\\d\\d)$',
  patternHint: 'must be a time such as 2026-01-31T12:00:00Z',
  description,
})
const REPLAY: JsonSchema = {
  ...(closed(
    {
      since: time('Turns stored from this time on.'),
      until: time('Turns stored before this time. Default: now.'),
      conversation_id: name('Only turns of this conversation.'),
      limit: count(LIMITS.turns, 'Maximum number of turns, the newest. Default: 20.'),
      similarity: share('Compares by similarity with this threshold, in place of equal text.'),
      judge: { type: 'boolean', description: 'A model grades whether the reply means the same as the stored one.' },
    },
    ['since']
  ) as object),
  description: 'Stored turns of the caller to run again, with tool calls answered from the conversation.',
}

/** The JSON Schema of a request. */
export const REQUEST: JsonSchema = closed({
  ...OF_FILE,
  replay: REPLAY,
  targets: { type: 'array', minItems: 1, maxItems: 2, items: model('What answers.'), description: 'One, or two to compare.' },
})
const REQUEST_FORM = schema(REQUEST)
const FILE_FORM = schema(closed(OF_FILE, ['cases']))

/** All problems of a request. */
export const requestProblems = async (value: unknown): Promise<readonly EvaluationProblem[]> =>
  (await problemsOf(value, REQUEST_FORM)).map(({ keys, ...problem }) => ({ path: pathOf([...keys]), ...problem }))

/** Reads a file of cases in YAML or JSON, and finds all problems with their places. */
export async function readCases(
  source: string
): Promise<{ readonly request: EvaluationRequest; readonly problems: readonly EvaluationProblem[] }> {
  // only the command reads files
  const { readYaml } = await import('@svc/workflow-lang')
  const read = readYaml(source)
  const found = read.problems.length > 0 ? read.problems : await problemsOf(read.value, FILE_FORM)
  const problems = found.map(({ keys, ...problem }) => ({ path: pathOf([...keys]), ...read.placeOf(keys), ...problem }))
  return { request: read.value as EvaluationRequest, problems: problems.toSorted((a, b) => a.line - b.line) }
}

async function problemsOf(value: unknown, form: ReturnType<typeof schema>): Promise<readonly Problem[]> {
  if (!isTree(value)) return [{ keys: [], message: 'must be an object with cases', hint: 'Write a list under the key cases' }]
  if (isDeep(value)) return [{ keys: [], message: `is nested too deeply: more than ${LIMITS.levels} levels` }]
  const shape = form.check(value).map(({ keys, message, nearest }) => ({
    keys,
    message,
    ...(nearest === undefined ? {} : { hint: `did you mean "${nearest}"?` }),
  }))
  if (shape.length > 0) return shape
  const request = value as EvaluationRequest
  if ((request.cases === undefined) === (request.replay === undefined))
    return [{ keys: ['cases'], message: 'is required, or replay; not both' }]
  if (request.replay !== undefined) return replayProblems(request.replay)
  const cases = request.cases ?? []
  const tooMany = sizeProblems(request)
  if (tooMany.length > 0) return tooMany
  const found = twice(cases)
  for (const [at, entry] of cases.entries()) found.push(...(await caseProblems(entry, ['cases', String(at)])))
  return found
}

const replayProblems = ({ since, until }: NonNullable<EvaluationRequest['replay']>): Problem[] =>
  Object.entries({ since, ...(until === undefined ? {} : { until }) })
    .filter(([, given]) => Number.isNaN(Date.parse(given)))
    .map(([key]) => ({ keys: ['replay', key], message: 'is not a time of the calendar' }))

/** Without recursion, because the value can be too deep for the stack. */
function isDeep(value: object): boolean {
  let level: unknown[] = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > LIMITS.levels) return true
    level = level.flatMap(item => (typeof item === 'object' && item !== null ? Object.values(item) : []))
  }
  return false
}

function twice(cases: readonly EvaluationCase[]): Problem[] {
  const first = new Map<string, number>()
  for (const [at, entry] of cases.entries()) if (!first.has(entry.name)) first.set(entry.name, at)
  return cases.flatMap((entry, at) =>
    first.get(entry.name) === at ? [] : [{ keys: ['cases', String(at), 'name'], message: 'is the name of another case' }]
  )
}

function sizeProblems({ cases = [], targets = [{}], repeat: usual = 1 }: EvaluationRequest): Problem[] {
  const samples = (entry: EvaluationCase) => (entry.repeat ?? usual) * targets.length
  const all = cases.reduce((sum, entry) => sum + samples(entry), 0)
  const checks = cases.reduce((sum, entry) => sum + samples(entry) * (entry.checks?.length ?? 0), 0)
  const written = cases.reduce((sum, entry) => sum + (entry.checks?.length ?? 0), 0)
  const hint = 'Lower repeat, or split the cases'
  if (written > LIMITS.allChecks)
    return [{ keys: ['cases'], message: `have ${written} checks; the maximum is ${LIMITS.allChecks}`, hint }]
  if (all > LIMITS.samples)
    return [{ keys: ['cases'], message: `would run ${all} turns; the maximum is ${LIMITS.samples}`, hint }]
  return checks > LIMITS.checkResults
    ? [{ keys: ['cases'], message: `would run ${checks} checks; the maximum is ${LIMITS.checkResults}`, hint }]
    : []
}

async function caseProblems(entry: EvaluationCase, keys: readonly string[]): Promise<Problem[]> {
  const { checks = [], response_schema: form } = entry
  const found = inputProblems(entry)
  if (form !== undefined) for (const message of await schemaProblems(form)) found.push({ keys: ['response_schema'], message })
  for (const [at, check] of checks.entries())
    for (const message of await checkProblems(check))
      found.push({ keys: ['checks', String(at), Object.keys(check)[0]!], message })
  return found.map(problem => ({ ...problem, keys: [...keys, ...problem.keys] }))
}

function inputProblems({ message, messages, parts, record = [] }: EvaluationCase): Problem[] {
  const found: Problem[] = []
  const add = (keys: readonly string[], text: string) => found.push({ keys, message: text })
  if ((message === undefined) === (messages === undefined)) add([], 'must have either message or messages')
  if (message?.trim() === '') add(['message'], 'must not be blank')
  if (messages && messages.at(-1)!.role !== 'user') add(['messages'], 'must end with a message of the user')
  if (messages && parts) add(['parts'], 'cannot be used with messages')
  for (const [at, { result, error }] of record.entries())
    if ((result === undefined) === (error === undefined)) add(['record', String(at)], 'must have either result or error')
  return found
}

async function checkProblems({ regex, schema: json }: EvaluationCheck): Promise<string[]> {
  // a thousand compilations in a row would stop the other requests
  if (json !== undefined || regex !== undefined) await setImmediate()
  if (json !== undefined) return schemaProblems(json)
  if (regex === undefined) return []
  const { unchecked } = await toolSchema({ type: 'string', pattern: regex }, { once: true })
  return unchecked.length === 0
    ? []
    : ['cannot be used: it is not valid, too long, or has a part that takes more than linear time (look-around, back-reference)']
}

async function schemaProblems(json: JsonSchema): Promise<string[]> {
  if (JSON.stringify(json).length > LIMITS.schema) return [`has more than ${LIMITS.schema} characters`]
  try {
    const { check, unchecked } = await toolSchema(json, { once: true })
    check(null, 'first')
    return unchecked.length === 0 ? [] : [`has a pattern that cannot be checked: ${unchecked[0]!.slice(0, 100)}`]
  } catch (error) {
    return [`is not a valid JSON Schema: ${messageOf(error).slice(0, 200)}`]
  }
}
