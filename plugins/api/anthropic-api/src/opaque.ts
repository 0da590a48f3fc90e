import { type Fields, isFields } from '@svc/api-types'
import { type Json, type ReasoningPart } from '@svc/core/contracts'
import { isWithin } from '@svc/plugin-kit'

/**
 * Opaque data of a provider in a `signature` of this API. Clients return it unchanged. It is no secret and not signed: a client
 * can write its own, so it counts as a part of the client's request.
 */
export interface Opaque {
  /** The provider that can read the data. */
  readonly provider: string
  /** Data of a piece of reasoning. */
  readonly data?: Json
  /** The text of that reasoning, if the client asked to leave it out. */
  readonly text?: string
  /** Data of tool calls, by the ids of the calls. */
  readonly calls?: { readonly [id: string]: Json | undefined }
  /** Data of the whole message. */
  readonly message?: Json
}

/** No signature of a model server begins so: a dot is no character of base64. */
const PREFIX = 'svc1.'
/** Maximum characters of a signature that is read. */
const LONGEST = 4 * 1024 * 1024
const LONGEST_NAME = 200
const NAMES: Readonly<Record<string, keyof Opaque>> = { p: 'provider', d: 'data', t: 'text', c: 'calls', m: 'message' }

/** The data as a signature. */
export function writeOpaque({ provider, data, text, calls, message }: Opaque): string {
  const json = JSON.stringify({ p: provider, d: data, t: text, c: calls, m: message })
  return PREFIX + Buffer.from(json).toString('base64url')
}

/** Whether a signature is of svc, valid or not. Other signatures are of model servers. */
export const isOpaque = (signature: unknown): signature is string => typeof signature === 'string' && signature.startsWith(PREFIX)

/** The field of a block that can have opaque data. */
export const opaqueOf = ({ type, signature, data }: Fields): Json | undefined =>
  type === 'thinking' ? signature : type === 'redacted_thinking' ? data : undefined

/** Reads a signature. Returns `undefined` if svc has not written it. */
export function readOpaque(signature: unknown): Opaque | undefined {
  if (!isOpaque(signature) || signature.length > LONGEST) return undefined
  const found = parsed(Buffer.from(signature.slice(PREFIX.length), 'base64url').toString())
  if (!isFields(found) || !isWithin(found, LONGEST) || !Object.keys(found).every(key => Object.hasOwn(NAMES, key)))
    return undefined
  const { p: provider, d: data, t: text, c: calls, m: message } = found
  if (typeof provider !== 'string' || provider === '' || provider.length > LONGEST_NAME) return undefined
  return {
    provider,
    ...(data === undefined ? {} : { data }),
    ...(typeof text === 'string' ? { text } : {}),
    ...(isFields(calls) ? { calls } : {}),
    ...(message === undefined ? {} : { message }),
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

/** A block of reasoning, for the answer. Data without text has a block of its own kind. */
export function thinkingBlock({ text, providerData }: ReasoningPart, provider: string, isOmitted: boolean) {
  const data = providerData === undefined ? {} : { data: providerData }
  if (text === '') return { type: 'redacted_thinking', data: writeOpaque({ provider, ...data }) } as const
  const signature = writeOpaque({ provider, ...data, ...(isOmitted ? { text } : {}) })
  return { type: 'thinking', thinking: isOmitted ? '' : text, signature } as const
}
