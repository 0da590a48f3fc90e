import { requestFor } from './client.ts'
import type { Rounds } from './rounds.ts'

/** Tokens of a streamed answer. */
export const TOKENS = 100
const MESSAGE = 'Which of these three proposals would you take, and why?'

/** svc with defaults (tools on, no list of models), and its competitors. */
export type Name = 'ours' | 'koa' | 'bare' | 'portkey'
/** `stripped`: the same svc, asked with `tools: []`. `listed`: an svc whose configuration lists the models. */
export type Asked = Name | 'stripped' | 'listed' | 'direct'

/** The request to each of them, for the same answer. */
export function requestOf(name: Asked, up: number, model: string, stream: boolean): Buffer {
  if (name === 'ours' || name === 'stripped' || name === 'listed') {
    const asked = { message: MESSAGE, model, ...(name === 'stripped' ? { tools: [] } : {}) }
    return requestFor('POST', stream ? '/api/v1/chat/stream' : '/api/v1/chat', asked)
  }
  const asked = {
    model,
    messages: [{ role: 'user', content: MESSAGE }],
    stream,
    ...(stream ? { stream_options: { include_usage: true } } : {}),
  }
  const headers = {
    'x-portkey-provider': 'openai',
    'x-portkey-custom-host': `http://127.0.0.1:${up}/v1`,
    authorization: 'Bearer none',
  }
  return requestFor('POST', '/v1/chat/completions', asked, name === 'portkey' ? headers : {})
}

export const KOA = 'koa + undici'
export const BARE = 'a bare undici relay'

/** Settings of measurements where less is better. */
export const less = (unit: string) => ({ bench: 'providers', unit, better: 'less' }) as const

/** Each value relative to that of the anchor in its round. */
export const addedTo = <N extends string>(figures: Rounds<N>, anchor: N): Rounds<N> =>
  Object.fromEntries(
    Object.entries<readonly number[]>(figures).map(([name, all]) => [name, all.map((item, at) => item - figures[anchor][at]!)])
  ) as Record<N, number[]>
