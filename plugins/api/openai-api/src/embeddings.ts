import type { EmbedRequest, EmbedResult, Http, Json, NamedModels, Route } from '@svc/core/contracts'
import { type FieldNames, invalidParam, modelFailure, renamed } from './errors.ts'
import {
  addName,
  createLeftovers,
  droppedHeader,
  integerIn,
  isSet,
  type Leftovers,
  listIn,
  refuseForeign,
  textIn,
  type Wire,
  wordIn,
} from './fields.ts'

const MOST_INPUTS = 2_048
const LARGEST_BODY = 32 * 1024 * 1024
const LONGEST_VECTOR = 65_536

/** No provider gets an original request for embeddings. */
const NO_PROTOCOL = ''
const NAMES: FieldNames = {}

interface AskedEmbeddings {
  readonly model: string
  readonly request: Omit<EmbedRequest, 'model'>
  readonly format: 'float' | 'base64'
  readonly leftovers: Leftovers
}

/** `POST /v1/embeddings`. */
export function createEmbeddingsRoute(named: NamedModels, http: Http): Route {
  return {
    method: 'POST',
    path: '/v1/embeddings',
    summary: 'Convert texts to vectors',
    scope: 'chat',
    bodyLimit: LARGEST_BODY,
    body: BODY,
    responses: { '200': { description: 'The vectors in the order of the input.', schema: { type: 'object' } } },
    async handle({ body }, ctx) {
      const { model, request, format, leftovers } = readEmbeddings(body as Wire)
      await refuseForeign(leftovers, model, NO_PROTOCOL, named, ctx)
      try {
        const result = await named.embed({ name: model, request }, ctx)
        return { body: embeddingsWire(result, model, format), headers: droppedHeader([...leftovers.dropped]) }
      } catch (error) {
        const failure = await modelFailure(error, 'input', http, ctx)
        if (!failure) throw renamed(error, NAMES)
        return { status: failure.status, headers: failure.headers, body: { error: failure.error } }
      }
    },
  }
}

const BODY = {
  type: 'object',
  required: ['model', 'input'],
  properties: {
    model: { description: 'A name of GET /v1/models.' },
    input: { description: 'A text, a list of texts, a list of token ids, or a list of such lists: at most 2048.' },
    encoding_format: { description: 'float (default) or base64: little-endian 32 bit numbers.' },
    dimensions: { description: 'Length of the vectors, for models that can shorten them.' },
    user: { description: 'Not used.' },
  },
} as const

function readEmbeddings(body: Wire): AskedEmbeddings {
  const { model, input, encoding_format, dimensions, user, ...others } = body
  const leftovers = createLeftovers()
  if (isSet(user)) addName(leftovers.dropped, 'user')
  for (const [name, value] of Object.entries(others)) if (isSet(value)) addName(leftovers.foreign, name)
  return {
    model: textIn(model, 'model'),
    format: isSet(encoding_format) ? wordIn(encoding_format, 'encoding_format', ['float', 'base64']) : 'float',
    request: {
      input: inputsOf(input),
      ...(isSet(dimensions) ? { dimensions: integerIn(dimensions, 'dimensions', 1, LONGEST_VECTOR) } : {}),
    },
    leftovers,
  }
}

function inputsOf(input: Json | undefined): EmbedRequest['input'] {
  if (typeof input === 'string') return [inputOf(input, 'input')]
  const items = listIn(input, 'input')
  if (items.length > 0 && items.every(item => typeof item === 'number')) return [inputOf(items, 'input')]
  if (items.length === 0 || items.length > MOST_INPUTS) throw invalidParam('input', `must have 1 to ${MOST_INPUTS} items`)
  return items.map((item, at) => inputOf(item, `input[${at}]`))
}

function inputOf(item: Json, param: string): string | readonly number[] {
  if (typeof item === 'string' && item !== '') return item
  if (Array.isArray(item) && item.length > 0 && item.every(isTokenId)) return item
  throw invalidParam(param, 'must be a text or a list of token ids, and must not be empty')
}

const isTokenId = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0

function embeddingsWire({ vectors, usage }: EmbedResult, model: string, format: AskedEmbeddings['format']) {
  const write = format === 'base64' ? base64Of : (vector: readonly number[]) => vector
  return {
    object: 'list',
    data: vectors.map((vector, index) => ({ object: 'embedding', index, embedding: write(vector) })),
    model,
    usage: { prompt_tokens: usage.input, total_tokens: usage.input },
  }
}

function base64Of(vector: readonly number[]): string {
  const bytes = Buffer.alloc(vector.length * 4)
  for (let at = 0; at < vector.length; at++) bytes.writeFloatLE(vector[at]!, at * 4)
  return bytes.toString('base64')
}
