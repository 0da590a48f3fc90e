import type { Headers } from './parameter-headers.ts'

/** An HTTP request to the protocol, as plain data: another worker may answer it. */
export interface HttpMessage {
  readonly method: string
  readonly headers: Headers
  /** The body; empty where there is none. */
  readonly text: string
}

/** Its answer. `body` is the whole, or what comes bit by bit. */
export interface HttpAnswer {
  readonly status: number
  readonly headers: { readonly [name: string]: string }
  readonly body: string | AsyncIterable<string>
}

/** What identifies a request of JSON-RPC. */
export type RpcId = string | number

const JSON_TYPE = { 'content-type': 'application/json' } as const

/** An answer in one piece. */
export const jsonAnswer = (body: string, headers: HttpAnswer['headers'] = JSON_TYPE): HttpAnswer => ({
  status: 200,
  headers,
  body,
})

/** What an error of JSON-RPC is told with. */
export interface RpcFault {
  readonly status: number
  readonly code: number
  readonly message: string
  readonly id?: RpcId | null
  readonly data?: object
  readonly headers?: HttpAnswer['headers']
}

/** An error, in the protocol's form. */
export const faultAnswer = ({ status, code, message, id = null, data, headers }: RpcFault): HttpAnswer => ({
  status,
  headers: { ...JSON_TYPE, ...headers },
  body: JSON.stringify({ jsonrpc: '2.0', error: { code, message, ...(data === undefined ? {} : { data }) }, id }),
})

/** The id of a request whose body could be read; answers repeat it. */
export function idOf(body: unknown): RpcId | null {
  const { method, id } = (typeof body === 'object' && body !== null ? body : {}) as { method?: unknown; id?: unknown }
  return typeof method === 'string' && (typeof id === 'string' || typeof id === 'number') ? id : null
}
