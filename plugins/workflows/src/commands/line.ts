import { type ParseArgsOptionsConfig, parseArgs, stripVTControlCharacters } from 'node:util'
import { messageOf } from '@svc/core'
import { lineInvalid } from '../errors.ts'

export const USAGE = {
  list: 'workflows list [--json]',
  show: 'workflows show <name or path> [--json]',
  validate: 'workflows validate <name or file>... [--json]',
  graph: 'workflows graph <name or path> [--svg <file>]',
  run: 'workflows run <name or path> [--input <json or @file>] [--param <name>=<value>]... [--detach] [--json]',
  runs: 'workflows runs [--workflow <name>] [--status running|completed|failed] [--limit <number>] [--json]',
  status: 'workflows status <run> [--follow] [--json]',
  cancel: 'workflows cancel <run> [--json]',
  answer: 'workflows answer <run> [<step>] <answer> [--follow] [--json]',
  retry: 'workflows retry <run> [--json]',
} as const

/** What all of them take; `--config <file>` svc takes off before. */
export const JSON_FLAG = { json: { type: 'boolean', default: false } } as const
export const FOLLOW_FLAG = { follow: { type: 'boolean', default: false } } as const

/** Reads a command line of so many words. Throws COMMAND_LINE_INVALID. */
export function readLine<O extends ParseArgsOptionsConfig>(
  args: readonly string[],
  usage: string,
  options: O,
  words: readonly [least: number, most: number]
) {
  try {
    const read = parseArgs({ args: [...args], options, allowPositionals: true })
    const [least, most] = words
    if (read.positionals.length < least) throw new Error('something is missing')
    if (read.positionals.length > most) throw new Error(`"${read.positionals[most]}" is one word too many`)
    return read
  } catch (error) {
    throw lineInvalid(messageOf(error), usage)
  }
}

/** Rows of cells below each other, the first one being the head. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map(row => row[column]?.length ?? 0)))
  const padded = (row: readonly string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0))
  return rows.map(row => padded(row).join('  ').trimEnd())
}

/** Words of others in one line of a terminal. */
export function oneLine(text: string, most = 100): string {
  const line = stripVTControlCharacters(text)
    .replace(/[\p{Cc}\p{Cf}]+/gu, ' ')
    .trim()
  return line.length <= most ? line : `${line.slice(0, most - 1)}…`
}

const MINUTE = 60_000

/** A length of time for a person. */
export function shownMs(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < MINUTE) return `${(ms / 1_000).toFixed(1)} s`
  const seconds = Math.round(ms / 1_000)
  return seconds < 3_600
    ? `${Math.floor(seconds / 60)} min ${seconds % 60} s`
    : `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`
}

/** `3 tokens`, `1 token`. */
export const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`
