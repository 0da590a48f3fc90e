import type { Json, ModelEvent } from '@svc/core/contracts'
import { isObject, parsedJson } from './fields.ts'

/**
 * Data of a provider that must return to it unchanged: a signature, encrypted reasoning. Clients store it as a text that they do
 * not understand.
 */
export interface OpaqueData {
  readonly provider: string
  /** What the data belongs to: reasoning with its text, the tool call of this id, or the whole message. */
  readonly of: 'reasoning' | 'call' | 'message'
  readonly text?: string
  readonly call?: string
  readonly data: Json
}

const PREFIX = 'svc1.'

export const encodeOpaque = (list: readonly OpaqueData[]): string =>
  PREFIX + Buffer.from(JSON.stringify(list)).toString('base64url')

/** Reads a text of a client. Returns `undefined` for a text that svc did not make. The data is as trustworthy as the client. */
export function decodeOpaque(text: unknown): readonly OpaqueData[] | undefined {
  if (typeof text !== 'string' || !text.startsWith(PREFIX)) return undefined
  const list = parsedJson(Buffer.from(text.slice(PREFIX.length), 'base64url').toString())
  return Array.isArray(list) && list.every(isOpaque) ? list : undefined
}

const KINDS: readonly unknown[] = ['reasoning', 'call', 'message'] satisfies OpaqueData['of'][]
const isTextOrAbsent = (value: unknown) => value === undefined || typeof value === 'string'

function isOpaque(value: unknown): value is OpaqueData & Json {
  if (!isObject(value) || typeof value.provider !== 'string' || value.data === undefined) return false
  return KINDS.includes(value.of) && isTextOrAbsent(value.text) && isTextOrAbsent(value.call)
}

/**
 * Packs the data of one answer. Many clients keep data only with tool calls, so the data of the reasoning before a call goes with
 * the call.
 */
export class OpaquePacker {
  #thought = ''
  #waiting: OpaqueData[] = []

  reasoning(provider: string, { text, providerData: data }: Extract<ModelEvent, { type: 'reasoning' }>): void {
    this.#thought += text
    if (data === undefined) return
    this.#waiting.push({ provider, of: 'reasoning', text: this.#thought, data })
    this.#thought = ''
  }

  /** The data that waits, with that of a call or of the message. Returns `undefined` if there is none. */
  take(of?: Omit<OpaqueData, 'data'> & { readonly data: Json | undefined }): string | undefined {
    const list = [...this.#waiting]
    if (of && of.data !== undefined) list.push({ ...of, data: of.data })
    this.#waiting = []
    return list.length === 0 ? undefined : encodeOpaque(list)
  }
}
