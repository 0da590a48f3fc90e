import { createHash } from 'node:crypto'
import { eventRecord, runReply, statusRecord, stepRecord, INTEGER, object, STRING } from '@svc/api-types'
import { type JsonSchema, redactText } from '@svc/core'
import type { Json, RouteReply, Run, RunEvent, RunStep } from '@svc/core/contracts'

// Results of runs and outputs of steps. A large one is not in its record: the record refers to a file, which is read in ranges.

/** Larger values (bytes of JSON) are files. */
const LARGEST = 65_536

const fileFields = {
  url: { ...(STRING as object), description: 'Where to GET it as JSON, whole or in ranges.' },
  size: { ...(INTEGER as object), description: 'In bytes.' },
}
/** A large result or output. */
const FILE: JsonSchema = { ...(object(fileFields) as object), title: 'WorkflowFile' }
/** A reference to a large value, or null. */
export const NULLABLE_FILE: JsonSchema = {
  oneOf: [FILE, { type: 'null' }],
  description: `Set for more than ${LARGEST} bytes of JSON; the value is null then.`,
}

interface FileReference {
  readonly url: string
  readonly size: number
}

/** The reference to a value that is too large for a record. */
function fileOf(run: string, value: Json | undefined, step?: string): FileReference | null {
  if (value === undefined || typeof value === 'number' || typeof value === 'boolean' || value === null) return null
  const size = Buffer.byteLength(JSON.stringify(value))
  if (size <= LARGEST) return null
  const query = step === undefined ? '' : `?step=${encodeURIComponent(step)}`
  return { url: `/api/v1/workflows/${run}/result${query}`, size }
}

/** The full status of a run. */
export function statusBody(run: Run) {
  const file = run.status === 'completed' ? fileOf(run.id, run.result) : null
  return { ...statusRecord(file ? { ...run, result: null } : run), ...(file ? { result: null } : {}), result_file: file }
}

/** The reply to a request that starts a run. */
export function replyBody(run: Run) {
  const file = run.status === 'completed' ? fileOf(run.id, run.result) : null
  if (!file) return runReply(run)
  const { result: _result, ...rest } = runReply({ ...run, result: null }) as { readonly result?: unknown }
  return { ...rest, result_file: file }
}

/** A step of a run. */
export function stepBody(run: string, step: RunStep) {
  const file = fileOf(run, step.output, step.step)
  return { ...stepRecord(file ? { ...step, output: null } : step), output_file: file }
}

/** A step of a run in a long list. */
export function briefStep({ error, ...step }: RunStep) {
  const shown = error ? { error: { code: error.code, message: error.message, details: {} } } : {}
  return { ...stepRecord({ ...step, ...shown, input: null, output: null }), output_file: null }
}

/** An event of a run. */
export function eventBody(run: string, event: RunEvent) {
  if (event.type === 'run_completed') {
    const file = fileOf(run, event.data.result)
    if (file) return { ...eventRecord(run, { ...event, data: {} }), result: null, result_file: file }
  }
  if (event.type === 'node_completed') {
    const file = fileOf(run, event.data.output, event.step)
    if (file) return { ...eventRecord(run, { ...event, data: { ...event.data, output: null } }), output_file: file }
  }
  return eventRecord(run, event)
}

interface Span {
  readonly from: number
  /** Exclusive. */
  readonly to: number
}

/**
 * The part that a header `Range` asks for (RFC 9110, 14.2): `none` if it lies outside. Undefined for the whole: without the header,
 * and for several ranges, other units and invalid syntax, which a server may ignore.
 */
function spanOf(range: string | undefined, size: number): Span | 'none' | undefined {
  const [, first, last] = /^bytes=\s*(\d{0,15})-(\d{0,15})\s*$/i.exec(range ?? '') ?? []
  if (first === undefined || last === undefined || (first === '' && last === '')) return undefined
  if (first === '') return Number(last) === 0 ? 'none' : { from: Math.max(0, size - Number(last)), to: size }
  if (last !== '' && Number(last) < Number(first)) return undefined
  if (Number(first) >= size) return 'none'
  return { from: Number(first), to: last === '' ? size : Math.min(size, Number(last) + 1) }
}

/** The value as JSON: whole, or in the range of the request. The body of the answer 416 is added by the caller. */
export function fileReply(value: Json, headers: Readonly<Record<string, string>>): RouteReply {
  // as in bodies of JSON, no secret of the server leaves it
  const bytes = new TextEncoder().encode(redactText(JSON.stringify(value)))
  const etag = `"${createHash('sha256').update(bytes).digest('base64url')}"`
  // a client that has a part of another value gets the whole
  const isSame = headers['if-range'] === undefined || headers['if-range'] === etag
  const span = isSame ? spanOf(headers.range, bytes.length) : undefined
  const common = { ETag: etag, 'Accept-Ranges': 'bytes', 'Cache-Control': 'private, no-cache' }
  if (span === 'none') return { status: 416, headers: { ...common, 'Content-Range': `bytes */${bytes.length}` } }
  const type = { 'Content-Type': 'application/json; charset=utf-8' }
  if (!span) return { headers: { ...common, ...type }, bytes }
  const range = { 'Content-Range': `bytes ${span.from}-${span.to - 1}/${bytes.length}` }
  return { status: 206, headers: { ...common, ...type, ...range }, bytes: bytes.slice(span.from, span.to) }
}
