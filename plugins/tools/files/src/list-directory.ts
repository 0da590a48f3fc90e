import type { Dirent } from 'node:fs'
import { lstat, opendir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Tool, ToolResult } from '@svc/core/contracts'
import { withPathErrors, openFolder, type Roots } from '@svc/safe-fs'
import { toolOf } from '@svc/plugin-kit'

interface Entry {
  readonly name: string
  readonly type: 'file' | 'directory' | 'link' | 'other'
  /** Size of a file in bytes. */
  readonly size?: number
}

/** Creates `list_directory`, which lists a directory within the roots, at most `maxEntries` entries a call. */
export function createListDirectory(roots: Roots, maxEntries: number): Tool {
  return toolOf<{ readonly path?: string }>({
    description: `Lists the entries of a directory with their types and sizes. ${roots.words}`,
    category: 'files',
    effects: ['read'],
    workplace: true,
    parameters: {
      type: 'object',
      properties: { path: { type: 'string', minLength: 1, maxLength: 4096, description: 'directory to list; default "."' } },
      additionalProperties: false,
    },
    result: {
      type: 'object',
      properties: {
        path: { type: 'string' },
        entries: {
          type: 'array',
          items: {
            type: 'object',
            properties: {
              name: { type: 'string' },
              type: { enum: ['file', 'directory', 'link', 'other'] },
              size: { type: 'integer' },
            },
            required: ['name', 'type'],
            additionalProperties: false,
          },
        },
        truncated: { type: 'boolean' },
      },
      required: ['path', 'entries', 'truncated'],
      additionalProperties: false,
    },
    async call({ path = '.' }, { signal }) {
      if (roots.isAll(path))
        return toResult(
          '.',
          roots.labels.map(name => ({ name, type: 'directory' })),
          false
        )
      const place = await roots.find(path)
      await using folder = await openFolder(roots, place)
      const { found, more } = await withPathErrors(place.shown, signal, () => readEntries(folder.at('.'), maxEntries, signal))
      return toResult(place.shown, found, more)
    },
  })
}

async function readEntries(folder: string, most: number, signal: AbortSignal): Promise<{ found: Entry[]; more: boolean }> {
  const names: Dirent[] = []
  let more = false
  // not readdir, because a directory can have millions of entries
  for await (const entry of await opendir(folder)) {
    signal.throwIfAborted()
    more = names.length === most
    if (more) break
    names.push(entry)
  }
  const found = await Promise.all(names.map(entry => describe(folder, entry)))
  signal.throwIfAborted()
  return { found: found.sort((a, b) => (a.name < b.name ? -1 : 1)), more }
}

async function describe(folder: string, entry: Dirent): Promise<Entry> {
  const { name } = entry
  if (entry.isDirectory()) return { name, type: 'directory' }
  if (entry.isSymbolicLink()) return { name, type: 'link' }
  if (!entry.isFile()) return { name, type: 'other' }
  // the file can be gone by now, or have a name that is not valid UTF-8
  const stats = await lstat(join(folder, name)).catch(() => undefined)
  return { name, type: 'file', ...(stats?.isFile() ? { size: stats.size } : {}) }
}

function toResult(path: string, entries: readonly Entry[], truncated: boolean): ToolResult {
  const lines = entries.map(
    ({ name, type, size }) => `${JSON.stringify(name).slice(1, -1)}${MARKS[type]}${size === undefined ? '' : `  ${size} bytes`}`
  )
  const note = truncated
    ? [`[The directory has more entries; these are ${entries.length} arbitrary ones.]`]
    : entries.length === 0
      ? ['[The directory is empty.]']
      : []
  const text = [...lines, ...note].join('\n')
  return { content: [{ type: 'text', text }], structured: { path, entries: entries.map(entry => ({ ...entry })), truncated } }
}

const MARKS: Readonly<Record<Entry['type'], string>> = { file: '', directory: '/', link: '@', other: '?' }
