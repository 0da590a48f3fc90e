import { send, startApi, type ApiOptions, type Tree } from './api.ts'

/** The API with background jobs. */
export async function startResponses({ plugins = [], config = {}, ...options }: ApiOptions = {}) {
  const api = await startApi({ ...options, plugins: ['jobs', ...plugins], config: { jobs: { execute: true }, ...config } })
  const path = (id: string, rest = '') => `${api.url}/v1/responses/${id}${rest}`
  return {
    api,
    url: api.url,
    host: api.host,
    /** Asks for a response of local-1. */
    respond: (body: Tree, headers: Record<string, string> = {}) =>
      api.post('/v1/responses', { model: 'local/local-1', ...body }, headers),
    stream: async (body: Tree, headers: Record<string, string> = {}) =>
      readEvents(await send(`${api.url}/v1/responses`, { model: 'local/local-1', stream: true, ...body }, headers)),
    again: async (id: string, query = '', headers: Record<string, string> = {}) =>
      readEvents(await fetch(path(id, `?stream=true${query}`), { headers })),
    get: (id: string, rest = '', headers: Record<string, string> = {}) => api.get(`/v1/responses/${id}${rest}`, headers),
    cancel: (id: string, headers: Record<string, string> = {}) => api.post(`/v1/responses/${id}/cancel`, {}, headers),
    remove: async (id: string, headers: Record<string, string> = {}) => {
      const response = await fetch(path(id), { method: 'DELETE', headers })
      return { status: response.status, body: (await response.json()) as Tree }
    },
    [Symbol.asyncDispose]: () => api[Symbol.asyncDispose](),
  }
}

/** Reads an event stream to its end. Checks that each frame names its event. */
export async function readEvents(response: Response) {
  const text = await response.text()
  const lines = text.split('\n\n').filter(part => part !== '' && !part.startsWith(':'))
  const isDone = lines.at(-1) === 'data: [DONE]'
  const events = (isDone ? lines.slice(0, -1) : lines).map(part => {
    const [, name, json] = /^event: (\S+)\ndata: (.*)$/s.exec(part) ?? []
    const event = (json === undefined ? {} : JSON.parse(json)) as Tree
    if (event.type !== name) throw new Error(`the frame is not that of an event: ${part.slice(0, 200)}`)
    return event
  })
  const last = events.at(-1)
  return {
    status: response.status,
    headers: response.headers,
    text,
    events,
    isDone,
    types: events.map(({ type }) => type as string),
    of: (type: string) => events.filter(event => event.type === type),
    response: (last?.response ?? {}) as Tree,
  }
}

export const textOf = ({ output }: Tree): string =>
  (output as Tree[])
    .filter(({ type }) => type === 'message')
    .flatMap(({ content }) => (content as Tree[]).map(part => part.text ?? part.refusal))
    .join('')

export const says = (role: string, content: unknown) => ({ type: 'message', role, content })
export const fn = (name: string, more: object = {}) => ({
  type: 'function',
  name,
  description: `calls ${name}`,
  parameters: { type: 'object', properties: { a: { type: 'string' } } },
  ...more,
})
