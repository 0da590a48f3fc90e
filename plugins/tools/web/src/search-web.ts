import { codeOf, type CallContext } from '@svc/core'
import type { Tool } from '@svc/core/contracts'
import { type GuardedFetch, readBody } from '@svc/safe-fetch'
import { stripResult, toolOf } from '@svc/plugin-kit'
import { searchStatus, searchUnreachable, searchUnreadable } from './errors.ts'
import type { Endpoint } from './search-endpoint.ts'
import type { WebConfig } from './settings.ts'

const COUNT = 10
const MOST = 50
const LONGEST = { title: 300, url: 2000, snippet: 2000 } as const

type Hit = {
  readonly title: string
  readonly url: string
  readonly snippet: string
}

/** Makes `search_web`: asks the endpoint of the configuration. */
export function createSearchWeb(web: GuardedFetch, endpoint: Endpoint, config: WebConfig): Tool {
  return toolOf<{ readonly query: string; readonly count?: number }>({
    description: 'Searches the web and answers titles, addresses and summaries; fetch_page reads what is found.',
    category: 'web',
    effects: ['network'],
    parameters: {
      type: 'object',
      properties: {
        query: { type: 'string', minLength: 1, maxLength: 1000, pattern: '\\S', description: 'what to look for' },
        count: { type: 'integer', minimum: 1, maximum: MOST, description: `how many results at most; default ${COUNT}` },
      },
      required: ['query'],
      additionalProperties: false,
    },
    result: RESULT,
    timeoutMs: config.timeout_ms,
    async call({ query, count = COUNT }, ctx) {
      const results = hitsOf(await ask(web, endpoint, query.toWellFormed(), count, ctx), endpoint).slice(0, count)
      const text = results.map(({ title, url, snippet }, at) => `${at + 1}. ${title}\n   ${url}\n   ${snippet}`).join('\n')
      return { content: [{ type: 'text', text: text || '[Nothing was found.]' }], structured: { query, results } }
    },
  })
}

const RESULT = {
  type: 'object',
  properties: {
    query: { type: 'string' },
    results: {
      type: 'array',
      items: {
        type: 'object',
        properties: { title: { type: 'string' }, url: { type: 'string' }, snippet: { type: 'string' } },
        required: ['title', 'url', 'snippet'],
        additionalProperties: false,
      },
    },
  },
  required: ['query', 'results'],
  additionalProperties: false,
} as const

async function ask(web: GuardedFetch, endpoint: Endpoint, query: string, count: number, ctx: CallContext): Promise<unknown> {
  const { method, headers } = endpoint
  const body = endpoint.bodyFor(query, count)
  const request = { method, headers, ...(body !== undefined && { body }), limits: { redirects: 0 } }
  try {
    const answer = await web.fetch(endpoint.urlFor(query, count), ctx, request)
    if (answer.status !== 200) answer.discard()
    return answer.status === 200 ? parsed((await readBody(answer.body)).bytes) : await Promise.reject(searchStatus(answer.status))
  } catch (error) {
    ctx.signal.throwIfAborted()
    throw codeOf(error) === 'SEARCH_FAILED' ? error : searchUnreachable(codeOf(error) ?? 'unknown')
  }
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes))
  } catch {
    throw searchUnreadable()
  }
}

const member = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined

function hitsOf(answer: unknown, { results, fields }: Endpoint): Hit[] {
  const list = results.reduce(member, answer)
  if (list === undefined && typeof answer === 'object' && answer !== null && !Array.isArray(answer) && results.length > 1)
    return []
  if (!Array.isArray(list)) throw searchUnreadable()
  return list.flatMap(one => {
    const [title, url, snippet] = (['title', 'url', 'snippet'] as const).map(name =>
      text(member(one, fields[name]), LONGEST[name])
    )
    return url ? [{ title: title || url, url, snippet: snippet ?? '' }] : []
  })
}

const text = (value: unknown, longest: number) =>
  typeof value === 'string' ? stripResult(value.slice(0, longest).toWellFormed()).text.trim() : ''
