import { refusal } from '@svc/worker-pool/child'
import { messageOf, notTooLong } from './bounds.ts'

interface Input {
  readonly text: string
  readonly delimiter?: string
  readonly header: boolean
  readonly offset: number
  readonly limit: number
}

export async function parseCsv({ text, delimiter = delimiterOf(text), header, offset, limit }: Input) {
  const { parse } = await import('csv-parse/sync')
  const all = read(() => parse(text, { delimiter, bom: true, skip_empty_lines: true }) as string[][])
  const columns = header ? all.shift() : undefined
  const rows = all.slice(offset, offset + limit)
  notTooLong(
    rows.flat().reduce((sum, field) => sum + field.length, 0),
    'ask for fewer rows with "limit"'
  )
  const end = offset + rows.length
  const more = end < all.length ? { next_offset: end } : {}
  return { ...(columns && { columns }), rows, row_count: all.length, offset, delimiter, ...more }
}

function read<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw refusal('CSV_INVALID', `the CSV cannot be read: ${messageOf(error)}`, { hint: 'fix that line, or name the delimiter' })
  }
}

const DELIMITERS = [',', ';', '\t', '|']

/** What the first line has most of, quoted parts apart. */
function delimiterOf(text: string): string {
  const line =
    text
      .slice(0, 10_000)
      .replaceAll(/"[^"]*"/g, '')
      .split(/\r?\n/, 1)[0] ?? ''
  const counts = DELIMITERS.map(one => line.split(one).length)
  return DELIMITERS[counts.indexOf(Math.max(...counts))]!
}
