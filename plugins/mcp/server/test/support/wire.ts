// Requests of the protocol, byte by byte: what no client library would send as well.

export const VERSION = '2026-07-28'
export const LEGACY = '2025-11-25'
const BOTH = 'application/json, text/event-stream'

export type Json = { readonly [key: string]: unknown }

/** What came back; `events` are the messages of an event stream. */
export interface Back {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly body: {
    readonly result?: Json
    readonly error?: { readonly code: number; readonly message: string; readonly data?: Json }
  }
  readonly events: readonly Json[]
}

export async function back(response: Response): Promise<Back> {
  const text = await response.text()
  const { status, headers } = response
  const isStream = headers.get('content-type')?.startsWith('text/event-stream') ?? false
  const events = isStream ? eventsOf(text) : []
  const body = isStream ? (events.findLast(event => 'id' in event) ?? {}) : text.startsWith('{') ? JSON.parse(text) : {}
  return { status, headers, text, body, events }
}

const eventsOf = (text: string): Json[] =>
  text.split('\n').flatMap(line => (line.startsWith('data: {') ? [JSON.parse(line.slice('data: '.length)) as Json] : []))

export interface Sending {
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
  readonly path?: string
}

/** Posts a body as it is. */
export const post = (
  url: string,
  body: string | Uint8Array<ArrayBuffer>,
  { headers = {}, signal, path = '/mcp' }: Sending = {}
) =>
  fetch(`${url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: BOTH, ...headers },
    body,
    ...(signal && { signal }),
  })

/** What a stateless request says of its client. */
export const envelope = (capabilities: Json = {}, more: Json = {}) => ({
  'io.modelcontextprotocol/protocolVersion': VERSION,
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1.0.0' },
  'io.modelcontextprotocol/clientCapabilities': capabilities,
  ...more,
})

export interface Asking extends Sending {
  readonly capabilities?: Json
  readonly meta?: Json
  readonly id?: number | string
}

/** A stateless request, as its clients write it. */
export function ask(
  url: string,
  method: string,
  params: Json = {},
  { capabilities, meta, id = 1, headers, ...more }: Asking = {}
) {
  const name = params.name ?? params.uri
  const body = { jsonrpc: '2.0', id, method, params: { ...params, _meta: envelope(capabilities, meta) } }
  const own = { 'mcp-protocol-version': VERSION, 'mcp-method': method, ...(typeof name === 'string' && { 'mcp-name': name }) }
  return post(url, JSON.stringify(body), { headers: { ...own, ...headers }, ...more })
}

export const asked = async (...args: Parameters<typeof ask>): Promise<Back> => back(await ask(...args))

/** A session, after its handshake. */
export interface WireSession {
  readonly id: string
  /** Headers of each of its requests. */
  readonly headers: Readonly<Record<string, string>>
  send(message: Json, sending?: Sending): Promise<Response>
  request(method: string, params?: Json, id?: number): Promise<Back>
  /** Its own stream. */
  open(signal?: AbortSignal): Promise<Response>
  end(): Promise<Response>
}

export async function begin(url: string, { capabilities = {}, headers = {}, path = '/mcp' }: Asking = {}): Promise<WireSession> {
  const params = { protocolVersion: LEGACY, capabilities, clientInfo: { name: 'test', version: '1.0.0' } }
  const begun = await post(url, JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params }), { headers, path })
  const reported = await back(begun)
  const id = begun.headers.get('mcp-session-id')
  if (id === null) throw new Error(`no session: ${reported.status} ${reported.text}`)
  const own = { 'mcp-session-id': id, 'mcp-protocol-version': LEGACY, ...headers }
  const send = (message: Json, { headers: more = {}, ...rest }: Sending = {}) =>
    post(url, JSON.stringify({ jsonrpc: '2.0', ...message }), { headers: { ...own, ...more }, path, ...rest })
  await send({ method: 'notifications/initialized' })
  return {
    id,
    headers: { 'content-type': 'application/json', accept: BOTH, ...own },
    send,
    request: async (method, given = {}, at = 1) => back(await send({ id: at, method, params: given })),
    open: signal => fetch(`${url}${path}`, { headers: { ...own, accept: 'text/event-stream' }, ...(signal && { signal }) }),
    end: () => fetch(`${url}${path}`, { method: 'DELETE', headers: own }),
  }
}

/** The messages of a stream, as they come. */
export async function* messages(response: Response): AsyncGenerator<Json> {
  for await (const text of texts(response)) yield* eventsOf(text)
}

/** The blocks of a stream, as they come: what stands between two empty lines. */
export async function* texts(response: Response): AsyncGenerator<string> {
  let text = ''
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    const blocks = (text + chunk).split('\n\n')
    text = blocks.pop()!
    yield* blocks
  }
}
