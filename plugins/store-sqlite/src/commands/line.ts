import { resolve } from 'node:path'
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import { messageOf } from '@svc/core'
import type { CommandCall } from '@svc/core/contracts'
import type { Findings } from '../inspect.ts'
import { fileOf } from '../place.ts'
import { lineInvalid } from '../backup-errors.ts'

/** Reads a command line with one file on it. Throws COMMAND_LINE_INVALID. */
export function readLine<O extends ParseArgsOptionsConfig>(args: readonly string[], usage: string, options: O) {
  try {
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true })
    const [file, ...rest] = positionals
    if (file === undefined || file === '' || rest.length > 0) throw new Error('it takes one file')
    return { values, file: resolve(file) }
  } catch (error) {
    throw lineInvalid(messageOf(error), usage)
  }
}

/** The store's file, as the configuration of this command has it. */
export async function configuredFile({ setting }: CommandCall): Promise<string> {
  const path = await setting('store', 'path')
  return fileOf(typeof path === 'string' && path !== '' ? { path } : {})
}

/** What is in a file, in words. */
export function contentText({ spaces, records, entries }: Findings, bytes: number): string {
  const size = bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`
  return `${size}, ${records} records and ${entries} log entries of ${spaces.length} spaces`
}
