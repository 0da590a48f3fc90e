import type { Json } from '@svc/core/contracts'
import { isObject, parsedJson } from './fields.ts'

/**
 * Data of a provider that must return to it unchanged: a signature, encrypted reasoning. Clients store it as a text that they do
 * not understand.
 */
export interface OpaqueData {
  readonly provider: string
  /** What the data belongs to: reasoning with its text, a tool call, or the whole message. */
  readonly of: 'reasoning' | 'call' | 'message'
  readonly text?: string
  readonly data: Json
}

const PREFIX = 'svc1.'

export const encodeOpaque = (opaque: OpaqueData): string => PREFIX + Buffer.from(JSON.stringify(opaque)).toString('base64url')

/** Reads a text of a client. Returns `undefined` for a text that svc did not make. The data is as trustworthy as the client. */
export function decodeOpaque(text: unknown): OpaqueData | undefined {
  if (typeof text !== 'string' || !text.startsWith(PREFIX)) return undefined
  const value = parsedJson(Buffer.from(text.slice(PREFIX.length), 'base64url').toString())
  if (!isObject(value) || typeof value.provider !== 'string' || value.data === undefined) return undefined
  const { provider, of, data, text: thought } = value
  if (of !== 'reasoning' && of !== 'call' && of !== 'message') return undefined
  return { provider, of, data, ...(typeof thought === 'string' ? { text: thought } : {}) }
}
