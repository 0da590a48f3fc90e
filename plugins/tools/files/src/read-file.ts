import { isUtf8 } from 'node:buffer'
import type { Tool, ToolResult } from '@svc/core/contracts'
import { inWords, openPlace, type Roots } from '@svc/safe-fs'
import { toolOf } from '@svc/plugin-kit'
import { isBinary } from './errors.ts'
import { type LineWindow, readLines, wholeCharacters } from './line-window.ts'

const LINES = 2000

/** What the schema lets through. */
interface Arguments {
  readonly path: string
  readonly offset?: number
  readonly limit?: number
}

/** Makes `read_file`: text from a file within the roots, at most `maxBytes` a call. */
export function createReadFile(roots: Roots, maxBytes: number): Tool {
  return toolOf<Arguments>({
    description: `Reads a text file, whole or some of its lines. ${roots.words}`,
    category: 'files',
    effects: ['read'],
    parameters: {
      type: 'object',
      properties: {
        path: { type: 'string', minLength: 1, maxLength: 4096, description: 'the file to read' },
        offset: {
          type: 'integer',
          minimum: 1,
          description: 'the first line to read; 1 is the first of the file, and the default',
        },
        limit: { type: 'integer', minimum: 1, maximum: 100_000, description: `how many lines to read at most; default ${LINES}` },
      },
      required: ['path'],
      additionalProperties: false,
    },
    result: {
      type: 'object',
      properties: {
        path: { type: 'string' },
        content: { type: 'string' },
        size: { type: 'integer', description: 'bytes of the whole file' },
        first_line: { type: 'integer' },
        lines: { type: 'integer', description: 'how many lines are in content' },
        truncated: { type: 'boolean', description: 'whether more follows' },
        next_offset: { type: 'integer', description: 'the offset that goes on' },
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
      const window = await inWords(place.shown, signal, () => readLines(opened.handle, wanted, signal, look))
      look(window.bytes)
      return told(place.shown, size, first, window)
    },
  })
}

const decoder = new TextDecoder()

function told(path: string, size: number, first: number, window: LineWindow): ToolResult {
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

/** What the reader must know of where the text ends. */
function endOf(first: number, next: number, { lines, passed, ends }: LineWindow): string[] {
  const more = `read on with offset ${next}.`
  if (ends === 'lines') return [`Lines ${first} to ${first + lines - 1}; ${more}`]
  if (ends === 'bytes')
    return [
      next > first
        ? `Cut in line ${next}: that is as much as one call returns; ${more}`
        : `Line ${first} is cut: it is longer than one call returns.`,
    ]
  if (lines > 0) return []
  return [first === 1 ? 'The file is empty.' : `The file ends before line ${first}: it has ${passed} line ends.`]
}
