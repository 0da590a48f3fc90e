import { type Fields, Losses, fieldInvalid, objectAt, listAt, textAt, integerAt } from '@svc/api-types'
import type { CallContext } from '@svc/core'
import type { EmbedResult, Json, NamedModels, RouteReply } from '@svc/core/contracts'
import { headerOf } from './call.ts'
import { errorReply, modelError } from './errors.ts'
import { camelCased, given } from './fields.ts'

/** Most texts of a request. */
const MOST_REQUESTS = 2_048
const LONGEST_VECTOR = 65_536

/** A text, and what its vector must be like. */
interface Asked {
  readonly text: string
  readonly dimensions: number | undefined
}

/** `embedContent`. Throws INVALID_VALUE, MODEL_NOT_FOUND. */
export async function embedContent(models: NamedModels, name: string, body: Fields, ctx: CallContext): Promise<RouteReply> {
  const losses = new Losses(camelCased)
  const asked = askedIn(body, '', name, losses)
  return embedded({ models, name, asked: [asked], losses }, ctx, ({ vectors }) => ({ embedding: { values: vectors[0]! } }))
}

/** `batchEmbedContents`. Throws INVALID_VALUE, MODEL_NOT_FOUND. */
export async function batchEmbed(models: NamedModels, name: string, body: Fields, ctx: CallContext): Promise<RouteReply> {
  const losses = new Losses(camelCased)
  const requests = listAt(body.requests, 'requests')
  if (requests.length === 0 || requests.length > MOST_REQUESTS)
    throw fieldInvalid('requests', `must have 1 to ${MOST_REQUESTS} requests`)
  for (const field in body) if (field !== 'requests') losses.drop(field)
  const asked = requests.map((item, at) => askedIn(objectAt(item, `requests[${at}]`), `requests[${at}].`, name, losses))
  const other = asked.findIndex(({ dimensions }) => dimensions !== asked[0]!.dimensions)
  if (other > 0) throw fieldInvalid(`requests[${other}].outputDimensionality`, 'must be the same in all requests')
  return embedded({ models, name, asked, losses }, ctx, ({ vectors }) => ({ embeddings: vectors.map(values => ({ values })) }))
}

interface Embedding {
  readonly models: NamedModels
  readonly name: string
  readonly asked: readonly Asked[]
  readonly losses: Losses
}

async function embedded(
  { models, name, asked, losses }: Embedding,
  ctx: CallContext,
  write: (result: EmbedResult) => object
): Promise<RouteReply> {
  const dimensions = asked[0]!.dimensions
  const request = { input: asked.map(({ text }) => text), ...(dimensions === undefined ? {} : { dimensions }) }
  try {
    const result = await models.embed({ name, request }, ctx)
    const usageMetadata = { promptTokenCount: result.usage.input, totalTokenCount: result.usage.input }
    return { headers: headerOf([...losses.dropped]), body: { ...write(result), usageMetadata } }
  } catch (error) {
    const known = modelError(error)
    if (!known) throw error
    return errorReply(known)
  }
}

const KNOWN = new Set(['model', 'content', 'outputDimensionality'])
/** Newer clients put the settings of a request into an object. */
const CONFIGS = new Set(['embedContentConfig', 'config'])
const NESTED = new Set(['outputDimensionality'])

function askedIn(fields: Fields, path: string, name: string, losses: Losses): Asked {
  checkModel(given(fields, 'model'), `${path}model`, name)
  let dimensions = given(fields, 'outputDimensionality')
  for (const field in fields) {
    const value = fields[field]
    if (value === undefined || value === null || KNOWN.has(camelCased(field))) continue
    if (!CONFIGS.has(camelCased(field))) losses.drop(camelCased(field))
    else {
      const config = objectAt(value, path + field)
      losses.dropUnknown(config, NESTED, camelCased(field))
      dimensions ??= given(config, 'outputDimensionality')
    }
  }
  return {
    text: contentText(given(fields, 'content'), `${path}content`),
    dimensions: dimensions === undefined ? undefined : integerAt(dimensions, `${path}outputDimensionality`, 1, LONGEST_VECTOR),
  }
}

/** The model of a request in the body must be that of the path. */
function checkModel(value: Json | undefined, path: string, name: string): void {
  if (value === undefined || value === '') return
  const model = textAt(value, path)
  if (model !== name && model !== `models/${name}`)
    throw fieldInvalid(path, `must be models/${name.slice(0, 200)}, as in the path`)
}

function contentText(value: Json | undefined, path: string): string {
  const texts = listAt(objectAt(value, path).parts, `${path}.parts`).map((item, at) => {
    const part = objectAt(item, `${path}.parts[${at}]`)
    if (Object.keys(part).some(key => key !== 'text'))
      throw fieldInvalid(`${path}.parts[${at}]`, 'must have a text, and nothing else')
    return textAt(part.text, `${path}.parts[${at}].text`)
  })
  const text = texts.join('\n')
  if (text === '') throw fieldInvalid(path, 'must not be empty')
  return text
}
