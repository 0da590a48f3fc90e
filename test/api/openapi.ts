import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import type { Heard } from './run.ts'

interface Operation {
  readonly operationId?: string
  readonly summary?: string
  readonly parameters?: readonly {
    readonly name: string
    readonly in: string
    readonly description?: string
    readonly required: boolean
    readonly schema: object
  }[]
  readonly requestBody?: { readonly content: Content }
  readonly responses: Readonly<Record<string, Response>>
}
type Content = Readonly<Record<string, { readonly schema: object }>>
interface Response {
  readonly description?: string
  readonly content?: Content
  readonly $ref?: string
}
interface Document {
  readonly openapi: string
  readonly info: { readonly title: string; readonly version: string }
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, object>>
    readonly responses: Readonly<Record<string, Response>>
  }
}

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace']

const operationsOf = (document: Document) =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation, name: `${method.toUpperCase()} ${path}` }))
  )

/** What is wrong with the form of the document: the rules of OpenAPI 3.1 for the parts that it uses. */
export function documentProblems(value: unknown): string[] {
  const document = value as Document
  const operations = operationsOf(document)
  const ids = operations.map(operation => operation.operation.operationId)
  const answers = [
    ...operations.flatMap(({ name, operation }) =>
      Object.entries(operation.responses).map(([status, response]) => ({ at: `${name} ${status}`, status, one: response }))
    ),
    ...Object.entries(document.components.responses).map(([status, response]) => ({
      at: `components.responses.${status}`,
      status,
      one: response,
    })),
  ]
  return [
    ...faultsIf(!/^3\.1\.\d+$/.test(document.openapi), 'openapi is not 3.1'),
    ...faultsIf(!document.info.title || !document.info.version, 'info lacks title or version'),
    ...Object.keys(document.paths).flatMap(path =>
      faultsIf(!path.startsWith('/') || path.includes(':'), `${path} is no path template`)
    ),
    ...operations.flatMap(({ method, name }) => faultsIf(!METHODS.includes(method), `${name} is no method`)),
    ...faultsIf(new Set(ids).size < ids.length || ids.includes(undefined), 'operationIds are not unique'),
    ...operations.flatMap(parameterFaults),
    ...answers.flatMap(({ at, status, one: item }) => responseFaults(document, at, status, item)),
    ...refsIn(document).flatMap(ref => faultsIf(at(document, ref) === undefined, `${ref} leads nowhere`)),
    ...schemasOf(document).flatMap(schema => schemaFaults(document, schema.name, schema.schema)),
  ]
}

const faultsIf = (wrong: boolean, fault: string): string[] => (wrong ? [fault] : [])

function parameterFaults({ name, path, operation }: ReturnType<typeof operationsOf>[number]): string[] {
  const inPath = [...path.matchAll(/\{([^}]+)\}/g)].map(([, match]) => match)
  const parameters = operation.parameters ?? []
  const declared = parameters.filter(parameter => parameter.in === 'path')
  return [
    ...faultsIf(
      inPath.join() !== declared.map(parameter => parameter.name).join(),
      `${name} does not declare its path parameters`
    ),
    ...declared.flatMap(parameter => faultsIf(!parameter.required, `${name} has the optional path parameter ${parameter.name}`)),
    ...parameters.flatMap(parameter =>
      faultsIf(!['path', 'query', 'header'].includes(parameter.in), `${name}: ${parameter.name} is in ${parameter.in}`)
    ),
    ...faultsIf(Object.keys(operation.responses).length === 0, `${name} has no responses`),
    ...faultsIf(!operation.summary, `${name} has no summary`),
  ]
}

function responseFaults(document: Document, place: string, status: string, response: Response): string[] {
  const { description } = follow(document, response)
  return [
    ...faultsIf(!/^[1-5]\d\d$/.test(status), `${place} is no status`),
    ...faultsIf(!description, `${place} has no description`),
  ]
}

function schemasOf(document: Document): { name: string; schema: object }[] {
  return operationsOf(document).flatMap(({ name, operation }) => [
    ...(operation.parameters ?? []).map(parameter => ({ name: `${name} ${parameter.name}`, schema: parameter.schema })),
    ...[operation.requestBody, ...Object.values(operation.responses).map(response => follow(document, response))].flatMap(item =>
      Object.values(item?.content ?? {}).map(({ schema }) => ({ name, schema }))
    ),
  ])
}

function schemaFaults(document: Document, name: string, schema: object): string[] {
  try {
    compile(document, schema)
    return []
  } catch (error) {
    return [`${name}: ${(error as Error).message}`]
  }
}

const refsIn = (value: unknown): string[] =>
  typeof value !== 'object' || value === null
    ? []
    : Object.entries(value).flatMap(([key, member]) => (key === '$ref' ? [String(member)] : refsIn(member)))

const at = (document: Document, ref: string): unknown =>
  ref
    .split('/')
    .slice(1)
    .reduce<unknown>(
      (value, key) => (value as Record<string, unknown> | undefined)?.[key.replaceAll('~1', '/').replaceAll('~0', '~')],
      document
    )

const follow = (document: Document, response: Response): Response =>
  response.$ref === undefined ? response : ((at(document, response.$ref) as Response | undefined) ?? {})

const dateTime = (text: string) => !Number.isNaN(Date.parse(text)) && text.includes('T')

/** What is made of a schema of a document is made once: there are many answers and few schemas. */
function once<T extends object>(make: (document: Document, schema: object) => T): (document: Document, schema: object) => T {
  const made = new WeakMap<object, T>()
  return (document, schema) => {
    const value = made.get(schema) ?? make(document, schema)
    made.set(schema, value)
    return value
  }
}

const compile = once((document, schema): ValidateFunction => {
  const ajv = new Ajv2020({
    strict: true,
    strictTypes: false,
    strictRequired: false,
    allErrors: true,
    formats: { 'date-time': dateTime },
  })
  return ajv.compile({ allOf: [resolved(document, schema)] })
})

interface EventSchema {
  readonly properties: { readonly type: { readonly const: string } }
}
const eventsIn = once((document, schema) =>
  ((resolved(document, schema) as { oneOf?: Partial<EventSchema>[] }).oneOf ?? []).filter(
    (item): item is EventSchema => item.properties?.type?.const !== undefined
  )
)

/** With each `$ref` into the document replaced by what it leads to. */
function resolved(document: Document, schema: unknown): object {
  return JSON.parse(JSON.stringify(schema), (_key, value: { $ref?: string }) =>
    typeof value?.$ref === 'string' ? resolved(document, at(document, value.$ref)) : value
  )
}

/** Where answers differ from what the document says of them, and which of its routes no answer came from. */
export function unlike(value: unknown, heard: readonly Heard[]): { faults: string[]; unheard: string[] } {
  const document = value as Document
  const operations = operationsOf(document).map(operation => ({ ...operation, pattern: patternOf(operation), heard: false }))
  const problems = heard.flatMap(({ request, answer }) => {
    const path = request.path.split('?', 1)[0]!
    const found = operations.filter(item => item.method === request.method.toLowerCase() && item.pattern.test(path))
    const operation = found.find(item => item.path === path) ?? found[0]
    if (!operation) return []
    operation.heard ||= answer.status < 300
    return answerFaults(document, operation.operation, answer).map(fault => `${operation.name} ${answer.status}: ${fault}`)
  })
  return {
    faults: [...new Set(problems)],
    unheard: operations.filter(operation => !operation.heard).map(operation => operation.name),
  }
}

/** A parameter whose description says so takes the rest of the path. */
function patternOf({ path, operation: { parameters = [] } }: ReturnType<typeof operationsOf>[number]): RegExp {
  const isRest = (name: string) => parameters.some(one => one.name === name && one.description?.includes('slashes') === true)
  const pattern = path.replaceAll('.', '\\.').replaceAll(/\{([^}]+)\}/g, (_, name: string) => (isRest(name) ? '.+' : '[^/]+'))
  return new RegExp(`^${pattern}$`)
}

function answerFaults(document: Document, { responses }: Operation, answer: Heard['answer']): string[] {
  const response = responses[String(answer.status)]
  if (!response) return ['is not among the responses']
  const { content } = follow(document, response)
  const type = (answer.headers['content-type'] ?? '').split(';', 1)[0]!
  if (!content) return faultsIf(answer.text !== '', 'has a body that is not described')
  const described = content[type]
  if (!described) return [`is ${type}, described are ${Object.keys(content).join(', ')}`]
  if (type === 'text/event-stream') return eventFaults(document, described.schema, answer)
  return type === 'application/json' ? dataFaults(document, described.schema, answer.body) : []
}

/** Each event by the one schema that is for its type. */
function eventFaults(document: Document, schema: object, { events }: Heard['answer']): string[] {
  // the model endpoints describe their events in pages of their own
  if ('type' in schema && schema.type === 'string') return []
  if (eventsIn(document, schema).length === 0)
    return events
      .filter(({ lines, event }) => lines.includes('data') && event !== 'svc.events_lost')
      .flatMap(({ event, data }) => dataFaults(document, schema, data).map(fault => `${event}${fault}`))
  return events
    .filter(event => !event.comment)
    .flatMap(({ event, data }) => {
      const own = eventsIn(document, schema).find(item => item.properties.type.const === event)
      return own ? dataFaults(document, own, data).map(fault => `${event}${fault}`) : [`the event ${event} is not described`]
    })
}

function dataFaults(document: Document, schema: object, data: unknown): string[] {
  const validate = compile(document, schema)
  return validate(data) ? [] : (validate.errors ?? []).map(error => `${error.instancePath} ${error.message}`)
}
