import type { Tool, ToolResult } from '@svc/core/contracts'
import { compileGlob, withPathErrors, newWalkStats, type Roots, type Visit, walk, type WalkStats } from '@svc/safe-fs'
import { objectOf, toolOf } from '@svc/plugin-kit'
import { pathOf } from './paths.ts'

/** Arguments as the schema allows them. */
interface Arguments {
  readonly pattern: string
  readonly path?: string
  readonly type?: 'file' | 'directory' | 'any'
  readonly ignored?: boolean
}
interface FoundFile {
  readonly path: string
  readonly type: 'file' | 'directory' | 'link' | 'other'
}

/** Creates `find_files`, which finds files by a glob pattern within the roots: at most `most` results, from at most `entries` entries. */
export function createFindFiles(roots: Roots, most: number, entries: number): Tool {
  return toolOf<Arguments>({
    description: `Finds files by a pattern of their path: * for a part of a name, ** for any folders, ?, [a-z], {a,b}. A pattern without a slash matches names in any folder. Skips files that .gitignore and .ignore exclude. ${roots.words}`,
    category: 'files',
    effects: ['read'],
    workplace: true,
    parameters: {
      type: 'object',
      properties: {
        pattern: { type: 'string', minLength: 1, maxLength: 1024, description: 'the pattern, relative to path' },
        path: pathOf('directory to search; default "."'),
        type: { type: 'string', enum: ['file', 'directory', 'any'], description: 'type of entries to find; default file' },
        ignored: { type: 'boolean', description: 'whether to include ignored files; default false' },
      },
      required: ['pattern'],
      additionalProperties: false,
    },
    result: objectOf(
      {
        path: { type: 'string' },
        found: {
          type: 'array',
          items: objectOf({ path: { type: 'string' }, type: { enum: ['file', 'directory', 'link', 'other'] } }),
        },
        truncated: { type: 'boolean' },
        note: { type: 'string' },
      },
      ['note']
    ),
    async call({ pattern, path = '.', type = 'file', ignored = false }, { signal }) {
      const matches = await compileGlob(pattern)
      const starts = roots.isAll(path)
        ? await Promise.all(roots.labels.map(label => roots.find(label)))
        : [await roots.find(path)]
      const tally = newWalkStats()
      const found: FoundFile[] = []
      for (const start of starts)
        await withPathErrors(start.shown, signal, async () => {
          const inner = starts.length > 1 ? `${start.shown}/` : ''
          const fits = (visit: Visit) => (type === 'any' || visit.type === type) && matches(inner + visit.path)
          await collect(walk(roots, start, { signal, ignored, entries }, tally), fits, found, most + 1)
        })
      return toResult(path, found, most, tally)
    },
  })
}

async function collect(
  visits: AsyncIterable<Visit>,
  fits: (visit: Visit) => boolean,
  found: FoundFile[],
  most: number
): Promise<void> {
  for await (const visit of visits) {
    if (found.length >= most) return
    if (fits(visit)) found.push({ path: visit.shown, type: visit.type })
  }
}

function toResult(path: string, all: readonly FoundFile[], most: number, tally: WalkStats): ToolResult {
  const found = all.slice(0, most)
  const more = all.length > most
  const notes = [
    ...(more ? [`More files match; these are the first ${most}.`] : []),
    ...(tally.cut ? [`The search is incomplete: it ended after ${tally.entries} entries.`] : []),
    ...(tally.unreadable > 0 ? [`Unreadable folders: ${tally.unreadable}.`] : []),
    ...(found.length === 0 ? ['No file matches the pattern.'] : []),
  ]
  const lines = found.map(
    foundFile => `${JSON.stringify(foundFile.path).slice(1, -1)}${foundFile.type === 'directory' ? '/' : ''}`
  )
  const note = notes.join(' ')
  return {
    content: [{ type: 'text', text: [...lines, ...(note ? [`[${note}]`] : [])].join('\n') }],
    structured: {
      path,
      found: found.map(foundFile => ({ ...foundFile })),
      truncated: more || tally.cut,
      ...(note ? { note } : {}),
    },
  }
}
