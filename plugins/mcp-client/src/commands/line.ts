import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import { messageOf } from '@svc/core'
import { lineInvalid } from '../errors.ts'

export const USAGE = {
  list: 'mcp list [--port <port>] [--json]',
  add: 'mcp add <name> <url> | -- <command> [<argument>...]',
  remove: 'mcp remove <name> [--json]',
  test: 'mcp test <name> [--tool <tool>] [--args <json>] [--json]',
  tools: 'mcp tools <name> [--port <port>] [--json]',
  approve: 'mcp approve <name> [<tool>...] [--json]',
  enable: 'mcp enable <name> [--json]',
  disable: 'mcp disable <name> [--json]',
  import: 'mcp import <file or -> [--json]',
  login: 'mcp login <name> [--port <port>]',
} as const

/** What all of them take; `--config <file>` svc takes off before. */
export const JSON_FLAG = { json: { type: 'boolean', default: false } } as const
export const PORT_FLAG = { port: { type: 'string' } } as const

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
    const count = read.positionals.length
    if (count < least) throw new Error('something is missing')
    if (count > most) throw new Error(`"${read.positionals[most]}" is one word too many`)
    return read
  } catch (error) {
    throw lineInvalid(messageOf(error), usage)
  }
}

/** A port as given. Throws COMMAND_LINE_INVALID. */
export function portOf(given: string | undefined, usage: string): number | undefined {
  if (given === undefined) return undefined
  const port = Number(given)
  if (Number.isInteger(port) && port > 0 && port < 65_536) return port
  throw lineInvalid(`--port must be a port, was "${given}"`, usage)
}

/** Rows of cells below each other, the first one being the head. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map(row => row[column]?.length ?? 0)))
  return rows.map(row =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd()
  )
}

/** Words of strangers in one line of a terminal. */
export const oneLine = (text: string, most = 100): string => {
  const line = text.replace(/\p{Cc}+/gu, ' ').trim()
  return line.length <= most ? line : `${line.slice(0, most - 1)}…`
}
