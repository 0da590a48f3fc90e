import { notTooLong } from './bounds.ts'

interface Input {
  readonly before: string
  readonly after: string
  readonly context: number
  readonly name: string
}

export async function diffText({ before, after, context, name }: Input) {
  if (before === after) return { equal: true, added: 0, removed: 0, diff: '' }
  const { formatPatch, structuredPatch } = await import('diff')
  const patch = structuredPatch(`a/${name}`, `b/${name}`, before, after, undefined, undefined, { context })
  const lines = patch.hunks.flatMap(hunk => hunk.lines)
  const diff = formatPatch(patch).replace(/^=+\n/, '')
  notTooLong(diff.length, 'compare smaller parts')
  const count = (mark: string) => lines.filter(line => line.startsWith(mark)).length
  return { equal: false, added: count('+'), removed: count('-'), diff }
}
