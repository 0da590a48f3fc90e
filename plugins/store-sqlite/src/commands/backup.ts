import { shownPath } from '@svc/core'
import type { Command } from '@svc/core/contracts'
import { makeBackup } from '../backup.ts'
import { configuredFile, contentText, readLine } from './line.ts'

const USAGE = 'store backup <file> [--force] [--json]'
const OPTIONS = { force: { type: 'boolean', default: false }, json: { type: 'boolean', default: false } } as const

/** `svc store backup <file>`: everything that was acknowledged before, also while the server runs. */
const backup: Command = async call => {
  const { values, file } = readLine(call.args, USAGE, OPTIONS)
  const store = await configuredFile(call)
  const { bytes, findings } = await makeBackup(store, file, { force: values.force, signal: call.signal })
  const { spaces, records, entries } = findings
  if (values.json) return call.print(JSON.stringify({ file, store, bytes, records, entries, spaces }))
  call.print(`${shownPath(file)}: ${contentText(findings, bytes)}, checked`)
}

export default backup
