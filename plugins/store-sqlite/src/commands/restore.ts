import { shownPath } from '@svc/core'
import type { Command } from '@svc/core/contracts'
import { findServers } from '@svc/core/processes'
import { restore as restoreStore } from '../restore.ts'
import { serverRuns } from '../backup-errors.ts'
import { configuredFile, contentText, readLine } from './line.ts'

const USAGE = 'store restore <file> [--json]'
const OPTIONS = { json: { type: 'boolean', default: false } } as const

/** `svc store restore <file>`: only while nobody has the store open; the former one stays beside it. */
const restore: Command = async call => {
  const { values, file } = readLine(call.args, USAGE, OPTIONS)
  const store = await configuredFile(call)
  await refuseWhileServed(call.home)
  const { kept, bytes, findings } = await restoreStore(file, store, call.signal)
  const { spaces, records, entries } = findings
  if (values.json) return call.print(JSON.stringify({ file, store, kept: kept ?? null, bytes, records, entries, spaces }))
  call.print(`${shownPath(store)} is restored: ${contentText(findings, bytes)}`)
  if (kept !== undefined) call.note(`the former store is ${shownPath(kept)}`)
}

export default restore

async function refuseWhileServed(home: string): Promise<void> {
  const servers = await findServers(home)
  for (const server of servers) server[Symbol.dispose]()
  if (servers.length > 0) throw serverRuns(servers.map(({ info }) => info))
}
