import type { Use } from '@svc/core'
import type { ModelInfo } from '@svc/core/contracts'
import { countIn, isTree, textIn, type Tree, treeIn, type Upstream } from '@svc/provider-http'

/** A list may be no longer than this many pages, however it goes on. */
const MOST_PAGES = 10

/** Reads the list of models, page by page. */
export async function readModels(upstream: Pick<Upstream, 'json'>, use: Use): Promise<ModelInfo[]> {
  const models: ModelInfo[] = []
  let after = ''
  for (let page = 0; page < MOST_PAGES; page++) {
    const body = await upstream.json('GET', `/v1/models?limit=1000${after}`, undefined, use)
    if (isTree(body) && Array.isArray(body.data)) models.push(...body.data.flatMap(infoOf))
    const last = textIn(body, 'last_id')
    if (!isTree(body) || body.has_more !== true || !last) break
    after = `&after_id=${encodeURIComponent(last)}`
  }
  return models
}

function infoOf(model: unknown): ModelInfo[] {
  const id = textIn(model, 'id')
  if (!id) return []
  const [context, output] = [countIn(model, 'max_input_tokens', 1), countIn(model, 'max_tokens', 1)]
  const can = treeIn(model, 'capabilities')
  return [
    {
      id,
      ...(context === undefined ? {} : { context }),
      ...(output === undefined ? {} : { output }),
      ...(supports(can, 'image_input') === false ? { features: { vision: false } } : {}),
      ...(takesNoTemperature(treeIn(can, 'thinking')) ? { temperature: false } : {}),
    },
  ]
}

const supports = (from: Tree, capability: string): boolean | undefined => {
  const { supported } = treeIn(from, capability)
  return typeof supported === 'boolean' ? supported : undefined
}

/** Models that think as they see fit and no other way are those that refuse a temperature. */
function takesNoTemperature(thinking: Tree): boolean {
  const types = treeIn(thinking, 'types')
  return supports(types, 'adaptive') === true && supports(types, 'enabled') === false
}
