import { answerRefused } from './errors.ts'

const LONGEST_BYTES = 1_048_576
const LIMIT_MS = 5_000

/** The object that stands at an address: in time, of a bounded size, and from there alone: no redirect is followed. */
export async function fetchJson(url: URL, signal: AbortSignal): Promise<Readonly<Record<string, unknown>>> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(LIMIT_MS)])
  const headers = { accept: 'application/json', connection: 'close' }
  const response = await fetch(url, { signal: limited, redirect: 'error', headers })
  if (response.status !== 200 || !response.body) {
    await response.body?.cancel()
    throw answerRefused(url, `answers ${response.status}`)
  }
  const value: unknown = JSON.parse(await textOf(url, response.body))
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw answerRefused(url, 'answers no object')
  return value as Readonly<Record<string, unknown>>
}

async function textOf(url: URL, body: ReadableStream<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = []
  let size = 0
  for await (const part of body) {
    size += part.byteLength
    if (size > LONGEST_BYTES) throw answerRefused(url, `answers more than ${LONGEST_BYTES} bytes`)
    parts.push(part)
  }
  return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(parts))
}
