import { isUtf8 } from 'node:buffer'
import type { FileHandle } from 'node:fs/promises'
import type { Tool, ToolResult } from '@svc/core/contracts'
import { toolOf } from '@svc/plugin-kit'
import { withPathErrors, openPlace, type Roots } from '@svc/safe-fs'
import { isBinary } from './errors.ts'

const LINES = 2000

/** Arguments as the schema allows them. */
interface Arguments {
  readonly path: string
  readonly offset?: number
  readonly limit?: number
}

/** Creates `read_file`, which reads text from a file within the roots, at most `maxBytes` a call. */
export function createReadFile(roots: Roots, maxBytes: number): Tool {
  return toolOf<Arguments>({
    description: `Reads a text file, or a range of its lines. ${roots.words}`,
    category: 'files',
    effects: ['read'],
    workplace: true,
    parameters: {
      type: 'object',
      properties: {
        path: { type: 'string', minLength: 1, maxLength: 4096, description: 'file to read' },
        offset: {
          type: 'integer',
          minimum: 1,
          description: 'first line to read, counted from 1; default 1',
        },
        limit: { type: 'integer', minimum: 1, maximum: 100_000, description: `maximum number of lines; default ${LINES}` },
      },
      required: ['path'],
      additionalProperties: false,
    },
    result: {
      type: 'object',
      properties: {
        path: { type: 'string' },
        content: { type: 'string' },
        size: { type: 'integer', description: 'size of the whole file in bytes' },
        first_line: { type: 'integer' },
        lines: { type: 'integer', description: 'number of lines in content' },
        truncated: { type: 'boolean', description: 'whether the file continues' },
        next_offset: { type: 'integer', description: 'offset of the next lines' },
        note: { type: 'string' },
      },
      required: ['path', 'content', 'size', 'first_line', 'lines', 'truncated'],
      additionalProperties: false,
    },
    async call({ path, offset: first = 1, limit: lines = LINES }, { signal }) {
      const place = await roots.find(path)
      await using opened = await openPlace(roots, place, 'file')
      const { size } = opened.stats
      const look = (bytes: Buffer) => {
        if (bytes.includes(0)) throw isBinary(place.shown, size)
      }
      const wanted = { first, lines, bytes: maxBytes, size }
      const window = await withPathErrors(place.shown, signal, () => readLines(opened.handle, wanted, signal, look))
      look(window.bytes)
      return toResult(place.shown, size, first, window)
    },
  })
}

const decoder = new TextDecoder()

function toResult(path: string, size: number, first: number, window: LineWindow): ToolResult {
  const bytes = window.ends === 'bytes' ? wholeCharacters(window.bytes) : window.bytes
  const content = decoder.decode(bytes)
  const truncated = window.ends !== 'file'
  const next = first + window.lines - (window.ends === 'bytes' ? 1 : 0)
  const note = [
    ...endOf(first, next, window),
    ...(isUtf8(bytes) ? [] : ['Bytes that are not valid UTF-8 are shown as \ufffd.']),
  ].join(' ')
  return {
    content: [content, ...(note ? [`[${note}]`] : [])].map(text => ({ type: 'text', text })),
    structured: {
      path,
      content,
      size,
      first_line: first,
      lines: window.lines,
      truncated,
      ...(truncated && next > first ? { next_offset: next } : {}),
      ...(note ? { note } : {}),
    },
  }
}

/** Notes on where the text ends. */
function endOf(first: number, next: number, { lines, passed, ends }: LineWindow): string[] {
  const more = `continue with offset ${next}.`
  if (ends === 'lines') return [`Lines ${first} to ${first + lines - 1}; ${more}`]
  if (ends === 'bytes')
    return [
      next > first
        ? `Truncated in line ${next}, because a call returns no more; ${more}`
        : `Line ${first} is truncated, because a call returns no more.`,
    ]
  if (lines > 0) return []
  return [first === 1 ? 'The file is empty.' : `The file ends before line ${first}; it has ${passed} line ends.`]
}

/** A range of lines of a file. */
interface LineWindow {
  /** The bytes of the lines, including line ends. */
  readonly bytes: Buffer
  /** Number of lines; the last can be incomplete. */
  readonly lines: number
  /** Number of skipped lines before it. */
  readonly passed: number
  /** The reason it ends: the end of the file, or the limit of lines or bytes. */
  readonly ends: 'file' | 'lines' | 'bytes'
}

/** The requested range: from line `first` (counted from 1), at most `lines` lines and `bytes` bytes. */
interface Wanted {
  readonly first: number
  readonly lines: number
  readonly bytes: number
  /** Size of the file when it was opened. Later data is ignored, because a growing file would never end. */
  readonly size: number
}

const CHUNK = 65_536
const NEWLINE = 10

/** Reads lines from an open file, with bounded memory. `look` receives the first chunk. */
async function readLines(
  handle: FileHandle,
  wanted: Wanted,
  signal: AbortSignal,
  look: (head: Buffer) => void
): Promise<LineWindow> {
  const kept: Buffer[] = []
  let [passed, lines, size, position] = [0, 0, 0, 0]
  // whether the next byte starts a line
  let fresh = true
  const done = (ends: LineWindow['ends']): LineWindow => ({ bytes: Buffer.concat(kept), lines, passed, ends })
  for (;;) {
    signal.throwIfAborted()
    // files in /proc report a size of 0
    const most = wanted.size === 0 ? CHUNK : Math.min(CHUNK, wanted.size - position)
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(CHUNK), 0, most, position)
    const chunk = buffer.subarray(0, bytesRead)
    if (position === 0) look(chunk)
    if (bytesRead === 0) return done('file')
    position += bytesRead
    for (let at = 0; at < chunk.length; ) {
      if (fresh && passed === wanted.first - 1 && lines === wanted.lines) return done('lines')
      const newline = chunk.indexOf(NEWLINE, at)
      const end = newline === -1 ? chunk.length : newline + 1
      if (passed < wanted.first - 1) passed += newline === -1 ? 0 : 1
      else {
        const line = chunk.subarray(at, Math.min(end, at + wanted.bytes - size))
        if (line.length > 0) {
          kept.push(line)
          if (fresh) lines++
        }
        size += line.length
        if (line.length < end - at) return done('bytes')
      }
      fresh = newline !== -1
      at = end
    }
  }
}

/** Removes an incomplete character at the end. */
function wholeCharacters(bytes: Buffer): Buffer {
  let end = bytes.length
  for (let back = 1; back <= Math.min(4, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!
    if ((byte & 0xc0) === 0x80) continue
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    if (length > back) end = bytes.length - back
    break
  }
  return bytes.subarray(0, end)
}
