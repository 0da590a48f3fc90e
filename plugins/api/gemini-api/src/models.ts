import { fieldInvalid } from '@svc/api-types'
import type { Json, NamedModel } from '@svc/core/contracts'

/** A model as the API lists it. Limits that svc does not know are absent. */
export const modelWire = ({ id, description, context, output, features, kind }: NamedModel) => ({
  name: `models/${id}`,
  version: '',
  displayName: id,
  ...(description === undefined ? {} : { description }),
  ...(context === undefined ? {} : { inputTokenLimit: context }),
  ...(output === undefined ? {} : { outputTokenLimit: output }),
  supportedGenerationMethods: methodsOf({ kind, features }),
  thinking: features?.supports?.includes('reasoning_effort') ?? false,
})

const GENERATING = ['generateContent', 'streamGenerateContent', 'countTokens']
const EMBEDDING = ['embedContent', 'batchEmbedContents']

/** A model that makes embeddings and streams no answers does nothing else. */
function methodsOf({ kind, features }: Pick<NamedModel, 'kind' | 'features'>): readonly string[] {
  const isEmbedding = (kind === 'model' || kind === 'alias') && features?.supports?.includes('embeddings') === true
  if (!isEmbedding) return GENERATING
  return features?.streaming === false ? EMBEDDING : [...GENERATING, ...EMBEDDING]
}

/** Models of a page, as the API counts. */
const PAGE = 50
const LARGEST_PAGE = 1_000

/** A page of the list. The token of a page is the number of models before it. Throws INVALID_VALUE. */
export function modelsPage(models: readonly NamedModel[], query: Readonly<Record<string, string>>): Json {
  const size = Math.min(LARGEST_PAGE, countOf(query.pageSize ?? query.page_size, 'pageSize') || PAGE)
  const from = countOf(query.pageToken ?? query.page_token, 'pageToken')
  const next = from + size
  return {
    models: models.slice(from, next).map(modelWire) as unknown as Json[],
    ...(next < models.length ? { nextPageToken: String(next) } : {}),
  }
}

function countOf(text: string | undefined, field: string): number {
  if (text === undefined || text === '') return 0
  if (!/^\d{1,9}$/.test(text)) throw fieldInvalid(field, field === 'pageSize' ? 'must be an integer' : 'is not of this list')
  return Number(text)
}
