import { stripVTControlCharacters } from 'node:util'
import { svcError } from '@svc/core'

/** Rows of cells below each other, the first one being the head. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map(row => row[column]?.length ?? 0)))
  const padded = (row: readonly string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0))
  return rows.map(row => padded(row).join('  ').trimEnd())
}

/** Words of others in one line of a terminal, without what would steer it. */
export function oneLine(text: string, most = 100): string {
  const line = stripVTControlCharacters(text)
    .replace(/[\p{Cc}\p{Cf}]+/gu, ' ')
    .trim()
  return line.length <= most ? line : `${line.slice(0, most - 1)}…`
}

/** A command line that oclif takes and the command does not: `usage` says how it is written. */
export const lineInvalid = (message: string, usage: string) =>
  svcError('COMMAND_LINE_INVALID', message, { hint: `write: svc ${usage}` })
