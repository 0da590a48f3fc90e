import type { Use } from '@svc/core'
import type { ModelInfo } from '@svc/core/contracts'
import { countIn, isTree, textIn, type Upstream } from '@svc/provider-http'

/** A list may be no longer than this many pages, however it goes on. */
const MOST_PAGES = 10

/** A model of the list; `thinking`: it thinks and can tell what. */
export interface ListedModel {
  readonly info: ModelInfo
  readonly thinking: boolean
}

/** Reads the list of models, page by page: those that generate content. */
export async function readModels(upstream: Pick<Upstream, 'json'>, path: string, use: Use): Promise<ListedModel[]> {
  const models: ListedModel[] = []
  let next = ''
  for (let page = 0; page < MOST_PAGES; page++) {
    const body = await upstream.json('GET', `${path}?pageSize=1000${next}`, undefined, use)
    if (isTree(body) && Array.isArray(body.models)) models.push(...body.models.flatMap(modelOf))
    const token = textIn(body, 'nextPageToken')
    if (!token) break
    next = `&pageToken=${encodeURIComponent(token)}`
  }
  return models
}

function modelOf(model: unknown): ListedModel[] {
  const id = textIn(model, 'name')?.replace(/^models\//, '')
  if (!id || !isTree(model) || !generates(model.supportedGenerationMethods)) return []
  const [context, output] = [countIn(model, 'inputTokenLimit', 1), countIn(model, 'outputTokenLimit', 1)]
  const info = { id, ...(context === undefined ? {} : { context }), ...(output === undefined ? {} : { output }) }
  return [{ info, thinking: model.thinking === true }]
}

/** A server that does not say what its models do is believed that they do this. */
const generates = (methods: unknown): boolean =>
  !Array.isArray(methods) || methods.includes('generateContent') || methods.includes('streamGenerateContent')
