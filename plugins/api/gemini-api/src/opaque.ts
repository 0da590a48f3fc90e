import { isFields } from '@svc/api-types'
import type { Json } from '@svc/core/contracts'
import { isWithin } from '@svc/plugin-kit'

/**
 * Data of a provider that must return to it unchanged, in the `thoughtSignature` of a part. It is no secret and not signed: a client
 * can write its own, so it counts as a part of the client's request.
 */
export interface Opaque {
  /** The provider that can read the data. */
  readonly provider: string
  readonly entries: readonly OpaqueEntry[]
}

/** What the data belongs to: reasoning with its text, the call of the part, or the whole message. */
export interface OpaqueEntry {
  readonly of: 'reasoning' | 'call' | 'message'
  readonly text?: string
  readonly data?: Json
}

/** The API has bytes here, and some SDKs decode and encode them. So all of it is base64, the mark too: 6 bytes are 8 characters. */
const MARK = 'svc-1.'
const MARK_BASE64 = Buffer.from(MARK).toString('base64')
/** Maximum characters of a signature that is read. */
const LONGEST = 4 * 1024 * 1024
const LONGEST_NAME = 200
const KINDS: readonly unknown[] = ['reasoning', 'call', 'message'] satisfies OpaqueEntry['of'][]

const writeOpaque = (opaque: Opaque): string => Buffer.from(MARK + JSON.stringify(opaque)).toString('base64')

/** Whether a signature is of svc, valid or not. Other signatures are of model servers. */
export const isOpaque = (signature: unknown): signature is string =>
  typeof signature === 'string' && signature.startsWith(MARK_BASE64)

/** Reads a signature, in base64 or base64url. Returns `undefined` if svc has not written it. */
export function readOpaque(signature: unknown): Opaque | undefined {
  if (!isOpaque(signature) || signature.length > LONGEST) return undefined
  const found = parsed(Buffer.from(signature, 'base64').toString().slice(MARK.length))
  if (!isFields(found) || !isWithin(found, LONGEST)) return undefined
  const { provider, entries } = found
  if (typeof provider !== 'string' || provider === '' || provider.length > LONGEST_NAME) return undefined
  return Array.isArray(entries) && entries.every(isEntry) ? { provider, entries } : undefined
}

const isEntry = (value: unknown): value is OpaqueEntry & Json =>
  isFields(value) && KINDS.includes(value.of) && (value.text === undefined || typeof value.text === 'string')

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

/** Packs the data of one answer: that of reasoning goes with the next part, because many clients keep only whole parts. */
export class OpaquePacker {
  #thought = ''
  #waiting: OpaqueEntry[] = []

  reasoning(text: string, data: Json | undefined): void {
    this.#thought += text
    if (data === undefined) return
    this.#waiting.push({ of: 'reasoning', text: this.#thought, data })
    this.#thought = ''
  }

  /** The signature of a part, with the data that waits and that of a call or of the message. */
  take(provider: string, of?: 'call' | 'message', data?: Json): { readonly thoughtSignature?: string } {
    const entries = [...this.#waiting]
    if (of !== undefined && data !== undefined) entries.push({ of, data })
    this.#thought = ''
    if (entries.length === 0) return {}
    this.#waiting = []
    return { thoughtSignature: writeOpaque({ provider, entries }) }
  }
}
