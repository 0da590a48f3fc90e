import { parseArgs } from 'node:util'
import { messageOf } from '@svc/core'
import { lineInvalid } from '../errors.ts'

export const USAGE = {
  list: 'teams list [--json]',
  show: 'teams show <team> [--json]',
  run: 'teams run <team> <task>... [--json]',
} as const

const OPTIONS = { json: { type: 'boolean', default: false } } as const

/** Reads a command line of so many words. Throws COMMAND_LINE_INVALID. */
export function readLine(args: readonly string[], usage: string, [least, most]: readonly [number, number]) {
  try {
    const { values, positionals } = parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true })
    if (positionals.length < least) throw new Error('something is missing')
    if (positionals.length > most) throw new Error(`"${positionals[most]}" is one word too many`)
    return { json: values.json, words: positionals }
  } catch (error) {
    throw lineInvalid(messageOf(error), usage)
  }
}

/** Rows of cells below each other, the first one being the head. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map(row => row[column]?.length ?? 0)))
  const line = (row: readonly string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')
  return rows.map(row => line(row).trimEnd())
}

/** Words of strangers in one line of a terminal. */
export const oneLine = (text: string, most = 100): string => {
  const line = text.replace(/\p{Cc}+/gu, ' ').trim()
  return line.length <= most ? line : `${line.slice(0, most - 1)}…`
}

/** Text of models as a terminal may have it: without what would steer it. */
export const shownText = (text: string): string => text.replace(/[^\P{Cc}\n\t]/gu, '')
