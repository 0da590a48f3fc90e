import { isTree } from '@svc/core'
import type { ParamHeader } from '@svc/mcp-protocol'
import { parameterMismatch } from './errors.ts'

/** Headers of a request by name in lower case. */
export type Headers = { readonly [name: string]: string | undefined }

/** Throws MCP_HEADER_MISMATCH for a header that is missing, or does not say what the argument says. An argument that is absent needs none. */
export function checkParameterHeaders(declared: readonly ParamHeader[], args: unknown, headers: Headers): void {
  for (const { path, name } of declared) {
    const said = textOf(path.reduce<unknown>((at, key) => (isTree(at) ? at[key] : undefined), args))
    if (said === undefined) continue
    const header = `Mcp-Param-${name}`
    const given = headers[header.toLowerCase()]
    if (given === undefined) throw parameterMismatch(header, path, 'is absent')
    const decoded = decodeHeader(given)
    if (decoded === undefined) throw parameterMismatch(header, path, 'is no Base64 of UTF-8 text')
    if (decoded !== said && !isSameNumber(decoded, said)) throw parameterMismatch(header, path, 'says something else')
  }
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'string' || typeof value === 'boolean') return String(value)
  return typeof value === 'number' && (!Number.isInteger(value) || Number.isSafeInteger(value)) ? String(value) : undefined
}

const NUMBER = /^-?\d+(\.\d+)?$/
const isSameNumber = (a: string, b: string) => NUMBER.test(a) && NUMBER.test(b) && Number(a) === Number(b)

const ENCODED = /^=\?base64\?((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?)\?=$/

/** The text of a header, which may be written as `=?base64?…?=`; `undefined` where that is no text. */
function decodeHeader(value: string): string | undefined {
  if (!value.startsWith('=?base64?') || !value.endsWith('?=')) return value
  const match = ENCODED.exec(value)
  if (!match) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(match[1]!, 'base64'))
  } catch {
    return undefined
  }
}
