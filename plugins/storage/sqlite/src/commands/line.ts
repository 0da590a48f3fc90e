import type { CommandContext } from '@svc/core/contracts'
import type { Findings } from '../inspect.ts'
import { fileOf } from '../place.ts'

/** The store's file, as the configuration of this command has it. */
export async function configuredFile({ setting }: CommandContext): Promise<string> {
  const path = await setting('store', 'path')
  return fileOf(typeof path === 'string' && path !== '' ? { path } : {})
}

/** What is in a file, in words. */
export function contentText({ spaces, records, entries }: Findings, bytes: number): string {
  const size = bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`
  return `${size}, ${records} records and ${entries} log entries of ${spaces.length} spaces`
}
