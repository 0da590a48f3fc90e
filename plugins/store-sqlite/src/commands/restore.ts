import { shownPath, systemUse } from '@svc/core'
import type { Command, CommandCall } from '@svc/core/contracts'
import { findServers, fromWire } from '@svc/core/processes'
import { restore as restoreStore } from '../restore.ts'
import type { Held } from '../lasting.ts'
import { serverDown } from '../backup-errors.ts'
import { configuredFile, contentText, readLine } from './line.ts'

const USAGE = 'store restore <file> [--json]'
const OPTIONS = { json: { type: 'boolean', default: false } } as const

/** `svc store restore <file>`: servers of this home pause while the file is replaced; the former store stays beside it. */
const restore: Command = async call => {
  const { values, file } = readLine(call.args, USAGE, OPTIONS)
  const store = await configuredFile(call)
  const { kept, bytes, findings, unsure } = await restoreStore(file, store, call.signal, work => withPaused(call, work))
  const { spaces, records, entries } = findings
  if (unsure.length > 0) call.note(unsureText(unsure))
  if (values.json) return call.print(JSON.stringify({ file, store, kept: kept ?? null, bytes, records, entries, spaces, unsure }))
  call.print(`${shownPath(store)} is restored: ${contentText(findings, bytes)}`)
  if (kept !== undefined) call.note(`the former store is ${shownPath(kept)}`)
}

export default restore

const unsureText = (unsure: readonly Held[]) =>
  `take care: no former store could be read, so what was revoked since the backup holds again: ${unsure
    .map(({ collection, records }) => `${records} records of ${collection}`)
    .join(', ')}. Access tokens: see \`svc tokens list\`, and \`svc tokens revoke <id>\` each that is to be none.`

/** Does the work while the servers of this home have no worker, and so no store open. Throws what came of bringing them back. */
async function withPaused<T>({ home, signal, note }: CommandCall, work: () => T): Promise<T> {
  const use = systemUse(signal, 'svc store restore')
  using stack = new DisposableStack()
  const servers = (await findServers(home)).map(server => stack.use(server))
  const pauses = servers.map(({ control }) => control.pause(use)[Symbol.asyncIterator]())
  await Promise.all(pauses.map(pause => pause.next()))
  const done = work()
  for (const { control, info } of servers) {
    const { problems } = await control.resume(use)
    if (problems.length > 0) throw serverDown(info, problems.map(fromWire))
    note(`${info.url} has served again since, with new workers`)
  }
  return done
}
